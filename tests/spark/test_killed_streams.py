"""Runs `make spark-kill-test` briefly: kills Spark and a broker while two streams run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tools.kafka import KafkaCluster
from tools.spark_kill_test.run import QUICK_SESSIONS, VICTIMS, Plan, spark_kill_test

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.thorough, pytest.mark.slow]

#: With this seed, each victim is killed once in four rounds.
SEED = 1

#: The rounds with exactlyOnce, in which leaders and coordinators are killed, too.
ROUNDS = 6


def test_nothing_is_lost_and_only_unfinished_batches_are_duplicated(tmp_path: Path) -> None:
    plan = Plan(rounds=4, seed=SEED)
    with KafkaCluster("4.4.0", racks=("a", "b", "c"), config=QUICK_SESSIONS) as cluster:
        result = asyncio.run(spark_kill_test(plan, cluster, tmp_path, lambda *_: None))
    assert result.is_right, result
    assert result.parquet.found == result.sent
    assert sum(result.killed.values()) == len(VICTIMS)
    assert result.restarts >= result.killed["driver"] >= 1


def test_exactly_once_loses_and_duplicates_nothing(tmp_path: Path) -> None:
    plan = Plan(rounds=ROUNDS, seed=SEED, exactly_once=True)
    with KafkaCluster("4.4.0", racks=("a", "b", "c"), config=QUICK_SESSIONS) as cluster:
        result = asyncio.run(spark_kill_test(plan, cluster, tmp_path, lambda *_: None))
    assert result.is_right, result
    assert result.parquet.found == result.topic.found == result.sent
    assert sum(result.killed.values()) == ROUNDS
