"""Tests Produce, Fetch and ListOffsets in each version, over a socket."""

from __future__ import annotations

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchResponse, PartitionData
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.list_offsets_response import ListOffsetsPartitionResponse
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.produce_response import PartitionProduceResponse
from kproto.protocol.error_codes import error_code
from kproto.records import read_batches, read_records
from kproto.wire.uuid import ZERO_UUID
from tests.support.batches import TIMESTAMP, batch_bytes
from tests.support.embedded import UNKNOWN_TOPIC_ID, ThreadedBroker, threaded_broker
from tests.support.message_sets import message_set
from tests.support.raw_connection import RawConnection


def produce(
    broker: ThreadedBroker,
    connection: RawConnection,
    version: int,
    records: bytes | None,
    *,
    topic: str = "t",
    partition: int = 0,
    acks: int = -1,
) -> PartitionProduceResponse:
    known = broker.call(lambda it: topic in it.topics)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=broker.topic_id(topic) if known else UNKNOWN_TOPIC_ID,
                partition_data=[PartitionProduceData(index=partition, records=records)],
            )
        ],
    )
    (answered,) = connection.exchange(request, version).responses
    assert answered.name == (topic if version < 13 else "")
    assert answered.topic_id == (request.topic_data[0].topic_id if version >= 13 else ZERO_UUID)
    (found,) = answered.partition_responses
    assert found.index == partition
    return found


@pytest.mark.parametrize("version", ProduceRequest.VALID_VERSIONS)
def test_produce(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: it.create_topic("t"))
    records = batch_bytes(3) if version >= 3 else message_set(3, magic=min(version, 1))
    answers = [produce(broker, connection, version, records) for _ in range(2)]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 3)]
    assert answers[0].log_append_time_ms == -1
    assert answers[0].log_start_offset == (0 if version >= 5 else -1)
    assert answers[0].error_message is None
    stored = broker.call(lambda it: it.records("t"))
    assert [(record.offset, record.value) for record in stored] == [(n, b"v") for n in range(6)]


@pytest.mark.parametrize("version", ProduceRequest.VALID_VERSIONS)
def test_produce_that_fails(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    broker.call(lambda it: it.create_topic("t"))
    unknown = "UNKNOWN_TOPIC_ID" if version >= 13 else "UNKNOWN_TOPIC_OR_PARTITION"
    good = batch_bytes() if version >= 3 else message_set()
    empty = "INVALID_RECORD" if version >= 3 else "NONE"
    for expected, answer in (
        (unknown, produce(broker, connection, version, good, topic="nope")),
        ("UNKNOWN_TOPIC_OR_PARTITION", produce(broker, connection, version, good, partition=1)),
        ("UNKNOWN_TOPIC_OR_PARTITION", produce(broker, connection, version, good, partition=-1)),
        ("INVALID_REQUIRED_ACKS", produce(broker, connection, version, good, acks=2)),
        ("INVALID_REQUIRED_ACKS", produce(broker, connection, version, good, acks=-2)),
        (empty, produce(broker, connection, version, None)),
        ("CORRUPT_MESSAGE", produce(broker, connection, version, good[:-1] + b"?")),
    ):
        assert error_code(answer.error_code).name == expected
        assert (answer.base_offset, answer.log_append_time_ms) == (-1, -1)
        assert bool(answer.error_message) == (version >= 8)
    assert broker.call(lambda it: it.end_offset("t")) == 0


@pytest.mark.parametrize("version", range(2, 14))
def test_produce_with_log_append_time(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    broker.call(lambda it: it.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime"}))
    records = batch_bytes(2) if version >= 3 else message_set(2)
    answer = produce(broker, connection, version, records)
    assert answer.log_append_time_ms > TIMESTAMP
    stored = broker.call(lambda it: it.records("t"))
    assert {record.timestamp for record in stored} == {answer.log_append_time_ms}


def fetch(
    broker: ThreadedBroker,
    connection: RawConnection,
    version: int,
    offset: int = 0,
    *,
    topic: str = "t",
    partition: int = 0,
    partition_max_bytes: int = 1 << 20,
    max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    leader_epoch: int = -1,
    replica_id: int = -1,
) -> PartitionData:
    known = broker.call(lambda it: topic in it.topics)
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=broker.topic_id(topic) if known else UNKNOWN_TOPIC_ID,
                partitions=[
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=leader_epoch,
                    )
                ],
            )
        ],
    )
    if version < 15:
        request.replica_id = replica_id
    else:
        request.replica_state.replica_id = replica_id
    answer = connection.exchange(request, version)
    assert (answer.error_code, answer.session_id) == (0, 0)
    (answered,) = answer.responses
    assert answered.topic == (topic if version < 13 else "")
    assert answered.topic_id == (request.topics[0].topic_id if version >= 13 else ZERO_UUID)
    (found,) = answered.partitions
    assert found.partition_index == partition
    return found


