"""Tests the transactional producers of other clients on the embedded broker.

The module `transactional_peers` describes the commands of the clients.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

import kproto
from kproto.broker import BrokerSettings, Cluster
from tests.support.embedded import (
    ThreadedBroker,
    ThreadedCluster,
    threaded_broker,
    threaded_cluster,
)

from .transactional_peers import (
    PEERS,
    SCENE_OFFSETS,
    SCENE_PARTITIONS,
    SCENES,
    read,
    read_by_kproto,
    run,
)

pytestmark = [pytest.mark.peers, pytest.mark.slow]

SOURCE: Final = "source"
PARTITIONS: Final = 12
RECORDS: Final = 3_000

#: How often leaders move.
MOVE_INTERVAL_S: Final = 0.3
#: The peers except aiokafka 0.14: it overlooks the error NOT_COORDINATOR of OffsetFetch v2 and v3,
#: takes the group for a group without committed offsets, and reads from the start again.
MOVABLE_PEERS: Final = tuple(peer for peer in PEERS if peer != "aiokafka")

#: The error for offsets of a member that has left the group.
LEFT_MEMBER: Final = {
    "confluent_kafka": "UNKNOWN_MEMBER_ID",
    "kafka_python": "CommitFailedError",
    "java": "CommitFailedException",
}
#: The error of a producer that another producer with its transactional id has fenced.
FENCED: Final = {
    "confluent_kafka": "_FENCED",
    "aiokafka": "ProducerFenced",
    "kafka_python": "ProducerFencedError",
    "java": "ProducerFencedException",
}


async def write_source(bootstrap: str) -> None:
    """Writes `RECORDS` records with different values to the topic `SOURCE`."""
    async with kproto.Client(bootstrap) as client, client.producer() as producer:
        await asyncio.gather(
            *(
                producer.send(SOURCE, b"%d" % number, partition=number % PARTITIONS)
                for number in range(RECORDS)
            )
        )


async def check_transformed(bootstrap: str, topic: str) -> list[list[object]]:
    """Checks that `topic` has each record of `SOURCE` once, transformed, in order; returns them."""
    records = (await read_by_kproto(bootstrap, topic))[topic]
    assert [(partition, value) for partition, _, value in records] == [
        (partition, f"{number}!")
        for partition in range(PARTITIONS)
        for number in range(partition, RECORDS, PARTITIONS)
    ]
    return records


@pytest.fixture(scope="module", params=[None, pytest.param("3.9.2", marks=pytest.mark.exhaustive)])
def broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """Yields a broker with transaction.version 2, or a broker of 3.9.2, which has version 0."""
    settings = BrokerSettings(
        release=request.param, group_coordinator_rebalance_protocols=("classic", "consumer")
    )
    with threaded_broker(settings) as running:
        running.call(lambda it: it.create_topic(SOURCE, PARTITIONS))
        asyncio.run(write_source(running.bootstrap))
        yield running


@pytest.mark.parametrize("peer", PEERS)
async def test_peer_commits_aborts_and_is_fenced(
    broker: ThreadedBroker, peers_python: Path, peer: str
) -> None:
    topic = f"scenes-{peer}"
    broker.call(lambda it: it.create_topic(topic, SCENE_PARTITIONS))
    found = run(peers_python, peer, broker.bootstrap, "scenes", topic, SOURCE)
    expected: dict[str, Any] = {"offsets": SCENE_OFFSETS, "zombie": FENCED[peer]}
    if peer in LEFT_MEMBER:
        expected["left member"] = LEFT_MEMBER[peer]
    assert found == expected
    records = [
        [partition, offset, value]
        for partition in range(SCENE_PARTITIONS)
        for offset, value in SCENES
    ]
    assert await read_by_kproto(broker.bootstrap, topic) == {topic: records}
    assert read(peers_python, peer, broker.bootstrap, topic) == {topic: records}


@pytest.mark.parametrize(
    ("peer", "protocol"),
    [
        *(pytest.param(peer, "classic", marks=pytest.mark.exhaustive) for peer in PEERS),
        ("java", "consumer"),
    ],
)
async def test_peer_transforms_each_record_exactly_once(
    broker: ThreadedBroker, peers_python: Path, peer: str, protocol: str
) -> None:
    target = f"transformed-{peer}-{protocol}"
    broker.call(lambda it: it.create_topic(target, PARTITIONS))
    found = run(
        peers_python,
        peer,
        broker.bootstrap,
        *("transform", SOURCE, target, str(RECORDS)),
        protocol=protocol,
    )
    assert found["commits"] > found["aborts"] > 0
    ours = await check_transformed(broker.bootstrap, target)
    assert read(peers_python, peer, broker.bootstrap, target) == {target: ours}


@contextmanager
def moving_leaders(cluster: ThreadedCluster, draw: random.Random) -> Iterator[None]:
    """Moves partition leaders, and with them the coordinators, at random until the block ends."""
    ended = threading.Event()

    def move(running: Cluster) -> None:
        for name, topic in running.topics.items():
            for partition in range(len(topic.partitions)):
                if draw.random() < 0.4:
                    running.move_leader(name, partition, draw.choice(running.nodes))

    def run_mover() -> None:
        while not ended.wait(MOVE_INTERVAL_S):
            cluster.call(move)

    mover = threading.Thread(target=run_mover)
    mover.start()
    try:
        yield
    finally:
        ended.set()
        mover.join()


@pytest.mark.exhaustive
@pytest.mark.parametrize("release", [None, "3.9.2"])
@pytest.mark.parametrize("peer", MOVABLE_PEERS)
async def test_peer_transforms_each_record_exactly_once_while_leaders_move(
    peers_python: Path, peer: str, release: str | None
) -> None:
    with threaded_cluster(3, settings=BrokerSettings(release=release)) as cluster:
        for topic in (SOURCE, "target"):
            cluster.call(partial(Cluster.create_topic, name=topic, partitions=PARTITIONS))
        await write_source(cluster.bootstrap)
        with moving_leaders(cluster, random.Random(0)):
            run(peers_python, peer, cluster.bootstrap, "transform", SOURCE, "target", str(RECORDS))
        await check_transformed(cluster.bootstrap, "target")


@pytest.mark.parametrize(
    ("peer", "error"),
    [
        ("confluent_kafka", "_UNSUPPORTED_FEATURE"),
        ("aiokafka", "KafkaError"),
        ("kafka_python", "KafkaConfigurationError"),
        ("java", "UnsupportedProtocolFieldException"),
    ],
)
def test_peer_reports_that_a_release_has_no_transactions(
    peers_python: Path, peer: str, error: str
) -> None:
    with threaded_broker(BrokerSettings(release="0.10.2")) as running:
        started = time.monotonic()
        assert run(peers_python, peer, running.bootstrap, "init") == error
    assert time.monotonic() - started < 60
