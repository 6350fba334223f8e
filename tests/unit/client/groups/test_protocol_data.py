"""Tests the encoding of subscriptions and assignments.

The tests use the bytes that Kafka wrote, random data, newer versions, and malformed bytes.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.groups.assignors.subscriptions import Subscription, java_sorted
from kproto.client.groups.protocol_data import (
    assignment_bytes,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from kproto.client.metadata.cluster import TopicPartition
from kproto.wire.errors import DecodeError

from .golden_data import ASSIGNMENTS, SUBSCRIPTIONS

NEWEST = 3


@pytest.mark.parametrize(("version", "subscription", "data"), SUBSCRIPTIONS)
def test_subscription_is_read_in_any_version(
    version: int, subscription: Subscription, data: str
) -> None:
    read = read_subscription(bytes.fromhex(data), "i")
    assert read.topics == tuple(sorted(subscription.topics))
    assert read.user_data == subscription.user_data
    assert read.owned == (sorted(subscription.owned) if version >= 1 else [])
    assert read.generation == (subscription.generation if version >= 2 else -1)
    assert read.rack == (subscription.rack if version >= 3 else None)
    assert read.instance_id == "i"


@pytest.mark.parametrize(
    ("subscription", "data"),
    [(subscription, data) for version, subscription, data in SUBSCRIPTIONS if version == NEWEST],
)
def test_subscription_is_written_in_the_newest_version(
    subscription: Subscription, data: str
) -> None:
    assert subscription_bytes(subscription).hex() == data


@pytest.mark.parametrize(("version", "tps", "data"), ASSIGNMENTS)
def test_assignment_is_read_in_any_version(
    version: int, tps: list[TopicPartition], data: str
) -> None:
    assert sorted(read_assignment(bytes.fromhex(data))) == sorted(tps)
    if version == NEWEST:
        assert assignment_bytes(tps).hex() == data


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
tps = st.lists(st.tuples(names, st.integers(0, 2**31 - 1)), unique=True, max_size=8)


@given(
    st.lists(names, unique=True, max_size=5),
    tps,
    st.integers(-1, 2**31 - 1),
    st.none() | names,
    st.none() | st.binary(max_size=9),
)
def test_subscription_survives_a_round_trip(
    topics: list[str],
    owned: list[TopicPartition],
    generation: int,
    rack: str | None,
    user_data: bytes | None,
) -> None:
    subscription = Subscription(tuple(topics), owned, generation, rack, None, user_data)
    read = read_subscription(subscription_bytes(subscription))
    sorted_members = [
        tp
        for topic in java_sorted({name for name, _ in owned})
        for tp in sorted(each for each in owned if each[0] == topic)
    ]
    assert read == subscription._replace(topics=tuple(java_sorted(topics)), owned=sorted_members)


@given(tps)
def test_assignment_survives_a_round_trip(given: list[TopicPartition]) -> None:
    assert sorted(read_assignment(assignment_bytes(given))) == sorted(given)


@given(st.integers(4, 0x7FFF), st.binary(max_size=20))
def test_fields_of_newer_versions_are_ignored(version: int, more: bytes) -> None:
    for newest, subscription, data in SUBSCRIPTIONS:
        if newest == NEWEST:
            newer = version.to_bytes(2) + bytes.fromhex(data)[2:] + more
            assert read_subscription(newer) == read_subscription(bytes.fromhex(data))
            assert read_subscription(newer).user_data == subscription.user_data
    for newest, its, data in ASSIGNMENTS:
        if newest == NEWEST:
            newer = version.to_bytes(2) + bytes.fromhex(data)[2:] + more
            assert sorted(read_assignment(newer)) == sorted(its)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_raise_decode_error(data: bytes) -> None:
    for read in (read_subscription, read_assignment):
        with suppress(DecodeError):
            read(data)


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\3", b"\0\0\0\0\0\1"])
def test_malformed_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="ConsumerProtocolSubscription"):
        read_subscription(data)


def test_duplicate_partition_is_read_once() -> None:
    data = assignment_bytes([("t", 1), ("t", 1), ("u", 0)])
    assert read_assignment(data) == [("t", 1), ("u", 0)]


def test_empty_bytes_are_an_empty_assignment() -> None:
    """If the leader's SyncGroup omits a member, as some clients do, the member gets empty bytes."""
    assert read_assignment(b"") == []
