"""Tests other clients on the embedded broker: each client writes records and reads all records."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto import Client, ProducerRecord
from kproto.broker import BrokerSettings
from kproto.messages.fetch_request import FetchRequest
from kproto.protocol.connection import ReceivedRequest
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.selection import rest_slow

pytestmark = pytest.mark.peers

SCRIPTS = Path(__file__).parent / "peer_scripts"
PEERS = ("kafka_python", "aiokafka", "confluent_kafka")
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    """Yields one broker for all tests of this module."""
    with threaded_broker() as running:
        yield running


def run(python: Path, peer: str, *arguments: str) -> Any:
    done = subprocess.run(
        [python, SCRIPTS / f"with_{peer}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected(count: int) -> list[list[object]]:
    """Returns the first `count` records of a topic; the values repeat every hundred records.

    The command `write` of each peer script writes the same hundred records twice.
    """
    return [[n, "key", f"value {n % 100}", [["h", f"{n % 100}"]]] for n in range(count)]


@pytest.fixture(scope="module")
def written(broker: ThreadedBroker, peers_python: Path) -> dict[str, list[int]]:
    """Lets each client write its records; returns the offsets that each client received."""
    return {peer: run(peers_python, peer, broker.bootstrap, peer, "write") for peer in PEERS}


@pytest.mark.parametrize("peer", PEERS)
def test_peer_creates_a_topic_and_writes(
    broker: ThreadedBroker, written: dict[str, list[int]], peer: str
) -> None:
    assert sorted(written[peer]) == list(range(200))
    assert broker.call(lambda it: len(it.topics[peer].partitions)) == 2
    stored = broker.call(lambda it: it.records(peer))
    found = [
        [
            record.offset,
            (record.key or b"").decode(),
            (record.value or b"").decode(),
            [[name, (value or b"").decode()] for name, value in record.headers],
        ]
        for record in stored
    ]
    assert found == expected(200)


@pytest.mark.parametrize("peer", PEERS)
def test_peer_writes_the_second_half_idempotently(
    broker: ThreadedBroker, written: dict[str, list[int]], peer: str
) -> None:
    batches = broker.call(lambda it: list(it.topics[peer].partitions[0].log))
    assert all(batch.producer_id < 0 for batch in batches if batch.last_offset < 100)
    idempotent = [batch for batch in batches if batch.base_offset >= 100]
    assert len({batch.producer_id for batch in idempotent}) == 1
    assert [batch.base_sequence for batch in idempotent] == [
        batch.base_offset - 100 for batch in idempotent
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("writer", PEERS)
@pytest.mark.parametrize("reader", PEERS)
def test_peer_reads_the_records_of_another(
    broker: ThreadedBroker,
    peers_python: Path,
    written: dict[str, list[int]],
    reader: str,
    writer: str,
) -> None:
    assert len(written[writer]) == 200
    found = run(peers_python, reader, broker.bootstrap, writer, "read", "200")
    assert found == expected(200)


@pytest.mark.parametrize("compression", rest_slow(["zstd", "none", "gzip", "snappy", "lz4"], 1, 1))
async def test_peers_read_the_records_of_kproto(
    broker: ThreadedBroker, peers_python: Path, compression: str
) -> None:
    topic = f"ours-{compression}"
    broker.call(lambda it: it.create_topic(topic))
    records = [
        ProducerRecord(b"value %d" % (n % 100), b"key", [("h", b"%d" % (n % 100))])
        for n in range(1000)
    ]
    async with (
        Client(broker.bootstrap) as client,
        client.producer(compression=compression) as producer,  # type: ignore[arg-type]  # a parameter's str is no Literal
    ):
        await producer.send_many(topic, records)
    for peer in PEERS:
        assert run(peers_python, peer, broker.bootstrap, topic, "read", "1000") == expected(1000)


@pytest.mark.parametrize("peer", PEERS)
async def test_kproto_reads_the_records_of_a_peer(
    broker: ThreadedBroker, written: dict[str, list[int]], peer: str
) -> None:
    assert len(written[peer]) == 200
    found: list[list[object]] = []
    async with Client(broker.bootstrap) as client:
        async for record in client.consumer(peer, start="earliest"):
            headers = [[name, (value or b"").decode()] for name, value in record.headers]
            key, value = (record.key or b"").decode(), (record.value or b"").decode()
            found.append([record.offset, key, value, headers])
            if len(found) == 200:
                break
    assert found == expected(200)


@pytest.mark.parametrize(
    ("release", "version", "detected", "fetched"),
    [
        pytest.param("0.8.2", "0.8.2", "0.8.2", 0, marks=pytest.mark.exhaustive),
        pytest.param("0.9", "0.9", "0.9", 1, marks=pytest.mark.exhaustive),
        ("0.10.0", "-", "0.10.0", 2),
        pytest.param("0.11", "-", "0.11", 5, marks=pytest.mark.exhaustive),
        pytest.param("1.1", "-", "1.1", 7, marks=pytest.mark.exhaustive),
        pytest.param("3.9.2", "-", "3.9", None, marks=pytest.mark.exhaustive),
        ("4.4", "-", "4.3", None),
    ],
)
def test_kafka_python_detects_the_release_of_the_broker(
    release: str, version: str, detected: str, fetched: int | None, peers_python: Path
) -> None:
    fetches: list[tuple[int, int]] = []

    def note(request: ReceivedRequest) -> None:
        assert isinstance(request.message, FetchRequest)
        fetches.append((request.version, request.message.session_epoch))

    with threaded_broker(BrokerSettings(release=release)) as running:
        running.call(
            lambda it: (it.create_topic("t", partitions=2), it.control(note, request=FetchRequest))
        )
        done = subprocess.run(
            [peers_python, SCRIPTS / "kafka_python_of_release.py", running.bootstrap, "t", version],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [detected, [str(number) for number in range(20)]]
    versions, epochs = {version for version, _ in fetches}, [epoch for _, epoch in fetches]
    assert fetched is None or versions == {fetched}
    if min(versions) >= 7:
        assert epochs[:5] == [0, 1, 2, 3, 4], "the client has a fetch session"
    else:
        assert set(epochs) == {-1}
