"""Tests how codecs apply to records: nulls, contexts, faults, undecodable records."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from kproto import ConfigurationError, EncodeError, Record, Undecodable, UndecodableRecordError
from kproto.codecs import (
    DecodeContext,
    EncodeContext,
    FunctionCodec,
    IntCodec,
    JsonCodec,
    StringCodec,
)
from kproto.codecs.record_decoder import RecordDecoder
from kproto.codecs.record_encoder import RecordEncoder


class Noted:
    """Notes the contexts of its calls."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def encode(self, value: str, context: EncodeContext, /) -> bytes:
        self.seen.append((context.topic, context.field, context.key, list(context.headers)))
        context.headers.append((f"by-{context.field}", value.encode()))
        return value.encode()

    def decode(self, data: bytes, context: DecodeContext, /) -> str:
        self.seen.append((context.topic, context.field, context.headers))
        return data.decode()


class Nulls:
    """Encodes the text "null" as a null, and decodes a null as this text."""

    takes_null = True

    def encode(self, value: str | None, context: EncodeContext, /) -> bytes | None:
        return b"none" if value is None else None

    def decode(self, data: bytes | None, context: DecodeContext, /) -> str:
        return "null" if data is None else data.decode()


def record(key: bytes | None = b"k", value: bytes | None = b"1", **given: Any) -> Record:
    return Record(7, 99, key, value, [("h", b"x")], topic="orders", partition=2, **given)


def test_key_is_encoded_before_the_value_and_both_add_headers() -> None:
    codec = Noted()
    given = (("own", b"x"),)
    key, value, headers = RecordEncoder(codec, codec).encode("orders", "k", "v", given)
    assert (key, value) == (b"k", b"v")
    assert headers == [("own", b"x"), ("by-key", b"k"), ("by-value", b"v")]
    assert given == (("own", b"x"),)
    assert codec.seen == [
        ("orders", "key", None, [("own", b"x")]),
        ("orders", "value", b"k", [("own", b"x"), ("by-key", b"k")]),
    ]


def test_codec_of_the_value_may_replace_the_key() -> None:
    def encode(value: str, context: EncodeContext) -> bytes:
        context.key = b"of the value"
        return value.encode()

    key, value, _ = RecordEncoder(None, encode).encode("orders", b"k", "v", ())
    assert (key, value) == (b"of the value", b"v")


def test_nulls_pass_by_the_codecs() -> None:
    assert RecordEncoder(IntCodec(), JsonCodec()).encode("t", None, None, ()) == (None, None, ())
    decoded = RecordDecoder(IntCodec(), JsonCodec()).decode(record(None, None))
    assert (decoded.key, decoded.value) == (None, None)


def test_codec_that_takes_nulls_gets_them() -> None:
    assert RecordEncoder(None, Nulls()).encode("t", None, None, ())[:2] == (None, b"none")
    assert RecordEncoder(None, Nulls()).encode("t", None, "v", ())[:2] == (None, None)
    assert RecordDecoder(Nulls(), None).decode(record(None)).key == "null"


def test_decoded_record_keeps_all_other_fields() -> None:
    raw = record(timestamp_type=1)
    codec = Noted()
    decoded = RecordDecoder(codec, IntCodec(2)).decode(record(value=b"\x00\x05"))
    assert decoded == Record(7, 99, "k", 5, [("h", b"x")], topic="orders", partition=2)
    assert codec.seen == [("orders", "key", [("h", b"x")])]
    assert RecordDecoder(None, lambda data, _: int(data)).decode(raw).timestamp_type == 1
    assert raw == record(timestamp_type=1)  # unchanged


def test_headers_stay_encoded_if_no_codec_reads_them() -> None:
    raw = record()
    raw._headers = b"\x02\x02h\x02x"
    assert RecordDecoder(StringCodec(), StringCodec()).decode(raw).encoded_headers is not None
    assert RecordDecoder(Noted(), StringCodec()).decode(raw).encoded_headers is None


@pytest.mark.parametrize(("field", "raw"), [("key", b"\xff"), ("value", b"\xfe")])
def test_undecodable_record_raises_an_error_that_names_it(field: Any, raw: bytes) -> None:
    decoder = RecordDecoder(StringCodec(), StringCodec())
    with pytest.raises(UndecodableRecordError) as raised:
        decoder.decode(record(**{field: raw}))
    error = raised.value
    assert str(error).startswith(
        f"orders[2] at offset 7: the {field} cannot be decoded: UnicodeDecodeError: "
    )
    assert (error.topic, error.partition, error.record_offset) == ("orders", 2, 7)
    assert (error.field, error.raw) == (field, raw)
    assert isinstance(error.__cause__, UnicodeDecodeError)


def test_undecodable_is_a_record_with_the_bytes_and_the_error() -> None:
    decoder = RecordDecoder(StringCodec(), IntCodec(), Undecodable)
    found = decoder.decode(record(timestamp_type=1))
    assert isinstance(found, Undecodable)
    assert found == record(timestamp_type=1)
    assert found.error.field == "value"
    assert repr(found).startswith("Undecodable(Record(topic='orders', partition=2, offset=7, ")
    for again in (copy.copy(found), *(pickle.loads(pickle.dumps(found, at)) for at in range(6))):
        assert isinstance(again, Undecodable)
        assert (again, again.error.field) == (found, "value")


