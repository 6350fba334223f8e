"""Runs `make storm ARGS=share` briefly: members and real brokers are killed."""

from __future__ import annotations

import json

import pytest

from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START, StartCluster
from tests.support.share_groups import SHARE_VERSION
from tools.setup.javac import CompilerError
from tools.share.java import share_worker
from tools.storm.share import SharePlan, share_storm
from tools.storm.share.brokers import REAL_CONFIG, RealBrokers
from tools.storm.share.page import facts

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.thorough)])
async def test_storm_of_a_share_group_has_no_violation(
    start_cluster: StartCluster, seed: int
) -> None:
    try:
        share_worker("127.0.0.1:1", "t", "g")
    except (*CANNOT_START, CompilerError) as error:
        not_available("Java's share consumer", error)
    cluster = start_cluster(SHARE_VERSION, config=REAL_CONFIG)
    plan = SharePlan(minutes=0.6, seed=seed)
    result = await share_storm(plan, RealBrokers(cluster), lambda *_: None)
    assert result.is_right, json.dumps(facts(result), indent=2)
    assert result.verdict.records > 1_000
