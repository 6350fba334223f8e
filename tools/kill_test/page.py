"""Formats the result of a kill test for the terminal, for programs and for the documentation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from .run import Result

__all__ = ["PAGE", "PART", "facts", "table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "reliability.md"
PART = "kill-test"


def facts(result: Result) -> dict[str, Any]:
    """Returns the result as JSON-compatible data."""
    during, after = result.during, result.after
    return {
        "right": result.is_right,
        "version": result.plan.version,
        "seed": result.plan.seed,
        "records": result.plan.records,
        "acknowledged": result.account.total,
        "failed": result.account.failed,
        "kills": len(result.killed),
        "killed": {str(node): times for node, times in sorted(Counter(result.killed).items())},
        "lost": result.lost,
        "doubled": after.doubled,
        "disordered": after.disordered,
        "at another offset": after.misplaced,
        "reader meanwhile": {
            "missed": result.missed,
            "doubled": during.doubled,
            "disordered": during.disordered,
            "at another offset": during.misplaced,
        },
        "longest time without an acknowledgement, s": round(result.longest_silence_s, 1),
        "took, s": round(result.took_s),
        "notes": result.notes,
    }


def table(result: Result) -> str:
    """Returns the verdict, then a Markdown table of the numbers, then the notes."""
    found = facts(result)
    meanwhile = found["reader meanwhile"]
    killed = ", ".join(f"node {node} {times}x" for node, times in found["killed"].items())
    rows = [
        ("Kafka", found["version"]),
        ("acknowledged", f"{found['acknowledged']:,} of {found['records']:,}"),
        ("leaders killed", f"{found['kills']} ({killed})"),
        ("lost", found["lost"]),
        ("doubled", found["doubled"]),
        ("out of order", found["disordered"]),
        ("at another offset than acknowledged", found["at another offset"]),
        (
            "reader meanwhile: missed, doubled, out of order",
            f"{meanwhile['missed']}, {meanwhile['doubled']}, {meanwhile['disordered']}",
        ),
        ("longest time without an acknowledgement", f"{result.longest_silence_s:.1f} s"),
        ("took", f"{result.took_s:,.0f} s, seed {found['seed']}"),
    ]
    verdict = "Nothing lost, nothing doubled, order kept." if found["right"] else "NOT RIGHT."
    lines = [verdict, "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in found["notes"])]) + "\n"
