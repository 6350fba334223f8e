"""Tests message sets on Kafka 3.9.2, the last release with them, and on the embedded broker."""

from __future__ import annotations

import time

import pytest

from kproto.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from kproto.messages.add_partitions_to_txn_request import AddPartitionsToTxnTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.protocol.error_codes import error_code
from kproto.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    NewRecord,
    Record,
    encode_batch,
    encode_message_set,
    read_batches,
    read_records,
)
from tests.support.any_broker import EMBEDDED, real_broker
from tests.support.brokers import Brokers
from tests.support.raw_connection import RawConnection
from tests.support.raw_topic import PATIENCE_S, RawTopic

LAST_WITH_MESSAGE_SETS = "3.9.2"
CODECS = ("none", "gzip", "snappy", "lz4")
OVERFLOW = b"\xff" * 8 + (61).to_bytes(4, "big")
NOW = int(time.time() * 1000)

RECORDS: list[NewRecord] = [
    (b"k1", b"v1", (), NOW),
    (None, b"value of a null key " * 20, (), NOW + 5),
    (b"", None, (), NOW - 7),
    (None, None, (), NOW + 1000),
    (b"k", b"", (), NOW + 1),
]


@pytest.fixture(params=[LAST_WITH_MESSAGE_SETS, EMBEDDED])
def broker_version(request: pytest.FixtureRequest) -> str:
    """Returns the version of the broker on which the test runs, or `embedded`."""
    return str(request.param)


@pytest.fixture
def connection(
    connection: RawConnection, broker_version: str, kafka_brokers: Brokers
) -> RawConnection:
    """Returns a connection; skips the test unless the broker is known to support message sets."""
    if broker_version != EMBEDDED:
        running = real_broker(broker_version, kafka_brokers)
        if running.version != LAST_WITH_MESSAGE_SETS:
            pytest.skip(f"the broker at {running.bootstrap} may not support message sets")
    return connection


