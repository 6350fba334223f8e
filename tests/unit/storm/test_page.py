"""The verdict of a storm as a table, and where it goes."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.setup.parts import with_part
from tools.storm import Plan, Result
from tools.storm.group_log import Conversions
from tools.storm.page import PAGE, part_of, table
from tools.storm.sightings import Verdict


def test_a_mixed_storm_says_how_often_the_group_was_converted() -> None:
    result = Result(
        Plan(assignor="mixed"),
        Verdict(records=9, left_behind=3),
        conversions=Conversions(to_consumer=5, to_classic=4, while_empty=7),
        known_ends=Counter(aiokafka=2, java=0),
    )
    said = table(result)
    assert "| converted with members in it | 5x to the consumer protocol, 4x back |" in said
    assert "because a conversion left its member behind | 3 |" in said
    assert "| members of aiokafka that ended by a fault among the findings | 2 |" in said
    assert "members of java" not in said
    assert said.startswith("Right.")
    assert "converted" not in table(Result(Plan(assignor="uniform")))


def test_what_is_wrong_is_named() -> None:
    result = Result(Plan(), Verdict(uncommitted=1, named=["0 ends at 5"]), notes=["has not left"])
    said = table(result)
    assert said.startswith("NOT RIGHT.")
    assert "0 ends at 5" in said
    assert "has not left" in said


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky", "uniform", "mixed"])
def test_each_storm_has_its_place_on_the_page(assignor: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "here it is" in with_part(page, part_of(Plan(assignor=assignor)), "here it is")
