"""The line that tells how far a run is: redrawn on a terminal, one a published increment in a log.

A thread looks at Spark's tasks and, seldom, asks the brokers for the ends of the logs. Decides
nothing; `progress` says what is shown.
"""

from __future__ import annotations

import sys
import threading
import time
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

#: How often tasks are looked at: enough for the eye, too seldom to cost anything.
_LOOK_S: Final = 0.25
#: How often brokers are asked for the ends of the logs.
_ASK_S: Final = 2.0


class ProgressLine:
    """Watches a run, to be used with `with`; `progress` is what is known.

    `before` gives what stands at the head of each line.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: ReadOptions,
        out: TextIO | None = None,
        before: Callable[[], str] = lambda: "",
    ) -> None:
        self.progress = Progress()
        #: Of each increment of the run: the seconds that it took, and the records that it read.
        self.seconds: list[float] = []
        self.read: list[int] = []
        self._before = before
        self._spark = spark
        self._options = options
        self._out = out or sys.stderr
        self._parts: list[tuple[str, int]] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._began = 0.0
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
        self._over.set()
        self._thread.join()
        self._draw("")

    # What the run tells

    def on_increment_started(self, number: int, plan: ReadPlan, behind: int) -> None:
        """An increment begins."""
        self._began = time.monotonic()
        with self._lock:
            self._parts = [(each.topic, each.partition) for each in plan.ranges]
            self.progress.on_increment_started(number, plan, self._began)

    def on_increment_published(self, manifest: Manifest) -> None:
        """An increment was published."""
        now = time.monotonic()
        with self._lock:
            self.progress.on_increment_published(manifest, now)
            self.seconds.append(now - self._began)
            self.read.append(manifest.counts.read)
            behind = format_lag(self.progress.lag)
        if not self._out.isatty():
            told = format_increment(manifest, now - self._began)
            self._say(f"{self._before()}{told}; behind {behind}")

    def on_data_loss(self, what: str) -> None:
        """Records were lost before they were read."""
        self._say(f"data loss: {what}")

    def on_delivery_guarantee(self, what: str) -> None:
        """What the run promises."""
        self._say(what)

    # The line

    def _watch(self) -> None:
        asked = time.monotonic()
        while not self._over.wait(_LOOK_S):
            part = self._tasks()
            now = time.monotonic()
            ends = None
            if now - asked >= _ASK_S and self._parts:
                ends, asked = self._ends(), now
            with self._lock:
                if ends:
                    for topic, end in ends.items():
                        self.progress.ends[topic] = max(end, self.progress.ends.get(topic, 0))
                if self.progress.number is not None:
                    self.progress.sample(part, now)
                line = self.progress.line()
            self._draw(self._before() + line)

    def _tasks(self) -> float:
        """How much of the stages under way is done."""
        tracker = self._spark.sparkContext.statusTracker()
        done = tasks = 0
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is not None:
                done += info.numCompletedTasks
                tasks += info.numTasks
        return done / tasks if tasks else 0.0

    def _ends(self) -> dict[str, int]:
        try:
            return end_offsets_by_topic(self._options, dict.fromkeys(self._parts))
        except KprotoError:
            return {}  # the run itself will say what is wrong

    def _draw(self, line: str) -> None:
        if self._out.isatty():
            self._out.write(f"\r\x1b[2K{line}")
            self._out.flush()

    def _say(self, line: str) -> None:
        self._draw("")
        self._out.write(f"{line}\n")
        self._out.flush()
