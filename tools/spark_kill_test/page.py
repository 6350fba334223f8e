"""Formats the results of the runs as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .run import Result

__all__ = ["EXACTLY_ONCE_PART", "PAGE", "PART", "table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "reliability.md"
PART = "spark-kill-test"

#: The part for runs with exactlyOnce.
EXACTLY_ONCE_PART = "spark-kill-test-exactly-once"

_NAMES = {"kproto": 'format("kproto")', "kafka": 'the JVM connector, format("kafka")'}


def table(results: Sequence[Result]) -> str:
    """Returns a Markdown table with a column for each run."""
    rows: list[tuple[str, list[object]]] = [
        ("killed with SIGKILL", [_killed(each) for each in results]),
        ("records sent", [f"{each.sent:,}" for each in results]),
        ("Parquet: lost", [each.parquet.lost for each in results]),
        ("Parquet: doubled", [each.parquet.doubled for each in results]),
        ("topic: lost", [each.topic.lost for each in results]),
        ("topic: doubled", [each.topic.doubled for each in results]),
        (
            "topic: doubled, of batches that a kill interrupted",
            [each.duplicates.of_unfinished_batches for each in results],
        ),
        ("topic: doubled, of other batches", [each.duplicates.of_others for each in results]),
        ("topic: of aborted transactions", [each.uncommitted for each in results]),
        ("topic: out of order", [each.topic.disordered for each in results]),
        ("driver started again", [each.restarts for each in results]),
        ("took, s", [round(each.took_s) for each in results]),
    ]
    if not any(each.plan.exactly_once for each in results):
        rows = [row for row in rows if "aborted" not in row[0]]
    head = "| | " + " | ".join(map(_name, results)) + " |"
    lines = [head, "|---" * (len(results) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(map(str, cells))} |" for name, cells in rows]
    return "\n".join(lines) + "\n"


def _name(result: Result) -> str:
    return _NAMES[result.plan.engine] + (", exactlyOnce" if result.plan.exactly_once else "")


def _killed(result: Result) -> str:
    return ", ".join(f"{count} {victim}s" for victim, count in sorted(result.killed.items()))
