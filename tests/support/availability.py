"""Skips or fails tests that need software which this machine does not have.

On a developer's machine the test is skipped, and the end of the run lists the missing software and
how to install it. In CI the test fails.
"""

from __future__ import annotations

import importlib
import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

__all__ = [
    "PREFIX",
    "imported",
    "missing_lines",
    "not_available",
    "report_missing",
    "skip_untested",
]

PREFIX = "NOT TESTED: "
"""Begins the reason of every skip that the summary repeats."""

LONGEST_REASON = 300
"""Characters of a reason that the summary shows; the skip itself has the whole reason."""


def not_available(part: str, reason: object, install: str = "") -> NoReturn:
    """In CI fails the test; elsewhere skips the test as `skip_untested` does."""
    if os.environ.get("CI", "").lower() in {"true", "1", "yes"}:
        pytest.fail(_message(part, reason, install), pytrace=False)
    skip_untested(part, reason, install)


def imported(name: str, part: str) -> Any:
    """Returns the module `name` of a package that only some tests need.

    Without the package, skips the test as `not_available` does.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        not_available(part, error, f"{name.partition('.')[0]} (requirements/dev.txt)")


def skip_untested(part: str, reason: object, install: str = "") -> NoReturn:
    """Skips the test with a reason that the summary repeats.

    `part` names the feature that stays untested. `install` names the software to install, and
    is empty if the reason already names the software.
    """
    pytest.skip(_message(part, reason, install))


def _message(part: str, reason: object, install: str) -> str:
    assert ": " not in part, "the summary splits the text at the first colon"
    return f"{PREFIX}{part}: {reason}" + (f"; install {install}" if install else "")


@contextmanager
def report_missing(reporter: pytest.TerminalReporter) -> Iterator[None]:
    """Writes a section about the tests that `skip_untested` skipped: one line per reason.

    Writes the section at the end of the `with` block. Inside the block, pytest writes its own
    summary of skipped tests; pytest's summary omits the tests that the section lists.
    """
    skipped = reporter.stats.get("skipped", [])
    reporter.stats["skipped"] = [it for it in skipped if PREFIX not in _reason(it)]
    try:
        yield
    finally:
        reporter.stats["skipped"] = skipped
    lines = missing_lines(map(_reason, skipped))
    if lines:
        reporter.section("parts that were NOT tested here", sep="!", red=True, bold=True)
        for line in lines:
            reporter.write_line(line)


def _reason(report: pytest.TestReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""


def missing_lines(reasons: Iterable[str]) -> list[str]:
    """Returns a line per reason: number of skipped tests, untested feature, software to install.

    Omits reasons that are not from `skip_untested`.
    """
    counts: Counter[str] = Counter()
    parts: dict[str, set[str]] = {}
    for text in reasons:
        _, found, message = text.partition(PREFIX)
        if found:
            part, _, reason = message.partition(": ")
            reason = textwrap.shorten(reason, LONGEST_REASON)
            counts[reason] += 1
            parts.setdefault(reason, set()).add(part)
    return [
        f"{count} skipped: {', '.join(sorted(parts[reason]))}: {reason}"
        for reason, count in counts.items()
    ]
