"""Formats the result of a storm for the terminal, for programs and for the documentation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from .protocols import BROKERS_OWN, MIXED
from .run import Plan, Result

__all__ = ["PAGE", "facts", "part_of", "table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "reliability.md"


def part_of(plan: Plan) -> str:
    """Returns the name of the part of the page that has the plan's result.

    The name is "storm" for classic groups; for other groups, the name also has the assignor.
    """
    return f"storm, {plan.assignor}" if plan.assignor in (*BROKERS_OWN, MIXED) else "storm"


def facts(result: Result) -> dict[str, Any]:
    """Returns the result as JSON-compatible data."""
    return {
        "right": result.is_right,
        "plan": asdict(result.plan),
        "members": result.members,
        "conversions": asdict(result.conversions),
        "actions": dict(sorted(result.actions.items())),
        **asdict(result.verdict),
        "known_ends": dict(+result.known_ends),
        "took, s": round(result.took_s),
        "notes": result.notes,
    }


def table(result: Result) -> str:
    """Returns the verdict, followed by a Markdown table of the numbers."""
    plan, verdict = result.plan, result.verdict
    actions = ", ".join(f"{name.replace('_', ' ')} {n}x" for name, n in result.actions.items())
    rows = [
        ("Kafka, assignor", f"{plan.version}, {plan.assignor}"),
        (
            "members",
            f"{result.members}: up to {plan.ours} kproto and {plan.others} other at a time",
        ),
        ("actions", actions),
        ("records", f"{verdict.records:,} in {plan.partitions} partitions"),
        ("seen by no member", verdict.lost),
        ("seen twice without a reason", verdict.doubled),
        ("seen again after a kill, a stall or a slow handler", verdict.again),
        ("seen again although already committed", verdict.again_committed),
        ("out of order", verdict.out_of_order),
        ("partitions with two owners at once", verdict.two_owners),
        ("commits of a record that was not seen yet", verdict.early_commits),
        ("partitions with uncommitted records at the end", verdict.uncommitted),
        ("took", f"{result.took_s:,.0f} s, seed {plan.seed}"),
    ]
    if plan.assignor == MIXED:
        found = result.conversions
        text = f"{found.to_consumer}x to the consumer protocol, {found.to_classic}x back"
        rows.insert(3, ("conversions of the group with members", text))
        text = "seen again, or not committed, because of a conversion (member in an old generation)"
        rows.insert(-1, (text, verdict.left_behind))
    for kind, count in (+result.known_ends).items():
        rows.insert(-1, (f"members of {kind} that a known bug ended", count))
    if plan.others:
        rows.insert(-1, ("seen twice, first by a member of another client", verdict.by_peers))
    lines = ["All checks passed." if result.is_right else "NOT RIGHT.", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    return "\n".join([*lines, *(f"\n{note}" for note in [*verdict.named, *result.notes])]) + "\n"
