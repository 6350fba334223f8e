"""Runs the tests of `make kill-test` briefly: brokers and programs are killed a few times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.brokers import StartCluster
from tools.kill_test import Plan, kill_test
from tools.kill_test.exactly_once import TransactionPlan, exactly_once_test, transaction_facts
from tools.kill_test.page import facts
from tools.kill_test.run import QUICK_SESSIONS

#: Broker settings: a killed member is detected after six seconds instead of 45.
QUICK_MEMBERS = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}


@pytest.mark.slow
@pytest.mark.exhaustive
async def test_nothing_is_lost_while_leaders_are_killed(start_cluster: StartCluster) -> None:
    plan = Plan(records=20_000, kills=2, seed=7)
    cluster = start_cluster(plan.version, config=QUICK_SESSIONS)
    result = await kill_test(plan, cluster, lambda *_: None)
    assert result.is_right, json.dumps(facts(result), indent=2)
    assert len(result.killed) == 2
    assert result.after.seen == result.during.seen == 20_000


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["loop", "run"])
async def test_transactions_copy_each_record_once_while_processes_are_killed(
    start_cluster: StartCluster, tmp_path: Path, way: str
) -> None:
    plan = TransactionPlan(
        rounds=2,
        seed=5,
        protocol="consumer",
        way=way,
        targets=("transaction coordinator", "program"),
    )
    cluster = start_cluster(plan.version, config=QUICK_SESSIONS | QUICK_MEMBERS)
    result = await exactly_once_test(plan, cluster, lambda *_: None, tmp_path)
    assert result.is_right, json.dumps(transaction_facts(result), indent=2)
    assert len(result.hits) == 2
    assert result.seen.seen == result.account.total > 0


@pytest.mark.slow
@pytest.mark.exhaustive
async def test_program_that_was_replaced_while_it_was_stopped_is_fenced(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    plan = TransactionPlan(rounds=1, seed=5, protocol="consumer", targets=("zombie",))
    cluster = start_cluster(plan.version, config=QUICK_SESSIONS | QUICK_MEMBERS)
    result = await exactly_once_test(plan, cluster, lambda *_: None, tmp_path)
    assert result.is_right, json.dumps(transaction_facts(result), indent=2)
    assert result.fenced == 2
    assert result.seen.seen == result.account.total > 0
