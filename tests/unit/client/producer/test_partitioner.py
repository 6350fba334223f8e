"""Tests that a key gets the partition that Kafka's Java client chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.metadata.cluster import PartitionInfo, TopicInfo
from kproto.client.producer import partitioner
from kproto.client.producer.murmur2 import murmur2
from kproto.client.producer.partitioner import fnv1a, make_partitioner, partition_of_key
from kproto.wire.uuid import ZERO_UUID

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
    """Compares one sum of the hashes of `key-0` to `key-9999` with Java's sum.

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
    partitioner._positive_hash.cache_clear()
    partition_of_key(bytes(partitioner.REMEMBERED_KEY_BYTES + 1), range(6))
    assert partitioner._positive_hash.cache_info().currsize == 0
    partition_of_key(bytes(partitioner.REMEMBERED_KEY_BYTES), range(6))
    assert partitioner._positive_hash.cache_info().currsize == 1


# --- The partitioners of librdkafka ---

#: The partitions of key-0, key-1, … of six partitions, and those of `KEYS` of 1,000,003: results of
#: rd_kafka_msg_partitioner_consistent, _murmur2 and _fnv1a of librdkafka 2.16.
LIBRDKAFKA = {
    "consistent": [0, 2, 0, 2, 1, 3, 5, 5, 0, 2, 0, 4, 2, 0, 3, 3, 3, 3, 2, 0, 1, 3, 1, 3],
    "murmur2": JAVA_PARTITIONS,
    "fnv1a": [3, 4, 5, 0, 5, 0, 1, 2, 1, 2, 2, 3, 0, 1, 4, 5, 2, 3, 4, 5, 5, 0, 1, 2],
}
KEYS = (b"", b"a", b"kafka", b"giberish123456789", bytes(range(256)))
LIBRDKAFKA_OF_MANY = {
    "consistent": [0, 344195, 72782, 428870, 227427],
    "murmur2": [645856, 100772, 976536, 239049, 135777],
    "fnv1a": [824651, 963672, 495882, 329552, 271959],
}

#: The hashes in the unit test of librdkafka (rdfnv1a.c), which are those of Sarama.
SARAMA = {
    b"kafka": 0xD33C4E1,
    b"giberish123456789": 0x77A58295,
    b"1234": 0x23BDD03,
    b"234": 0x2DEA3CD2,
    b"34": 0x740FA83E,
    b"4": 0x310CA263,
    b"PreAmbleWillBeRemoved,ThePrePartThatIs": 0x65CBD69C,
    b"": 0x7EE3623B,
}


def topic_of(count: int, *, without_leader: Sequence[int] = ()) -> TopicInfo:
    partitions = {
        at: PartitionInfo(at, -1 if at in without_leader else 1, 0, (1,), (1,))
        for at in range(count)
    }
    return TopicInfo("t", ZERO_UUID, partitions)


@pytest.mark.parametrize("key", SARAMA, ids=repr)
def test_fnv1a_equals_librdkafka(key: bytes) -> None:
    assert fnv1a(key) == SARAMA[key]


@pytest.mark.parametrize("suffix", ["", "_random"])
@pytest.mark.parametrize("name", LIBRDKAFKA)
def test_partitions_of_keys_equal_librdkafka(name: Any, suffix: str) -> None:
    made = make_partitioner(topic_of(6), {}, name + suffix)
    assert [made.partition_of(b"key-%d" % at) for at in range(24)] == LIBRDKAFKA[name]
    assert not made.is_per_record


@pytest.mark.parametrize("name", LIBRDKAFKA)
def test_partitions_of_many_equal_librdkafka(name: Any) -> None:
    of_key = partitioner._NAMED[name].partition_of_key
    assert of_key is not None
    found = [of_key(key, range(1_000_003)) for key in (*KEYS, *KEYS)]
    assert found == LIBRDKAFKA_OF_MANY[name] * 2
    large = bytes(partitioner.REMEMBERED_KEY_BYTES + 1)
    assert of_key(large, range(1_000_003)) == of_key(large, range(1_000_003))


@pytest.mark.parametrize("name", LIBRDKAFKA)
def test_missing_key_is_hashed_as_an_empty_key(name: Any) -> None:
    """librdkafka documents that all records without a key go to one partition."""
    made = make_partitioner(topic_of(6), {"t": 3}, name)
    assert made.partition_of(None) == made.partition_of(b"")
    assert made.partition_of(b"") == make_partitioner(topic_of(6), {}, name).partition_of(b"")


@pytest.mark.parametrize("name", ["consistent_random", "murmur2_random", "fnv1a_random"])
def test_records_without_a_key_go_to_the_sticky_partition(name: Any) -> None:
    moves = {"t": 0}
    made = make_partitioner(topic_of(3, without_leader=[1]), moves, name)
    found = []
    for moves["t"] in range(4):
        found.append(made.partition_of(None))
        assert (made.partition_of(b"") == found[-1]) or name != "consistent_random"
    assert found == [0, 2, 0, 2]


def test_empty_key_is_hashed_unless_the_partitioner_is_consistent_random() -> None:
    names: list[Any] = ["murmur2_random", "fnv1a_random"]
    for name in names:
        made = [make_partitioner(topic_of(7), {"t": at}, name) for at in range(7)]
        assert len({each.partition_of(b"") for each in made}) == 1


def test_random_partitions_have_a_leader() -> None:
    made = make_partitioner(topic_of(4, without_leader=[2]), {}, "random")
    assert {made.partition_of(key) for key in [b"k", None] * 200} == {0, 1, 3}
    assert made.is_per_record
