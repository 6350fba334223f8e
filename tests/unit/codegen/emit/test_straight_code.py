"""Tests straight-line code of data path messages, at the limits where it calls `kproto.wire`."""

from __future__ import annotations

import copy
import pickle
import struct

import pytest

from kproto.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kproto.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kproto.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kproto.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.wire.errors import DecodeError, EncodeError
from kproto.wire.tags import RawTaggedField
from kproto.wire.writing import uvarint
from tests.support.selection import rest_slow

#: Counts below and above each limit at which a length takes more bytes or another code path.
LENGTHS = (0, 1, 2, 125, 126, 127, 128, 129, 255, 256, 257, 16382, 16383, 16384)


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("version", [8, 9])
def test_arrays_of_numbers_round_trip_with_any_count(version: int, count: int) -> None:
    nodes = [number % 7 - 3 for number in range(count)]
    partition = MetadataResponsePartition(replica_nodes=nodes, isr_nodes=nodes[:1])
    message = MetadataResponse(topics=[MetadataResponseTopic(name="a", partitions=[partition])])
    data = message.encode(version)
    length = uvarint(count + 1) if version > 8 else struct.pack(">i", count)
    assert length + struct.pack(f">{count}i", *nodes) in data
    assert MetadataResponse.decode(data, version) == message


@pytest.mark.parametrize("count", LENGTHS[:11])
@pytest.mark.parametrize("version", [8, 9])
def test_arrays_of_structs_round_trip_with_any_count(version: int, count: int) -> None:
    partitions = [MetadataResponsePartition(partition_index=index) for index in range(count)]
    message = MetadataResponse(topics=[MetadataResponseTopic(name="a", partitions=partitions)])
    assert MetadataResponse.decode(message.encode(version), version) == message


@pytest.mark.parametrize("size", LENGTHS)
@pytest.mark.parametrize("version", [5, 6])
def test_strings_and_bytes_round_trip_with_any_length(version: int, size: int) -> None:
    member = JoinGroupResponseMember(member_id="m" * size, metadata=b"d" * size)
    message = JoinGroupResponse(protocol_name="p" * size, members=[member])
    assert JoinGroupResponse.decode(message.encode(version), version) == message


@pytest.mark.parametrize("size", [None, *LENGTHS, 2097150, 2097151])
@pytest.mark.parametrize("version", [11, 12])
def test_records_round_trip_with_any_length(version: int, size: int | None) -> None:
    records = None if size is None else b"r" * size
    message = fetched(PartitionData(records=records))
    data = message.encode(version)
    assert FetchResponse.decode(data, version) == message
    for octets in (bytearray, memoryview):
        if records is not None:
            other = fetched(PartitionData(records=octets(records)))  # type: ignore[arg-type]
            assert other.encode(version) == data


@pytest.mark.parametrize("length", [b"\x80\0", b"\x80\x80\0", b"\x81\0", b"\x84\0", b"\x84\x80\0"])
def test_an_overlong_length_of_records_is_read(length: bytes) -> None:
    null = fetched(PartitionData(records=None)).encode(12)
    assert null.endswith(bytes(4))  # null records, and three empty tagged field sections
    size = (length[0] & 127) - 1
    data = null[:-4] + length + b"r" * size + null[-3:]
    records = None if size < 0 else b"r" * size
    assert FetchResponse.decode(data, 12) == fetched(PartitionData(records=records))


@pytest.mark.parametrize("size", [None, 0, 1, 126, 127, 200, 20_000])
@pytest.mark.parametrize("version", [4, 11, 12])
def test_truncated_records_are_refused(version: int, size: int | None) -> None:
    data = fetched(PartitionData(records=None if size is None else bytes(size))).encode(version)
    for end in {*range(60), *range(60, len(data), 97), *range(len(data) - 9, len(data))}:
        if end < len(data):
            with pytest.raises(DecodeError):
                FetchResponse.decode(data[:end], version)


@pytest.mark.parametrize("version", range(8, 13))
def test_every_truncation_is_refused(version: int) -> None:
    partition = MetadataResponsePartition(replica_nodes=[1, 2], isr_nodes=[1])
    message = MetadataResponse(topics=[MetadataResponseTopic(name="a", partitions=[partition])])
    data = message.encode(version)
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            MetadataResponse.decode(data[:end], version)


@pytest.mark.parametrize("count", [None, 0, 1, 2, 5, 126, 127, 128, 300])
@pytest.mark.parametrize("records", [None, b"", b"r" * 500])
@pytest.mark.parametrize("version", rest_slow([4, 12, 5, 11], 0, 2))
def test_aborted_transactions_round_trip_with_any_count(
    version: int, records: bytes | None, count: int | None
) -> None:
    aborted = None if count is None else [AbortedTransaction(producer_id=i) for i in range(count)]
    message = fetched(PartitionData(aborted_transactions=aborted, records=records))
    data = message.encode(version)
    assert FetchResponse.decode(data, version) == message
    for end in {*range(min(len(data), 60)), *range(len(data) - 20, len(data))}:
        with pytest.raises(DecodeError):
            FetchResponse.decode(data[:end], version)


