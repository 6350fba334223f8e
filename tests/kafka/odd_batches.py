"""Builds record batches with odd shapes that clients never write, and that brokers may store."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from kproto.records import CODECS, Codec
from kproto.records.header_block import decode_as_java
from kproto.records.varints import encode_varint
from tests.unit.records.batches import batch_bytes, record_bytes

__all__ = ["OddBatch", "odd_batches"]

_MOST_RECORDS: Final = 5

#: Encoded lengths that mean null: -1, -2, -66, -2^31.
_NULLS: Final = (b"\x01", b"\x03", b"\x83\x01", b"\xff\xff\xff\xff\x0f")

_NAMES: Final = (b"", b"h", b"ce_id", "é√😀".encode(), b"\xff\xfe", b"\xed\xa0\x80", b"a\xe2\x82")

#: Bytes after the compressed data: nothing, noise, the begin of a gzip header, magics.
_RESTS: Final = (
    b"",
    b"\0",
    b"abc",
    bytes(40),
    b"noise" * 8,
    b"\x1f\x8b\x08\x00" + bytes(6),
    b"\x1f\x8b\x08\x00" + bytes(6) + b"\xff" * 30,
    b"\x04\x22\x4d\x18\x64\x40\xa7",
    b"\x28\xb5\x2f\xfd",
    b"\x50\x2a\x4d\x18\x03\0\0\0abc",
    b"\x5f\x2a\x4d\x18\x09\0\0\0abc",
    b"\x82SNA" + b"x" * 12,
    b"\x82SNAPPY\0" + bytes(8),
)


class OddBatch(NamedTuple):
    """A batch with a correct checksum, and a description of its odd shapes."""

    shape: str
    data: bytes


def odd_batches(seed: int, count: int) -> list[OddBatch]:
    """Returns `count` random batches; most have one or two odd shapes."""
    source = random.Random(seed)
    return [_odd_batch(source) for _ in range(count)]


def _odd_batch(source: random.Random) -> OddBatch:
    shapes: list[str] = []
    count = source.randint(1, _MOST_RECORDS)
    payload = b"".join(_record(source, at, shapes) for at in range(count))
    codec = CODECS[source.choice((0, 0, 1, 1, 2, 3, 4))]
    if source.random() < 0.1:
        payload += b"\0"
        shapes.append("a byte after the records")
    data = codec.compress(payload, codec.default_level)
    if codec.id and source.random() < 0.4:
        other = _later_stream(source, codec)
        rest = source.choice((*_RESTS, data, data[: source.randrange(len(data))], other, other))
        shapes.append(f"{rest[:12]!r} after {codec.name}")
        data += rest
    announced = count
    if source.random() < 0.1:
        announced += source.choice((-1, 1))
        shapes.append(f"{announced} announced of {count} records")
    built = batch_bytes(
        data, attributes=codec.id, record_count=announced, last_offset_delta=announced - 1
    )
    return OddBatch(f"{codec.name}: {', '.join(shapes) or 'nothing odd'}", built)


def _later_stream(source: random.Random, codec: Codec) -> bytes:
    """Returns a compressed stream of 0 to 40 random bytes; a gzip header has random flags."""
    data = codec.compress(source.randbytes(source.choice((0, 0, 1, 40))), codec.default_level)
    if codec.name != "gzip":
        return data
    return data[:3] + bytes((source.choice((0, 1, 0x20, 0xE0)),)) + data[4:]


def _record(source: random.Random, at: int, shapes: list[str]) -> bytes:
    fields = []
    for name in ("key", "value"):
        field = _field(source)
        if source.random() < 0.2:
            field = source.choice(_NULLS)
            shapes.append(f"{name} length {field.hex()}")
        fields.append(field)
    key, value = fields
    length = None
    headers = []
    for _ in range(source.choice((0, 0, 1, 2))):
        header = source.choice(_NAMES)
        content = source.choice(_NULLS) if source.random() < 0.2 else _field(source)
        if decode_as_java(header).encode() != header:
            shapes.append(f"header name {header!r}")
        headers.append(encode_varint(len(header)) + header + content)
    block = encode_varint(len(headers)) + b"".join(headers)
    draw = source.random()
    if draw < 0.05:
        block = source.choice((b"\x01", b"\x02", b"\x02\x01\x00", block + b"\0"))
        shapes.append(f"header block {block.hex()}")
    whole = record_bytes(offset_delta=encode_varint(at), key=key, value=value, header_block=block)
    if draw > 0.92:
        length = len(whole) - 1 + source.choice((-len(whole), -1, 1, 5, 100))
        shapes.append(f"record length {length}")
    return record_bytes(
        offset_delta=encode_varint(at), key=key, value=value, header_block=block, length=length
    )


def _field(source: random.Random) -> bytes:
    content = source.randbytes(source.choice((0, 1, 3, 70)))
    return encode_varint(len(content)) + content