def test_list_ends_before_the_first_undecodable_record() -> None:
    records = [record(value=each) for each in (b"1", b"2", b"x", b"3", b"y")]
    decoder = RecordDecoder(None, lambda data, _: int(data))
    decoded, error = decoder.decode_list(records)
    assert [each.value for each in decoded] == [1, 2]
    assert error is not None
    assert error.raw == b"x"


def test_list_with_undecodable_records_is_complete() -> None:
    records = [record(value=each) for each in (b"1", b"x", b"3")]
    decoder = RecordDecoder(None, lambda data, _: int(data), Undecodable)
    decoded, error = decoder.decode_list(records)
    assert [each.value for each in decoded] == [1, b"x", 3]
    assert error is None


def test_value_that_cannot_be_encoded_is_named() -> None:
    encoder = RecordEncoder(StringCodec(), IntCodec())
    with pytest.raises(EncodeError, match="a value of type str cannot be encoded") as raised:
        encoder.encode("orders", "k", "no number", (), "values[3].")
    assert raised.value.field == "values[3].value"
    assert raised.value.__cause__ is not None
    with pytest.raises(EncodeError) as raised:
        encoder.encode("orders", 5, 5, ())
    assert raised.value.field == "key"


def test_codec_that_returns_no_bytes_is_refused() -> None:
    def encode(value: str, context: EncodeContext) -> Any:
        return value

    with pytest.raises(EncodeError, match="the codec returned str, not bytes or None"):
        RecordEncoder(None, encode).encode("orders", None, "v", ())


FUNCTION_CODEC: Any = FunctionCodec  # with functions of wrong types


@pytest.mark.parametrize(
    "codec", [FUNCTION_CODEC(lambda value: None, int), lambda value, context: None]
)
def test_encoder_that_returns_none_for_a_value_is_refused(codec: Any) -> None:
    with pytest.raises(EncodeError, match="codec returned None, which would make a null"):
        RecordEncoder(None, codec).encode("orders", None, "v", ())
    with pytest.raises(EncodeError, match="codec returned None, which would make a null"):
        RecordEncoder(codec, Nulls()).encode("orders", "k", "v", ())
    assert RecordEncoder(None, codec).encode("orders", None, None, ())[1] is None


async def to_async(*_: Any) -> bytes:
    return b"x"


class AsyncCall:
    async def __call__(self, *_: Any) -> bytes:
        return b"x"


class AsyncCodec:
    encode = decode = to_async


@pytest.mark.parametrize(
    "codec", [to_async, AsyncCall(), AsyncCodec(), FUNCTION_CODEC(to_async, to_async)]
)
def test_async_codec_is_refused(codec: Any) -> None:
    for make in (RecordEncoder, RecordDecoder):
        with pytest.raises(ConfigurationError, match=r"value has the async function .* plain"):
            make(None, codec)
        with pytest.raises(ConfigurationError, match="key has the async function"):
            make(codec, None)


@pytest.mark.parametrize(
    "codec",
    [
        lambda value, context: to_async(),
        FUNCTION_CODEC(lambda value: to_async(), lambda data: to_async()),
    ],
)
def test_coroutine_of_a_codec_is_no_value(codec: Any) -> None:
    for key, value, field in ((codec, None, "key"), (None, codec, "value")):
        with pytest.raises(EncodeError, match="the codec returned coroutine"):
            RecordEncoder(key, value).encode("orders", "k", "v", ())
        with pytest.raises(UndecodableRecordError, match="the codec returned coroutine") as raised:
            RecordDecoder(key, value).decode(record())
        assert raised.value.field == field


def test_headers_of_a_wrong_type_are_refused() -> None:
    with pytest.raises(EncodeError, match=r"headers of type int: pass a list of \(name, value\)"):
        RecordEncoder(None, Noted()).encode("orders", None, "v", 5)  # type: ignore[arg-type]


class Shouted(StringCodec):
    """A subclass that overrides the methods, not the functions."""

    def encode(self, value: str, context: EncodeContext, /) -> bytes:
        return super().encode(value.upper(), context)

    def decode(self, data: bytes, context: DecodeContext, /) -> str:
        return super().decode(data, context).lower()


def test_methods_of_a_subclass_are_called() -> None:
    assert RecordEncoder(Shouted(), StringCodec()).encode("t", "k", "v", ())[:2] == (b"K", b"v")
    decoded = RecordDecoder(Shouted(), StringCodec()).decode(record(b"K", b"V"))
    assert (decoded.key, decoded.value) == ("k", "V")


@pytest.mark.parametrize("codec", [5, "utf-8", StringCodec])
@pytest.mark.parametrize("apply", [RecordEncoder, RecordDecoder])
def test_object_that_is_no_codec_is_refused(apply: Any, codec: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"key is .*codec"):
        apply(codec, None)
    with pytest.raises(ConfigurationError, match=r"value is .*codec"):
        apply(None, codec)


@pytest.mark.parametrize("given", [True, "yield", Record, Undecodable()])
def test_undecodable_must_be_its_class(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"it is kproto\.Undecodable, or None to raise"):
        RecordDecoder(None, StringCodec(), given)
