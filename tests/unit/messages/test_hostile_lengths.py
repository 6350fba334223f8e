"""Tests that false lengths, counts and tags are refused at once, without an allocation."""

from __future__ import annotations

import tracemalloc

import pytest

from kproto.messages import (
    ApiVersionsRequest,
    DescribeTopicPartitionsResponse,
    FetchRequest,
    HeartbeatRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    SaslAuthenticateRequest,
    WriteTxnMarkersRequest,
)
from kproto.messages.base import Message
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.wire.errors import DecodeError
from kproto.wire.limits import MAX_TAG
from kproto.wire.tags import RawTaggedField
from kproto.wire.writing import uvarint

INT32_MAX = "7fffffff"
VARINT_MAX = "ffffffff0f"


def refused(message: type[Message], version: int, data: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        message.decode(data, version)
    error = caught.value
    assert (error.message, error.version) == (message.__name__, version)
    return error


@pytest.mark.parametrize(
    ("message", "version", "data", "field", "offset", "reason"),
    [
        (MetadataRequest, 4, INT32_MAX, "topics", 0, "2147483647 elements are announced and 0"),
        (MetadataRequest, 4, INT32_MAX + "00" * 9, "topics", 0, "9 bytes are left"),
        (MetadataRequest, 9, VARINT_MAX + "00", "topics", 0, "4294967294 elements"),
        (MetadataRequest, 9, "8080808080 00", "topics", 0, "varint of more than 5 bytes"),
        (MetadataRequest, 9, "8080808080 8001", "topics", 0, "varint of more than 5 bytes"),
        (MetadataRequest, 4, "fffffffe 00", "topics", 0, "a length of -2"),
        (MetadataRequest, 0, "ffffffff", "topics", 0, "null, which topics may not be"),
        (MetadataRequest, 4, "00000001 fffe 00", "topics[0].name", 4, "a length of -2"),
        (MetadataRequest, 4, "00000001 ffff 00", "topics[0].name", 4, "null, which"),
        (MetadataRequest, 4, "00000001 7fff 61", "topics[0].name", 6, "32767 bytes are needed"),
        (MetadataRequest, 9, "02 00 00 00", "topics[0].name", 1, "null, which topics[0].name"),
        (MetadataRequest, 9, "02 02ff 00 00", "topics[0].name", 2, "a string that is not UTF-8"),
        (MetadataRequest, 9, "02 03c3 c3", "topics[0].name", 2, "is not UTF-8"),
        (ProduceRequest, 9, "8280 02 61", "transactional_id", 0, "a string of 32769 bytes"),
        (ProduceRequest, 9, VARINT_MAX + "61", "transactional_id", 0, "4294967294 bytes"),
        (SaslAuthenticateRequest, 1, INT32_MAX, "auth_bytes", 4, "2147483647 bytes are needed"),
        (SaslAuthenticateRequest, 1, "ffffffff", "auth_bytes", 0, "null, which auth_bytes"),
        (SaslAuthenticateRequest, 2, "00 00", "auth_bytes", 0, "null, which auth_bytes"),
        (SaslAuthenticateRequest, 2, VARINT_MAX, "auth_bytes", 5, "bytes are needed and 0"),
        (OffsetForLeaderEpochRequest, 2, INT32_MAX, "topics", 0, "2147483647 elements"),
        (WriteTxnMarkersRequest, 1, "02" + "00" * 12, "markers[0].topics", 12, "null, which"),
        (ApiVersionsRequest, 3, "0161 01", "client_software_version", 2, "96 bytes are needed"),
    ],
)
def test_a_length_that_lies(
    message: type[Message], version: int, data: str, field: str, offset: int, reason: str
) -> None:
    error = refused(message, version, bytes.fromhex(data))
    assert (error.field, error.offset) == (field, offset)
    assert reason in error.reason


#: An ApiVersionsRequest v3 without its tagged fields: two empty strings.
EMPTY = "01 01"


@pytest.mark.parametrize(
    ("tags", "offset", "reason"),
    [
        ("02 0500 0500", 5, "tag 5 comes after tag 5"),
        ("02 0500 0400", 5, "tag 4 comes after tag 5"),
        ("01 0502 61", 5, "tag 5: 2 bytes are needed and 1 is left"),
        (f"01 05 {VARINT_MAX}", 9, "tag 5: 4294967295 bytes are needed and 0 are left"),
        ("01 05", 4, "tag 5: 1 byte is needed and 0 are left"),
        (VARINT_MAX, 2, "4294967295 tagged fields are announced; at most 10000 are read"),
        ("914e" + "0000" * 4, 2, "10001 tagged fields are announced"),
        ("01 808080808001 00", 3, "the number of a tag: an unsigned varint of more than 5 bytes"),
        ("02 0500", 5, "the number of a tag: 1 byte is needed and 0 are left"),
        ("", 2, "the number of tagged fields: 1 byte is needed and 0 are left"),
    ],
)
def test_tags_that_lie(tags: str, offset: int, reason: str) -> None:
    error = refused(ApiVersionsRequest, 3, bytes.fromhex(EMPTY + tags))
    assert (error.field, error.offset) == ("", offset)
    assert error.reason.startswith(reason)
    assert str(error) == f"ApiVersionsRequest v3, at byte {offset}: {error.reason}"


def test_the_highest_tag_is_kept() -> None:
    request = HeartbeatRequest()
    request.unknown_tagged_fields = [RawTaggedField(5, b"a"), RawTaggedField(MAX_TAG, b"b")]
    data = request.encode(4)
    assert HeartbeatRequest.decode(data, 4) == request
    assert HeartbeatRequest.decode(data, 4).encode(4) == data


@pytest.mark.parametrize("tag", [2**31 - 1, 2**31, 2**32 - 1])
def test_tags_that_cannot_be_written_are_not_read(tag: int) -> None:
    # Kafka's classes read them, and refuse to write them.
    data = HeartbeatRequest().encode(4)
    error = refused(HeartbeatRequest, 4, data[:-1] + b"\1" + uvarint(tag) + b"\0")
    assert error.offset == len(data)
    assert error.reason == f"tag {tag}; the highest that is read is 2147483646"


def test_a_tag_that_is_a_field_of_other_versions() -> None:
    # Kafka's classes do the same. Tag 1 of FetchRequest is ReplicaState from version 15 on; of its
    # partitions, tag 0 is ReplicaDirectoryId from version 17 on and tag 1 HighWatermark in 18.
    newer = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(high_watermark=5)])])
    error = refused(FetchRequest, 17, newer.encode(18))
    assert error.field == "topics[0].partitions[0]"
    assert error.reason == "tag 1 is a field of versions 18+ only"
    data = FetchRequest().encode(12)
    error = refused(FetchRequest, 12, data[:-1] + bytes.fromhex("01 01 00"))
    assert error.reason == "tag 1 is a field of versions 15+ only"


