"""Runs `make storm ARGS=share` briefly: members and real brokers are killed."""

from __future__ import annotations

import json

import pytest

from tests.support.brokers import StartCluster
from tests.support.share_groups import SHARE_VERSION
from tools.storm.share import SharePlan, share_storm
from tools.storm.share.brokers import REAL_CONFIG, RealBrokers
from tools.storm.share.page import facts

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.thorough)])
async def test_storm_of_a_share_group_has_no_violation(
    start_cluster: StartCluster, seed: int
) -> None:
    cluster = start_cluster(SHARE_VERSION, config=REAL_CONFIG)
    plan = SharePlan(minutes=0.6, seed=seed)
    result = await share_storm(plan, RealBrokers(cluster), lambda *_: None)
    assert result.is_right, json.dumps(facts(result), indent=2)
    assert result.verdict.records > 1_000
