"""Tests that strings, bytes, arrays and tags round-trip, in compact and in old encodings."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, cast

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kproto.wire import reading, writing
from kproto.wire.faults import READ_FAULTS, WRITE_FAULTS, WireFault
from kproto.wire.limits import MAX_ARRAY_ELEMENTS, MAX_STRING_BYTES, MAX_TAG, MAX_TAGGED_FIELDS
from kproto.wire.tags import RawTaggedField
from kproto.wire.uuid import Uuid

TEXT = st.text(max_size=300)
OCTETS = st.binary(max_size=300)

#: Each kind of value: its writer, its reader, and its strategy.
FORMS: dict[str, tuple[Any, Any, st.SearchStrategy[Any]]] = {
    "string": (writing.write_string, reading.read_string, TEXT),
    "nullable string": (
        writing.write_nullable_string,
        reading.read_nullable_string,
        st.none() | TEXT,
    ),
    "compact string": (writing.write_compact_string, reading.read_compact_string, TEXT),
    "compact nullable string": (
        writing.write_compact_nullable_string,
        reading.read_compact_nullable_string,
        st.none() | TEXT,
    ),
    "bytes": (writing.write_bytes, reading.read_bytes, OCTETS),
    "nullable bytes": (
        writing.write_nullable_bytes,
        reading.read_nullable_bytes,
        st.none() | OCTETS,
    ),
    "compact bytes": (writing.write_compact_bytes, reading.read_compact_bytes, OCTETS),
    "compact nullable bytes": (
        writing.write_compact_nullable_bytes,
        reading.read_compact_nullable_bytes,
        st.none() | OCTETS,
    ),
}


def written(write: Callable[..., None], *arguments: object) -> bytes:
    pieces: list[bytes] = []
    write(pieces.append, *arguments)
    return b"".join(pieces)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_a_value_round_trips_between_other_bytes(form: str, data: st.DataObject) -> None:
    write, read, values = FORMS[form]
    value = data.draw(values)
    raw = written(write, value)
    assert read(b"abc" + raw + b"xyz", 3) == (value, 3 + len(raw))


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_a_truncated_value_is_a_fault_or_ends_beyond_the_data(
    form: str, data: st.DataObject
) -> None:
    write, read, values = FORMS[form]
    raw = written(write, data.draw(values))
    cut = raw[: data.draw(st.integers(min_value=0, max_value=len(raw) - 1))]
    try:
        _, end = read(cut, 0)
    except READ_FAULTS:
        return
    assert end > len(cut)


@pytest.mark.parametrize(
    ("form", "null"),
    [
        ("nullable string", "ffff"),
        ("compact nullable string", "00"),
        ("nullable bytes", "ffffffff"),
        ("compact nullable bytes", "00"),
    ],
)
def test_null_has_one_encoding_and_is_refused_if_not_allowed(form: str, null: str) -> None:
    write, read, _ = FORMS[form]
    assert written(write, None).hex() == null
    assert read(bytes.fromhex(null), 0) == (None, len(null) // 2)
    plain_write, plain_read, _ = FORMS[form.replace("nullable ", "")]
    with pytest.raises(WRITE_FAULTS):
        written(plain_write, None)
    with pytest.raises(WireFault):
        plain_read(bytes.fromhex(null), 0)


@pytest.mark.parametrize("form", [form for form in FORMS if "string" in form])
def test_the_length_of_strings_is_limited(form: str) -> None:
    write, read, _ = FORMS[form]
    longest = "x" * MAX_STRING_BYTES
    assert read(written(write, longest), 0)[0] == longest
    with pytest.raises(WRITE_FAULTS):
        written(write, longest + "x")
    if "compact" in form:
        with pytest.raises(WireFault):
            read(writing.uvarint(MAX_STRING_BYTES + 2) + b"x" * (MAX_STRING_BYTES + 1), 0)


@pytest.mark.parametrize("form", [form for form in FORMS if "string" in form])
@pytest.mark.parametrize("value", ["\ud800", b"bytes", 5])
def test_other_objects_than_text_are_not_written(form: str, value: object) -> None:
    with pytest.raises(WRITE_FAULTS):
        written(FORMS[form][0], value)


@pytest.mark.parametrize("size", [126, 127, 128, 16382, 16383, 16384])
def test_lengths_round_trip_at_varint_limits(size: int) -> None:
    for form in ("compact string", "compact bytes"):
        write, read, _ = FORMS[form]
        value: object = "x" * size if form == "compact string" else b"x" * size
        raw = written(write, value)
        assert read(raw, 0) == (value, len(raw))
        assert len(raw) == size + (1 if size < 127 else 2 if size < 16383 else 3)


@pytest.mark.parametrize(
    ("read", "length", "size"),
    [
        (reading.read_array_length, "00000002", 2),
        (reading.read_nullable_array_length, "00000002", 2),
        (reading.read_nullable_array_length, "ffffffff", -1),
        (reading.read_compact_array_length, "03", 2),
        (reading.read_compact_nullable_array_length, "03", 2),
        (reading.read_compact_nullable_array_length, "00", -1),
        (reading.read_compact_nullable_array_length, "8000", -1),
    ],
)
def test_array_lengths_are_read(
    read: Callable[[bytes, int], tuple[int, int]], length: str, size: int
) -> None:
    raw = bytes.fromhex(length)
    assert read(raw + b"ab", 0) == (size, len(raw))


@pytest.mark.parametrize(
    ("read", "length"),
    [
        (reading.read_array_length, "00000003"),
        (reading.read_array_length, "ffffffff"),
        (reading.read_array_length, "7fffffff"),
        (reading.read_nullable_array_length, "00000003"),
        (reading.read_nullable_array_length, "fffffffe"),
        (reading.read_compact_array_length, "04"),
        (reading.read_compact_array_length, "00"),
        (reading.read_compact_array_length, "ffffffff0f"),
        (reading.read_compact_nullable_array_length, "04"),
        (reading.read_compact_nullable_array_length, "ffffffff0f"),
    ],
)
def test_array_lengths_beyond_the_data_are_refused(
    read: Callable[[bytes, int], tuple[int, int]], length: str
) -> None:
    with pytest.raises(WireFault):
        read(bytes.fromhex(length) + b"ab", 0)


def test_the_number_of_elements_is_limited() -> None:
    data = MAX_ARRAY_ELEMENTS.to_bytes(4, "big") + bytes(MAX_ARRAY_ELEMENTS + 1)
    assert reading.read_array_length(data, 0) == (MAX_ARRAY_ELEMENTS, 4)
    data = (MAX_ARRAY_ELEMENTS + 1).to_bytes(4, "big") + bytes(MAX_ARRAY_ELEMENTS + 1)
    with pytest.raises(WireFault):
        reading.read_array_length(data, 0)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 1000])
@pytest.mark.parametrize(("letter", "size"), [("b", 1), ("h", 2), ("i", 4), ("q", 8), ("I", 4)])
def test_any_count_of_numbers_round_trips(count: int, letter: str, size: int) -> None:
    values = [number % 128 for number in range(count)]
    raw = written(writing.write_numbers, values, letter)
    assert len(raw) == count * size
    assert reading.read_numbers(b"x" + raw, 1, count, letter) == (values, 1 + len(raw))


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=20))
def test_uuids_round_trip(values: list[bytes]) -> None:
    raw = written(writing.write_uuids, values)
    read, end = reading.read_uuids(raw, 0, len(values))
    assert (read, end) == (values, len(raw))
    assert all(type(value) is Uuid for value in read)
    with pytest.raises(WireFault):
        reading.read_uuids(raw, 0, len(values) + 1)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_uuids_have_16_bytes(size: int) -> None:
    with pytest.raises(WireFault):
        written(writing.write_uuids, [bytes(size)])


@given(st.lists(TEXT, max_size=10))
def test_arrays_of_strings_round_trip(values: list[str]) -> None:
    for write, read in (
        (writing.write_strings, reading.read_strings),
        (writing.write_compact_strings, reading.read_compact_strings),
    ):
        raw = written(write, values)
        assert read(raw, 0, len(values)) == (values, len(raw))


def test_one_string_is_not_an_array_of_strings() -> None:
    for write in (writing.write_strings, writing.write_compact_strings):
        with pytest.raises(WireFault):
            written(write, "text")


@pytest.mark.parametrize(
    ("mark", "present"), [("00", False), ("01", True), ("8001", True), ("ffffffff0f", False)]
)
def test_the_null_mark_of_a_tagged_struct_is_read(mark: str, present: bool) -> None:
    data = bytes.fromhex(mark)
    assert reading.read_struct_mark(data, 0) == (present, len(data))


TAGS = st.dictionaries(st.integers(min_value=0, max_value=MAX_TAG), OCTETS, max_size=8).map(
    lambda fields: [RawTaggedField(tag, fields[tag]) for tag in sorted(fields)]
)


@given(TAGS, st.randoms())
def test_tags_are_written_in_order_of_their_numbers(
    fields: list[RawTaggedField], source: Any
) -> None:
    mixed = list(fields)
    source.shuffle(mixed)
    raw = written(writing.write_tags, [], mixed)
    assert reading.read_unknown_tags(raw, 0) == (fields or None, len(raw))
    tags, end = reading.read_tags(raw, 0)
    assert end == len(raw)
    assert [RawTaggedField(tag, raw[at:stop]) for tag, at, stop in tags] == fields


@given(TAGS)
def test_known_and_unknown_tags_are_merged(fields: list[RawTaggedField]) -> None:
    known, unknown = fields[::2], fields[1::2]
    numbers = tuple(field.tag for field in known)
    raw = written(writing.write_tags, known, unknown, numbers)
    assert raw == written(writing.write_tags, [], fields)


def test_an_unknown_tag_may_not_take_a_known_number() -> None:
    # The tag stays reserved even if the known field is at its default and is not written.
    for fields in ([], [RawTaggedField(3, b"a")]):
        with pytest.raises(WireFault):
            written(writing.write_tags, fields, [RawTaggedField(3, b"b")], (3,))
    with pytest.raises(WireFault):
        written(writing.write_tags, [], [RawTaggedField(3, b"a"), RawTaggedField(3, b"b")])


def test_the_number_of_tags_is_limited() -> None:
    fields = [RawTaggedField(tag, b"") for tag in range(MAX_TAGGED_FIELDS)]
    assert len(reading.read_tags(written(writing.write_tags, fields, None), 0)[0]) == len(fields)
    fields.append(RawTaggedField(MAX_TAGGED_FIELDS, b""))
    with pytest.raises(WireFault):
        reading.read_tags(written(writing.write_tags, fields, None), 0)


def test_the_tag_number_is_limited() -> None:
    highest, above = [RawTaggedField(MAX_TAG, b"")], [RawTaggedField(MAX_TAG + 1, b"")]
    raw = written(writing.write_tags, [], highest)
    assert reading.read_unknown_tags(raw, 0) == (highest, len(raw))
    with pytest.raises(WireFault):
        written(writing.write_tags, [], above)
    with pytest.raises(WireFault):
        reading.read_tags(b"\1" + writing.uvarint(MAX_TAG + 1) + b"\0", 0)


def test_an_array_must_have_its_reported_length() -> None:
    class WrongLength(list[int]):
        def __len__(self) -> int:
            return 1

    assert list(writing.elements(WrongLength([5]))) == [5]
    for wrong in (WrongLength(), WrongLength([5, 6])):
        with pytest.raises(WireFault):
            writing.elements(wrong)
    with pytest.raises(WireFault):
        writing.elements({5: "a", 6: "b"})
    for right in ([5, 6], (5, 6), range(5, 7), {5: "a", 6: "b"}.keys()):
        assert list(writing.elements(right)) == [5, 6]


def test_a_bool_field_accepts_only_booleans_and_equal_integers() -> None:
    assert [writing.BOOLS[value] for value in cast("list[bool]", [False, True, 0, 1])] == [
        False,
        True,
        False,
        True,
    ]
    assert not {2, -1, None, "", "yes"} & writing.BOOLS.keys()


def test_any_buffer_of_16_bytes_is_a_uuid() -> None:
    for value in (Uuid(b"a" * 16), b"a" * 16, bytearray(b"a" * 16), memoryview(b"a" * 16)):
        assert writing.uuid_bytes(value) == b"a" * 16
    for wrong in (b"a" * 15, Uuid(b"a" * 17), array("i", range(16))):
        with pytest.raises(WireFault):
            writing.uuid_bytes(wrong)
    with pytest.raises(TypeError):
        writing.uuid_bytes("a" * 16)


@given(st.binary(max_size=40))
def test_any_bytes_are_tags_or_a_fault(data: bytes) -> None:
    try:
        tags, end = reading.read_tags(data, 0)
    except READ_FAULTS:
        return
    assert end <= len(data)
    numbers = [tag for tag, _, _ in tags]
    assert numbers == sorted(set(numbers))
    assert all(0 < start <= stop <= end for _, start, stop in tags)
