"""Writes one increment: reads its ranges, and publishes the events with their status.

Writes the events to a staging folder, and publishes the folder once the counts agree.

Passes the ranges to the data source as options. Reads the events of earlier increments to find
duplicates. Raises CountMismatchError if the counts of the steps do not agree.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as sf

from ..spark.options.option_table import names_that_set
from .errors import CountMismatchError
from .event_status import DUPLICATE, INVALID, STATUSES, VALID, status_count, with_status
from .job_cleanup import cleanup_on_failure
from .manifest import JobCounts, Manifest, StoredPlan
from .output_reader import file_options, output_columns, output_reader, output_schema
from .row_counts import rows_by_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

    from .increment_plan import ReadPlan
    from .increment_store import IncrementStore
    from .lake_table import Increment, LakeTable
    from .output_files import OutputFiles
    from .settings import JobSettings

__all__ = ["STEPS", "IncrementWriter", "pin_offset_ranges", "reconciled_counts"]

#: The steps of an increment; some increments skip some steps. `on_step` is called after each step.
STEPS: Final = (
    "planned",
    "plan stored",
    "written aside",
    "counted",
    "dead letters written",
    "manifest written",
    "published",
    "cleared",
)

#: The options, in lower case, that `pin_offset_ranges` replaces.
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
    """Returns options of the data source that read exactly the ranges of a plan.

    Always sets `failOnDataLoss`: if records are lost after planning, the read fails. The loss is
    then reported when the next increment is planned.
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
class _ObservedCounts:
    """The counts that Spark observed while it wrote the events of an increment.

    `timestamps` are the lowest and the highest record timestamp in µs; None if there is no record,
    or a record has no timestamp.
    """

    by_status: dict[str, int]
    read: int
    timestamps: tuple[int, int] | None


def _statistics() -> list[Column]:
    """Returns the aggregates from which `_observed_counts` makes its result."""
    micros = sf.unix_micros("timestamp")
    return [
        sf.count(sf.lit(1)).alias("read"),
        sf.min(micros).alias("least"),
        sf.max(micros).alias("greatest"),
        sf.count(sf.when(micros.isNull(), 1)).alias("timeless"),
        *(status_count(s).alias(s) for s in STATUSES),
    ]


def _observed_counts(counted: Mapping[str, Any]) -> _ObservedCounts:
    least, greatest = counted["least"], counted["greatest"]
    return _ObservedCounts(
        {status: counted[status] for status in STATUSES},
        counted["read"],
        # If a record has no timestamp, the events are compared with all increments.
        None if least is None or counted["timeless"] else (least, greatest),
    )


