"""The job: a topic of CloudEvents to Parquet, with counts that must agree.

Reads the topic, marks each record as valid, invalid or duplicate, drops the duplicates and
writes the rest partitioned by `status` and event `type`. Invalid records are dead letters: they
keep their key, value and headers, and `error` says why. The output appears whole or not at all:
it is written aside, counted again from the files, and moved into place only if all counts agree.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as sf

from kproto.wire.errors import KprotoError

from .events import DUPLICATE, INVALID, STATUSES, VALID, status_count, with_status
from .source import register

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
    files = _Files(spark, output)
    if files.exists(output) and not overwrite:
        raise OutputExistsError(f"{output} exists; remove it or allow to overwrite it")
    register(spark)
    events = spark.read.format("kproto").options(**options).option("cloudEvents", "true").load()
    seen = Observation("kproto-job")
    judged = with_status(events).observe(
        seen, sf.count(sf.lit(1)).alias("read"), *(status_count(s).alias(s) for s in STATUSES)
    )
    aside = files.sibling("writing")
    try:
        (
            judged.where(sf.col("status") != DUPLICATE)
            .write.partitionBy("status", "type")
            .parquet(aside)
        )
        counts = _agreed(seen.get, _rows_by_status(spark, aside))
        files.replace(aside)
    except BaseException:
        files.delete(aside)
        raise
    return counts


def _rows_by_status(spark: SparkSession, path: str) -> dict[str, int]:
    """How many rows the files hold, by status."""
    if not _Files(spark, path).holds_data(path):
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


class _Files:
    """The file system of the output, through Hadoop's API: local, HDFS or an object store."""

    def __init__(self, spark: SparkSession, output: str) -> None:
        context = spark.sparkContext
        assert context._jvm is not None, "the session is stopped"
        self._hadoop = context._jvm.org.apache.hadoop.fs
        self._output = self._hadoop.Path(output)
        self._system = self._output.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._hadoop.Path(path)))

    def holds_data(self, path: str) -> bool:
        """True when the directory has an entry besides Spark's own marks."""
        entries = self._system.listStatus(self._hadoop.Path(path))
        return any(not entry.getPath().getName().startswith(("_", ".")) for entry in entries)

    def sibling(self, purpose: str) -> str:
        """A fresh path beside the output, hidden from readers of the folder."""
        name = f".{self._output.getName()}-{purpose}-{uuid.uuid4().hex}"
        return str(self._hadoop.Path(self._system.makeQualified(self._output).getParent(), name))

    def delete(self, path: str) -> None:
        self._system.delete(self._hadoop.Path(path), True)

    def replace(self, aside: str) -> None:
        """Move a finished directory to the output's place; what stood there goes last."""
        old = None
        if self._system.exists(self._output):
            old = self.sibling("replaced")
            self._rename(self._output, self._hadoop.Path(old))
        self._rename(self._hadoop.Path(aside), self._output)
        if old is not None:
            self.delete(old)

    def _rename(self, source: object, target: object) -> None:
        if not self._system.rename(source, target):
            raise OSError(f"{source} could not be moved to {target}")
