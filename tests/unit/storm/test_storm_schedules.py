"""Runs some of the schedules of `python -m tools.storm.schedules`."""

from __future__ import annotations

import pytest

from tests.support.selection import rest_slow
from tools.storm.schedules import play

#: Each schedule once found a bug: a member kept fetching while it joined, a session started again
#: without a response, a member waited too long for in-flight records, or two clocks had the same
#: ms.
ONCE_WRONG = [(1060, "cooperative-sticky"), (1045, "sticky"), (5121, "range")]
ONCE_WRONG += [(7032, "cooperative-sticky"), (1080, "cooperative-sticky")]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", rest_slow(ONCE_WRONG, 0, 1), ids=lambda it: f"{it[0]}-{it[1]}")
def test_schedules_that_failed_once_have_no_faults(schedule: tuple[int, str]) -> None:
    seed, assignor = schedule
    outcome = play(seed, assignor)
    assert outcome.wrong == []
    assert outcome.records > 0


SOME, MANY = range(8), range(8, 100)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "assignor",
    [
        "cooperative-sticky",
        "mixed",
        *(pytest.param(it, marks=pytest.mark.thorough) for it in ("range", "uniform")),
    ],
)
@pytest.mark.parametrize(
    "seeds", [SOME, pytest.param(MANY, marks=pytest.mark.thorough)], ids=["some", "many"]
)
def test_random_schedules_have_no_faults(assignor: str, seeds: range) -> None:
    wrong = {seed: outcome.wrong for seed in seeds if (outcome := play(seed, assignor)).wrong}
    assert not wrong