def offsets(data: PartitionData) -> list[int]:
    return [record.offset for record in read_records(data.records or b"")]


@pytest.mark.parametrize("version", FetchRequest.VALID_VERSIONS)
def test_fetch(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: it.create_topic("t"))
    empty = fetch(broker, connection, version)
    assert (empty.error_code, empty.high_watermark, empty.records) == (0, 0, b"")
    for _ in range(3):
        produce(broker, connection, 9, batch_bytes(2))
    data = fetch(broker, connection, version, 3)
    assert (data.error_code, data.high_watermark) == (0, 6)
    assert data.last_stable_offset == (6 if version >= 4 else -1)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    if version < 4:
        assert offsets(data) == [3, 4, 5], "messages that are not compressed come one by one"
        stored = read_batches(data.records or b"")
        assert {batch.magic for batch in stored} == {0 if version < 2 else 1}
    else:
        assert data.aborted_transactions is None
        assert offsets(data) == [2, 3, 4, 5], "from the batch that holds the offset on"
        assert fetch(broker, connection, version, isolation_level=1).aborted_transactions == []
    assert offsets(fetch(broker, connection, version, 6)) == []
    first = [0, 1] if version >= 3 else []
    assert offsets(fetch(broker, connection, version, partition_max_bytes=1)) == first
    if version >= 3:
        assert offsets(fetch(broker, connection, version, max_bytes=1)) == first


