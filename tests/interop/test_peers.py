"""Other clients against the embedded broker: each writes, and each reads what any has written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto import Client, ProducerRecord
from tests.support.embedded import ThreadedBroker, threaded_broker

pytestmark = pytest.mark.peers

SCRIPTS = Path(__file__).parent / "peer_scripts"
PEERS = ("kafka_python", "aiokafka", "confluent_kafka")
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    """One broker for all tests here."""
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
    """What `write` of each script wrote: the same hundred twice."""
    return [[n, "key", f"value {n % 100}", [["h", f"{n % 100}"]]] for n in range(count)]


@pytest.fixture(scope="module")
def written(broker: ThreadedBroker, peers_python: Path) -> dict[str, list[int]]:
    """The offsets that each peer was given for what it wrote, by peer."""
    return {peer: run(peers_python, peer, broker.bootstrap, peer, "write") for peer in PEERS}


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_creates_a_topic_and_writes(
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
def test_the_second_half_was_written_idempotently(
    broker: ThreadedBroker, written: dict[str, list[int]], peer: str
) -> None:
    batches = broker.call(lambda it: list(it.topics[peer].partitions[0].log))
    assert all(batch.producer_id < 0 for batch in batches if batch.last_offset < 100)
    idempotent = [batch for batch in batches if batch.base_offset >= 100]
    assert len({batch.producer_id for batch in idempotent}) == 1
    assert [batch.base_sequence for batch in idempotent] == [
        batch.base_offset - 100 for batch in idempotent
    ]


@pytest.mark.parametrize("writer", PEERS)
@pytest.mark.parametrize("reader", PEERS)
def test_a_peer_reads_what_another_wrote(
    broker: ThreadedBroker,
    peers_python: Path,
    written: dict[str, list[int]],
    reader: str,
    writer: str,
) -> None:
    assert len(written[writer]) == 200
    found = run(peers_python, reader, broker.bootstrap, writer, "read", "200")
    assert found == expected(200)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_peers_read_what_our_client_wrote(
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
async def test_our_client_reads_what_a_peer_wrote(
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
