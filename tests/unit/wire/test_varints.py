"""Tests unsigned 32-bit varints: encodings, numbers out of range, and broken varints."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from kproto.wire.faults import READ_FAULTS, WRITE_FAULTS, WireFault
from kproto.wire.reading import read_uvarint
from kproto.wire.writing import UVARINT, uvarint

NUMBERS = st.integers(min_value=0, max_value=2**32 - 1)


@given(NUMBERS, st.binary(max_size=3), st.binary(max_size=3))
@example(127, b"", b"")
@example(128, b"", b"")
@example(2**14 - 1, b"", b"")
@example(2**14, b"", b"")
@example(2**28 - 1, b"", b"")
@example(2**28, b"", b"")
@example(2**32 - 1, b"", b"")
def test_a_number_round_trips_between_other_bytes(number: int, before: bytes, after: bytes) -> None:
    written = uvarint(number)
    assert read_uvarint(before + written + after, len(before)) == (
        number,
        len(before) + len(written),
    )


@given(NUMBERS)
def test_the_shortest_form_is_written(number: int) -> None:
    assert len(uvarint(number)) == max(1, (number.bit_length() + 6) // 7)


@pytest.mark.parametrize(
    ("number", "written"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_known_numbers_have_their_encoding(number: int, written: str) -> None:
    assert uvarint(number).hex() == written


@pytest.mark.parametrize("number", [-1, -128, -129, 2**32, 2**40])
def test_numbers_outside_32_bits_are_not_written(number: int) -> None:
    with pytest.raises(WireFault):
        uvarint(number)


@pytest.mark.parametrize("number", [1.5, None, "1"])
def test_other_objects_than_numbers_are_not_written(number: int) -> None:
    with pytest.raises(WRITE_FAULTS):
        uvarint(number)


@given(NUMBERS, st.integers(min_value=1, max_value=4))
def test_overlong_encodings_are_read(number: int, more: int) -> None:
    written = uvarint(number)
    more = min(more, 5 - len(written))
    if more:
        written = written[:-1] + bytes([written[-1] | 0x80]) + b"\x80" * (more - 1) + b"\0"
    assert read_uvarint(written, 0) == (number, len(written))


@given(st.binary(max_size=8), st.integers(min_value=0, max_value=8))
def test_any_bytes_are_a_32_bit_number_or_a_fault(data: bytes, at: int) -> None:
    try:
        number, end = read_uvarint(data, at)
    except READ_FAULTS:
        unended = all(byte > 127 for byte in data[at : at + 5])
        assert unended
    else:
        assert 0 <= number < 2**32
        assert at < end <= min(len(data), at + 5)


def test_a_sixth_byte_is_not_read() -> None:
    with pytest.raises(WireFault):
        read_uvarint(b"\x80\x80\x80\x80\x80\x00", 0)


def test_the_table_has_the_numbers_of_one_byte() -> None:
    assert [read_uvarint(written, 0) for written in UVARINT] == [(n, 1) for n in range(128)]
