"""How far a run is, in words: read, rate, lag of each topic, time left; and what it has done.

Plain data and text: asks nobody, knows no clock and no terminal. Times are seconds of any clock
that only goes forward.
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

__all__ = ["Progress", "bars", "summary"]

_WIDTH: Final = 20
#: The rate is that of the last so many looks, so that a change shows.
_LOOKS: Final = 50
#: More topics or bars than these are summed up.
_TOLD: Final = 3
_BARS: Final = 12


@dataclass
class Progress:
    """What is known of a run. Offsets are counted; a compacted log may have fewer records."""

    counts: JobCounts = field(default_factory=JobCounts)
    increments: int = 0
    number: int | None = None
    part: float = 0.0
    #: By topic: the sum of the next offsets of its partitions, in the logs and in the output.
    ends: dict[str, int] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _looks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_LOOKS))
    _read: int = 0

    def on_increment_started(self, number: int, plan: ReadPlan, now: float) -> None:
        """An increment begins."""
        self.number, self.part = number, 0.0
        self._sizes, self.done = {}, {}
        for each in plan.ranges:
            self._sizes[each.topic] = self._sizes.get(each.topic, 0) + each.size
            self.done[each.topic] = self.done.get(each.topic, 0) + each.start
        self.ends = {t: max(self.ends.get(t, 0), d + self._sizes[t]) for t, d in self.done.items()}
        if not self._looks:
            self._looks.append((now, 0))

    def sample(self, part: float, now: float) -> None:
        """Tasks have come so far; `part` is between 0 and 1."""
        self.part = max(self.part, min(part, 1.0))
        self._looks.append((now, self._offsets()))

    def on_increment_published(self, manifest: Manifest, now: float) -> None:
        """An increment was published."""
        self._read += sum(each.size for each in manifest.ranges)
        self.counts += manifest.counts
        self.increments += 1
        self.number, self.part, self._sizes = None, 0.0, {}
        self.done = {}
        for each in manifest.ranges:
            self.done[each.topic] = self.done.get(each.topic, 0) + each.end
        self._looks.append((now, self._offsets()))

    @property
    def lag(self) -> dict[str, int]:
        """Offsets of each topic that are there and not read."""
        return {
            topic: max(
                0, end - self.done.get(topic, 0) - round(self._sizes.get(topic, 0) * self.part)
            )
            for topic, end in self.ends.items()
        }

    @property
    def rate(self) -> float | None:
        """Offsets a second, of late."""
        if len(self._looks) < 2:
            return None
        (began, first), (now, last) = self._looks[0], self._looks[-1]
        return (last - first) / (now - began) if now > began else None

    def line(self) -> str:
        """One line for a terminal."""
        lag = self.lag
        parts = []
        if self.number is not None:
            bar = "█" * round(self.part * _WIDTH)
            parts.append(f"increment {self.number} {bar:·<{_WIDTH}} {self.part:4.0%}")
        else:
            parts.append(f"{self.increments} increments, waiting")
        parts.append(f"{self._offsets():,} read")
        rate, behind = self.rate, sum(lag.values())
        if rate:
            parts.append(f"{rate:,.0f}/s")
        parts.append(f"behind {format_lag(lag)}")
        if rate and behind:
            parts.append(f"about {behind / rate:,.0f} s left")
        return "  ".join(parts)

    def _under_way(self, topic: str) -> int:
        return round(self._sizes.get(topic, 0) * self.part)

    def _offsets(self) -> int:
        return self._read + round(sum(self._sizes.values()) * self.part)


def format_lag(lag: Mapping[str, int]) -> str:
    """The lag of the topics that are farthest behind, and of all others together."""
    order = sorted(lag, key=lambda topic: (-lag[topic], topic))
    told = [f"{topic} {lag[topic]:,}" for topic in order[:_TOLD]]
    if len(order) > _TOLD:
        told.append(f"{len(order) - _TOLD} others {sum(lag[t] for t in order[_TOLD:]):,}")
    return ", ".join(told) or "nothing"


def format_increment(manifest: Manifest, seconds: float) -> str:
    """One line for a log."""
    counts = manifest.counts
    return (
        f"increment {manifest.increment}: {counts.read:,} read, {counts.valid:,} valid, "
        f"{counts.invalid:,} invalid, {counts.duplicates:,} duplicates, {counts.written:,} written "
        f"in {seconds:.1f} s"
    )


def summary(counts: JobCounts, increments: int, seconds: Mapping[str, float]) -> list[str]:
    """The counts of every stage, and how long it took."""
    lines = [f"{name:<22} {getattr(counts, name):>13,}" for name in JobCounts.__slots__]
    lines.append(f"{'increments':<22} {increments:>13,}")
    lines += [f"{what:<22} {took:>11.1f} s" for what, took in seconds.items()]
    return lines


def bars(title: str, rows: Sequence[tuple[str, int]]) -> list[str]:
    """A chart of text: the longest bars, and the rest as one."""
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
