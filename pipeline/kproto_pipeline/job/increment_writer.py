"""One increment: its ranges read, judged, written aside, counted again, published.

Owns the order of these steps, and what must agree. Knows nothing of what was read before, but the
events that were written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..columns import EVENT_SCHEMA
from ..spark.options.option_table import names_that_set
from .errors import CountMismatchError
from .event_status import DUPLICATE, INVALID, STATUSES, VALID, status_count, with_status
from .job_cleanup import cleanup_on_failure
from .manifest import JobCounts, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from .increment_plan import ReadPlan
    from .increment_store import IncrementStore
    from .output_files import OutputFiles
    from .settings import JobSettings, Output

__all__ = ["STEPS", "IncrementWriter", "pin_offset_ranges", "reconciled_counts"]

#: What a run does for an increment, in order; `at` hears of each when it has been done.
STEPS: Final = (
    "planned",
    "written aside",
    "counted",
    "dead letters written",
    "manifest written",
    "published",
    "cleared",
)

#: The options that an increment replaces by its own, in lower case: the ranges to read.
_REPLACED: Final = frozenset(
    name.lower()
    for name in names_that_set(
        "selection",
        "starting_offsets",
        "ending_offsets",
        "latest_without_match",
        "cloud_events",
        "fail_on_data_loss",
    )
)


def pin_offset_ranges(source: Mapping[str, str], plan: ReadPlan) -> dict[str, str]:
    """The options of the data source with which it reads exactly the ranges of a plan.

    What is lost between the plan and the reading fails it: whether it is passed over, and where
    that is told, is decided by the next plan.
    """
    partitions: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for each in plan.ranges:
        if each.size:
            partitions.setdefault(each.topic, []).append(each.partition)
            starts.setdefault(each.topic, {})[str(each.partition)] = each.start
            ends.setdefault(each.topic, {})[str(each.partition)] = each.end
    options = {name: value for name, value in source.items() if name.lower() not in _REPLACED}
    return {
        **options,
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "cloudEvents": "true",
        "failOnDataLoss": "true",
    }


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was counted on the way from the brokers to the output."""

    by_status: dict[str, int]
    read: int
    timestamps: tuple[int, int] | None


