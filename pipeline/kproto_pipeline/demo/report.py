"""Prints the demo's report: counts with their expected values, and a table; draws the chart.

Connects to no broker, and runs no Spark job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import Row

    from ..job import JobCounts
    from .flights import Expected

__all__ = ["Check", "StageRate", "all_checks", "draw_delay_by_hour", "print_report"]


@dataclass(frozen=True, slots=True)
class Check:
    """A count with its expected value."""

    name: str
    expected: int
    found: int

    def __str__(self) -> str:
        verdict = "ok" if self.expected == self.found else f"WRONG, must be {self.expected:,}"
        return f"  {self.name:<28} {self.found:>9,}  {verdict}"


@dataclass(frozen=True, slots=True)
class StageRate:
    """The duration of a stage, and its number of events (None for a stage without events)."""

    name: str
    seconds: float
    events: int | None

    def __str__(self) -> str:
        line = f"{self.name:<16}  {self.seconds:>7.1f}"
        if not self.events or not self.seconds:
            return line
        return f"{line}  {self.events / self.seconds:>10,.0f}"


def all_checks(
    expected: Expected, published: int, counts: JobCounts, carriers: Sequence[Row]
) -> list[Check]:
    """Returns the counts of all stages with their expected values."""
    return [
        Check("published", expected.records, published),
        Check("read by Spark", published, counts.read),
        Check("valid", expected.flights, counts.valid),
        Check("invalid (dead letters)", expected.broken, counts.invalid),
        Check("duplicates dropped", expected.repeated, counts.duplicates),
        Check("written to Parquet", expected.flights + expected.broken, counts.written),
        Check("flights in the table", expected.flights, sum(row["scheduled"] for row in carriers)),
    ]


def print_report(
    checks: Sequence[Check], carriers: Sequence[Row], rates: Sequence[StageRate]
) -> None:
    """Prints the checks, the table of carriers, and the rate of each stage."""
    print("\ncounts")
    for check in checks:
        print(check)
    print("\ncarrier  scheduled  departures  mean departure delay")
    for row in carriers:
        delay = "–" if row["delay"] is None else f"{row['delay']:.1f} min"
        print(f"{row['carrier']:<7}  {row['scheduled']:>9,}  {row['departures']:>10,}  {delay:>20}")
    print(f"\n{'stage':<16}  seconds    events/s")
    for rate in rates:
        print(rate)


def draw_delay_by_hour(rows: Sequence[Row], path: Path) -> None:
    """Writes a PNG chart of the mean departure delay by scheduled hour."""
    import matplotlib as mpl

    mpl.use("Agg")  # no display is needed
    import matplotlib.pyplot as plt

    hours = [row["hour"] for row in rows]
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    axes.bar(hours, [row["delay"] for row in rows], color="#3b6ea5")
    axes.set_title("Departure delay by scheduled hour, New York airports, 2013")
    axes.set_xlabel("scheduled hour of departure (local time)")
    axes.set_ylabel("mean delay (minutes)")
    axes.set_xticks(hours)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}-writing")
    try:
        figure.savefig(unfinished, dpi=150, format="png")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
        plt.close(figure)
