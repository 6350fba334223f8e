"""Tests the hash and the partition of a key; the hashes are those of Java."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.coordinators import check_share_key, java_hash, partition_of


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
