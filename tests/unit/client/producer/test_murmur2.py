"""Compares hashes of many keys at once with hashes of single keys, which equal Java's hashes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.producer.murmur2 import murmur2, murmur2_of_keys
from tests.unit.client.producer.test_partitioner import JAVA


@given(st.lists(st.binary(max_size=80), max_size=60))
def test_many_keys_have_the_hashes_of_single_ones(keys: list[bytes]) -> None:
    assert murmur2_of_keys(keys) == [murmur2(key) for key in keys]


@pytest.mark.parametrize("length", range(70))
def test_each_length(length: int) -> None:
    chance = random.Random(length)
    keys = [chance.randbytes(length) for _ in range(300)]
    keys += [bytes(length), b"\xff" * length]
    assert murmur2_of_keys(keys) == [murmur2(key) for key in keys]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 2_048, 5_000])
def test_each_number_of_keys(count: int) -> None:
    chance = random.Random(count)
    keys = [chance.randbytes(chance.randrange(12, 20)) for _ in range(count)]
    assert murmur2_of_keys(keys) == [murmur2(key) for key in keys]


def test_lanes_equal_java() -> None:
    """Hashes 20 equal keys in one call: keys of equal length are hashed together, in lanes."""
    for key, hashed in JAVA.items():
        found = murmur2_of_keys([key] * 20)
        assert {each - (1 << 32) if each >> 31 else each for each in found} == {hashed}
