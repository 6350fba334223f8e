"""Runs `make kill-test` briefly: a leader is killed twice under a producer and two readers."""

from __future__ import annotations

import json

import pytest

from tests.support.brokers import StartCluster
from tools.kill_test import Plan, kill_test
from tools.kill_test.page import facts
from tools.kill_test.run import QUICK_SESSIONS


@pytest.mark.slow
@pytest.mark.exhaustive
async def test_nothing_is_lost_while_leaders_are_killed(start_cluster: StartCluster) -> None:
    plan = Plan(records=20_000, kills=2, seed=7)
    cluster = start_cluster(plan.version, config=QUICK_SESSIONS)
    result = await kill_test(plan, cluster, lambda *_: None)
    assert result.is_right, json.dumps(facts(result), indent=2)
    assert len(result.killed) == 2
    assert result.after.seen == result.during.seen == 20_000
