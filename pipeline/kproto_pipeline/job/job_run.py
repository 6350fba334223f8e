"""A run of a job: once, on from where the last one ended, or as a stream of increments.

Owns what runs when, and when it is over. What an increment is, `increments` knows; where the next
one begins, `positions`; what is left after a kill, `lake`.
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
from .increment_plan import limit_plan, plan_next, rest
from .increment_store import IncrementStore
from .increment_writer import IncrementWriter
from .job_cleanup import cleanup_on_failure
from .manifest import JobCounts
from .output_files import OutputFiles
from .output_lock import lock_output
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
    """Who is told how a run goes on."""

    def on_increment_started(self, number: int, plan: ReadPlan, behind: int) -> None:
        """An increment begins; `behind` offsets are there and not read, this plan's among them."""

    def on_increment_published(self, manifest: Manifest) -> None:
        """An increment was published."""

    def on_data_loss(self, what: str) -> None:
        """Records were lost before they were read, and passed over."""

    def on_delivery_guarantee(self, what: str) -> None:
        """What this run promises; said once, before it reads."""


class _LossLogger:
    def on_increment_started(self, number: int, plan: ReadPlan, behind: int) -> None:
        pass

    def on_increment_published(self, manifest: Manifest) -> None:
        pass

    def on_data_loss(self, what: str) -> None:
        logger.warning("data loss: %s", what)

    def on_delivery_guarantee(self, what: str) -> None:
        pass


LOG_LOSSES: Final[RunListener] = _LossLogger()


@dataclass(slots=True)
class RunResult:
    """What a run has done: the counts of all its increments, and their numbers."""

    counts: JobCounts = field(default_factory=JobCounts)
    increments: list[int] = field(default_factory=list)


def delivery_guarantee(settings: JobSettings, files: OutputFiles) -> str:
    """What a reader of the output can rely on, in one sentence."""
    if not settings.output.is_files:
        return (
            f"the format {settings.output.format} is written at least once: what was under way "
            "when a run is killed may stand there twice"
        )
    if not files.atomic:
        return (
            f"{files.scheme} moves no folder in one step: a reader may see a part of an increment "
            "while it is published, and after a kill until the next run has begun"
        )
    return "each valid event stands in the output once, whenever a run is killed and run again"