def tagged(tag: int, value: str) -> bytes:
    """Returns a FetchRequest v18 with one partition, which has one tagged field."""
    head = FetchRequest().encode(18)[:21]
    partition = "00" * 32 + "01" + f"{tag:02x}{len(bytes.fromhex(value)):02x}" + value
    return head + bytes.fromhex("02" + "00" * 16 + "02" + partition + "00" + "01" + "01" + "00")


def test_the_frame_of_the_tests_on_known_tags_is_right() -> None:
    request = FetchRequest.decode(tagged(1, "00" * 7 + "05"), 18)
    assert request.topics[0].partitions[0].high_watermark == 5


@pytest.mark.parametrize(
    ("tag", "value", "field", "reason"),
    [
        (0, "00" * 15, "replica_directory_id", "tag 0 announces 15 bytes and holds 16"),
        (0, "00" * 17, "replica_directory_id", "tag 0 announces 17 bytes and holds 16"),
        (0, "", "replica_directory_id", "16 bytes are needed and 4 are left"),
        (1, "00" * 7, "high_watermark", "tag 1 announces 7 bytes and holds 8"),
        (1, "00" * 9, "high_watermark", "tag 1 announces 9 bytes and holds 8"),
    ],
)
def test_a_known_tag_of_another_size(tag: int, value: str, field: str, reason: str) -> None:
    error = refused(FetchRequest, 18, tagged(tag, value))
    assert error.field == f"topics[0].partitions[0].{field}"
    assert error.reason == reason


def test_varints_need_not_be_minimal() -> None:
    assert MetadataRequest.decode(bytes.fromhex("8180808000 01 00 00"), 12).topics == []
    assert MetadataRequest.decode(bytes.fromhex("8080808000 01 00 00"), 12).topics is None
    assert MetadataRequest.decode(bytes.fromhex("01 01 00 8000"), 12) == MetadataRequest.decode(
        bytes.fromhex("01 01 00 00"), 12
    )


def test_bits_above_32_are_dropped_as_in_kafka() -> None:
    # The fifth byte has four bits of the int; Kafka's reader drops the other bits.
    assert MetadataRequest.decode(bytes.fromhex("8180808070 01 00 00"), 12).topics == []


@pytest.mark.parametrize("byte", ["01", "02", "7f", "80", "ff"])
def test_any_byte_but_zero_is_true(byte: str) -> None:
    request = MetadataRequest.decode(bytes.fromhex(f"01 {byte} 00 00"), 12)
    assert request.allow_auto_topic_creation is True


@pytest.mark.parametrize(("mark", "present"), [("00", True), ("7f", True), ("80", False)])
def test_the_sign_of_the_mark_tells_a_null_struct(mark: str, present: bool) -> None:
    cursor = "01 00000005 00" if present else ""
    data = bytes.fromhex(f"00000000 01 {mark} {cursor} 00")
    response = DescribeTopicPartitionsResponse.decode(data, 0)
    assert (response.next_cursor is not None) == present


def test_more_elements_than_are_ever_read() -> None:
    count = 1_000_001
    error = refused(MetadataRequest, 4, count.to_bytes(4, "big") + bytes(3 * count))
    assert error.reason == "1000001 elements are announced; at most 1000000 are read"
    compact = bytes.fromhex("c2843d")  # the count plus one, as compact arrays encode it
    error = refused(MetadataRequest, 9, compact + bytes(3 * count))
    assert error.reason == "1000001 elements are announced; at most 1000000 are read"


@pytest.mark.parametrize(
    ("message", "version", "data"),
    [
        (MetadataRequest, 4, bytes.fromhex(INT32_MAX + "00" * 100)),
        (MetadataRequest, 9, bytes.fromhex(VARINT_MAX + "00" * 100)),
        (MetadataResponse, 12, bytes(4) + bytes.fromhex("01 00 00000000" + VARINT_MAX)),
        (SaslAuthenticateRequest, 2, bytes.fromhex(VARINT_MAX + "00" * 100)),
        (ApiVersionsRequest, 3, bytes.fromhex(EMPTY + VARINT_MAX + "00" * 100)),
    ],
)
def test_nothing_is_allocated_for_what_is_not_there(
    message: type[Message], version: int, data: bytes
) -> None:
    refused(message, version, data)  # loads the modules that explain an error
    tracemalloc.start()
    refused(message, version, data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000
