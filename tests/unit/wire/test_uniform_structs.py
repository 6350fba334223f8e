"""Tests that consecutive structs with equal layouts are recognized, and other structs are not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.wire.uniform_structs import UniformStructs

#: An int16, an array of int32, an int8, an array of int64, and a bool after it.
PARTS = ("h", "i", "b", "q", "?")


def written(first: int, ints: list[int], byte: int, longs: list[int], tags: bytes = b"\0") -> bytes:
    """Returns an encoded struct with these fields."""
    return b"".join(
        [
            struct.pack(">h", first),
            struct.pack(f">B{len(ints)}i", len(ints) + 1, *ints),
            struct.pack(">b", byte),
            struct.pack(f">B{len(longs)}q", len(longs) + 1, *longs),
            b"\1",
            tags,
        ]
    )


NUMBERS = st.integers(-128, 127)


@given(
    st.integers(0, 126).flatmap(lambda n: st.lists(NUMBERS, min_size=n, max_size=n)),
    st.lists(NUMBERS, max_size=3),
    st.integers(1, 9),
    st.binary(max_size=3),
)
def test_uniform_structs_have_one_shape(
    ints: list[int], longs: list[int], count: int, around: bytes
) -> None:
    data = around + b"".join(written(n, ints, -n, longs) for n in range(count)) + around
    shape = UniformStructs(*PARTS).of(data, len(around), count)
    assert shape is not None
    end = len(around) + shape.size * count
    assert end == len(data) - len(around)
    for n, fields in enumerate(shape.iter_unpack(data[len(around) : end])):
        first, packed, byte, more, last = fields
        assert (first, byte, last) == (n, -n, True)
        assert [*struct.unpack(f">{len(ints)}i", packed)] == ints
        assert [*struct.unpack(f">{len(longs)}q", more)] == longs


STRUCT = written(1, [2, 3], 4, [5])


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize(
    "other",
    [
        written(1, [2], 4, [5]),
        written(1, [2, 3], 4, []),
        written(1, [2, 3, 4], 4, [5]),
        # The size is equal, but the shape differs.
        written(1, [2, 3, 0, 0], 4, []),
        written(1, [], 4, [5, 6]),
        written(1, [2, 3], 4, [5], tags=b"\1\0\1x"),
        STRUCT.replace(b"\3", b"\0", 1),
        STRUCT.replace(b"\3", b"\x83\0", 1),
    ],
)
def test_a_different_struct_is_found(other: bytes, at: int) -> None:
    structs = [STRUCT] * 5
    assert UniformStructs(*PARTS).of(b"".join(structs), 0, 5) is not None
    structs[at] = other
    assert UniformStructs(*PARTS).of(b"".join(structs) + bytes(99), 0, 5) is None


def test_missing_bytes_are_found() -> None:
    data = STRUCT * 5
    for end in range(len(data)):
        if end < len(STRUCT) - 2:
            # An IndexError is allowed: the usual reading of the struct then finds the fault.
            try:
                assert UniformStructs(*PARTS).of(data[:end], 0, 5) is None
            except IndexError:
                continue
        else:
            assert UniformStructs(*PARTS).of(data[:end], 0, 5) is None


def test_the_number_of_cached_shapes_is_limited() -> None:
    found = UniformStructs("", "b", "")
    for _ in range(2):
        for count in range(127):
            data = bytes([count + 1]) + bytes(count) + b"\0"
            shape = found.of(data * 2, 0, 2)
            assert shape is not None
            assert shape.size == count + 2
    assert len(found._found) == 64
    # The shape is beyond the limit, and the next struct differs.
    for _ in range(2):
        assert found.of(b"\x7f" + bytes(126) + b"\0\1\0", 0, 2) is None
