"""Formats the result of a storm of share groups, for the terminal, programs and the page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from .brokers import LIMIT, LOCK_S
from .run import ShareResult

__all__ = ["PART", "facts", "table"]

#: The part of the page that has the result.
PART: Final = "storm, share"


def facts(result: ShareResult) -> dict[str, Any]:
    """Returns the result as JSON-compatible data."""
    return {
        "right": result.is_right,
        "brokers": result.brokers,
        "plan": asdict(result.plan),
        "members": result.members,
        "actions": dict(sorted(result.actions.items())),
        **asdict(result.verdict),
        "failed": dict(sorted(result.verdict.failed.items())),  # `asdict` counts the pairs
        "took, s": round(result.took_s),
        "notes": result.notes,
    }


def table(result: ShareResult) -> str:
    """Returns the verdict, followed by a Markdown table of the numbers."""
    plan, verdict = result.plan, result.verdict
    actions = ", ".join(f"{name.replace('_', ' ')} {n}x" for name, n in result.actions.items())
    failed = ", ".join(f"{name} {n:,}x" for name, n in sorted(verdict.failed.items()))
    rows = [
        ("brokers, lock", f"{result.brokers}, {LOCK_S:g} s"),
        (
            "members",
            f"{result.members}: up to {plan.members} kproto and {plan.others} Java at a time",
        ),
        ("actions", actions),
        ("records", f"{verdict.records:,} in {plan.partitions} partitions"),
        ("deliveries", f"{verdict.deliveries:,}, {verdict.redelivered:,} of them repeated"),
        (
            "records accepted, rejected",
            f"{verdict.accepted:,}, {verdict.rejected:,}",
        ),
        (
            f"records archived after {LIMIT} deliveries",
            f"{verdict.archived:,}, {verdict.archived_unseen:,} of them before a member saw them",
        ),
        ("refused acknowledgements", failed or 0),
        ("confirmed acceptances of records that had ended before", f"{verdict.late:,}"),
        ("neither accepted nor archived", verdict.lost),
        ("acknowledged without an acceptance of a member", verdict.unexplained),
        ("delivered after a confirmed acceptance", verdict.after_acceptance),
        ("accepted, and archived too", verdict.ended_twice),
        ("confirmed as accepted, but not stored", verdict.not_stored),
        ("deliveries above the limit", verdict.above_limit),
        ("delivered after they were archived", verdict.after_archive),
        ("archived before the limit, and not rejected", verdict.early_archive),
        ("took", f"{result.took_s:,.0f} s, seed {plan.seed}"),
    ]
    lines = ["All checks passed." if result.is_right else "NOT RIGHT.", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    return "\n".join([*lines, *(f"\n{note}" for note in [*verdict.named, *result.notes])]) + "\n"
