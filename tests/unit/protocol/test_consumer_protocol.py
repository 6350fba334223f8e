"""Tests the codec of subscriptions and assignments: every version, truncated and broken bytes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages.base import Message
from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kproto.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kproto.messages.consumer_protocol_subscription import TopicPartition as Owned
from kproto.protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscription_version,
)
from kproto.study import annotate
from kproto.wire.errors import DecodeError

M = TypeVar("M", bound=Message)

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["t", "u"],
    user_data=b"data",
    owned_partitions=[Owned(topic="t", partitions=[0, 1])],
    generation_id=5,
    rack_id="r",
)
ASSIGNMENT = ConsumerProtocolAssignment(
    assigned_partitions=[Assigned(topic="t", partitions=[0, 1])], user_data=b"data"
)


def test_highest_version_is_written_and_read_back_whole() -> None:
    assert decode_subscription(encode_subscription(SUBSCRIPTION)) == SUBSCRIPTION
    assert decode_assignment(encode_assignment(ASSIGNMENT)) == ASSIGNMENT


@pytest.mark.parametrize("version", ConsumerProtocolSubscription.VALID_VERSIONS)
def test_each_version_is_written_and_read(version: int) -> None:
    data = encode_subscription(SUBSCRIPTION, version)
    assert data[:2] == version.to_bytes(2)
    assert subscription_version(data) == version
    assert decode_subscription(data).topics == ["t", "u"]
    assert decode_subscription(data).rack_id == ("r" if version >= 3 else None)
    assert decode_assignment(encode_assignment(ASSIGNMENT, version)) == ASSIGNMENT


def test_version_limit_of_zero_reads_topics_and_user_data_alone() -> None:
    read = decode_subscription(encode_subscription(SUBSCRIPTION), highest=0)
    assert read == ConsumerProtocolSubscription(topics=["t", "u"], user_data=b"data")


@given(st.integers(4, 0x7FFF), st.binary(max_size=20))
def test_newer_version_is_read_as_the_highest_known_one(version: int, more: bytes) -> None:
    subscription = version.to_bytes(2) + encode_subscription(SUBSCRIPTION)[2:] + more
    assert subscription_version(subscription) == version
    assert decode_subscription(subscription) == SUBSCRIPTION
    assert decode_assignment(version.to_bytes(2) + encode_assignment(ASSIGNMENT)[2:] + more) == (
        ASSIGNMENT
    )
    assert encode_assignment(ASSIGNMENT, version) == encode_assignment(ASSIGNMENT)


def test_no_bytes_are_an_empty_assignment() -> None:
    assert decode_assignment(b"") == ConsumerProtocolAssignment()


@pytest.mark.parametrize("data", [b"\0", b"\xff\xff", b"\0\3", b"\0\0\0\0\0\1"])
def test_broken_bytes_raise_decode_error_that_names_the_message(data: bytes) -> None:
    with pytest.raises(DecodeError, match="ConsumerProtocolSubscription"):
        decode_subscription(data)
    with pytest.raises(DecodeError, match="ConsumerProtocolAssignment"):
        decode_assignment(data)


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff"])
def test_missing_or_negative_version_raises_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError, match="version"):
        subscription_version(data)


def end_of_each_field(message: Message, version: int) -> dict[str, int]:
    """Returns the offset after each field of the encoded message.

    Offsets count from the int16 version that precedes the message.
    """
    data = bytes(2) + message.encode(version)
    tree = annotate(data[2:], type(message), version)
    return {node.name: 2 + node.offset + node.size for node in tree.children}


SUBSCRIPTIONS = st.builds(
    ConsumerProtocolSubscription,
    topics=st.lists(st.text(max_size=4), max_size=3),
    user_data=st.none() | st.binary(max_size=5),
    owned_partitions=st.lists(
        st.builds(Owned, topic=st.text(max_size=3), partitions=st.lists(st.integers(-1, 9))),
        max_size=3,
    ),
    generation_id=st.integers(-1, 2**31 - 1),
    rack_id=st.none() | st.text(max_size=3),
)
ASSIGNMENTS = st.builds(
    ConsumerProtocolAssignment,
    assigned_partitions=st.lists(
        st.builds(Assigned, topic=st.text(max_size=3), partitions=st.lists(st.integers(-1, 9))),
        max_size=3,
    ),
    user_data=st.none() | st.binary(max_size=5),
)


def check_each_truncation(message: M, version: int, decode: Callable[[bytes], M]) -> None:
    whole = version.to_bytes(2) + message.encode(version)
    ends = end_of_each_field(message, version)
    assert max(ends.values()) == len(whole)
    for size in range(1, len(whole)):
        if size not in ends.values():
            with pytest.raises(DecodeError):
                decode(whole[:size])
            continue
        expected = decode(whole)
        for field, end in ends.items():
            if end > size:
                setattr(expected, field, getattr(type(message)(), field))
        assert decode(whole[:size]) == expected


@given(SUBSCRIPTIONS, st.sampled_from(ConsumerProtocolSubscription.VALID_VERSIONS))
def test_subscription_may_end_before_a_field_and_not_inside_one(
    subscription: ConsumerProtocolSubscription, version: int
) -> None:
    check_each_truncation(subscription, version, decode_subscription)


@given(ASSIGNMENTS, st.sampled_from(ConsumerProtocolAssignment.VALID_VERSIONS))
def test_assignment_may_end_before_its_user_data_and_not_inside_a_field(
    assignment: ConsumerProtocolAssignment, version: int
) -> None:
    check_each_truncation(assignment, version, decode_assignment)


def test_version_1_without_owned_partitions_is_read_as_version_0() -> None:
    data = b"\0\1" + encode_subscription(SUBSCRIPTION, 0)[2:]
    assert decode_subscription(data) == decode_subscription(encode_subscription(SUBSCRIPTION, 0))
    with pytest.raises(DecodeError, match="owned_partitions"):
        decode_subscription(data, may_end_early=False)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_raise_decode_error(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with suppress(DecodeError):
            decode(data)
