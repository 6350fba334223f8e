"""Tests that a key gets the partition that Kafka's Java client chooses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.producer.partitioner import murmur2, partition_of_key

# Results of org.apache.kafka.common.utils.Utils.murmur2 in kafka-clients 4.4.0.
JAVA = {
    b"": 275646681,
    b"a": -1563381124,
    b"ab": 316155434,
    b"abc": 479470107,
    b"abcd": -1323649548,
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "é€😀".encode(): -232818566,
    b"key-1234567": -1390243544,
    bytes(range(256)): -1948347274,
}


def signed(hashed: int) -> int:
    return hashed - (1 << 32) if hashed >> 31 else hashed


@pytest.mark.parametrize("key", JAVA, ids=repr)
def test_murmur2_equals_java(key: bytes) -> None:
    assert signed(murmur2(key)) == JAVA[key]


def test_murmur2_of_ten_thousand_keys_equals_java() -> None:
    """Compares one sum of the hashes of `key-0` to `key-9999` with that of Java.

    For each hash: sum = sum * 31 + hash, as a Java long.
    """
    folded = 0
    for number in range(10_000):
        folded = (folded * 31 + signed(murmur2(b"key-%d" % number))) & 0xFFFFFFFFFFFFFFFF
    assert folded - (1 << 64) == -6834933878394171568


# Utils.toPositive(Utils.murmur2(key)) % 6 of kafka-clients 4.4.0 for key-0, key-1, …;
# Kafka's BuiltInPartitioner computes the same.
JAVA_PARTITIONS = [1, 0, 2, 5, 3, 2, 2, 1, 1, 3, 2, 1, 2, 1, 4, 3, 1, 0, 5, 0, 1, 3, 1, 2]


def test_partition_of_a_key_equals_java() -> None:
    found = [partition_of_key(b"key-%d" % at, range(6)) for at in range(len(JAVA_PARTITIONS))]
    assert found == JAVA_PARTITIONS


@given(key=st.binary(max_size=400), count=st.integers(1, 50))
def test_partition_of_any_key_is_its_hash_modulo_the_count(key: bytes, count: int) -> None:
    wanted = (murmur2(key) & 0x7FFFFFFF) % count
    assert partition_of_key(key, range(count)) == wanted
    assert partition_of_key(bytearray(key), range(count)) == wanted  # type: ignore[arg-type]  # users pass it, too


def test_large_keys_are_not_cached() -> None:
    """A cache of 16,384 keys of a megabyte each would take 16 GB."""
    from kproto.client.producer import partitioner

    partitioner._positive_hash.cache_clear()
    partition_of_key(bytes(partitioner.REMEMBERED_KEY_BYTES + 1), range(6))
    assert partitioner._positive_hash.cache_info().currsize == 0
    partition_of_key(bytes(partitioner.REMEMBERED_KEY_BYTES), range(6))
    assert partitioner._positive_hash.cache_info().currsize == 1
