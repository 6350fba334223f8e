"""Runs `make storm` briefly: members are killed and stalled, and all records are checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tests.support.brokers import StartKafka
from tools.kafka import VERSIONS
from tools.setup.maven import MavenError
from tools.storm import Plan, storm
from tools.storm.java import resolve_tools
from tools.storm.page import facts
from tools.storm.protocols import BROKER_CONFIG, MIXED

PLANS = {
    "harmed": Plan(minutes=0.5, seed=11, partitions=12, ours=4),
    "eager": Plan(minutes=0.5, seed=13, partitions=12, ours=4, assignor="range"),
    "of the consumer protocol": Plan(minutes=0.5, seed=15, partitions=12, assignor="uniform"),
    "of both protocols": Plan(
        minutes=0.7, seed=17, partitions=12, ours=4, others=1, assignor="mixed"
    ),
    "harmed on 3.9.2": Plan(minutes=0.5, seed=12, partitions=12, ours=4, version="3.9.2"),
    "of the consumer protocol on 3.9.2": Plan(
        minutes=0.5, seed=16, partitions=12, others=0, assignor="uniform", version="3.9.2"
    ),
}
FIVE_CLIENTS = Plan(
    minutes=0.6,
    seed=14,
    partitions=12,
    ours=3,
    others=4,
    kinds=("java", "confluent", "aiokafka", "kafka-python"),
    assignor="range",
    harms=False,
)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    [
        "of both protocols",
        pytest.param("harmed", marks=pytest.mark.thorough),
        pytest.param("of the consumer protocol", marks=pytest.mark.thorough),
        pytest.param("eager", marks=pytest.mark.thorough),
        pytest.param("harmed on 3.9.2", marks=pytest.mark.thorough),
        pytest.param("of the consumer protocol on 3.9.2", marks=pytest.mark.thorough),
    ],
)
async def test_storm_reads_every_record_correctly(start_kafka: StartKafka, name: str) -> None:
    require_java()
    plan = PLANS[name]
    result = await storm(plan, start_kafka(plan.version, BROKER_CONFIG).bootstrap, lambda *_: None)
    assert result.is_right, json.dumps(facts(result), indent=2)
    assert result.verdict.records > 1_000
    assert (plan.assignor == MIXED) is (result.conversions.of_members > 0)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.peers
@pytest.mark.parametrize(
    "version", [VERSIONS[0], *(pytest.param(it, marks=pytest.mark.thorough) for it in VERSIONS[1:])]
)
async def test_members_of_five_clients_share_a_topic(
    start_kafka: StartKafka, peers_python: Path, version: str
) -> None:
    """The test fails if kproto's members read a record twice; other clients may do so."""
    require_java()
    plan = replace(FIVE_CLIENTS, version=version)
    result = await storm(plan, start_kafka(version, BROKER_CONFIG).bootstrap, lambda *_: None)
    assert result.is_right, json.dumps(facts(result), indent=2)


def require_java() -> None:
    try:
        resolve_tools()
    except MavenError as error:
        not_available("Java's VerifiableConsumer", error)