@pytest.mark.parametrize("version", range(4))
def test_fetch_of_what_no_message_set_can_hold(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    broker.call(lambda it: it.create_topic("t"))
    for compression in ("gzip", "zstd", "snappy"):
        produce(broker, connection, 9, batch_bytes(2, compression=compression))
    assert offsets(fetch(broker, connection, version, 1)) == [0, 1], "up to the first such batch"
    refused = fetch(broker, connection, version, 2)
    assert error_code(refused.error_code).name == "UNSUPPORTED_COMPRESSION_TYPE"
    assert (refused.high_watermark, refused.records) == (-1, b"")
    assert offsets(fetch(broker, connection, version, 4)) == [4, 5]


@pytest.mark.parametrize("version", range(4, 13))
@pytest.mark.parametrize("release", [None, "3.9.2", "4.4.0"])
def test_old_fetch_of_a_topic_with_zstd(release: str | None, version: int) -> None:
    """Kafka 3.9.2 refuses the fetch, even of an empty log; Kafka 4.4.0 sends the records."""
    settings = BrokerSettings(release=release)
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:
        broker.call(lambda it: it.create_topic("t", configs={"compression.type": "zstd"}))
        produce(broker, connection, 9, batch_bytes(2))
        found = {at: fetch(broker, connection, version, at) for at in (0, 2, 3)}
        names = {at: error_code(data.error_code).name for at, data in found.items()}
        if release == "3.9.2" and version < 10:
            assert names == dict.fromkeys(found, "UNSUPPORTED_COMPRESSION_TYPE")
            assert not any(data.records for data in found.values())
        else:
            assert names == {0: "NONE", 2: "NONE", 3: "OFFSET_OUT_OF_RANGE"}
            assert offsets(found[0]) == [0, 1]


@pytest.mark.parametrize("version", FetchRequest.VALID_VERSIONS)
def test_fetch_that_fails(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: it.create_topic("t"))
    produce(broker, connection, 9, batch_bytes(2))
    unknown = "UNKNOWN_TOPIC_ID" if version >= 13 else "UNKNOWN_TOPIC_OR_PARTITION"
    cases = [
        (unknown, fetch(broker, connection, version, topic="nope")),
        ("UNKNOWN_TOPIC_OR_PARTITION", fetch(broker, connection, version, partition=7)),
        ("OFFSET_OUT_OF_RANGE", fetch(broker, connection, version, 3)),
        ("OFFSET_OUT_OF_RANGE", fetch(broker, connection, version, -1)),
        ("NOT_LEADER_OR_FOLLOWER", fetch(broker, connection, version, replica_id=5)),
    ]
    if version >= 9:
        cases.append(("UNKNOWN_LEADER_EPOCH", fetch(broker, connection, version, leader_epoch=1)))
    for expected, data in cases:
        assert error_code(data.error_code).name == expected
        assert (data.high_watermark, data.records) == (-1, b"")


@pytest.mark.parametrize("version", range(7, 19))
def test_fetch_in_a_session(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    broker.call(lambda it: it.create_topic("t", partitions=2))
    topic_id = broker.topic_id("t")

    def ask(session_id: int, epoch: int, *partitions: int, by: int = version) -> FetchResponse:
        wanted = [FetchPartition(partition=it, partition_max_bytes=1 << 20) for it in partitions]
        topics = [FetchTopic(topic="t", topic_id=topic_id, partitions=wanted)] if wanted else []
        answer = connection.exchange(
            FetchRequest(max_wait_ms=0, session_id=session_id, session_epoch=epoch, topics=topics),
            by,
        )
        assert isinstance(answer, FetchResponse)
        return answer

    def told(answer: FetchResponse) -> list[tuple[int, list[int]]]:
        return [
            (data.partition_index, offsets(data))
            for topic in answer.responses
            for data in topic.partitions
        ]

    first = ask(0, 0, 0, 1)
    assert told(first) == [(0, []), (1, [])]
    assert first.session_id > 0
    produce(broker, connection, 9, batch_bytes(2))
    second = ask(first.session_id, 1)
    assert (second.session_id, told(second)) == (first.session_id, [(0, [0, 1])])
    other = 12 if version >= 13 else 13
    for epoch, by, expected in (
        (1, version, "INVALID_FETCH_SESSION_EPOCH"),
        (2, other, "FETCH_SESSION_TOPIC_ID_ERROR"),
    ):
        refused = ask(first.session_id, epoch, by=by)
        assert error_code(refused.error_code).name == expected
        assert (refused.session_id, refused.responses) == (0, [])
    closed = ask(first.session_id, -1, 1)
    assert (closed.session_id, told(closed)) == (0, [(1, [])])
    gone = ask(first.session_id, 2)
    assert error_code(gone.error_code).name == "FETCH_SESSION_ID_NOT_FOUND"


def list_offset(
    connection: RawConnection, version: int, timestamp: int, *, leader_epoch: int = -1
) -> ListOffsetsPartitionResponse:
    request = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(
                name="t",
                partitions=[
                    ListOffsetsPartition(
                        timestamp=timestamp,
                        current_leader_epoch=leader_epoch,
                        max_num_offsets=10 if version == 0 else 1,
                    )
                ],
            )
        ],
    )
    (topic,) = connection.exchange(request, version).topics
    (found,) = topic.partitions
    return found


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: it.create_topic("t"))
    for start in (1000, 3000, 2000):
        produce(broker, connection, 9, batch_bytes(3, timestamp=start))
    broker.call(lambda it: it.delete_records("t", 0, 1))
    found = {
        timestamp: list_offset(connection, version, timestamp)
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 1002, 1003, 3003)
    }
    epoch = 0 if version >= 4 else -1
    expected = {
        -1: ("NONE", 9, -1, epoch),
        -2: ("NONE", 1, -1, epoch),
        -3: ("NONE", 5, 3002, epoch),
        -4: ("NONE", 1, -1, epoch),
        -5: ("NONE", -1, -1, -1),
        -6: ("NONE", -1, -1, -1),
        -7: ("UNSUPPORTED_VERSION", -1, -1, -1),
        0: ("NONE", 1, 1001, epoch),
        1002: ("NONE", 2, 1002, epoch),
        1003: ("NONE", 3, 3000, epoch),
        3003: ("NONE", -1, -1, -1),
    }
    for timestamp, since in {-3: 7, -4: 8, -5: 9, -6: 11}.items():
        if version < since:
            expected[timestamp] = ("UNSUPPORTED_VERSION", -1, -1, -1)
    assert {
        timestamp: (
            error_code(answer.error_code).name,
            answer.offset,
            answer.timestamp,
            answer.leader_epoch,
        )
        for timestamp, answer in found.items()
    } == expected


def test_list_offsets_v0(broker: ThreadedBroker, connection: RawConnection) -> None:
    broker.call(lambda it: it.create_topic("t"))
    assert list_offset(connection, 0, -1).old_style_offsets == [0]
    produce(broker, connection, 9, batch_bytes(3))
    found = {at: list_offset(connection, 0, at).old_style_offsets for at in (-1, -2, 0, 10**13)}
    assert found == {-1: [3, 0], -2: [0], 0: [], 10**13: [3, 0]}


@pytest.mark.parametrize("version", ListOffsetsRequest.VALID_VERSIONS)
def test_list_offsets_that_fails(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    unknown = list_offset(connection, version, -1)
    assert error_code(unknown.error_code).name == "UNKNOWN_TOPIC_OR_PARTITION"
    broker.call(lambda it: it.create_topic("t"))
    if version >= 4:
        later = list_offset(connection, version, -1, leader_epoch=1)
        assert error_code(later.error_code).name == "UNKNOWN_LEADER_EPOCH"
    if version >= 1:
        twice = ListOffsetsRequest(
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition()] * 2)]
        )
        answer = connection.exchange(twice, version)
        codes = {error_code(part.error_code).name for part in answer.topics[0].partitions}
        assert codes == {"INVALID_REQUEST"}