def run(
    spark: SparkSession,
    settings: JobSettings,
    *,
    listener: RunListener = LOG_LOSSES,
    stopped: threading.Event | None = None,
    enough: Callable[[RunResult], bool] = lambda result: False,
    at: Callable[[str], object] = lambda step: None,
) -> RunResult:
    """Run the job. A stream runs until `stopped` is set, or what it has done is `enough`.

    `at` hears of each of `increments.STEPS`.

    Raises:
        CountMismatchError: rows in and rows out do not agree.
        OutputExistsError: the output is there already and may not be replaced.
        OutputBusyError: another run writes to the output.
        OutputDamagedError: the output holds what no run has put there.
        DataLossError: records were lost before they were read, with `failOnDataLoss`.
        KprotoError: whatever the client raises.
    """
    register(spark)
    with ExitStack() as closing:
        job = _Run(spark, settings, listener, stopped or threading.Event(), at, closing)
        return job.once() if settings.mode == "once" else job.on(enough)


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        settings: JobSettings,
        listener: RunListener,
        stopped: threading.Event,
        at: Callable[[str], object],
        closing: ExitStack,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._listener = listener
        self._stopped = stopped
        self._at = at
        self._options = settings.read_options
        self._id = uuid.uuid4().hex
        self._told: set[str] = set()
        output, letters = settings.output, settings.dead_letters
        place = output.path if output.is_files else output.state
        if place is None:  # a run that leaves no trace of itself
            place = f"file://{closing.enter_context(TemporaryDirectory(prefix='kproto-'))}/state"
        self._home = OutputFiles(spark, place)
        self._letters = None if letters is None else OutputFiles(spark, letters.path)
        for files in self._places():
            if files.local is not None:
                closing.enter_context(lock_output(files.local))
        if self._letters is not None and not (self._letters.atomic and self._home.atomic):
            raise SettingError(
                "dead_letters.path: dead letters have a folder of their own only where the file "
                f"system moves a folder in one step, and {self._letters.scheme} does not; leave "
                "the section out"
            )
        listener.on_delivery_guarantee(delivery_guarantee(settings, self._home))

    def _places(self) -> list[OutputFiles]:
        return [self._home, *([] if self._letters is None else [self._letters])]

    def _clear_beside(self) -> None:
        """Undo what a run has left that was killed while it replaced an output."""
        for files in self._places():
            files.restore()
            if files.local is not None:
                for purpose in ("writing", "replaced"):
                    for path in files.left_beside(purpose):
                        files.delete(path)

    # Once

    def once(self) -> RunResult:
        """Everything, as the only increment of an output that is new or replaced."""
        self._clear_beside()
        for files in self._places():
            if files.exists(files.root) and not self._settings.output.overwrite:
                raise OutputExistsError(f"{files.root} exists; remove it or allow to overwrite it")
        plan = plan_full_read(self._options)
        asides = [OutputFiles(self._spark, each.beside("writing")) for each in self._places()]
        lakes = [IncrementStore(each, alone=True, at=self._at) for each in asides]

        def undo() -> None:
            for each in asides:
                each.delete(each.root)

        with cleanup_on_failure(self._spark, undo):
            increments = self._increments(
                lakes[0], asides[0], list(zip(lakes, asides, strict=True))[1:]
            )
            self._listener.on_increment_started(1, plan, plan.size)
            manifest = increments.make(1, plan, partial(self._still, plan))
            for files, aside in reversed(list(zip(self._places(), asides, strict=True))):
                aside.make(aside.root)
                files.replace(aside.root)
                self._at("replaced")
        self._listener.on_increment_published(manifest)
        return RunResult(manifest.counts, [1])

    # Incremental and stream

    def on(self, enough: Callable[[RunResult], bool]) -> RunResult:
        """On from the last increment: up to what is there now, or until it is stopped."""
        self._clear_beside()
        lake = IncrementStore(self._home, alone=self._home.local is not None, at=self._at)
        lake.recover()
        letters = self._recovered_letters(lake)
        lake.clear()
        increments = self._increments(lake, self._home, letters)
        result = RunResult()
        streams = self._settings.mode == "stream"
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self._catch_up(lake, increments, result, one=streams)
            except Exception:
                if not self._lost_meanwhile(lake):
                    raise
                continue
            if not streams or enough(result):
                break
            self._stopped.wait(began + self._settings.interval_s - time.monotonic())
        return result

    def _catch_up(
        self, lake: IncrementStore, increments: IncrementWriter, result: RunResult, *, one: bool
    ) -> None:
        """Read what is there now, in increments of a bounded size."""
        plan = self._planned(lake)
        while plan.size and not self._stopped.is_set():
            piece = limit_plan(plan, self._settings.max_records)
            number = max(lake.manifests, default=0) + 1
            self._listener.on_increment_started(number, piece, plan.size)
            manifest = increments.make(number, piece, partial(self._still, piece))
            result.counts += manifest.counts
            result.increments.append(number)
            self._listener.on_increment_published(manifest)
            plan = rest(plan, piece)

    def _planned(self, lake: IncrementStore) -> ReadPlan:
        now = list_log_offsets(self._options)
        if lake.last is None:
            plan = plan_next(now, {}, starting_offsets(self._options, now))
        else:
            plan = plan_next(now, lake.last.ends())
        new = [each for each in plan.losses if each not in self._told]
        if new and self._options.fail_on_data_loss:
            raise DataLossError(
                f"{'; '.join(new)}; set failOnDataLoss to false to read on with what is there"
            )
        for each in new:
            self._listener.on_data_loss(each)
            self._told.add(each)
        return plan

    def _lost_meanwhile(self, lake: IncrementStore) -> bool:
        """Whether a loss that may be passed over made an increment fail: it is planned anew."""
        if self._options.fail_on_data_loss:
            return False
        told = len(self._told)
        self._planned(lake)
        return len(self._told) > told

    def _recovered_letters(self, lake: IncrementStore) -> list[tuple[IncrementStore, OutputFiles]]:
        """The folder of dead letters, once it agrees with the output."""
        if self._letters is None:
            return []
        files = self._letters
        letters = IncrementStore(files, alone=files.local is not None, at=self._at, gaps=True)
        letters.recover()
        last = lake.last
        letters.keep_upto(0 if last is None else last.increment)
        if last is not None and last.dead_letters is not None:
            letters.complete(last.dead_letters, last)
        letters.clear()
        return [(letters, files)]

    def _increments(
        self,
        lake: IncrementStore,
        files: OutputFiles,
        letters: list[tuple[IncrementStore, OutputFiles]],
    ) -> IncrementWriter:
        return IncrementWriter(
            self._spark,
            self._settings,
            lake,
            files,
            letters[0] if letters else None,
            self._id,
            self._at,
        )

    def _still(self, plan: ReadPlan) -> None:
        """Raise unless the topics that were read are those that were planned."""
        now = list_log_offsets(self._options).topic_ids
        for each in plan.ranges:
            found = now.get((each.topic, each.partition), each.topic_id)
            if each.size and found != each.topic_id:
                raise DataLossError(
                    f"{each.topic} was made anew while it was read; set failOnDataLoss to false, "
                    "or start again, to read the new one"
                )
