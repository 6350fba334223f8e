"""Tests which objects are accepted as bytes, and the errors for other objects."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from kproto.wire.buffers import octets, octets_of_record

WIDE = memoryview(bytearray(b"\x01\x00\x02\x00")).cast("H")
EVERY_SECOND = memoryview(b"a-b-c")[::2]


def released() -> memoryview:
    view = memoryview(b"gone")
    view.release()
    return view


@pytest.mark.parametrize("convert", [octets, octets_of_record])
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b"plain", b"plain"),
        (bytearray(b"array"), b"array"),
        (memoryview(b"view"), b"view"),
        (WIDE, b"\x01\x00\x02\x00"),
        (EVERY_SECOND, b"abc"),
        (memoryview(b""), b""),
    ],
)
def test_buffers_of_any_item_type_become_bytes(
    convert: Callable[[Any], bytes], value: Any, wanted: bytes
) -> None:
    found = convert(value)
    assert found == wanted
    assert type(found) is bytes


def test_mutable_buffers_are_copied() -> None:
    for convert in (octets, octets_of_record):
        value = bytearray(b"before")
        found = convert(value)
        value[:] = b"behind"
        assert found == b"before"


def test_other_buffers_are_refused_in_records() -> None:
    value = array("B", b"abc")
    assert octets(value) == b"abc"
    with pytest.raises(TypeError, match=r"^bytes are wanted, not array$"):
        octets_of_record(value)


@pytest.mark.parametrize("convert", [octets, octets_of_record])
@pytest.mark.parametrize("value", ["text", 5, [1, 2], None, True, 1.5])
def test_other_objects_than_buffers_are_named(convert: Callable[[Any], bytes], value: Any) -> None:
    with pytest.raises(TypeError, match=f"^bytes are wanted, not {type(value).__name__}$"):
        convert(value)


@pytest.mark.parametrize("convert", [octets, octets_of_record])
def test_a_released_view_is_refused(convert: Callable[[Any], bytes]) -> None:
    with pytest.raises(ValueError, match=r"^bytes are wanted, not memoryview \(.*released"):
        convert(released())