class IncrementWriter:
    """Makes increments of one output. `at` hears of each step, and may end the run there."""

    def __init__(
        self,
        spark: SparkSession,
        settings: JobSettings,
        lake: IncrementStore,
        files: OutputFiles,
        letters: tuple[IncrementStore, OutputFiles] | None,
        run: str,
        at: Callable[[str], object],
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._lake = lake
        self._files = files
        self._letters = letters
        self._run = run
        self._at = at

    def make(self, number: int, plan: ReadPlan, still: Callable[[], None]) -> Manifest:
        """Read what the plan says, and publish it as increment `number`.

        `still` raises if the topics are not those of the plan any more.

        Raises:
            CountMismatchError: rows in and rows out do not agree; nothing was published.
            OutputBusyError: another run was faster.
        """
        self._at("planned")
        aside = self._lake.aside(number)
        letters = None if self._letters is None else self._letters[0].aside(number)

        def undo() -> None:
            self._files.delete(aside)
            if letters is not None and self._letters is not None:
                self._letters[1].delete(letters)
            self._lake.clear()

        with cleanup_on_failure(self._spark, undo):
            counts, timestamps = self._written(aside, letters, plan)
            still()
            manifest = Manifest(
                increment=number,
                run=self._run,
                ranges=plan.ranges,
                counts=counts,
                timestamps=timestamps,
                losses=plan.losses,
                dead_letters=letters if counts.invalid else None,
            )
            if manifest.dead_letters is not None and self._letters is not None:
                self._letters[0].seal(manifest.dead_letters, manifest)
            self._lake.publish(aside, manifest)
        if manifest.dead_letters is not None and self._letters is not None:
            self._letters[0].complete(manifest.dead_letters, manifest)
            self._letters[0].clear()
        self._lake.clear()
        self._at("cleared")
        return manifest

    def _written(
        self, aside: str, letters: str | None, plan: ReadPlan
    ) -> tuple[JobCounts, tuple[int, int] | None]:
        """The counts of what stands aside, and the times of its records."""
        files, output = self._files, self._settings.output
        files.make(aside)
        if not plan.size:
            return JobCounts(), None
        events = (
            self._spark.read.format("kproto")
            .options(**pin_offset_ranges(self._settings.source, plan))
            .load()
        )
        looked_at = self._newest()
        while True:
            seen = self._write(events, aside, self._before(looked_at))
            needed = self._overlapping(seen.timestamps)
            if needed <= looked_at:
                break
            # Records that are older than the last increment's: what was written then counts, too.
            looked_at |= needed
            files.delete(aside)
            files.make(aside)
        self._at("written aside")
        found = seen.by_status
        if output.is_files:
            found = {DUPLICATE: seen.by_status[DUPLICATE], **self._recounted(files, aside, output)}
        if letters is not None:
            found[INVALID] = self._write_letters(events, letters) if seen.by_status[INVALID] else 0
        counts = reconciled_counts({"read": seen.read, **seen.by_status}, found)
        self._at("counted")
        return counts, seen.timestamps

    def _write(self, events: DataFrame, aside: str, before: DataFrame | None) -> _Seen:
        """Judge the events and write them."""
        output = self._settings.output
        seen = Observation()
        micros = sf.unix_micros("timestamp")
        judged = with_status(events, before, self._settings.window_s).observe(
            seen,
            sf.count(sf.lit(1)).alias("read"),
            sf.min(micros).alias("least"),
            sf.max(micros).alias("greatest"),
            sf.count(sf.when(micros.isNull(), 1)).alias("timeless"),
            *(status_count(s).alias(s) for s in STATUSES),
        )
        kept = judged.where(sf.col("status") != DUPLICATE)
        if self._letters is not None:
            kept = kept.where(sf.col("status") != INVALID)
        if output.columns:
            kept = kept.select(*output.columns)
        writer = kept.write.format(output.format).options(**output.options)
        if output.partition_by:
            writer = writer.partitionBy(*output.partition_by)
        if output.is_files:
            writer.mode("append").save(aside)
        elif self._settings.mode != "once":
            writer.mode("append").save(output.path)
        else:
            writer.mode("overwrite" if output.overwrite else "errorifexists").save(output.path)
        found: dict[str, Any] = seen.get
        least, greatest = found["least"], found["greatest"]
        return _Seen(
            {status: found[status] for status in STATUSES},
            found["read"],
            # A record without a time is near to all, so that no times bound the others either.
            None if least is None or found["timeless"] else (least, greatest),
        )

    def _write_letters(self, events: DataFrame, letters: str) -> int:
        """Write the records that are no right events to a folder of their own; how many."""
        assert self._settings.dead_letters is not None
        assert self._letters is not None
        wanted = self._settings.dead_letters
        seen = Observation()
        broken = events.where(sf.col("error").isNotNull()).observe(
            seen, sf.count(sf.lit(1)).alias("rows")
        )
        broken.write.format(wanted.format).mode("append").save(letters)
        self._at("dead letters written")
        return int(seen.get["rows"])

    def _recounted(self, files: OutputFiles, path: str, output: Output) -> dict[str, int]:
        """How many rows the files hold, by status."""
        if not files.holds_data(path):
            return {}
        found = _read_again(self._spark, output, "status").load(path)
        grouped = found.groupBy("status").count().collect()
        return {row["status"]: row["count"] for row in grouped}

    # What was written before

    def _overlapping(self, timestamps: tuple[int, int] | None) -> set[int]:
        """The increments with events that may be those of records from this time to that."""
        if not self._settings.window_s:
            return set()
        window = round(self._settings.window_s * 1_000_000)
        return {
            number
            for number, manifest in self._lake.manifests.items()
            if manifest.counts.valid
            and (
                timestamps is None
                or manifest.timestamps is None
                or (
                    manifest.timestamps[1] >= timestamps[0] - window
                    and manifest.timestamps[0] <= timestamps[1] + window
                )
            )
        }

    def _newest(self) -> set[int]:
        """The increments to be looked at if records come in order of time."""
        last = self._lake.last
        if last is None or last.timestamps is None:
            return self._overlapping(None)
        return self._overlapping((last.timestamps[0], 2**63))

    def _before(self, numbers: Iterable[int]) -> DataFrame | None:
        """The valid events of these increments; of an output that is no files, all it has."""
        output = self._settings.output
        columns = ("source", "id", "timestamp")
        if not output.is_files:
            if self._settings.mode == "once" or not self._settings.window_s:
                return None
            reader = self._spark.read.format(output.format).options(**output.options)
            return self._kept_elsewhere(reader, columns)
        paths = [self._lake.path(number) for number in sorted(numbers)]
        if not paths:
            return None
        reader = _read_again(self._spark, output, *columns, "status")
        found = reader.option("basePath", self._files.root).load(paths)
        return found.where(sf.col("status") == VALID).select(*columns)

    def _kept_elsewhere(
        self, reader: DataFrameReader, columns: tuple[str, ...]
    ) -> DataFrame | None:
        """What a table holds; None where there is none yet."""
        try:
            found = reader.load(self._settings.output.path)
            found = found.where(sf.col("status") == VALID).select(*columns)
            found.schema  # noqa: B018 - which asks whether it is there
        except Exception:  # whatever a format says of a table that is not there
            if self._lake.last is not None and self._lake.last.counts.written:
                raise
            return None
        return found


def _read_again(spark: SparkSession, output: Output, *wanted: str) -> DataFrameReader:
    """A reader of the files of an output, for some of its columns.

    Columns of CSV are told by their order alone, so that all have to be named as they were written;
    of a header Spark makes sure that it says the same.
    """
    known = from_arrow_schema(EVENT_SCHEMA).add("status", "string")
    if output.format.lower() == "csv":
        written = output.columns or known.names
        inside = [name for name in written if name not in output.partition_by]
        wanted = (*inside, *output.partition_by)
    reader = spark.read.format(output.format).options(**output.options)
    schema = StructType([known[name] for name in wanted])
    return reader.option("enforceSchema", "false").schema(schema)


def reconciled_counts(seen: Mapping[str, int], found: Mapping[str, int]) -> JobCounts:
    """The counts, once each record read is found again as exactly one outcome.

    Raises:
        CountMismatchError: naming the counts.
    """
    counts = JobCounts(
        read=seen["read"],
        valid=seen[VALID],
        invalid=seen[INVALID],
        duplicates=seen[DUPLICATE],
        written=found.get(VALID, 0) + found.get(INVALID, 0),
    )
    agree = (
        counts.read == counts.valid + counts.invalid + counts.duplicates
        and counts.valid == found.get(VALID, 0)
        and counts.invalid == found.get(INVALID, 0)
    )
    if not agree:
        written = {name: found.get(name, 0) for name in (VALID, INVALID)}
        raise CountMismatchError(
            f"{counts.read} records were read and judged {counts.valid} valid, {counts.invalid} "
            f"invalid, {counts.duplicates} duplicate, but {written} were written"
        )
    return counts
