"""Writes a topic of CloudEvents to Parquet: a job with default settings in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .job_run import run
from .settings import JobSettings, Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from .manifest import JobCounts

__all__ = ["run_job"]


def run_job(
    spark: SparkSession, options: Mapping[str, str], output: str, *, overwrite: bool = False
) -> JobCounts:
    """Writes the events that `options` of the data source select as Parquet to `output`.

    The output is a folder of one increment, partitioned by `status` and event `type`. A run in the
    mode `incremental` can continue from it.

    Raises:
        CountMismatchError: the numbers of records read and rows written differ.
        OutputExistsError: `output` exists and `overwrite` is not set.
        OutputBusyError: another run writes to `output`.
    """
    settings = JobSettings(source=dict(options), output=Output(path=output, overwrite=overwrite))
    return run(spark, settings).counts
