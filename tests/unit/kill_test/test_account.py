"""Tests that the account of a kill test finds lost, doubled, unordered and misplaced records."""

from __future__ import annotations

import pytest

from tools.kill_test.account import AcknowledgedOffsets, Sightings, number_of, record_value
from tools.kill_test.page import table
from tools.kill_test.run import Plan, Result
from tools.setup.parts import with_part


def account(*numbers: int) -> AcknowledgedOffsets:
    made = AcknowledgedOffsets(2)
    for number in numbers:
        made.acknowledged(1, number, 10 + number)
    return made


def sightings(*numbers: int, made: AcknowledgedOffsets | None = None) -> Sightings:
    seen = Sightings(2)
    for offset, number in enumerate(numbers, 10):
        seen.saw(1, offset, record_value(1, number, 5), made)
    return seen


def test_a_value_tells_its_number() -> None:
    assert number_of(record_value(3, 1 << 40, 7)) == (3, 1 << 40)


def test_all_seen_once() -> None:
    made = account(0, 1, 2)
    seen = sightings(0, 1, 2, made=made)
    assert (seen.seen, seen.doubled, seen.disordered, seen.misplaced) == (3, 0, 0, 0)
    assert seen.lost(made) == []
    assert made.total == 3


def test_lost() -> None:
    assert sightings(0, 2).lost(account(0, 1, 2)) == [(1, 1)]
    assert sightings(0).lost(account(0, 1)) == [(1, 1)]
    assert sightings(0).lost(account(0, 2)) == [(1, 2)], "1 was not acknowledged"


def test_doubled() -> None:
    seen = sightings(0, 1, 1, 2)
    assert (seen.seen, seen.doubled, seen.disordered) == (3, 1, 0)


def test_out_of_order() -> None:
    seen = sightings(0, 2, 1)
    assert (seen.seen, seen.doubled, seen.disordered) == (3, 0, 1)


def test_elsewhere_than_acknowledged() -> None:
    assert sightings(1, 0, made=account(0, 1)).misplaced == 2
    seen = Sightings(2)
    seen.saw(0, 5, record_value(1, 0, 0))
    assert seen.misplaced == 1, "in another partition"


def test_the_verdict() -> None:
    made = account(0, 1)
    right = Result(Plan(records=2), made, sightings(0, 1), sightings(0, 1))
    assert right.is_right
    assert "Nothing lost" in table(right)
    for during, after in [((0,), (0, 1)), ((0, 1), (0,)), ((0, 1), (0, 1, 1)), ((1, 0), (0, 1))]:
        wrong = Result(Plan(records=2), made, sightings(*during), sightings(*after))
        assert not wrong.is_right
        assert "NOT RIGHT" in table(wrong)


def test_a_part_of_a_page_is_written_anew() -> None:
    page = "a\n<!-- x: written by its command -->\nold\n<!-- x: up to here -->\nb\n"
    assert with_part(page, "x", "new\n") == page.replace("old", "new")
    with pytest.raises(ValueError, match="no part 'y'"):
        with_part(page, "y", "new")
