"""What happens when a test needs something that this machine does not have.

Skipping is allowed on a developer's machine but never quietly: the reasons stand together at the
end of the run. Under CI the same is a failure.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import NoReturn

import pytest

__all__ = ["PREFIX", "not_available", "report_missing"]

PREFIX = "NOT TESTED: "
"""Begins the reason of every skip that the summary repeats."""


def not_available(what: str, reason: object) -> NoReturn:
    """Skip the test with a reason that the summary repeats; under CI fail it."""
    message = f"{PREFIX}{what}: {reason}"
    if os.environ.get("CI", "").lower() in {"true", "1", "yes"}:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def report_missing(reporter: pytest.TerminalReporter) -> None:
    """Write a section that says what was not tested, why, and how many tests that is."""
    reasons: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple):
            _, found, reason = str(report.longrepr[2]).partition(PREFIX)
            if found:
                reasons[reason] += 1
    if reasons:
        reporter.section("parts that were NOT tested here", sep="!", red=True, bold=True)
        for reason, count in reasons.items():
            reporter.write_line(f"{count} skipped: {reason}")
