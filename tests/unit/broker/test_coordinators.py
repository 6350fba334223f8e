"""Tests the hash, the partition and the coordinator of a key; the hashes are those of Java."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.coordinators import (
    CoordinatorType,
    InternalTopicCoordinators,
    check_share_key,
    java_hash,
    partition_of,
)
from kproto.broker.leader_and_isr import NO_LEADER, LeaderAndIsr
from kproto.broker.leader_election import after_broker_stop


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99_162_322),
        ("Hello, World", -505_841_268),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1_772_899),
    ],
)
def test_the_hash_is_that_of_java(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_partition_is_not_negative() -> None:
    assert partition_of("hello", 50) == 22
    assert partition_of("Hello, World", 50) == 18
    assert partition_of("polygenelubricants", 50) == 0, "Kafka's abs of the least int32"


def test_internal_topics_are_placed_once_each_and_led_as_others() -> None:
    placed: list[int] = []

    def place(count: int) -> list[LeaderAndIsr]:
        placed.append(count)
        return [LeaderAndIsr((1, 2), 1, (1, 2)) for _ in range(count)]

    coordinators = InternalTopicCoordinators(place)
    assert [coordinators.of(CoordinatorType.SHARE, key) for key in "abc"] == [1, 1, 1]
    assert placed == [50]
    coordinators.change(lambda leader_and_isr: after_broker_stop(leader_and_isr, 1, {2}))
    assert coordinators.of(CoordinatorType.SHARE, "a") == 2
    assert coordinators.of(CoordinatorType.TRANSACTION, "a") == 1
    assert placed == [50, 50]
    coordinators.change(lambda leader_and_isr: after_broker_stop(leader_and_isr, 2, set()))
    assert coordinators.of(CoordinatorType.SHARE, "a") == NO_LEADER


def test_invalid_keys_of_share_partitions_are_rejected() -> None:
    check_share_key("g:AAAAAAAAAAAAAAAAAAAAAQ:0")
    for key in (
        "",
        "g",
        "g:AAAAAAAAAAAAAAAAAAAAAQ",
        "g:x:0",
        ":AAAAAAAAAAAAAAAAAAAAAQ:0",
        "a:b:c:d",
    ):
        with pytest.raises(BrokerResponseError, match="INVALID_REQUEST"):
            check_share_key(key)
    with pytest.raises(BrokerResponseError, match="INVALID_REQUEST"):
        check_share_key("g:AAAAAAAAAAAAAAAAAAAAAQ:x")
