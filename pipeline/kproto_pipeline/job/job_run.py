"""Runs a job: once, incrementally from the last run's positions, or as a stream of increments.

`increment_plan` plans an increment, `increment_writer` writes it, `increment_store` publishes it
and recovers after a kill.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Protocol

from ..spark.data_source import register
from ..spark.planning.offset_ranges import DataLossError
from .errors import OutputExistsError, SettingError
from .increment_plan import limit_plan, plan_next, remaining_plan
from .increment_store import IncrementStore
from .increment_writer import IncrementWriter
from .job_cleanup import cleanup_on_failure
from .lake_table import open_lake_table
from .manifest import JobCounts
from .output_files import OutputFiles
from .output_lock import lock_output
from .output_paths import paths_problem
from .source_offsets import list_log_offsets, plan_full_read, starting_offsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from .increment_plan import ReadPlan
    from .manifest import Manifest
    from .settings import JobSettings

__all__ = ["RunListener", "RunResult", "delivery_guarantee", "run"]

logger = logging.getLogger("kproto.pipeline")


class RunListener(Protocol):
    """Receives the events of a run."""

    def on_increment_started(self, number: int, plan: ReadPlan, behind: int) -> None:
        """Called when an increment starts; `behind` is the lag in offsets before the increment."""

    def on_increment_published(self, manifest: Manifest) -> None:
        """Called when an increment was published."""

    def on_data_loss(self, what: str) -> None:
        """Called when records were lost before the run read them; only without `failOnDataLoss`."""

    def on_delivery_guarantee(self, what: str) -> None:
        """Receives the output's delivery guarantee, once, before the first increment."""


class _LossLogger:
    def on_increment_started(self, number: int, plan: ReadPlan, behind: int) -> None:
        pass

    def on_increment_published(self, manifest: Manifest) -> None:
        pass

    def on_data_loss(self, what: str) -> None:
        logger.warning("data loss: %s", what)

    def on_delivery_guarantee(self, what: str) -> None:
        logger.info("delivery: %s", what)


LOG_LOSSES: Final[RunListener] = _LossLogger()


@dataclass(slots=True)
class RunResult:
    """The summed counts of a run's increments, and the increments' numbers."""

    counts: JobCounts = field(default_factory=JobCounts)
    increments: list[int] = field(default_factory=list)


def delivery_guarantee(settings: JobSettings, files: OutputFiles) -> str:
    """Returns the delivery guarantee of an output as a sentence."""
    if settings.output.is_lake_table and settings.mode != "once":
        return (
            f"each valid event is in the {settings.output.format} table exactly once, even if runs "
            "are killed and restarted"
        )
    if not settings.output.is_files and not settings.output.is_lake_table:
        return (
            f"the format {settings.output.format} is written at least once: events of an increment "
            "whose run is killed may be written twice"
        )
    if not files.atomic:
        return (
            f"{files.scheme} does not rename folders atomically: a reader may see a part of an "
            "increment while it is published, and after a kill until the next run has started"
        )
    return "each valid event is in the output exactly once, even if runs are killed and restarted"


def run(
    spark: SparkSession,
    settings: JobSettings,
    *,
    listener: RunListener = LOG_LOSSES,
    stopped: threading.Event | None = None,
    enough: Callable[[RunResult], bool] = lambda result: False,
    on_step: Callable[[str], object] = lambda step: None,
) -> RunResult:
    """Runs the job and returns its counts.

    A stream runs until `stopped` is set, or until `enough` returns true for the result so far.
    `stopped` also ends an incremental run, after the current increment. `on_step` is called with
    the name of each step, such as those in `increment_writer.STEPS`.

    Raises:
        CountMismatchError: the counts of records read and rows written do not agree.
        OutputExistsError: the output exists and must not be replaced.
        OutputBusyError: another run writes to the output.
        OutputDamagedError: the output contains files that no run creates, lacks files of a run, or
        has a manifest that is unreadable or of another version.
        SettingError: dead letters need atomic renames, which a file system lacks; or a path does
        not fit, as `output_paths` says.
        OptionError: the options name other partitions or offsets than the cluster has.
        DataLossError: records were lost before they were read, and `failOnDataLoss` is set; or in
        the mode `once`, a topic was recreated during the run, even if `failOnDataLoss` is not set.
        KprotoError: any error of the client.
    """
    register(spark)
    with ExitStack() as closing:
        job = _JobRun(spark, settings, listener, stopped or threading.Event(), on_step, closing)
        return job.run_once() if settings.mode == "once" else job.run_incremental(enough)