class IncrementWriter:
    """Writes the increments of one output.

    `on_step` is called with the name of each step that has ended, such as "planned" or "published".
    If `on_step` raises an exception, the increment fails.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: JobSettings,
        store: IncrementStore,
        files: OutputFiles,
        letters: tuple[IncrementStore, OutputFiles] | None,
        run: str,
        on_step: Callable[[str], object],
        table: LakeTable | None = None,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._store = store
        self._files = files
        self._dead_letters = letters
        self._run = run
        self._on_step = on_step
        self._table = table

    def write(self, number: int, plan: ReadPlan, check_topics: Callable[[], None]) -> Manifest:
        """Reads the ranges of a plan, and publishes their events as increment `number`.

        `check_topics` is called before publishing, and raises if a topic was recreated.

        Raises:
            CountMismatchError: the counts of records read and rows written disagree; the increment
            was not published.
            OutputBusyError: another run published an increment with the same number.
        """
        self._on_step("planned")
        stored = None
        if not self._settings.output.is_files and self._settings.mode != "once":
            stored = self._stored_plan(number, plan)
        staging = self._store.staging(number)
        letters = None if self._dead_letters is None else self._dead_letters[0].staging(number)

        def undo() -> None:
            self._files.delete(staging)
            if letters is not None and self._dead_letters is not None:
                self._dead_letters[1].delete(letters)
            self._store.remove_staging()

        with cleanup_on_failure(self._spark, undo):
            increment = None if stored is None else (stored.application, number)
            counts, timestamps = self._write_staging(staging, letters, plan, increment)
            check_topics()
            manifest = Manifest(
                increment=number,
                run=self._run,
                ranges=plan.ranges,
                counts=counts,
                timestamps=timestamps,
                losses=plan.losses,
                dead_letters=letters if counts.invalid else None,
                application=None if stored is None else stored.application,
            )
            if manifest.dead_letters is not None and self._dead_letters is not None:
                self._dead_letters[0].write_manifest(manifest.dead_letters, manifest)
            self._store.publish(staging, manifest)
        if manifest.dead_letters is not None and self._dead_letters is not None:
            self._dead_letters[0].publish_once(manifest.dead_letters, manifest)
            self._dead_letters[0].remove_staging()
        self._store.remove_staging()
        if stored is not None:
            self._store.remove_plan(number)
        self._on_step("cleared")
        return manifest

    # Plans of tables

    def _stored_plan(self, number: int, plan: ReadPlan) -> StoredPlan:
        """Returns the stored plan of an increment; first stores the plan if it is new."""
        stored = self._store.pending_plan()
        if stored is None:
            last = self._store.last
            stored = StoredPlan(
                increment=number,
                application=(None if last is None else last.application) or uuid.uuid4().hex,
                plan=plan,
                version=None if self._table is None else self._table.version(),
            )
            self._store.store_plan(stored)
        return stored

    def publish_committed(self) -> Manifest | None:
        """Publishes the manifest of an increment that a killed run has committed to the table.

        Returns None if no plan is stored, or if its increment was not committed. The counts of the
        manifest are the rows in the table, because the duplicates of the killed run are not known.

        Raises:
            OutputDamagedError: the table no longer tells whether the increment was committed.
        """
        stored = self._store.pending_plan()
        if stored is None or self._table is None:
            return None
        number = stored.increment
        rows = self._table.committed_rows((stored.application, number), stored.version)
        if rows is None:
            return None
        valid, invalid = rows.get(VALID, 0), rows.get(INVALID, 0)
        manifest = Manifest(
            increment=number,
            run=self._run,
            ranges=stored.plan.ranges,
            counts=JobCounts(valid + invalid, valid, invalid, 0, valid + invalid),
            losses=stored.plan.losses,
            application=stored.application,
        )
        staging = self._store.staging(number)
        self._files.make_folder(staging)
        self._store.publish(staging, manifest)
        self._store.remove_staging()
        self._store.remove_plan(number)
        return manifest

    def drop_plan(self) -> None:
        """Removes the stored plan of an increment that was not written, for a new plan.

        Keeps the plan if the increment was committed to the table.
        """
        stored = self._store.pending_plan()
        if stored is None:
            return
        increment = (stored.application, stored.increment)
        if self._table is None or self._table.committed_rows(increment, stored.version) is None:
            self._store.remove_plan(stored.increment)

    def _write_staging(
        self, staging: str, letters: str | None, plan: ReadPlan, increment: Increment | None
    ) -> tuple[JobCounts, tuple[int, int] | None]:
        """Writes the events and dead letters of `plan` to the folders `staging` and `letters`.

        Returns the counts, and the first and last timestamp of the events in µs. None replaces the
        two timestamps if there is no event, or if an event has no timestamp.
        """
        files, output = self._files, self._settings.output
        files.make_folder(staging)
        if not plan.size:
            return JobCounts(), None
        events = (
            self._spark.read.format("kproto")
            .options(**pin_offset_ranges(self._settings.source, plan))
            .load()
        )
        if self._table is not None and output.merge_schema:
            self._table.add_columns(output_schema(*output_columns(output)))
        compared = self._recent_increments()
        while True:
            observed = self._write_events(
                events, staging, self._earlier_events(compared), increment
            )
            needed = self._increments_within_window(observed.timestamps)
            if needed <= compared:
                break
            # Some records are older than all records of the last increment: compare with earlier
            # increments, too.
            compared |= needed
            files.delete(staging)
            files.make_folder(staging)
        self._on_step("written aside")
        counted = observed.by_status
        if output.is_files:
            counted = {
                DUPLICATE: observed.by_status[DUPLICATE],
                **rows_by_status(self._spark, files, output, staging),
            }
        if letters is not None:
            counted[INVALID] = (
                self._write_dead_letters(events, letters) if observed.by_status[INVALID] else 0
            )
        counts = reconciled_counts({"read": observed.read, **observed.by_status}, counted)
        self._on_step("counted")
        return counts, observed.timestamps

    def _write_events(
        self,
        events: DataFrame,
        staging: str,
        earlier: DataFrame | None,
        increment: Increment | None,
    ) -> _ObservedCounts:
        """Sets the status of each event, writes the events, and returns the observed counts."""
        if self._settings.merge and increment is not None:
            return self._merge_events(events, increment)
        observed = Observation()
        events_with_status = with_status(events, earlier, self._settings.window_s).observe(
            observed, *_statistics()
        )
        self._save(self._written_rows(events_with_status), staging, increment)
        return _observed_counts(observed.get)

    def _merge_events(self, events: DataFrame, increment: Increment) -> _ObservedCounts:
        """Merges the events into the table; events that the table has are duplicates.

        Keeps the events in memory or on disk, so that they are read once, and counted before the
        merge.
        """
        assert self._table is not None
        kept = with_status(events).persist()
        try:
            counted = kept.agg(*_statistics()).first()
            assert counted is not None
            observed = _observed_counts(counted.asDict())
            inserted = self._table.merge(self._written_rows(kept), increment)
        finally:
            kept.unpersist()
        if inserted is not None:
            by_status = observed.by_status
            repeated = by_status[VALID] + by_status[INVALID] - inserted
            by_status[VALID] -= repeated
            by_status[DUPLICATE] += repeated
        return observed

    def _written_rows(self, events: DataFrame) -> DataFrame:
        """Returns the rows and columns that are written to the output."""
        rows = events.where(sf.col("status") != DUPLICATE)
        if self._dead_letters is not None:
            rows = rows.where(sf.col("status") != INVALID)
        columns = self._settings.output.columns
        return rows.select(*columns) if columns else rows

    def _save(self, rows: DataFrame, staging: str, increment: Increment | None) -> None:
        """Writes the rows to the staging folder; or to the table, if the format writes no files."""
        output = self._settings.output
        if self._table is not None:
            if increment is None:
                self._table.write_once(rows, overwrite=output.overwrite)
            else:
                self._table.append(rows, increment)
            return
        options = file_options(output.format, output.options)
        writer = rows.write.format(output.format).options(**options)
        if output.partition_by:
            writer = writer.partitionBy(*output.partition_by)
        if output.is_files:
            writer.mode("append").save(staging)
        elif self._settings.mode != "once":
            writer.mode("append").save(output.path)
        else:
            writer.mode("overwrite" if output.overwrite else "errorifexists").save(output.path)

    def _write_dead_letters(self, events: DataFrame, letters: str) -> int:
        """Writes invalid records to the dead letters' staging folder; returns their number."""
        assert self._settings.dead_letters is not None
        assert self._dead_letters is not None
        settings = self._settings.dead_letters
        observed = Observation()
        broken = events.where(sf.col("error").isNotNull()).observe(
            observed, sf.count(sf.lit(1)).alias("rows")
        )
        writer = broken.write.format(settings.format).options(**file_options(settings.format, {}))
        writer.mode("append").save(letters)
        self._on_step("dead letters written")
        return int(observed.get["rows"])

    # Events of earlier increments

    def _increments_within_window(self, timestamps: tuple[int, int] | None) -> set[int]:
        """Returns the numbers of the increments that may have a valid event close to `timestamps`.

        `timestamps` is a range: the first and the last, in µs. An event is close if it is at most
        `window_s` away from the range. Also includes each increment with valid events whose own
        timestamps are unknown. If `timestamps` is None, includes all increments with valid events.
        Returns an empty set if `window_s` is 0.
        """
        if not self._settings.window_s:
            return set()
        window = round(self._settings.window_s * 1_000_000)
        return {
            number
            for number, manifest in self._store.manifests.items()
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

    def _recent_increments(self) -> set[int]:
        """Returns the numbers of the increments that may contain duplicates of the new events.

        The timestamps of the new events are not known yet. This method assumes that no new event is
        older than the oldest event of the last increment. It returns each increment that may have
        an event at most `window_s` older than this oldest event. If the last increment has no
        timestamps, returns all increments with valid events. If `window_s` is 0, returns an empty
        set.
        """
        last = self._store.last
        if last is None or last.timestamps is None:
            return self._increments_within_window(None)
        return self._increments_within_window((last.timestamps[0], 2**63))

    def _earlier_events(self, numbers: Iterable[int]) -> DataFrame | None:
        """Returns the valid events in which to search for duplicates; None if no events qualify.

        An output of files has a folder for each increment. This method reads the increments
        `numbers`, and returns None if `numbers` is empty.

        An output table has no such folders. This method ignores `numbers` and reads the whole
        table. It returns None in the mode `once`, with `window_s` = 0, with `merge`, and if the
        table does not exist yet.
        """
        output = self._settings.output
        columns = ("source", "id", "timestamp")
        if not output.is_files:
            settings = self._settings
            if settings.mode == "once" or not settings.window_s or settings.merge:
                return None
            if self._table is not None:
                if self._table.version() is None:
                    return None
                return self._table.read().where(sf.col("status") == VALID).select(*columns)
            reader = self._spark.read.format(output.format).options(**output.options)
            return self._table_events(reader, columns)
        paths = [self._store.path(number) for number in sorted(numbers)]
        if not paths:
            return None
        reader = output_reader(self._spark, output, *columns, "status")
        counted = reader.option("basePath", self._files.root).load(paths)
        return counted.where(sf.col("status") == VALID).select(*columns)

    def _table_events(self, reader: DataFrameReader, columns: tuple[str, ...]) -> DataFrame | None:
        """Returns the valid events of a table; None if the table does not exist yet.

        An error of the reader means that the table does not exist. If the last increment wrote
        rows, the table must exist, so the error is raised.
        """
        try:
            counted = reader.load(self._settings.output.path)
            counted = counted.where(sf.col("status") == VALID).select(*columns)
            counted.schema  # noqa: B018 - checks whether the table exists
        except Exception:  # each format has its own error for a missing table
            if self._store.last is not None and self._store.last.counts.written:
                raise
            return None
        return counted


def reconciled_counts(observed: Mapping[str, int], counted: Mapping[str, int]) -> JobCounts:
    """Returns the job's counts after checking that they agree.

    `observed` has the number of records read, and the number of events by status. `counted` has the
    number of written rows by status. The events of all statuses must add up to the records read.
    For the statuses valid and invalid, the events must equal the written rows.

    Raises:
        CountMismatchError: the counts do not agree; the message has the counts.
    """
    counts = JobCounts(
        read=observed["read"],
        valid=observed[VALID],
        invalid=observed[INVALID],
        duplicates=observed[DUPLICATE],
        written=counted.get(VALID, 0) + counted.get(INVALID, 0),
    )
    agree = (
        counts.read == counts.valid + counts.invalid + counts.duplicates
        and counts.valid == counted.get(VALID, 0)
        and counts.invalid == counted.get(INVALID, 0)
    )
    if not agree:
        written = {name: counted.get(name, 0) for name in (VALID, INVALID)}
        raise CountMismatchError(
            f"{counts.read} records were read: {counts.valid} valid, {counts.invalid} invalid, "
            f"{counts.duplicates} duplicate; but {written} were written"
        )
    return counts
