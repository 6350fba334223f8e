"""Tests packed arrays: a decoded integer array stays bytes until it is first read.

No caller can see whether an array is packed. In compiled code no array is packed.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.wire.compiled import __compiled__
from kproto.wire.errors import DecodeError
from kproto.wire.tags import RawTaggedField
from kproto.wire.uniform_structs import UniformStructs

ARRAYS = ("replica_nodes", "isr_nodes", "offline_replicas")


def response(partitions: list[MetadataResponsePartition]) -> MetadataResponse:
    """Returns a response with one topic of these partitions."""
    return MetadataResponse(topics=[MetadataResponseTopic(name="a", partitions=partitions)])


def partitions(count: int = 5) -> list[MetadataResponsePartition]:
    """Returns `count` partitions whose arrays have equal lengths."""
    return [
        MetadataResponsePartition(
            partition_index=index, leader_id=index, replica_nodes=[index, -1, 2**31 - 1]
        )
        for index in range(count)
    ]


def read(version: int = 12, count: int = 5) -> list[MetadataResponsePartition]:
    """Returns `partitions(count)` after encoding and decoding; no array has been read yet."""
    made = MetadataResponse.decode(response(partitions(count)).encode(version), version)
    return made.topics[0].partitions


def slots(partition: MetadataResponsePartition) -> list[type]:
    """Returns the type in each array's slot: bytes while the array is packed, otherwise list."""
    return [type(getattr(partition, f"_{name}")) for name in ARRAYS]


@pytest.mark.skipif(__compiled__, reason="compiled code decodes all arrays at once")
def test_arrays_stay_bytes_until_they_are_read() -> None:
    first, *others = read()
    assert slots(first) == [bytes] * 3
    nodes = first.replica_nodes
    assert nodes == [0, -1, 2**31 - 1]
    assert slots(first) == [list, bytes, bytes]
    assert all(slots(other) == [bytes] * 3 for other in others)
    nodes.append(7)
    assert first.replica_nodes is nodes
    assert first.offline_replicas == []
    first.offline_replicas.append(1)
    assert first.offline_replicas == [1]
    assert others[0].offline_replicas == []


@pytest.mark.parametrize(("version", "count"), [(8, 5), (12, 4), (12, 0)])
def test_few_partitions_and_old_versions_are_read_as_lists(version: int, count: int) -> None:
    assert all(slots(each) == [list] * 3 for each in read(version, count))


def test_decoded_partitions_equal_constructed_partitions() -> None:
    assert read() == partitions()
    assert partitions() == read()
    assert read() == read()
    assert repr(read()) == repr(partitions())
    other = read()
    other[2].isr_nodes.append(1)
    assert other != partitions()


def test_packed_and_unpacked_arrays_are_encoded_alike() -> None:
    wanted = response(partitions())
    for version in MetadataResponse.VALID_VERSIONS:
        message = MetadataResponse.decode(wanted.encode(12), 12)
        for _ in range(2):
            assert message.encode(version) == wanted.encode(version)
        assert message.size(version) == wanted.size(version)
        assert message.to_json(version) == wanted.to_json(version)


@pytest.mark.parametrize("read_first", [False, True])
def test_copies_do_not_share_arrays(read_first: bool) -> None:
    (first, *_) = read()
    if read_first:
        assert first.replica_nodes
    for copied in (first.copy(), pickle.loads(pickle.dumps(first))):
        assert copied == first == partitions()[0]
        copied.replica_nodes.append(9)
        assert first.replica_nodes == partitions()[0].replica_nodes


def test_reading_an_array_keeps_another_that_was_set() -> None:
    partition, *_ = read()
    given = [1]
    partition.isr_nodes = given
    assert partition.replica_nodes == [0, -1, 2**31 - 1]
    assert partition.isr_nodes is given


def test_an_array_can_be_set_like_any_attribute() -> None:
    given = [1, 2]
    for partition in (read()[0], partitions()[0]):
        partition.replica_nodes = given
        assert partition.replica_nodes is given
        partition.isr_nodes = b"\1\2"  # type: ignore[assignment]  # bytes are a sequence of numbers
        assert partition.isr_nodes == given
        in_turn: Any = (1, 2)
        partition.offline_replicas = in_turn
        assert partition.offline_replicas is in_turn
        assert response([partition]).encode(12) == response(
            [
                MetadataResponsePartition(
                    leader_id=partition.leader_id,
                    partition_index=partition.partition_index,
                    replica_nodes=given,
                    isr_nodes=given,
                    offline_replicas=given,
                )
            ]
        ).encode(12)


FEW_NODES = st.lists(st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]), min_size=3, max_size=3)


@st.composite
def mostly_alike(draw: st.DrawFn) -> list[MetadataResponsePartition]:
    """Draws partitions whose arrays have equal lengths, except for at most one partition."""
    counts = [draw(st.sampled_from([0, 1, 3, 126, 127])) for _ in ARRAYS]
    made = []
    for index in range(draw(st.integers(0, 9))):
        drawn = [(draw(FEW_NODES) * 43)[:count] for count in counts]
        replicas, in_sync, offline = drawn
        made.append(
            MetadataResponsePartition(
                partition_index=index,
                replica_nodes=replicas,
                isr_nodes=in_sync,
                offline_replicas=offline,
            )
        )
    if made and draw(st.sampled_from([False, True])):
        odd = draw(st.sampled_from(made))
        getattr(odd, draw(st.sampled_from(ARRAYS))).append(1)
        if draw(st.sampled_from([False, True])):
            odd.unknown_tagged_fields = [RawTaggedField(5, b"x")]
    return made


@given(mostly_alike())
def test_partitions_round_trip_with_equal_and_unequal_shapes(
    made: list[MetadataResponsePartition],
) -> None:
    data = response(made).encode(12)
    decoded = MetadataResponse.decode(data, 12)
    assert decoded.encode(12) == data
    assert decoded == response(made)
    assert MetadataResponse.decode(data, 12) == decoded


def outcome(data: bytes) -> Any:
    """Returns the decoded message, or the error's exact text and offset."""
    try:
        return MetadataResponse.decode(data, 12)
    except DecodeError as error:
        return str(error), error.offset


@given(st.data())
def test_broken_bytes_raise_the_error_of_the_one_by_one_decoder(data: st.DataObject) -> None:
    whole = response(partitions(6)).encode(12)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = bytes([data.draw(st.sampled_from([0, 1, 2, 4, 5, 127, 128, 255]))])
    broken = data.draw(
        st.sampled_from(
            [
                whole[:at],
                whole[:at] + byte + whole[at + 1 :],
                whole[:at] + whole[at + 1 :],
                whole[:at] + byte + whole[at:],
            ]
        )
    )
    found = outcome(broken)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UniformStructs, "of", lambda *_: None)
        assert outcome(broken) == found


def test_every_truncation_is_refused() -> None:
    data = response(partitions()).encode(12)
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            MetadataResponse.decode(data[:end], 12)
