"""Tracks the progress of a run (offsets read, rate, lag by topic, time left), and formats it.

Works on plain data: the caller passes the times, in seconds of a monotonic clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .manifest import JobCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .increment_plan import ReadPlan
    from .manifest import Manifest

__all__ = ["Progress", "bar_chart", "summary"]

_WIDTH: Final = 20
#: The number of samples from which the rate is computed; few, so that changes show.
_SAMPLES: Final = 50
#: The maximum number of shown topics, and of shown bars; all other topics or bars are summed up.
_SHOWN_TOPICS: Final = 3
_BARS: Final = 12


@dataclass
class Progress:
    """The progress of a run in offsets; a compacted log has fewer records than offsets.

    `increments` is the number of published increments, and `counts` has the summed counts of these
    increments.
    """

    counts: JobCounts = field(default_factory=JobCounts)
    increments: int = 0
    #: The number of the current increment, and the finished share of its tasks, from 0 to 1; None
    #: and 0 between two increments.
    number: int | None = None
    fraction: float = 0.0
    #: By topic, summed over its partitions: the latest offsets, and the positions of the job.
    ends: dict[str, int] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _samples: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    _read: int = 0

    def on_increment_started(self, number: int, plan: ReadPlan, now: float) -> None:
        """Starts the display of an increment whose offset ranges are those of `plan`."""
        self.number, self.fraction = number, 0.0
        self._sizes, self.positions = {}, {}
        for each in plan.ranges:
            self._sizes[each.topic] = self._sizes.get(each.topic, 0) + each.size
            self.positions[each.topic] = self.positions.get(each.topic, 0) + each.start
        self.ends = {
            t: max(self.ends.get(t, 0), d + self._sizes[t]) for t, d in self.positions.items()
        }
        if not self._samples:
            self._samples.append((now, 0))

    def sample(self, fraction: float, now: float) -> None:
        """Records the progress at the time `now`, so that the rate can be computed.

        `fraction` is the finished share of the tasks, at most 1.0. A lower value than before is
        ignored.
        """
        self.fraction = max(self.fraction, min(fraction, 1.0))
        self._samples.append((now, self._offsets()))

    def on_increment_published(self, manifest: Manifest, now: float) -> None:
        """Ends an increment and adds its counts."""
        self._read += sum(each.size for each in manifest.ranges)
        self.counts += manifest.counts
        self.increments += 1
        self.number, self.fraction, self._sizes = None, 0.0, {}
        self.positions = {}
        for each in manifest.ranges:
            self.positions[each.topic] = self.positions.get(each.topic, 0) + each.end
        self._samples.append((now, self._offsets()))

    @property
    def lag(self) -> dict[str, int]:
        """Returns the lag by topic, in offsets."""
        return {
            topic: max(
                0,
                end
                - self.positions.get(topic, 0)
                - round(self._sizes.get(topic, 0) * self.fraction),
            )
            for topic, end in self.ends.items()
        }

    @property
    def rate(self) -> float | None:
        """Returns the offsets per second over the last samples; None if these span no time."""
        if len(self._samples) < 2:
            return None
        (started, first), (now, last) = self._samples[0], self._samples[-1]
        return (last - first) / (now - started) if now > started else None

    def line(self) -> str:
        """Formats the progress as one line for a terminal."""
        lag = self.lag
        parts = []
        if self.number is not None:
            bar = "█" * round(self.fraction * _WIDTH)
            parts.append(f"increment {self.number} {bar:·<{_WIDTH}} {self.fraction:4.0%}")
        else:
            parts.append(f"{self.increments} increments, waiting")
        parts.append(f"{self._offsets():,} read")
        rate, total_lag = self.rate, sum(lag.values())
        if rate:
            parts.append(f"{rate:,.0f}/s")
        parts.append(f"behind {format_lag(lag)}")
        if rate and total_lag:
            parts.append(f"about {total_lag / rate:,.0f} s left")
        return "  ".join(parts)

    def _offsets(self) -> int:
        return self._read + round(sum(self._sizes.values()) * self.fraction)


def format_lag(lag: Mapping[str, int]) -> str:
    """Formats the lag of the three topics with the largest lag, and the sum of all other lags."""
    order = sorted(lag, key=lambda topic: (-lag[topic], topic))
    shown = [f"{topic} {lag[topic]:,}" for topic in order[:_SHOWN_TOPICS]]
    if len(order) > _SHOWN_TOPICS:
        shown.append(
            f"{len(order) - _SHOWN_TOPICS} others {sum(lag[t] for t in order[_SHOWN_TOPICS:]):,}"
        )
    return ", ".join(shown) or "nothing"


def format_increment(manifest: Manifest, seconds: float) -> str:
    """Formats an increment as one line for a log."""
    counts = manifest.counts
    return (
        f"increment {manifest.increment}: {counts.read:,} read, {counts.valid:,} valid, "
        f"{counts.invalid:,} invalid, {counts.duplicates:,} duplicates, {counts.written:,} written "
        f"in {seconds:.1f} s"
    )


def summary(counts: JobCounts, increments: int, seconds: Mapping[str, float]) -> list[str]:
    """Returns the lines of the summary: each count, then the duration of each stage."""
    lines = [f"{name:<22} {getattr(counts, name):>13,}" for name in JobCounts.__slots__]
    lines.append(f"{'increments':<22} {increments:>13,}")
    lines += [f"{what:<22} {took:>11.1f} s" for what, took in seconds.items()]
    return lines


def bar_chart(title: str, rows: Sequence[tuple[str, int]]) -> list[str]:
    """Returns the lines of a text chart: the 12 longest bars, and the sum of the others."""
    rows = sorted(rows, key=lambda row: -row[1])
    shown = list(rows[:_BARS])
    if len(rows) > _BARS:
        shown.append((f"{len(rows) - _BARS} others", sum(count for _, count in rows[_BARS:])))
    if not shown:
        return []
    most = max(count for _, count in shown) or 1
    width = max(len(name) for name, _ in shown)
    return [title] + [
        f"  {name:<{width}} {'█' * max(1, round(count / most * 40)):<40} {count:>12,}"
        for name, count in shown
    ]