class _JobRun:
    def __init__(
        self,
        spark: SparkSession,
        settings: JobSettings,
        listener: RunListener,
        stopped: threading.Event,
        on_step: Callable[[str], object],
        closing: ExitStack,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._listener = listener
        self._stopped = stopped
        self._on_step = on_step
        self._options = settings.read_options
        self._id = uuid.uuid4().hex
        self._reported_losses: set[str] = set()
        output, letters = settings.output, settings.dead_letters
        self._table = open_lake_table(spark, settings)
        state_path = output.state_path
        if state_path is None:  # without `state`, the manifests are temporary
            state_path = (
                f"file://{closing.enter_context(TemporaryDirectory(prefix='kproto-'))}/state"
            )
        self._output_files = OutputFiles(spark, state_path)
        self._dead_letters = None if letters is None else OutputFiles(spark, letters.path)
        problem = paths_problem(settings, *(files.root for files in self._all_files()))
        if problem is not None:
            raise SettingError(problem)
        for files in self._all_files():
            if files.local is not None:
                closing.enter_context(lock_output(files.local))
        if self._dead_letters is not None and not (
            self._dead_letters.atomic and self._output_files.atomic
        ):
            raise SettingError(
                "dead_letters.path: a folder for dead letters needs a file system with atomic "
                f"renames of folders, which {self._dead_letters.scheme} lacks; leave the section "
                "out"
            )
        listener.on_delivery_guarantee(delivery_guarantee(settings, self._output_files))

    def _all_files(self) -> list[OutputFiles]:
        return [self._output_files, *([] if self._dead_letters is None else [self._dead_letters])]

    def _recover_replaced(self) -> None:
        """Restores outputs that a killed run had moved away in `run_once`.

        Deletes the temporary folders of killed runs, on the local file system only.
        """
        for files in self._all_files():
            files.restore()
            if files.local is not None:
                for purpose in ("writing", "replaced"):
                    for path in files.leftover_siblings(purpose):
                        files.delete(path)

    # Once

    def run_once(self) -> RunResult:
        """Writes all selected records as the only increment of a new or replaced output."""
        self._recover_replaced()
        for files in self._all_files():
            if files.exists(files.root) and not self._settings.output.overwrite:
                raise OutputExistsError(f"{files.root} exists; remove it, or set overwrite")
        plan = plan_full_read(self._options)
        stagings = [
            OutputFiles(self._spark, each.new_sibling("writing")) for each in self._all_files()
        ]
        stores = [IncrementStore(each, exclusive=True, on_step=self._on_step) for each in stagings]

        def undo() -> None:
            for each in stagings:
                each.delete(each.root)

        with cleanup_on_failure(self._spark, undo):
            increments = self._increment_writer(
                stores[0], stagings[0], list(zip(stores, stagings, strict=True))[1:]
            )
            self._listener.on_increment_started(1, plan, plan.size)
            manifest = increments.write(1, plan, partial(self._check_topic_ids, plan))
            for files, staging in reversed(list(zip(self._all_files(), stagings, strict=True))):
                staging.make_folder(staging.root)
                files.replace(staging.root)
                self._on_step("replaced")
        self._listener.on_increment_published(manifest)
        return RunResult(manifest.counts, [1])

    # Incremental and stream

    def run_incremental(self, enough: Callable[[RunResult], bool]) -> RunResult:
        """Writes increments, from the positions of the last increment up to the latest offsets.

        In the mode `stream`, repeats this until the run is stopped, or until `enough` returns True
        for the result so far.
        """
        self._recover_replaced()
        store = IncrementStore(
            self._output_files,
            exclusive=self._output_files.local is not None,
            on_step=self._on_step,
        )
        store.recover()
        letters = self._recover_dead_letters(store)
        store.remove_staging()
        if store.last is not None and not self._settings.output.is_files:
            store.remove_plan(store.last.increment)
        increments = self._increment_writer(store, self._output_files, letters)
        result = RunResult()
        streams = self._settings.mode == "stream"
        while not self._stopped.is_set():
            started = time.monotonic()
            try:
                self._catch_up(store, increments, result)
            except Exception:
                if not self._has_new_loss(store):
                    raise
                increments.drop_plan()
                continue
            if not streams or enough(result):
                break
            self._stopped.wait(started + self._settings.interval_s - time.monotonic())
        return result

    def _catch_up(
        self, store: IncrementStore, increments: IncrementWriter, result: RunResult
    ) -> None:
        """Reads up to the latest offsets, in increments of at most about `max_records` offsets."""
        committed = increments.publish_committed()
        if committed is not None:
            self._on_published(committed, result)
        pending = store.pending_plan()
        if pending is not None:
            size = pending.plan.size
            self._listener.on_increment_started(pending.increment, pending.plan, size)
            check = partial(self._check_topic_ids, pending.plan)
            self._on_published(increments.write(pending.increment, pending.plan, check), result)
        plan = self._plan_next(store)
        while plan.size and not self._stopped.is_set():
            part = limit_plan(plan, self._settings.max_records)
            number = max(store.manifests, default=0) + 1
            self._listener.on_increment_started(number, part, plan.size)
            manifest = increments.write(number, part, partial(self._check_topic_ids, part))
            self._on_published(manifest, result)
            plan = remaining_plan(plan, part)

    def _on_published(self, manifest: Manifest, result: RunResult) -> None:
        result.counts += manifest.counts
        result.increments.append(manifest.increment)
        self._listener.on_increment_published(manifest)

    def _plan_next(self, store: IncrementStore) -> ReadPlan:
        log_offsets = list_log_offsets(self._options)
        if store.last is None:
            plan = plan_next(log_offsets, {}, starting_offsets(self._options, log_offsets))
        else:
            plan = plan_next(log_offsets, store.last.ends())
        new = [each for each in plan.losses if each not in self._reported_losses]
        if new and self._options.fail_on_data_loss:
            raise DataLossError(
                f"{'; '.join(new)}; set failOnDataLoss to false to continue with what exists"
            )
        for each in new:
            self._listener.on_data_loss(each)
            self._reported_losses.add(each)
        return plan

    def _has_new_loss(self, store: IncrementStore) -> bool:
        """Returns True if `failOnDataLoss` is off and new data loss is found; reports the loss."""
        if self._options.fail_on_data_loss:
            return False
        reported = len(self._reported_losses)
        self._plan_next(store)
        return len(self._reported_losses) > reported

    def _recover_dead_letters(
        self, store: IncrementStore
    ) -> list[tuple[IncrementStore, OutputFiles]]:
        """Recovers the folder of dead letters, so that it matches the output's last increment.

        Returns a list with the store and the files of the folder; empty if no such folder is set.
        """
        if self._dead_letters is None:
            return []
        files = self._dead_letters
        letters = IncrementStore(
            files, exclusive=files.local is not None, on_step=self._on_step, allow_gaps=True
        )
        letters.recover()
        last = store.last
        letters.remove_after(0 if last is None else last.increment)
        if last is not None and last.dead_letters is not None:
            letters.publish_once(last.dead_letters, last)
        letters.remove_staging()
        return [(letters, files)]

    def _increment_writer(
        self,
        store: IncrementStore,
        files: OutputFiles,
        letters: list[tuple[IncrementStore, OutputFiles]],
    ) -> IncrementWriter:
        return IncrementWriter(
            self._spark,
            self._settings,
            store,
            files,
            letters[0] if letters else None,
            self._id,
            self._on_step,
            self._table,
        )

    def _check_topic_ids(self, plan: ReadPlan) -> None:
        """Raises DataLossError if a planned topic was recreated."""
        log_offsets = list_log_offsets(self._options).topic_ids
        for each in plan.ranges:
            found = log_offsets.get((each.topic, each.partition), each.topic_id)
            if each.size and found != each.topic_id:
                raise DataLossError(
                    f"{each.topic} was recreated while it was read; start the job again to read "
                    "the new topic"
                )
