"""Runs random schedules of `group_model`, without sockets or an event loop.

A partition never has two owners. At the end every partition has an owner.
"""

from __future__ import annotations

from collections import Counter

import pytest

from .group_model import Model

FEW, SHORT, LONG, LONGEST = 12, 60, 1_190, 4_000


def play(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        model = Model(seed)
        try:
            model.play()
        except BaseException as error:
            error.add_note(f"schedule {seed} with {model.settings.assignors}, at {model.now:.3f} s")
            raise
        seen.update(model.seen)
    return seen


@pytest.mark.slow
def test_few_schedules_keep_each_partition_with_one_owner() -> None:
    assert len(play(range(FEW))) == 9


@pytest.mark.slow
@pytest.mark.exhaustive
def test_no_partition_has_two_owners_and_none_has_none() -> None:
    seen = play(range(SHORT))
    assert min(seen.values()) > SHORT // 10
    assert len(seen) == 9


@pytest.mark.slow
@pytest.mark.thorough
def test_more_schedules() -> None:
    play(range(SHORT, SHORT + LONG))


@pytest.mark.slow
@pytest.mark.thorough
def test_many_more_schedules() -> None:
    play(range(SHORT + LONG, SHORT + LONG + LONGEST))
