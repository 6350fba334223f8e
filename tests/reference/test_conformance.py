"""Tests that docs/evidence/conformance.md has the results of comparing and fuzzing with Kafka."""

from __future__ import annotations

import pytest

from tools.reference.comparison import ComparisonResult
from tools.reference.conformance import PATH, render
from tools.reference.findings import FuzzResult
from tools.reference.pairs import ReleaseMessageVersion

pytestmark = [pytest.mark.reference, pytest.mark.slow, pytest.mark.exhaustive]


def test_the_committed_page_says_what_the_runs_found(
    compared: dict[ReleaseMessageVersion, ComparisonResult], fuzzed: FuzzResult
) -> None:
    assert PATH.read_text(encoding="utf-8") == render(compared, fuzzed), (
        f"{PATH} is out of date: run `make conformance` and commit it"
    )
