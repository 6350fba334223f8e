"""Compares coordinator records with bytes that Kafka's classes wrote.

The bytes come from Kafka 4.4.0: GroupCoordinatorRecordSerde, ShareCoordinatorRecordSerde, and
MessageUtil.toCoordinatorTypePrefixedBytes and toVersionPrefixedBytes (for the transaction log).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.messages import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    MetadataRequest,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareGroupPartitionMetadataKey,
    ShareGroupPartitionMetadataValue,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    TransactionLogKey,
    TransactionLogValue,
)
from kproto.messages.transaction_log_value import PartitionsSchema
from kproto.records import Record
from kproto.stored.coordinator_records import (
    COORDINATOR_TOPICS,
    CoordinatorRecord,
    UnknownCoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from kproto.testing.strategies import messages
from kproto.wire.errors import ConfigurationError, DecodeError, EncodeError
from tests.support.examples import examples

from .lookups import class_of, record_types_of, uuid_of

GROUPS, TRANSACTIONS, SHARES = COORDINATOR_TOPICS


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
        CoordinatorRecord(KEY, commit(leader_epoch=7, topic_id=uuid_of(1, 2)), 4),
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
            ShareSnapshotKey(group_id="g", topic_id=uuid_of(3, 4), partition=5),
            ShareSnapshotValue(snapshot_epoch=1, state_epoch=2, leader_epoch=3, start_offset=4),
            0,
        ),
        "00000001670000000000000003000000000000000400000005",
        "00000000000100000002000000030000000000000004000000000000000000000000000000000100",
    ),
    (
        SHARES,
        CoordinatorRecord(ShareUpdateKey(group_id="g", topic_id=uuid_of(3, 4), partition=5)),
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
def test_coordinator_records_have_kafkas_framing(
    topic: str, record: CoordinatorRecord, key: str, value: str | None
) -> None:
    stored = (bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    assert encode_coordinator_record(record) == stored
    assert decode_coordinator_record(Record(key=stored[0], value=stored[1], topic=topic)) == record
    assert decode_coordinator_record(Record(0, 0, *stored), topic=topic) == record


def test_the_table_has_every_record_of_the_definitions() -> None:
    wanted = {
        GROUPS: "group-coordinator",
        TRANSACTIONS: "transaction-coordinator",
        SHARES: "share-coordinator",
    }
    removed: dict[int | None, str] = {
        9: "ShareGroupPartitionMetadata"
    }  # only 3.9 has this `data` message
    for topic, module in wanted.items():
        found = record_types_of("coordinator-key", module, "Key")
        if topic == GROUPS:
            found |= removed
        assert COORDINATOR_TOPICS[topic] == found
        values = record_types_of("coordinator-value", module, "Value")
        assert values == {number: name for number, name in found.items() if number != 9}


@given(st.data())
@settings(max_examples=examples(100))
@pytest.mark.slow
def test_every_coordinator_record_round_trips(data: st.DataObject) -> None:
    topic = data.draw(st.sampled_from(sorted(COORDINATOR_TOPICS)))
    number, name = data.draw(st.sampled_from(sorted(COORDINATOR_TOPICS[topic].items())))
    key = data.draw(messages(class_of(f"{name}Key")))
    value_class = class_of(f"{name}Value")
    version = data.draw(st.none() | st.sampled_from(value_class.VALID_VERSIONS))
    value = None if version is None else data.draw(messages(value_class, version))
    record = CoordinatorRecord(key, value, version)
    stored = encode_coordinator_record(record)
    assert int.from_bytes(stored[0][:2], "big") == number
    assert decode_coordinator_record(Record(0, 0, *stored, topic=topic)) == record


@pytest.mark.parametrize("value", [None, b"", b"\x00\x63more"])
def test_a_coordinator_record_of_an_unknown_type_keeps_its_bytes(value: bytes | None) -> None:
    for number in (18, 24, 32767, -1):
        key = number.to_bytes(2, "big", signed=True) + b"whatever"
        record = decode_coordinator_record(Record(key=key, value=value), topic=GROUPS)
        assert record == UnknownCoordinatorRecord(number, key, value)
        assert encode_coordinator_record(record) == (key, value)


def test_the_latest_stable_version_is_written_by_default() -> None:
    _, value = encode_coordinator_record(CoordinatorRecord(KEY, commit()))
    assert value is not None
    assert value[:2] == b"\x00\x04"


def test_a_type_that_only_kafka_3_9_has_round_trips() -> None:
    # ShareGroupPartitionMetadataKey has version 9 in 3.9; its framing is that of api key 9.
    record = CoordinatorRecord(
        ShareGroupPartitionMetadataKey(group_id="g"), ShareGroupPartitionMetadataValue(), 0
    )
    key, value = encode_coordinator_record(record)
    assert key == b"\x00\x09\x00\x01g"
    assert decode_coordinator_record(Record(key=key, value=value), topic=GROUPS) == record


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", "the key of the coordinator record at offset 5 is null"),
        (b"\x00", b"", "the key of the coordinator record at offset 5 has 1 bytes"),
        (b"\x00\x02\x00\x01g", b"\x00", "the value of the coordinator record .* has 1 bytes"),
        (b"\x00\x02\x00\x05g", None, "GroupMetadataKey v0, field group"),
        (b"\x00\x02\x00\x01g!", None, "GroupMetadataKey v0.*1 bytes follow the end"),
        (bytes.fromhex(KEY_HEX), b"\x00\x05", "OffsetCommitValue: version 5 is not one of 0 to 4"),
        (bytes.fromhex(KEY_HEX), b"\xff\xff", "OffsetCommitValue: version -1"),
        (bytes.fromhex(KEY_HEX), b"\x00\x03\x00", "OffsetCommitValue v3, field offset"),
    ],
)
def test_a_broken_coordinator_record_is_a_decode_error(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_coordinator_record(Record(5, key=key, value=value, topic=GROUPS))


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
def test_a_decode_error_has_the_position_in_the_coordinator_record(
    key: bytes, value: bytes | None, message: str, offset: int | None
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_coordinator_record(Record(5, key=key, value=value, topic=GROUPS))
    assert (caught.value.message, caught.value.offset) == (message, offset)
    assert offset is None or f"at byte {offset}: " in str(caught.value)


@given(st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_any_bytes_are_a_record_or_a_decode_error(key: bytes, value: bytes | None) -> None:
    for topic in COORDINATOR_TOPICS:
        try:
            record = decode_coordinator_record(Record(key=key, value=value), topic=topic)
        except DecodeError:
            continue
        encode_coordinator_record(record)


def test_a_topic_without_such_records_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"'greetings' is no coordinator's topic.*topic="):
        decode_coordinator_record(Record(key=b"\0\0", topic="greetings"))
    with pytest.raises(ConfigurationError, match="'' is no coordinator's topic"):
        decode_coordinator_record(Record(key=b"\0\0"))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (CoordinatorRecord(MetadataRequest()), "MetadataRequest is not the key"),
        (CoordinatorRecord(OffsetCommitValue()), "OffsetCommitValue is not the key"),
        (
            CoordinatorRecord(KEY, ConsumerGroupMetadataValue()),
            "OffsetCommitKey needs OffsetCommitValue, not ConsumerGroupMetadataValue",
        ),
        (CoordinatorRecord(KEY, commit(), 5), "version 5 is not one of 0 to 4"),
        (CoordinatorRecord(KEY, commit(), 3.0), "a version is a whole number, not float"),  # type: ignore[arg-type]  # on purpose
        (CoordinatorRecord(OffsetCommitKey(partition=2**31)), "field partition"),
        (CoordinatorRecord("no message"), "a message is wanted, not str"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_an_invalid_coordinator_record_is_an_encode_error(
    record: CoordinatorRecord, reason: str
) -> None:
    with pytest.raises(EncodeError, match=reason):
        encode_coordinator_record(record)
