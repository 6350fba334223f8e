"""Runs some of the schedules of `python -m tools.storm.share_schedules`."""

from __future__ import annotations

import pytest

from tests.support.selection import seeds
from tools.storm.share_schedules import play


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(4, 16, 150))
def test_random_schedules_of_share_groups_have_no_faults(seed: int) -> None:
    outcome = play(seed)
    assert outcome.wrong == []
    assert outcome.deliveries >= outcome.records > 0
