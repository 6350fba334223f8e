"""Compares controller records with bytes that MetadataRecordSerde of Kafka 4.4.0 wrote."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.messages import (
    FeatureLevelRecord,
    MetadataRequest,
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
)
from kproto.messages.base import Message
from kproto.records import Record
from kproto.stored.metadata_log import (
    METADATA_TOPICS,
    MetadataRecord,
    UnknownMetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from kproto.testing.strategies import messages
from kproto.wire.errors import ConfigurationError, DecodeError, EncodeError
from tests.support.examples import examples

from .lookups import class_of, record_types_of, uuid_of

METADATA_RECORDS = [
    (
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        0,
        "010c00116d657461646174612e76657273696f6e001900",
    ),
    (
        TopicRecord(name="greetings", topic_id=uuid_of(1, 2)),
        0,
        "0102000a6772656574696e67730000000000000001000000000000000200",
    ),
    (NoOpRecord(), 0, "01140000"),
    (
        PartitionRecord(
            partition_id=1,
            topic_id=uuid_of(1, 2),
            replicas=[1, 2],
            isr=[1],
            leader=1,
            leader_epoch=3,
            partition_epoch=4,
            directories=[uuid_of(5, 6), uuid_of(7, 8)],
        ),
        1,
        (
            "01030100000001000000000000000100000000000000020300000001000000020200000001010100000001"
            "000000030000000403000000000000000500000000000000060000000000000007000000000000000800"
        ),
    ),
]


@pytest.mark.parametrize(("message", "version", "value"), METADATA_RECORDS)
def test_metadata_records_have_kafkas_framing(message: Message, version: int, value: str) -> None:
    record = MetadataRecord(message, version)
    assert encode_metadata_record(record) == bytes.fromhex(value)
    assert decode_metadata_record(Record(value=bytes.fromhex(value))) == record


def test_the_table_has_every_record_of_the_definitions() -> None:
    assert METADATA_TOPICS["__cluster_metadata"] == record_types_of("metadata", "metadata")
    assert METADATA_TOPICS["__remote_log_metadata"] == record_types_of("metadata", "storage")


@given(st.data())
@settings(max_examples=examples(100))
def test_every_metadata_record_round_trips(data: st.DataObject) -> None:
    topic = data.draw(st.sampled_from(sorted(METADATA_TOPICS)))
    cls = class_of(data.draw(st.sampled_from(sorted(METADATA_TOPICS[topic].values()))))
    version = data.draw(st.sampled_from(cls.VALID_VERSIONS))
    record = MetadataRecord(data.draw(messages(cls, version)), version)
    value = encode_metadata_record(record)
    assert decode_metadata_record(Record(value=value), topic=topic) == record


def test_a_metadata_record_of_an_unknown_type_keeps_its_bytes() -> None:
    for value in (b"\x01\x7f\x00whatever", b"\x01\xff\xff\x01\x83\x00"):
        record = decode_metadata_record(Record(value=value))
        assert isinstance(record, UnknownMetadataRecord)
        assert encode_metadata_record(record) == value
    assert record == UnknownMetadataRecord(32767, 3, value)


def test_the_latest_stable_version_is_written_by_default() -> None:
    assert encode_metadata_record(MetadataRecord(PartitionRecord()))[:3] == b"\x01\x03\x02"


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
        (b"\x01\x14\x00\x00!", "NoOpRecord v0.*1 bytes follow the end"),
        (b"\x01\x02\x00\x05a", "TopicRecord v0, field name"),
    ],
)
def test_a_broken_metadata_record_is_a_decode_error(value: bytes | None, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_metadata_record(Record(5, value=value))


@pytest.mark.parametrize(
    ("value", "offset"),
    [
        (b"\x01\x14\x00\x00!", 4),
        (b"\x01\x02\x00\x05a", 4),  # the string would end beyond the data
        (b"\x01\x82\x00\x80\x00\x05a", 6),  # type and version take two bytes each
        (b"\x01\x02\x09", None),
    ],
)
def test_a_decode_error_has_the_position_in_the_metadata_record(
    value: bytes, offset: int | None
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_metadata_record(Record(5, value=value))
    assert caught.value.offset == offset


@given(st.integers(0, 100), st.sampled_from([PartitionRecord, TopicRecord]), st.data())
@settings(max_examples=20)
def test_a_truncated_record_has_its_error_within_the_rest(
    size: int, cls: type[Message], data: st.DataObject
) -> None:
    """The error's offset counts from the start of the value, including the three-byte frame."""
    value = encode_metadata_record(MetadataRecord(data.draw(messages(cls, 0)), 0))
    size = 3 + size % (len(value) - 3)
    with pytest.raises(DecodeError) as alone:
        cls.decode(value[3:size], 0)
    with pytest.raises(DecodeError) as caught:
        decode_metadata_record(Record(value=value[:size]))
    assert alone.value.offset is not None
    assert caught.value.offset == alone.value.offset + 3 <= size
    assert (caught.value.field, caught.value.reason) == (alone.value.field, alone.value.reason)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_record_or_a_decode_error(value: bytes) -> None:
    for topic in METADATA_TOPICS:
        try:
            record = decode_metadata_record(Record(value=b"\x01" + value), topic=topic)
        except DecodeError:
            continue
        encode_metadata_record(record)


def test_a_topic_without_such_records_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="'greetings' has no metadata records"):
        decode_metadata_record(Record(value=b"\1\0\0", topic="greetings"))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (MetadataRecord(MetadataRequest()), "MetadataRequest is not a message of a metadata log"),
        (MetadataRecord(TopicRecord(), 1), "version 1 is not one of 0 to 0"),
        (MetadataRecord(TopicRecord(), 0.0), "TopicRecord: a version is a whole number, not float"),  # type: ignore[arg-type]  # on purpose
        (MetadataRecord(b"bytes"), "bytes is not a message"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_an_invalid_metadata_record_is_an_encode_error(record: MetadataRecord, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        encode_metadata_record(record)
