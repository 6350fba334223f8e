"""Tests the transactional producers of other clients on the embedded broker.

`transactional_peers` describes the commands of the clients.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.records import encode_batch
from tests.support.batches import TIMESTAMP
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection

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


def write_source(broker: ThreadedBroker) -> None:
    """Writes `RECORDS` records with different values to the topic `SOURCE`."""
    data = [
        PartitionProduceData(
            index=partition,
            records=encode_batch(
                [
                    (None, b"%d" % number, [], TIMESTAMP)
                    for number in range(partition, RECORDS, PARTITIONS)
                ]
            ),
        )
        for partition in range(PARTITIONS)
    ]
    request = ProduceRequest(
        acks=-1, topic_data=[TopicProduceData(name=SOURCE, partition_data=data)]
    )
    with RawConnection(broker.bootstrap) as connection:
        (topic,) = connection.exchange(request, 9).responses
    assert [it.error_code for it in topic.partition_responses] == [0] * PARTITIONS


@pytest.fixture(scope="module", params=[None, pytest.param("3.9.2", marks=pytest.mark.exhaustive)])
def broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """Yields a broker with transaction.version 2, or of a release with transaction.version 0."""
    settings = BrokerSettings(
        release=request.param, group_coordinator_rebalance_protocols=("classic", "consumer")
    )
    with threaded_broker(settings) as running:
        running.call(lambda it: it.create_topic(SOURCE, PARTITIONS))
        write_source(running)
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
    ("peer", "protocol"), [*((peer, "classic") for peer in PEERS), ("java", "consumer")]
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
    ours = (await read_by_kproto(broker.bootstrap, target))[target]
    assert [(partition, value) for partition, _, value in ours] == [
        (partition, f"{number}!")
        for partition in range(PARTITIONS)
        for number in range(partition, RECORDS, PARTITIONS)
    ]
    assert read(peers_python, peer, broker.bootstrap, target) == {target: ours}


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
