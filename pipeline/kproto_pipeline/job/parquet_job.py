"""The job: a topic of CloudEvents to Parquet, with counts that must agree.

Reads the topic, marks each record as valid, invalid or duplicate, drops the duplicates and
writes the rest partitioned by `status` and event `type`. Invalid records are dead letters: they
keep their key, value and headers, and `error` says why. The output appears whole or not at all:
it is written aside, counted again from the files, and moved into place only if all counts agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as sf

from kproto.wire.errors import KprotoError

from ..spark.data_source import register
from .output_files import OutputFiles
from .running import undone_after_failure
from .verdicts import DUPLICATE, INVALID, STATUSES, VALID, status_count, with_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["CountMismatchError", "JobCounts", "OutputExistsError", "run_job"]


class CountMismatchError(KprotoError):
    """Records were lost or made up between two stages; nothing was put in the output's place."""


class OutputExistsError(KprotoError):
    """The output path is taken and may not be replaced."""


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Rows at each stage of the job. `written` are the valid and invalid ones in the files."""

    read: int
    valid: int
    invalid: int
    duplicates: int
    written: int


def run_job(
    spark: SparkSession, options: Mapping[str, str], output: str, *, overwrite: bool = False
) -> JobCounts:
    """Read the topic that `options` (those of the data source) name; write Parquet to `output`.

    Raises:
        CountMismatchError: rows in and rows out do not agree.
        OutputExistsError: `output` exists and `overwrite` is not set.
    """
    files = OutputFiles(spark, output)
    if files.exists(output) and not overwrite:
        raise OutputExistsError(f"{output} exists; remove it or allow to overwrite it")
    register(spark)
    events = spark.read.format("kproto").options(**options).option("cloudEvents", "true").load()
    seen = Observation("kproto-job")
    judged = with_status(events).observe(
        seen, sf.count(sf.lit(1)).alias("read"), *(status_count(s).alias(s) for s in STATUSES)
    )
    aside = files.sibling("writing")
    with undone_after_failure(spark, lambda: files.delete(aside)):
        (
            judged.where(sf.col("status") != DUPLICATE)
            .write.partitionBy("status", "type")
            .parquet(aside)
        )
        counts = _agreed(seen.get, _rows_by_status(spark, files, aside))
        files.replace(aside)
    return counts


def _rows_by_status(spark: SparkSession, files: OutputFiles, path: str) -> dict[str, int]:
    """How many rows the files hold, by status."""
    if not files.holds_data(path):
        return {}
    grouped = spark.read.parquet(path).groupBy("status").count().collect()
    return {row["status"]: row["count"] for row in grouped}


def _agreed(seen: Mapping[str, int], written: Mapping[str, int]) -> JobCounts:
    """The counts, once each record read is found again as exactly one outcome.

    Raises:
        CountMismatchError: naming the counts.
    """
    counts = JobCounts(
        read=seen["read"],
        valid=seen[VALID],
        invalid=seen[INVALID],
        duplicates=seen[DUPLICATE],
        written=sum(written.values()),
    )
    agree = (
        counts.read == counts.valid + counts.invalid + counts.duplicates
        and counts.valid == written.get(VALID, 0)
        and counts.invalid == written.get(INVALID, 0)
    )
    if not agree:
        raise CountMismatchError(
            f"{counts.read} records were read and judged {counts.valid} valid, {counts.invalid} "
            f"invalid, {counts.duplicates} duplicate, but the files hold {dict(written)}"
        )
    return counts