def test_an_overlong_null_for_aborted_transactions_is_read() -> None:
    message = fetched(PartitionData(aborted_transactions=None, preferred_read_replica=7))
    data = message.encode(12)
    at = data.index(b"\0\0\0\0\7")
    assert FetchResponse.decode(data[:at] + b"\x80" + data[at:], 12) == message


@pytest.mark.parametrize(("version", "count"), [(4, -2), (11, -2), (11, 2**31 - 1)])
def test_wrong_counts_of_aborted_transactions_are_refused(version: int, count: int) -> None:
    data = fetched(PartitionData(aborted_transactions=None)).encode(version)
    null = b"\xff" * 4 + b"\xff" * (4 if version == 11 else 0) + b"\xff" * 4
    assert data.endswith(null)
    broken = data[: -len(null)] + struct.pack(">i", count) + null[4:]
    with pytest.raises(DecodeError, match="aborted_transactions"):
        FetchResponse.decode(broken, version)


def listed(count: int, tagged: int | None = None) -> ListOffsetsResponse:
    """Returns a response with `count` partitions of equal size.

    The partition at index `tagged` also has an unknown tagged field. If `tagged` is None, no
    partition has an unknown tagged field.
    """
    partitions = [
        ListOffsetsPartitionResponse(partition_index=index, offset=-index, leader_epoch=index)
        for index in range(count)
    ]
    if tagged is not None:
        partitions[tagged].unknown_tagged_fields.append(RawTaggedField(7, bytes(6)))
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=partitions)])


@pytest.mark.parametrize("count", [*range(8), 126, 127, 128, 129, 1000])
@pytest.mark.parametrize("version", [5, 6])
def test_any_number_of_structs_of_one_size_round_trips(version: int, count: int) -> None:
    message = listed(count)
    assert ListOffsetsResponse.decode(message.encode(version), version) == message


@pytest.mark.parametrize("tagged", range(6))
def test_one_struct_may_have_tagged_fields(tagged: int) -> None:
    message = listed(6, tagged)
    assert ListOffsetsResponse.decode(message.encode(6), 6) == message


@pytest.mark.parametrize("tagged", [None, 3])
def test_truncated_structs_of_one_size_are_refused_at_the_end_of_the_bytes(
    tagged: int | None,
) -> None:
    data = listed(6, tagged).encode(6)
    for end in range(len(data)):
        with pytest.raises(DecodeError) as caught:
            ListOffsetsResponse.decode(data[:end], 6)
        offset = caught.value.offset
        assert offset is not None
        assert end - 9 < offset <= end


def test_an_array_of_old_versions_is_made_on_first_access() -> None:
    first, second = ListOffsetsResponse.decode(listed(2).encode(6), 6).topics[0].partitions
    assert first.old_style_offsets == []
    assert first.old_style_offsets is first.old_style_offsets
    for other in (second.copy(), copy.copy(second), pickle.loads(pickle.dumps(second))):
        assert other == second
    first.old_style_offsets.append(3)
    assert second.old_style_offsets == []
    message = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[first])])
    with pytest.raises(EncodeError, match="old_style_offsets"):
        message.encode(6)
    first.old_style_offsets = None  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="old_style_offsets"):
        message.encode(6)


def test_fields_missing_in_a_new_version_are_written_to_an_old_one() -> None:
    empty = ListOffsetsPartitionResponse(partition_index=3)
    message = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[empty])])
    read = ListOffsetsResponse.decode(message.encode(6), 6)
    assert read.encode(0) == message.encode(0)
    read.topics[0].partitions[0].old_style_offsets = [4, 5]
    again = ListOffsetsResponse.decode(read.encode(0), 0)
    assert again.topics[0].partitions[0].old_style_offsets == [4, 5]


def test_a_struct_outside_arrays_is_decoded_alone() -> None:
    partition = PartitionData()
    partition.current_leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    data = fetched(partition).encode(12)
    assert FetchResponse.decode(data, 12) == fetched(partition)


def fetched(*partitions: PartitionData) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(topic="a", partitions=partitions)])


def test_a_struct_made_on_access_belongs_to_its_partition() -> None:
    data = fetched(PartitionData(), PartitionData()).encode(12)
    first, second = FetchResponse.decode(data, 12).responses[0].partitions
    assert first == second == PartitionData()
    first.current_leader.leader_id = 3
    assert first.current_leader is first.current_leader
    assert second.current_leader.leader_id == PartitionData().current_leader.leader_id == -1
    assert first != second
    assert "current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=-1)" in repr(first)
    message = fetched(first)
    assert FetchResponse.decode(message.encode(12), 12) == message
    with pytest.raises(EncodeError, match="current_leader"):
        message.encode(11)


def test_an_unread_struct_is_copied_and_pickled_with_its_owner() -> None:
    message = fetched(PartitionData(records=b"r"))
    for other in (message.copy(), copy.copy(message), pickle.loads(pickle.dumps(message))):
        assert other == message
        assert other.encode(12) == message.encode(12)
    other = message.copy()
    other.responses[0].partitions[0].snapshot_id.epoch = 4
    assert other != message
    assert message.responses[0].partitions[0].snapshot_id.epoch == -1


def test_null_for_a_struct_that_may_not_be_null_is_refused() -> None:
    partition = PartitionData()
    partition.current_leader = None  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="current_leader"):
        fetched(partition).encode(12)