def contents(records: list[Record]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


KEYS_AND_VALUES = [(key, value) for key, value, _, _ in RECORDS]
TIMES = [timestamp for *_, timestamp in RECORDS]


@pytest.mark.parametrize("version", range(3))
def test_produced_message_sets_are_read(
    connection: RawConnection, topic_name: str, version: int
) -> None:
    topic = RawTopic.create(connection, topic_name)
    sent = [(magic, codec) for magic in (0, 1) for codec in CODECS]
    for number, (magic, codec) in enumerate(sent):
        data = encode_message_set(RECORDS, magic=magic, compression=codec)
        answer = topic.produce(data, version)
        assert answer == ("NONE", number * len(RECORDS), -1), (magic, codec)
    for number, (magic, codec) in enumerate(sent):
        offset = number * len(RECORDS)
        offsets = list(range(offset, offset + len(RECORDS)))
        stored = next(read_batches(topic.read(offset, 12)))
        assert (stored.magic, stored.compression) == (2, codec)
        records = stored.records()
        assert contents(records) == KEYS_AND_VALUES
        assert [record.offset for record in records] == offsets
        assert [record.timestamp for record in records] == (TIMES if magic else [-1] * 5)
    for old in range(4):
        read = list(read_records(topic.read(0, old)))
        count = len(read) - len(read) % len(RECORDS)
        assert count >= 6 * len(RECORDS), "all records before the cut"
        assert [record.offset for record in read[:count]] == list(range(count))
        assert contents(read[:count]) == KEYS_AND_VALUES * (count // len(RECORDS))


@pytest.mark.parametrize("version", range(4))
def test_batches_are_returned_as_message_sets(
    connection: RawConnection, topic_name: str, version: int
) -> None:
    magic = 0 if version < 2 else 1
    topic = RawTopic.create(connection, topic_name)
    with_headers: list[NewRecord] = [
        (key, value, [("h", b"1"), ("n", None)], timestamp) for key, value, _, timestamp in RECORDS
    ]
    for number, codec in enumerate(CODECS):
        data = encode_batch(with_headers, compression=codec)
        assert topic.produce(data, 9)[:2] == ("NONE", number * len(RECORDS))
    for number, codec in enumerate(CODECS):
        offset = number * len(RECORDS)
        found = topic.fetch(offset, version)
        assert (found.error_code, found.high_watermark) == (0, 20)
        batches = list(read_batches(found.records or b""))
        assert {batch.magic for batch in batches} == {magic}
        assert batches[0].compression == codec
        records = list(read_records(found.records or b""))[: len(RECORDS)]
        assert [record.offset for record in records] == list(range(offset, offset + 5))
        assert contents(records) == KEYS_AND_VALUES
        assert all(record.headers == [] for record in records), "messages have no headers"
        types = {record.timestamp_type for record in records}
        assert types == {CREATE_TIME if magic else NO_TIMESTAMP_TYPE}
        assert [record.timestamp for record in records] == (TIMES if magic else [-1] * 5)
    inside = list(read_records(topic.read(3, version)))
    assert inside[0].offset == 3, "uncompressed messages are returned one by one"
    inside = list(read_records(topic.read(8, version)))
    assert inside[0].offset == 5, "a compressed wrapper message is returned whole"
    assert topic.fetch(20, version).records == b""


@pytest.mark.parametrize("version", range(4))
def test_small_max_bytes_returns_what_fits(
    connection: RawConnection, topic_name: str, version: int
) -> None:
    topic = RawTopic.create(connection, topic_name)
    for _ in range(4):
        topic.produce(encode_batch(RECORDS), 9)
    size = len(encode_batch(RECORDS))
    seen = set()
    for limit in (1, size - 1, size, size + 50, 2 * size, 3 * size, 4 * size):
        data = topic.read(0, version, limit)
        read = list(read_records(data))
        assert [record.offset for record in read] == list(range(len(read)))
        assert contents(read) == (KEYS_AND_VALUES * 4)[: len(read)]
        seen.add(len(read))
        if limit < size and version < 3:
            assert data == b"", "before v3 a first batch above the limit is not returned"
        else:
            assert read, limit
    assert len(seen) > 2


@pytest.mark.parametrize("version", range(4))
def test_zstd_cannot_become_a_message_set(
    connection: RawConnection, topic_name: str, version: int
) -> None:
    topic = RawTopic.create(connection, topic_name)
    for codec in ("gzip", "zstd", "none"):
        topic.produce(encode_batch(RECORDS, compression=codec), 9)
    first = list(read_records(topic.read(0, version)))
    assert [record.offset for record in first] == [0, 1, 2, 3, 4]
    refused = topic.fetch(5, version)
    assert error_code(refused.error_code).name == "UNSUPPORTED_COMPRESSION_TYPE"
    assert (refused.high_watermark, refused.records or b"") == (-1, b"")
    rest = list(read_records(topic.read(10, version)))
    assert [record.offset for record in rest] == [10, 11, 12, 13, 14]


def test_messages_get_the_log_append_time(connection: RawConnection, topic_name: str) -> None:
    topic = RawTopic.create(connection, topic_name, message_timestamp_type="LogAppendTime")
    times: list[int] = []
    for magic, codec in ((1, "none"), (0, "none"), (1, "gzip"), (0, "lz4")):
        data = encode_message_set(RECORDS[:2], magic=magic, compression=codec)
        error, _, time_ms = topic.produce(data, 2)
        assert (error, time_ms > NOW - 600_000) == ("NONE", True)
        times += time_ms, time_ms
    for version in (2, 3, 12):
        read = list(read_records(topic.read(0, version)))
        assert len(read) >= 6
        assert [r.timestamp for r in read] == times[: len(read)]
        assert {r.timestamp_type for r in read} == {LOG_APPEND_TIME}
    stamped = encode_message_set(RECORDS, log_append_time=NOW)
    assert topic.produce(stamped, 2) == ("INVALID_TIMESTAMP", -1, -1)


def test_message_sets_without_a_whole_message_are_accepted(
    connection: RawConnection, topic_name: str
) -> None:
    topic = RawTopic.create(connection, topic_name)
    one = encode_message_set(RECORDS[:1])
    for version in range(3):
        for data in (b"", b"xx", one[:-1]):
            assert topic.produce(data, version) == ("NONE", -1, -1)
        assert topic.produce(one + one[:-1], version)[:2] == ("NONE", version)


def test_invalid_message_sets_are_refused(connection: RawConnection, topic_name: str) -> None:
    topic = RawTopic.create(connection, topic_name, max_message_bytes="2000")
    one = encode_message_set(RECORDS[:1])
    packed = encode_message_set(RECORDS, compression="gzip")
    large = encode_message_set([(None, bytes(3000), (), NOW)])
    for expected, data in (
        ("CORRUPT_MESSAGE", one[:-1] + bytes([one[-1] ^ 1])),
        ("CORRUPT_MESSAGE", one[:16] + b"\x07" + one[17:]),
        ("INVALID_RECORD", one + encode_message_set(RECORDS[:1], magic=0)),
        ("INVALID_RECORD", one + packed),
        ("INVALID_RECORD", packed + packed),
        ("MESSAGE_TOO_LARGE", large),
        ("MESSAGE_TOO_LARGE", one + large),
    ):
        for version in range(3):
            assert topic.produce(data, version) == (expected, -1, -1)
    assert topic.produce(encode_batch(RECORDS), 2)[:2] == ("NONE", 0), "a batch is accepted too"


def write_transaction(topic: RawTopic) -> int:
    """Commits a transaction of two records; returns the offset of the commit marker."""
    connection = topic.connection
    identity = f"transaction-{topic.name}"
    deadline = time.monotonic() + PATIENCE_S
    while True:
        connection.exchange(FindCoordinatorRequest(key=identity, key_type=1), 2)
        begun = connection.exchange(
            InitProducerIdRequest(transactional_id=identity, transaction_timeout_ms=10_000), 2
        )
        if not begun.error_code:
            break
        assert time.monotonic() < deadline, error_code(begun.error_code).name
        time.sleep(0.1)
    added = connection.exchange(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=identity,
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic.name, partitions=[0])],
        ),
        2,
    )
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    records = encode_batch(
        RECORDS[:2],
        is_transactional=True,
        base_sequence=0,
        producer_id=begun.producer_id,
        producer_epoch=begun.producer_epoch,
    )
    data = TopicProduceData(name=topic.name, partition_data=[PartitionProduceData(records=records)])
    request = ProduceRequest(
        transactional_id=identity, acks=-1, timeout_ms=10_000, topic_data=[data]
    )
    (written,) = connection.exchange(request, 8).responses[0].partition_responses
    assert written.error_code == 0
    ended = connection.exchange(
        EndTxnRequest(
            transactional_id=identity,
            committed=True,
            producer_id=begun.producer_id,
            producer_epoch=begun.producer_epoch,
        ),
        2,
    )
    assert ended.error_code == 0
    marker = written.base_offset + 2
    while topic.fetch(0, 4).high_watermark <= marker:
        assert time.monotonic() < deadline, "the commit marker is missing"
        time.sleep(0.05)
    return marker


@pytest.mark.parametrize("broker_version", [LAST_WITH_MESSAGE_SETS], indirect=True)
def test_control_batches_are_left_out_of_message_sets(
    connection: RawConnection, topic_name: str
) -> None:
    topic = RawTopic.create(connection, topic_name)
    marker = write_transaction(topic)
    for version in range(4):
        only = topic.read(marker, version)
        assert only == OVERFLOW, "the embedded broker sends the same"
        assert list(read_batches(only)) == []
    assert topic.produce(encode_batch(RECORDS), 9)[:2] == ("NONE", marker + 1)
    for version in range(4):
        for offset in (0, marker, marker + 1):
            data = topic.read(offset, version)
            # Message sets are larger than the batches, so the response may be cut. If 3.9.2 omits
            # the first batch, it appends the first messages again after the last one.
            read = dict.fromkeys(record.offset for record in read_records(data))
            wanted = [n for n in range(offset, marker + 6) if n != marker]
            assert list(read) == wanted[: len(read)]
            assert len(read) >= 2
