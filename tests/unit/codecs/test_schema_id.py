"""Tests `SchemaIdCodec`: the five-byte frame, the headers with GUIDs, and faults."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import ConfigurationError, Record
from kproto.codecs import (
    BytesCodec,
    DecodeContext,
    EncodeContext,
    JsonCodec,
    SchemaIdCodec,
    StringCodec,
)

pytestmark = pytest.mark.hypothesis

GUID = UUID("89791762-2336-186f-9674-299b90a802e2")
IDS = st.integers(0, 2**31 - 1)
FIELDS = st.sampled_from(["key", "value"])


class BySchema:
    """Appends the schema id to what it decodes, and sets the id that a value carries."""

    def encode(self, value: tuple[str, Any], context: EncodeContext, /) -> bytes | None:
        text, context.schema_id = value
        return text.encode()

    def decode(self, data: bytes, context: DecodeContext, /) -> tuple[str, Any]:
        return data.decode(), context.schema_id


def test_frame_is_that_of_confluents_serializers() -> None:
    codec = SchemaIdCodec(JsonCodec(), 258)
    context = EncodeContext("orders", "value")
    assert codec.encode({"a": 1}, context) == b'\x00\x00\x00\x01\x02{"a":1}'
    assert context.headers == []


@pytest.mark.parametrize("field", ["key", "value"])
def test_header_is_that_of_confluents_serializers(field: Any) -> None:
    codec = SchemaIdCodec(JsonCodec(), GUID, in_header=True)
    context = EncodeContext("orders", field, [("own", b"x")])
    assert codec.encode({"a": 1}, context) == b'{"a":1}'
    assert context.headers == [("own", b"x"), (f"__{field}_schema_id", b"\x01" + GUID.bytes)]


@given(st.text(), IDS | st.uuids(), FIELDS, st.booleans())
def test_id_and_value_are_read_back(text: str, schema_id: Any, field: Any, in_header: bool) -> None:
    in_header = in_header or isinstance(schema_id, UUID)
    codec: SchemaIdCodec[tuple[str, Any]] = SchemaIdCodec(BySchema(), in_header=in_header)
    sent = EncodeContext("orders", field)
    data = codec.encode((text, schema_id), sent)
    assert data is not None
    read = DecodeContext(Record(headers=sent.headers), field)
    assert codec.decode(data, read) == (text, schema_id)
    assert sent.schema_id == schema_id


@given(st.binary())
def test_any_bytes_are_decoded_or_refused_with_a_value_error(data: bytes) -> None:
    read = DecodeContext(Record(), "value")
    size = {0: 5, 1: 17}.get(data[0], 1 << 30) if data else 1
    if len(data) >= size:
        assert SchemaIdCodec(BytesCodec()).decode(data, read) == data[size:]
    else:
        with pytest.raises(ValueError, match="no schema id"):
            SchemaIdCodec(BytesCodec()).decode(data, read)


def test_header_of_the_other_field_is_ignored() -> None:
    codec = SchemaIdCodec(BySchema())
    headers = [("__key_schema_id", b"\x01" + GUID.bytes)]
    read = DecodeContext(Record(headers=headers), "value")
    assert codec.decode(b"\x00\x00\x00\x00\x05text", read) == ("text", 5)


def test_last_header_counts() -> None:
    headers = [
        ("__value_schema_id", b"\x00\x00\x00\x00\x01"),
        ("__value_schema_id", b"\x00\x00\x00\x00\x02"),
    ]
    read = DecodeContext(Record(headers=headers), "value")
    assert SchemaIdCodec(BySchema()).decode(b"text", read) == ("text", 2)


def test_header_with_more_than_an_id_is_refused() -> None:
    read = DecodeContext(Record(headers=[("__key_schema_id", b"\x00\x00\x00\x00\x01x")]), "key")
    with pytest.raises(ValueError, match="__key_schema_id has 1 bytes after the schema id"):
        SchemaIdCodec(StringCodec()).decode(b"text", read)


@pytest.mark.parametrize("schema_id", [-1, 2**31, True, "7"])
def test_invalid_id_is_refused(schema_id: Any) -> None:
    with pytest.raises(ConfigurationError, match="it is an int from 0 to 2147483647, or a UUID"):
        SchemaIdCodec(StringCodec(), schema_id)


def test_guid_needs_a_header() -> None:
    with pytest.raises(ConfigurationError, match="set in_header"):
        SchemaIdCodec(StringCodec(), GUID)
    codec = SchemaIdCodec(BySchema())
    with pytest.raises(ValueError, match="set in_header"):
        codec.encode(("text", GUID), EncodeContext("orders", "value"))


def test_encoding_without_an_id_is_refused() -> None:
    with pytest.raises(ValueError, match="no schema id"):
        SchemaIdCodec(StringCodec()).encode("text", EncodeContext("orders", "value"))
