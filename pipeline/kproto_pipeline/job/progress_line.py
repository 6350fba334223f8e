"""Shows the progress of a run: one redrawn line on a terminal, one line per increment in a log.

A thread polls Spark's finished tasks and, less often, lists the latest offsets. `progress` computes
and formats the numbers.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self, TextIO

from kproto.wire.errors import KprotoError

from .progress import Progress, format_increment, format_lag
from .source_offsets import end_offsets_by_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import SparkSession

    from ..spark.options.option_table import ReadOptions
    from .increment_plan import ReadPlan
    from .manifest import Manifest

__all__ = ["ProgressLine"]

#: The interval of polling Spark's tasks, in seconds: looks continuous, and costs little.
_REDRAW_INTERVAL_S: Final = 0.25
#: The interval of listing the latest offsets, in seconds.
_LIST_OFFSETS_INTERVAL_S: Final = 2.0


class ProgressLine:
    """Receives the events of a run as its RunListener, and shows progress during a `with` block.

    `prefix` is called for each line of progress and returns the line's beginning.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: ReadOptions,
        out: TextIO | None = None,
        prefix: Callable[[], str] = lambda: "",
    ) -> None:
        self.progress = Progress()
        #: For each increment of the run: its duration in seconds, and the records that it read.
        self.seconds: list[float] = []
        self.read: list[int] = []
        self._prefix = prefix
        self._spark = spark
        self._options = options
        self._out = out or sys.stderr
        self._partitions: list[tuple[str, int]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._started_at = 0.0
        self._thread = threading.Thread(target=self._watch, name="kproto-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._draw("")

    # Methods of RunListener

    def on_increment_started(self, number: int, plan: ReadPlan, behind: int) -> None:
        """Starts the progress of an increment; `behind` is unused."""
        self._started_at = time.monotonic()
        with self._lock:
            self._partitions = [(each.topic, each.partition) for each in plan.ranges]
            self.progress.on_increment_started(number, plan, self._started_at)

    def on_increment_published(self, manifest: Manifest) -> None:
        """Ends the progress of an increment; prints its line unless the output is a terminal."""
        now = time.monotonic()
        with self._lock:
            self.progress.on_increment_published(manifest, now)
            self.seconds.append(now - self._started_at)
            self.read.append(manifest.counts.read)
            lag = format_lag(self.progress.lag)
        if not self._out.isatty():
            line = format_increment(manifest, now - self._started_at)
            self._print(f"{self._prefix()}{line}; behind {lag}")

    def on_data_loss(self, what: str) -> None:
        """Prints a data loss on its own line."""
        self._print(f"data loss: {what}")

    def on_delivery_guarantee(self, what: str) -> None:
        """Prints the delivery guarantee of the run."""
        self._print(what)

    # The line

    def _watch(self) -> None:
        listed = time.monotonic()
        while not self._ended.wait(_REDRAW_INTERVAL_S):
            fraction = self._finished_fraction()
            now = time.monotonic()
            ends = None
            if now - listed >= _LIST_OFFSETS_INTERVAL_S and self._partitions:
                ends, listed = self._latest_offsets(), now
            with self._lock:
                if ends:
                    for topic, end in ends.items():
                        self.progress.ends[topic] = max(end, self.progress.ends.get(topic, 0))
                if self.progress.number is not None:
                    self.progress.sample(fraction, now)
                line = self.progress.line()
            self._draw(self._prefix() + line)

    def _finished_fraction(self) -> float:
        """Returns the share of finished tasks in Spark's active stages; 0 if no stage is active.

        Also returns 0 if Spark has failed, because the run raises the error.
        """
        done = tasks = 0
        with suppress(Exception):
            tracker = self._spark.sparkContext.statusTracker()
            for number in tracker.getActiveStageIds():
                info = tracker.getStageInfo(number)
                if info is not None:
                    done += info.numCompletedTasks
                    tasks += info.numTasks
        return done / tasks if tasks else 0.0

    def _latest_offsets(self) -> dict[str, int]:
        try:
            return end_offsets_by_topic(self._options, dict.fromkeys(self._partitions))
        except KprotoError:
            return {}  # the run sends the same requests and raises the error

    def _draw(self, line: str) -> None:
        if self._out.isatty():
            self._out.write(f"\r\x1b[2K{line}")
            self._out.flush()

    def _print(self, line: str) -> None:
        self._draw("")
        self._out.write(f"{line}\n")
        self._out.flush()
