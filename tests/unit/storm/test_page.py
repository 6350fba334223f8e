"""Tests the table that shows the verdict of a storm.

Also tests that docs/evidence/reliability.md has a section for each kind of storm.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tools.setup.parts import with_part
from tools.storm import Plan, Result
from tools.storm.group_log import Conversions
from tools.storm.page import PAGE, part_of, table
from tools.storm.sightings import Verdict


def test_a_mixed_storm_lists_the_conversions_of_the_group() -> None:
    result = Result(
        Plan(assignor="mixed"),
        Verdict(records=9, left_behind=3),
        conversions=Conversions(to_consumer=5, to_classic=4, while_empty=7),
        known_ends=Counter(aiokafka=2, java=0),
    )
    text = table(result)
    assert (
        "| conversions of the group with members | 5x to the consumer protocol, 4x back |" in text
    )
    assert "because of a conversion (member in an old generation) | 3 |" in text
    assert "| members of aiokafka that a known bug ended | 2 |" in text
    assert "members of java" not in text
    assert text.startswith("All checks passed.")
    assert "conversions" not in table(Result(Plan(assignor="uniform")))


def test_faults_are_named() -> None:
    result = Result(Plan(), Verdict(uncommitted=1, named=["0 ends at 5"]), notes=["has not left"])
    text = table(result)
    assert text.startswith("NOT RIGHT.")
    assert "0 ends at 5" in text
    assert "has not left" in text


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky", "uniform", "mixed"])
def test_each_storm_has_its_section_of_the_page(assignor: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "here it is" in with_part(page, part_of(Plan(assignor=assignor)), "here it is")
