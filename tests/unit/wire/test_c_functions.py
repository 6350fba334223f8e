"""Tests the functions that compiled code replaces by C functions, compiled or not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import Record, crc32c_pure
from kproto.wire.c_functions import (
    as_method,
    compact_int32s,
    crc32c_of,
    get_slot,
    has_slots,
    int32s_at,
    list_descriptor,
    new_object,
    new_untracked,
    set_slot,
    track_when_set,
)


class Plain:
    __slots__ = ("b", "a")  # noqa: RUF023 - CPython sorts them

    a: object
    b: object


class Further(Plain):
    __slots__ = ("c",)


class WithDict(Plain):
    pass


class WithWeakReferences(Plain):
    __slots__ = ("__weakref__",)


class WithSize(bytes):
    __slots__ = ()


def test_only_objects_of_slots_have_slots() -> None:
    assert has_slots(Plain)
    assert has_slots(Further)
    assert has_slots(Record)
    assert not has_slots(WithDict)
    assert not has_slots(WithWeakReferences)
    assert not has_slots(WithSize)
    assert not has_slots(object) or object.__basicsize__ == 16


def test_slots_are_set_and_read() -> None:
    made = new_object(Plain)
    assert not hasattr(made, "a")
    set_slot(made, "a", 0, 5)
    set_slot(made, "a", 0, [6])
    assert made.a == [6]
    assert get_slot(made, Plain, "a", 0) == [6]
    with pytest.raises(AttributeError):
        get_slot(made, Plain, "b", 1)


def test_an_untracked_object_has_no_slots_set() -> None:
    track_when_set(Further)
    made = new_untracked(Further)
    assert type(made) is Further
    assert not any(hasattr(made, name) for name in "abc")
    made.a = [made]
    assert made.a == [made]


def test_methods_get_the_object() -> None:
    def name(made: Any) -> str:
        return type(made).__name__

    method: Any = as_method(name)
    assert type("Made", (), {"name": method})().name() == "Made"


numbers = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=130)


@given(numbers)
def test_numbers_are_written_and_read(values: list[int]) -> None:
    encoded = compact_int32s(values)
    if len(values) > 126:
        assert encoded is None
        return
    assert encoded is not None
    assert encoded[0] == len(values) + 1
    assert int32s_at(encoded, 1, len(values)) == values
    with pytest.raises(IndexError):
        int32s_at(encoded, 1, len(values) + 1)
    with pytest.raises(IndexError):
        int32s_at(encoded, 1, -1)


@given(st.binary(max_size=70), st.integers(0, 2**32 - 1))
def test_checksums_are_those_of_the_pure_function(data: bytes, crc: int) -> None:
    assert crc32c_of(data, crc) == crc32c_pure(data, crc)


@pytest.mark.parametrize("value", [None, (1,), b"1", [2**31], [-(2**31) - 1], ["1"], [1.0]])
def test_other_values_are_not_written(value: object) -> None:
    assert compact_int32s(value) is None


def test_a_list_descriptor_replaces_a_property() -> None:
    record = Record(headers=[("a", b"1")])
    made: Any = list_descriptor(Record, "headers", 0, [])
    assert made.__get__(record, Record) == [("a", b"1")]
    made.__set__(record, (("b", b"2"),))
    assert record.headers == [("b", b"2")]
    record._headers = b"\x02\x02c\x023"
    assert made.__get__(record, Record) == [("c", b"3")]
