"""Framing of what coordinators and controllers store, against bytes that Kafka's classes wrote.

The bytes come from Kafka 4.4.0: GroupCoordinatorRecordSerde, ShareCoordinatorRecordSerde,
MessageUtil.toCoordinatorTypePrefixedBytes and toVersionPrefixedBytes (for the transaction log),
and MetadataRecordSerde.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto import messages as generated
from kproto.messages import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    FeatureLevelRecord,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    MetadataRequest,
    NoOpRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    PartitionRecord,
    ShareGroupPartitionMetadataKey,
    ShareGroupPartitionMetadataValue,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    TopicRecord,
    TransactionLogKey,
    TransactionLogValue,
)
from kproto.messages.base import Message
from kproto.messages.transaction_log_value import PartitionsSchema
from kproto.records import Record, coordinator, metadata_log
from kproto.records.coordinator import CoordinatorRecord, UnknownCoordinatorRecord
from kproto.records.metadata_log import MetadataRecord, UnknownMetadataRecord
from kproto.schema.definitions import union
from kproto.testing.strategies import messages
from kproto.wire.errors import ConfigurationError, DecodeError, EncodeError
from kproto.wire.uuid import Uuid

GROUPS, TRANSACTIONS, SHARES = coordinator.TOPICS


def uuid(high: int, low: int) -> Uuid:
    return Uuid(high.to_bytes(8, "big") + low.to_bytes(8, "big"))


KEY = OffsetCommitKey(group="readers", topic="greetings", partition=2)
KEY_HEX = "000100077265616465727300096772656574696e677300000002"


def commit(**more: Any) -> OffsetCommitValue:
    return OffsetCommitValue(offset=42, metadata="note", commit_timestamp=1_700_000_000_000, **more)


COORDINATOR_RECORDS = [
    (
        GROUPS,
        CoordinatorRecord(KEY, commit(), 0),
        KEY_HEX,
        "0000000000000000002a00046e6f74650000018bcfe56800",
    ),
    (
        GROUPS,
        CoordinatorRecord(KEY, commit(expire_timestamp=1_700_000_001_000), 1),
        KEY_HEX,
        "0001000000000000002a00046e6f74650000018bcfe568000000018bcfe56be8",
    ),
    (
        GROUPS,
        CoordinatorRecord(KEY, commit(), 2),
        KEY_HEX,
        "0002000000000000002a00046e6f74650000018bcfe56800",
    ),
    (
        GROUPS,
        CoordinatorRecord(KEY, commit(leader_epoch=7), 3),
        KEY_HEX,
        "0003000000000000002a0000000700046e6f74650000018bcfe56800",
    ),
    (
        GROUPS,
        CoordinatorRecord(KEY, commit(leader_epoch=7, topic_id=uuid(1, 2)), 4),
        KEY_HEX,
        "0004000000000000002a00000007056e6f74650000018bcfe5680001001000000000000000010000000000000002",
    ),
    (GROUPS, CoordinatorRecord(KEY), KEY_HEX, None),
    (
        GROUPS,
        CoordinatorRecord(
            LegacyOffsetCommitKey(group="g", topic="t", partition=1),
            LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=6),
            0,
        ),
        "000000016700017400000001",
        "0000000000000000000500016d0000000000000006",
    ),
    (
        GROUPS,
        CoordinatorRecord(
            ConsumerGroupMetadataKey(group_id="readers"), ConsumerGroupMetadataValue(epoch=9), 0
        ),
        "0003000772656164657273",
        "00000000000900",
    ),
    (
        SHARES,
        CoordinatorRecord(
            ShareSnapshotKey(group_id="g", topic_id=uuid(3, 4), partition=5),
            ShareSnapshotValue(snapshot_epoch=1, state_epoch=2, leader_epoch=3, start_offset=4),
            0,
        ),
        "00000001670000000000000003000000000000000400000005",
        "00000000000100000002000000030000000000000004000000000000000000000000000000000100",
    ),
    (
        SHARES,
        CoordinatorRecord(ShareUpdateKey(group_id="g", topic_id=uuid(3, 4), partition=5)),
        "00010001670000000000000003000000000000000400000005",
        None,
    ),
    (
        TRANSACTIONS,
        CoordinatorRecord(
            TransactionLogKey(transactional_id="tx"),
            TransactionLogValue(
                producer_id=11,
                producer_epoch=2,
                transaction_timeout_ms=60_000,
                transaction_status=1,
                transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 3])],
                transaction_last_update_timestamp_ms=12,
                transaction_start_timestamp_ms=13,
                previous_producer_id=10,
            ),
            1,
        ),
        "000000027478",
        (
            "0001000000000000000b00020000ea600102027403000000000000000300000000000000000c"
            "000000000000000d010008000000000000000a"
        ),
    ),
]


@pytest.mark.parametrize(("topic", "record", "key", "value"), COORDINATOR_RECORDS)
def test_coordinator_records_are_framed_as_kafka_does(
    topic: str, record: CoordinatorRecord, key: str, value: str | None
) -> None:
    stored = (bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    assert coordinator.encode_record(record) == stored
    assert coordinator.decode_record(Record(key=stored[0], value=stored[1], topic=topic)) == record
    assert coordinator.decode_record(Record(0, 0, *stored), topic=topic) == record


METADATA_RECORDS = [
    (
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        0,
        "010c00116d657461646174612e76657273696f6e001900",
    ),
    (
        TopicRecord(name="greetings", topic_id=uuid(1, 2)),
        0,
        "0102000a6772656574696e67730000000000000001000000000000000200",
    ),
    (NoOpRecord(), 0, "01140000"),
    (
        PartitionRecord(
            partition_id=1,
            topic_id=uuid(1, 2),
            replicas=[1, 2],
            isr=[1],
            leader=1,
            leader_epoch=3,
            partition_epoch=4,
            directories=[uuid(5, 6), uuid(7, 8)],
        ),
        1,
        (
            "01030100000001000000000000000100000000000000020300000001000000020200000001010100000001"
            "000000030000000403000000000000000500000000000000060000000000000007000000000000000800"
        ),
    ),
]


@pytest.mark.parametrize(("message", "version", "value"), METADATA_RECORDS)
def test_metadata_records_are_framed_as_kafka_does(
    message: Message, version: int, value: str
) -> None:
    record = MetadataRecord(message, version)
    assert metadata_log.encode_record(record) == bytes.fromhex(value)
    assert metadata_log.decode_record(Record(value=bytes.fromhex(value))) == record


def types_of(kind: str, module: str, suffix: str = "") -> dict[int | None, str]:
    return {
        spec.api_key: name.removesuffix(suffix)
        for name, spec in union().items()
        if spec.type == kind and spec.module == module
    }


def test_the_tables_hold_every_record_of_the_definitions() -> None:
    wanted = {
        GROUPS: "group-coordinator",
        TRANSACTIONS: "transaction-coordinator",
        SHARES: "share-coordinator",
    }
    given_up: dict[int | None, str] = {
        9: "ShareGroupPartitionMetadata"
    }  # a `data` message of 3.9 alone
    for topic, module in wanted.items():
        found = types_of("coordinator-key", module, "Key")
        if topic == GROUPS:
            found |= given_up
        assert coordinator.TOPICS[topic] == found
        values = types_of("coordinator-value", module, "Value")
        assert values == {number: name for number, name in found.items() if number != 9}
    assert metadata_log.TOPICS["__cluster_metadata"] == types_of("metadata", "metadata")
    assert metadata_log.TOPICS["__remote_log_metadata"] == types_of("metadata", "storage")


def class_of(name: str) -> type[Message]:
    found: type[Message] = getattr(generated, name)
    return found


@given(st.data())
@settings(max_examples=100)
def test_every_coordinator_record_comes_back(data: st.DataObject) -> None:
    topic = data.draw(st.sampled_from(sorted(coordinator.TOPICS)))
    number, name = data.draw(st.sampled_from(sorted(coordinator.TOPICS[topic].items())))
    key = data.draw(messages(class_of(f"{name}Key")))
    value_class = class_of(f"{name}Value")
    version = data.draw(st.none() | st.sampled_from(value_class.VALID_VERSIONS))
    value = None if version is None else data.draw(messages(value_class, version))
    record = CoordinatorRecord(key, value, version)
    stored = coordinator.encode_record(record)
    assert int.from_bytes(stored[0][:2], "big") == number
    assert coordinator.decode_record(Record(0, 0, *stored, topic=topic)) == record


@given(st.data())
@settings(max_examples=100)
def test_every_metadata_record_comes_back(data: st.DataObject) -> None:
    topic = data.draw(st.sampled_from(sorted(metadata_log.TOPICS)))
    cls = class_of(data.draw(st.sampled_from(sorted(metadata_log.TOPICS[topic].values()))))
    version = data.draw(st.sampled_from(cls.VALID_VERSIONS))
    record = MetadataRecord(data.draw(messages(cls, version)), version)
    value = metadata_log.encode_record(record)
    assert metadata_log.decode_record(Record(value=value), topic=topic) == record


@pytest.mark.parametrize("value", [None, b"", b"\x00\x63more"])
def test_a_coordinator_record_of_an_unknown_type_keeps_its_bytes(value: bytes | None) -> None:
    for number in (18, 24, 32767, -1):
        key = number.to_bytes(2, "big", signed=True) + b"whatever"
        record = coordinator.decode_record(Record(key=key, value=value), topic=GROUPS)
        assert record == UnknownCoordinatorRecord(number, key, value)
        assert coordinator.encode_record(record) == (key, value)


def test_a_metadata_record_of_an_unknown_type_keeps_its_bytes() -> None:
    for value in (b"\x01\x7f\x00whatever", b"\x01\xff\xff\x01\x83\x00"):
        record = metadata_log.decode_record(Record(value=value))
        assert isinstance(record, UnknownMetadataRecord)
        assert metadata_log.encode_record(record) == value
    assert record == UnknownMetadataRecord(32767, 3, value)


def test_the_latest_stable_version_is_written_unless_another_is_asked_for() -> None:
    _, value = coordinator.encode_record(CoordinatorRecord(KEY, commit()))
    assert value is not None
    assert value[:2] == b"\x00\x04"
    assert metadata_log.encode_record(MetadataRecord(PartitionRecord()))[:3] == b"\x01\x03\x02"


def test_a_type_of_kafka_3_9_alone() -> None:
    # ShareGroupPartitionMetadataKey has version 9 there; the framing is that of api key 9.
    record = CoordinatorRecord(
        ShareGroupPartitionMetadataKey(group_id="g"), ShareGroupPartitionMetadataValue(), 0
    )
    key, value = coordinator.encode_record(record)
    assert key == b"\x00\x09\x00\x01g"
    assert coordinator.decode_record(Record(key=key, value=value), topic=GROUPS) == record


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", "the key of the coordinator record at offset 5 is null"),
        (b"\x00", b"", "the key of the coordinator record at offset 5 has 1 bytes"),
        (b"\x00\x02\x00\x01g", b"\x00", "the value of the coordinator record .* has 1 bytes"),
        (b"\x00\x02\x00\x05g", None, "GroupMetadataKey v0, field group"),
        (b"\x00\x02\x00\x01g!", None, "GroupMetadataKey v0.*1 bytes stand behind the end"),
        (bytes.fromhex(KEY_HEX), b"\x00\x05", "OffsetCommitValue: version 5 is not one of 0 to 4"),
        (bytes.fromhex(KEY_HEX), b"\xff\xff", "OffsetCommitValue: version -1"),
        (bytes.fromhex(KEY_HEX), b"\x00\x03\x00", "OffsetCommitValue v3, field offset"),
    ],
)
def test_a_broken_coordinator_record_is_a_decode_error(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(DecodeError, match=reason):
        coordinator.decode_record(Record(5, key=key, value=value, topic=GROUPS))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the metadata record at offset 5 has no value"),
        (b"", "at byte 0: the frame version of a metadata record is cut off"),
        (b"\x00\x02\x00", "frame version 0; only 1 is known"),
        (b"\x02\x02\x00", "frame version 2; only 1 is known"),
        (b"\x01", "at byte 1: the type of a metadata record is cut off"),
        (b"\x01\x80\x80\x80\x80\x80\x01", "at byte 1: the type .* longer than 5 bytes"),
        (b"\x01\x80\x80\x02\x00", "at byte 1: a type of 32768; at most 32767"),
        (b"\x01\x02", "at byte 2: the version"),
        (b"\x01\x02\x09", "TopicRecord: version 9 is not one of 0 to 0"),
        (b"\x01\x14\x00\x00!", "NoOpRecord v0.*1 bytes stand behind the end"),
        (b"\x01\x02\x00\x05a", "TopicRecord v0, field name"),
    ],
)
def test_a_broken_metadata_record_is_a_decode_error(value: bytes | None, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        metadata_log.decode_record(Record(5, value=value))


@pytest.mark.parametrize(
    ("key", "value", "message", "offset"),
    [
        (b"\x00\x02\x00\x05g", None, "GroupMetadataKey", 4),
        (b"\x00\x02\x00\x01g!", None, "GroupMetadataKey", 5),
        (bytes.fromhex(KEY_HEX), b"\x00\x03\x00", "OffsetCommitValue", 2),
        (bytes.fromhex(KEY_HEX), bytes(2) + bytes(8) + b"\x00\x05", "OffsetCommitValue", 12),
        (bytes.fromhex(KEY_HEX), b"\x00\x05", "OffsetCommitValue", None),
    ],
)
def test_where_a_coordinator_record_is_broken(
    key: bytes, value: bytes | None, message: str, offset: int | None
) -> None:
    with pytest.raises(DecodeError) as caught:
        coordinator.decode_record(Record(5, key=key, value=value, topic=GROUPS))
    assert (caught.value.message, caught.value.offset) == (message, offset)
    assert offset is None or f"at byte {offset}: " in str(caught.value)


@pytest.mark.parametrize(
    ("value", "offset"),
    [
        (b"\x01\x14\x00\x00!", 4),
        (b"\x01\x02\x00\x05a", 4),  # the string, which would end beyond the data
        (b"\x01\x82\x00\x80\x00\x05a", 6),  # type and version in two bytes each
        (b"\x01\x02\x09", None),
    ],
)
def test_where_a_metadata_record_is_broken(value: bytes, offset: int | None) -> None:
    with pytest.raises(DecodeError) as caught:
        metadata_log.decode_record(Record(5, value=value))
    assert caught.value.offset == offset


@given(st.integers(0, 100), st.sampled_from([PartitionRecord, TopicRecord]), st.data())
@settings(max_examples=20)
def test_a_record_that_is_cut_is_broken_inside_of_what_is_left(
    kept: int, cls: type[Message], data: st.DataObject
) -> None:
    """And where a reader of the message alone sees it, less the frame of three bytes."""
    value = metadata_log.encode_record(MetadataRecord(data.draw(messages(cls, 0)), 0))
    kept = 3 + kept % (len(value) - 3)
    with pytest.raises(DecodeError) as alone:
        cls.decode(value[3:kept], 0)
    with pytest.raises(DecodeError) as caught:
        metadata_log.decode_record(Record(value=value[:kept]))
    assert alone.value.offset is not None
    assert caught.value.offset == alone.value.offset + 3 <= kept
    assert (caught.value.field, caught.value.reason) == (alone.value.field, alone.value.reason)


@given(st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_any_bytes_are_a_record_or_a_decode_error(key: bytes, value: bytes | None) -> None:
    for topic in coordinator.TOPICS:
        try:
            record = coordinator.decode_record(Record(key=key, value=value), topic=topic)
        except DecodeError:
            continue
        coordinator.encode_record(record)
    for topic in metadata_log.TOPICS:
        try:
            found = metadata_log.decode_record(Record(value=b"\x01" + key), topic=topic)
        except DecodeError:
            continue
        metadata_log.encode_record(found)


def test_a_topic_without_such_records_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"'greetings' is no coordinator's topic.*topic="):
        coordinator.decode_record(Record(key=b"\0\0", topic="greetings"))
    with pytest.raises(ConfigurationError, match="'' is no coordinator's topic"):
        coordinator.decode_record(Record(key=b"\0\0"))
    with pytest.raises(ConfigurationError, match="'greetings' has no metadata records"):
        metadata_log.decode_record(Record(value=b"\1\0\0", topic="greetings"))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (CoordinatorRecord(MetadataRequest()), "MetadataRequest is not the key"),
        (CoordinatorRecord(OffsetCommitValue()), "OffsetCommitValue is not the key"),
        (
            CoordinatorRecord(KEY, ConsumerGroupMetadataValue()),
            "OffsetCommitKey goes with OffsetCommitValue, not with ConsumerGroupMetadataValue",
        ),
        (CoordinatorRecord(KEY, commit(), 5), "version 5 is not one of 0 to 4"),
        (CoordinatorRecord(KEY, commit(), 3.0), "a version is a whole number, not float"),  # type: ignore[arg-type]  # on purpose
        (CoordinatorRecord(OffsetCommitKey(partition=2**31)), "field partition"),
        (CoordinatorRecord("no message"), "a message is wanted, not str"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_what_is_no_coordinator_record_is_an_encode_error(
    record: CoordinatorRecord, reason: str
) -> None:
    with pytest.raises(EncodeError, match=reason):
        coordinator.encode_record(record)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (MetadataRecord(MetadataRequest()), "MetadataRequest is not a message of a metadata log"),
        (MetadataRecord(TopicRecord(), 1), "version 1 is not one of 0 to 0"),
        (MetadataRecord(TopicRecord(), 0.0), "TopicRecord: a version is a whole number, not float"),  # type: ignore[arg-type]  # on purpose
        (MetadataRecord(b"bytes"), "bytes is not a message"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_what_is_no_metadata_record_is_an_encode_error(record: MetadataRecord, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        metadata_log.encode_record(record)
