"""Writes a topic of CloudEvents to Parquet: a job with default settings in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .job_run import run
from .settings import JobSettings, OutputSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from .manifest import JobCounts

__all__ = ["run_job"]


def run_job(
    spark: SparkSession, options: Mapping[str, str], output: str, *, overwrite: bool = False
) -> JobCounts:
    """Writes to `output`, as Parquet, the events that the data source selects by `options`.

    The output is a folder of one increment, partitioned by `status` and event `type`. A run in the
    mode `incremental` can continue from it.

    Raises:
        CountMismatchError: the counts of records read and rows written do not agree.
        OutputExistsError: `output` exists and `overwrite` is not set.
        OutputBusyError: another run writes to `output`.
        OptionError: an option is unknown, missing or wrong.
        DataLossError: with `failOnDataLoss`, the log lacks requested offsets; or a topic was
        recreated during the run.
        KprotoError: any error of the client.
    """
    settings = JobSettings(
        source=dict(options), output=OutputSettings(path=output, overwrite=overwrite)
    )
    return run(spark, settings).counts
