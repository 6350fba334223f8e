"""Runs some of the schedules of `python -m tools.storm.share_schedules`."""

from __future__ import annotations

import pytest

from tests.support.selection import seeds
from tools.storm.share_schedules import ACKNOWLEDGED, ARCHIVED, LIMIT, Oracles, play


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(4, 16, 150))
def test_random_schedules_of_share_groups_have_no_faults(seed: int) -> None:
    outcome = play(seed)
    assert outcome.wrong == []
    assert outcome.records > 0


def test_record_without_a_delivery_must_be_archived_at_the_limit() -> None:
    wrong: list[str] = []
    oracles = Oracles(wrong.append)
    oracles.accepting.add((0, 1))
    log = {(0, 0): {ARCHIVED: LIMIT}, (0, 1): {ACKNOWLEDGED: 1}}
    oracles.check_settled({(0, 0), (0, 1)}, log)
    (found,) = wrong
    assert found.startswith("(0, 1) was delivered to no member")
