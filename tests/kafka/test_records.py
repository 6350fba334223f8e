"""Tests record batches on real brokers.

The broker returns kproto's batches unchanged. kproto reads batches that the broker or other clients
have compressed.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from kproto.records import (
    LOG_APPEND_TIME,
    BatchBuilder,
    Header,
    NewRecord,
    RecordBatch,
    encode_batch,
    read_batches,
    read_records,
    restamp,
)
from tests.support.brokers import RunningKafka
from tests.support.raw_connection import RawConnection
from tests.support.raw_topic import RawTopic
from tests.support.selection import rest_slow

PEER_WRITES = Path(__file__).with_name("peer_writes.py")
PEER_TIMEOUT_S = 60.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOW = int(time.time() * 1000)

FEW: list[NewRecord] = [
    (b"k1", b"v1", (), NOW),
    (None, b"null key", [("a", b"1"), ("a", b"2"), ("null", None), ("", b""), ("é√", b"\0")], NOW),
    (b"", None, [("", b"")], NOW - 7),
    (None, None, (), NOW + 1000),
    (b"k", b"", (), NOW + 1),
]
MANY: list[NewRecord] = [
    (b"key-%d" % i, b"value " * (1 + i % 5) + b"%d" % i, [("n", b"%d" % i)], NOW + i)
    for i in range(500)
]
LARGE: list[NewRecord] = [(b"large", bytes(range(256)) * 1500, (), NOW)]


def contents(data: bytes, from_offset: int = 0) -> list[NewRecord]:
    return [
        (record.key, record.value, tuple(record.headers), record.timestamp)
        for record in read_records(data, from_offset=from_offset)
    ]


def comparable(records: list[NewRecord]) -> list[NewRecord]:
    return [(key, value, tuple(headers), time_ms) for key, value, headers, time_ms in records]


def test_stored_batches_equal_the_sent_ones(connection: RawConnection, topic_name: str) -> None:
    topic = RawTopic.create(connection, topic_name)
    expected = b""
    everything: list[NewRecord] = []
    for codec in CODECS:
        for records in (FEW, MANY, LARGE):
            sent = encode_batch(records, compression=codec)
            offset = topic.append(sent)
            assert offset == len(everything)
            everything += records
            expected += restamp(RecordBatch(sent), base_offset=offset, partition_leader_epoch=0)
    stored = topic.read(0)
    assert stored == expected, "a broker re-stamps a batch as `restamp` does"
    assert contents(expected) == comparable(everything)
    for offset in (3, 5, 250, 505, 506, 1011, len(everything) - 1):
        data = topic.read(offset)
        assert contents(data, from_offset=offset) == comparable(everything)[offset:]


@pytest.mark.parametrize("codec", CODECS[1:])
def test_batches_that_the_broker_compressed_are_read(
    connection: RawConnection, topic_name: str, codec: str
) -> None:
    topic = RawTopic.create(connection, topic_name, compression_type=codec)
    everything: list[NewRecord] = []
    for sent in ("none", "gzip", "snappy"):
        for records in (FEW, MANY, LARGE):
            topic.append(encode_batch(records, compression=sent))
            everything += records
    data = topic.read(0)
    batches = list(read_batches(data, allow_partial=False))
    assert {batch.compression for batch in batches} == {codec}
    assert contents(data) == comparable(everything)


@pytest.mark.parametrize("codec", CODECS)
def test_restamp_writes_the_timestamps_of_the_broker(
    connection: RawConnection, topic_name: str, codec: str
) -> None:
    topic = RawTopic.create(connection, topic_name, message_timestamp_type="LogAppendTime")
    sent = encode_batch(FEW, compression=codec)
    topic.append(sent)
    [batch] = read_batches(topic.read(0))
    assert batch.timestamp_type == LOG_APPEND_TIME
    assert {record.timestamp for record in batch.records()} == {batch.max_timestamp}
    assert batch.raw == restamp(
        RecordBatch(sent),
        base_offset=0,
        partition_leader_epoch=0,
        log_append_time=batch.max_timestamp,
    )
    builder = BatchBuilder.like(batch)
    for record in batch.records(own_timestamps=True):
        builder.append(record.key, record.value, record.headers, timestamp=record.timestamp)
    assert builder.build(partition_leader_epoch=0) == batch.raw


def test_small_max_bytes_cuts_the_last_batch(connection: RawConnection, topic_name: str) -> None:
    topic = RawTopic.create(connection, topic_name)
    size = len(encode_batch(FEW))
    for _ in range(3):
        topic.append(encode_batch(FEW))
    for limit, count in ((1, 5), (size, 5), (2 * size - 1, 5), (2 * size + 20, 10), (9 * size, 15)):
        data = topic.read(0, max_bytes=limit)
        assert contents(data) == comparable(FEW * 3)[:count]
        assert list(read_batches(data))[-1].next_offset == count


def test_compacted_topic_refuses_records_without_a_key(
    connection: RawConnection, topic_name: str
) -> None:
    topic = RawTopic.create(connection, topic_name, cleanup_policy="compact")
    for codec in CODECS:
        keyless = encode_batch([*FEW[:1], (None, b"v", (), NOW)], compression=codec)
        assert topic.produce(keyless) == ("INVALID_RECORD", -1, -1)
    assert topic.append(encode_batch([(b"", None, (), NOW)])) == 0


@pytest.mark.peers
@pytest.mark.parametrize("peer", rest_slow(["confluent_kafka", "aiokafka", "kafka_python"], 1, 1))
def test_records_of_other_clients_are_read(
    kafka: RunningKafka,
    topic_name: str,
    peers_python: Path,
    peer: str,
) -> None:
    with RawConnection(kafka.bootstrap) as connection:
        for codec in CODECS:
            topic = RawTopic.create(connection, f"{topic_name}-{codec}")
            done = subprocess.run(
                [peers_python, PEER_WRITES, peer, kafka.bootstrap, topic.name, codec],
                capture_output=True,
                text=True,
                timeout=PEER_TIMEOUT_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            data = topic.read(0)
            assert codec in {batch.compression for batch in read_batches(data)}
            assert stored(data) == [
                (n, b"key", b"value %d " % n * 10, [("h", b"%d" % n)]) for n in range(100)
            ]


def stored(data: bytes) -> list[tuple[int, bytes | None, bytes | None, list[Header]]]:
    return [
        (record.offset, record.key, record.value, record.headers) for record in read_records(data)
    ]
