"""Tests the codecs of bytes, text, numbers, UUIDs and JSON: round trips, Java's forms, faults."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import ConfigurationError, Record
from kproto.codecs import (
    BytesCodec,
    Codec,
    DecodeContext,
    EncodeContext,
    FunctionCodec,
    IntCodec,
    JsonCodec,
    StringCodec,
    UuidCodec,
)

pytestmark = pytest.mark.hypothesis

SENT = EncodeContext("orders", "value")
READ = DecodeContext(Record(topic="orders"), "value")

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@dataclass
class Order:
    number: int
    item: str


def round_trip(codec: Codec[Any], value: object) -> object:
    data = codec.encode(value, SENT)
    assert data is not None
    return codec.decode(data, READ)


@given(st.binary())
def test_bytes_are_left_as_they_are(data: bytes) -> None:
    codec = BytesCodec()
    assert codec.encode(data, SENT) == data == codec.decode(data, READ)


@given(st.text(), st.sampled_from(["utf-8", "utf-16-le"]))
def test_text_is_read_back(text: str, encoding: str) -> None:
    assert round_trip(StringCodec(encoding), text) == text
    assert StringCodec(encoding).encode(text, SENT) == text.encode(encoding)


@given(st.data(), st.sampled_from([2, 4, 8]))
def test_whole_numbers_are_read_back(data: st.DataObject, size: Any) -> None:
    bound = 1 << (8 * size - 1)
    number = data.draw(st.integers(-bound, bound - 1))
    codec = IntCodec(size)
    assert round_trip(codec, number) == number
    assert codec.encode(number, SENT) == number.to_bytes(size, "big", signed=True)


@given(st.uuids(), st.booleans())
def test_uuids_are_read_back(uuid: UUID, binary: bool) -> None:
    assert round_trip(UuidCodec(binary=binary), uuid) == uuid


@given(JSON)
def test_json_is_read_back(value: object) -> None:
    assert round_trip(JsonCodec(), value) == value


@given(st.integers(), st.text())
def test_json_of_a_class_is_read_back(number: int, item: str) -> None:
    codec = JsonCodec(to_json=asdict, from_json=lambda data: Order(**data))
    assert round_trip(codec, Order(number, item)) == Order(number, item)


def test_forms_are_those_of_kafkas_serializers() -> None:
    uuid = UUID("123e4567-e89b-12d3-a456-426614174000")
    assert IntCodec().encode(-2, SENT) == b"\xff\xff\xff\xff\xff\xff\xff\xfe"
    assert IntCodec(4).encode(258, SENT) == b"\x00\x00\x01\x02"
    assert StringCodec().encode("\u00e9", SENT) == b"\xc3\xa9"
    assert UuidCodec().encode(uuid, SENT) == b"123e4567-e89b-12d3-a456-426614174000"
    assert UuidCodec(binary=True).encode(uuid, SENT) == uuid.bytes
    assert JsonCodec().encode({"name": "\u00e9", "of": [1, None]}, SENT) == (
        b'{"name":"\xc3\xa9","of":[1,null]}'
    )


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (BytesCodec(), "text"),
        (StringCodec(), b"bytes"),
        (StringCodec("ascii"), "\u00e9"),
        (IntCodec(), 1 << 63),
        (IntCodec(2), -(1 << 15) - 1),
        (IntCodec(), 1.5),
        (UuidCodec(), "123e4567-e89b-12d3-a456-426614174000"),
        (UuidCodec(binary=True), b"0123456789abcdef"),
        (JsonCodec(), float("nan")),
        (JsonCodec(), b"bytes"),
        (JsonCodec(), "\ud800"),
    ],
)
def test_value_of_another_form_is_refused(codec: Codec[Any], value: object) -> None:
    with pytest.raises(Exception):  # noqa: B017 - any exception of a codec counts
        codec.encode(value, SENT)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (StringCodec(), b"\xff"),
        (IntCodec(), b"\x00\x00\x00\x01"),
        (IntCodec(4), b""),
        (UuidCodec(), b"no uuid"),
        (UuidCodec(), b"\xff"),
        (UuidCodec(binary=True), b"short"),
        (JsonCodec(), b"{"),
        (JsonCodec(), b"NaN"),
        (JsonCodec(), b"\xff"),
    ],
)
def test_data_of_another_form_is_refused(codec: Codec[Any], data: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017 - any exception of a codec counts
        codec.decode(data, READ)


def test_functions_make_a_codec() -> None:
    codec: FunctionCodec[complex] = FunctionCodec(lambda it: repr(it).encode(), complex_of)
    assert round_trip(codec, 1 + 2j) == 1 + 2j


def complex_of(data: bytes) -> complex:
    return complex(data.decode())


def test_impossible_settings_of_codecs_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="size is 3; it is 2, 4 or 8"):
        IntCodec(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="encoding is 'nonsense'"):
        StringCodec("nonsense")
