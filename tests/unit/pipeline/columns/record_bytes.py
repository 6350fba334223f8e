"""Writes and reads record batches field by field, for comparison with the columnar decoder.

Implements Kafka's record format (magic 2, KIP-98), with gzip only. This module shares no code with
the tested module.
"""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass

import google_crc32c

LOG_APPEND_TIME = 0x08
CONTROL = 0x20
GZIP = 0x01

Headers = tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True)
class PlainRecord:
    """A record with plain fields, which is written and read without kproto.

    For `batch_bytes`, offset and timestamp are deltas to the batch's base offset and base timestamp
    in ms. `read_records` returns absolute offsets and timestamps.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def zigzag(number: int) -> bytes:
    number = ((number << 1) ^ (number >> 63)) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def sized(content: bytes | None) -> bytes:
    return zigzag(-1) if content is None else zigzag(len(content)) + content


def record_bytes(record: PlainRecord) -> bytes:
    body = b"".join(
        (
            b"\0",
            zigzag(record.timestamp),
            zigzag(record.offset),
            sized(record.key),
            sized(record.value),
            zigzag(len(record.headers)),
            *(sized(name) + sized(value) for name, value in record.headers),
        )
    )
    return sized(body)


def sealed(head: tuple[int, int], after_crc: bytes) -> bytes:
    """Returns a batch of `after_crc` with its CRC; `head` is base offset and leader epoch."""
    base_offset, epoch = head
    crc = google_crc32c.value(after_crc)
    return struct.pack(">qiibI", base_offset, len(after_crc) + 9, epoch, 2, crc) + after_crc


def resealed(batch: bytes) -> bytes:
    """Returns the batch with its CRC corrected."""
    base_offset, _, epoch = struct.unpack_from(">qii", batch)
    return sealed((base_offset, epoch), batch[21:])


def batch_bytes(
    records: list[PlainRecord],
    *,
    base_offset: int = 0,
    base_timestamp: int = 1_700_000_000_000,
    max_timestamp: int = 1_700_000_000_999,
    attributes: int = 0,
    last_offset_delta: int | None = None,
) -> bytes:
    body = b"".join(record_bytes(record) for record in records)
    if attributes & 0x07 == GZIP:
        body = gzip.compress(body, 1)
    if last_offset_delta is None:
        last_offset_delta = max((record.offset for record in records), default=0)
    return sealed(
        (base_offset, 0),
        struct.pack(
            ">hiqqqhii",
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            -1,
            -1,
            -1,
            len(records),
        )
        + body,
    )


class Broken(Exception):
    """Raised by this module's reader for invalid bytes."""


class _Reader:
    """Reads bytes in order; raises Broken if fewer bytes are left than requested."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.position + size > len(self.data):
            raise Broken("beyond the end")
        self.position += size
        return self.data[self.position - size : self.position]

    def varint(self, limit: int = 5) -> int:
        raw = 0
        for index in range(limit):
            byte = self.take(1)[0]
            raw |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                raw &= 0xFFFFFFFF if limit == 5 else 0xFFFFFFFFFFFFFFFF
                return (raw >> 1) ^ -(raw & 1)
        raise Broken("varint too long")

    def nullable(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.take(size)


def read_records(data: bytes) -> list[tuple[PlainRecord, bool]]:
    """Returns (record, is log append time) for each record outside of control batches."""
    found = []
    outer = _Reader(data)
    while len(data) - outer.position >= 12:
        base_offset, length = struct.unpack(">qi", outer.take(12))
        if length < 49:
            raise Broken("batch length")
        if outer.position + length > len(data):
            break
        body = outer.take(length)
        magic, crc = struct.unpack_from(">bI", body, 4)
        if magic != 2 or google_crc32c.value(body[9:]) != crc:
            raise Broken("magic or CRC")
        attributes, last_delta, base_timestamp, max_timestamp, _, _, _, count = struct.unpack_from(
            ">hiqqqhii", body, 9
        )
        if attributes & CONTROL:
            continue
        payload = body[49:]
        if attributes & 0x07:
            payload = gzip.decompress(payload)
        appended = bool(attributes & LOG_APPEND_TIME)
        inner = _Reader(payload)
        if count < 0:
            raise Broken("count")
        offset = base_offset - 1
        for _ in range(count):
            one = _Reader(inner.take(inner.varint()))
            one.take(1)
            timestamp = base_timestamp + one.varint(10)
            if appended:
                timestamp = max_timestamp
            before, offset = offset, base_offset + one.varint()
            if not before < offset <= base_offset + last_delta:
                raise Broken("offset")
            key, value = one.nullable(), one.nullable()
            header_count = one.varint()
            if header_count < 0:
                raise Broken("header count")
            headers = []
            for _ in range(header_count):
                name = one.take(one.varint())
                headers.append((name, one.nullable()))
            if one.position != len(one.data):
                raise Broken("bytes behind the record")
            found.append((PlainRecord(offset, timestamp, key, value, tuple(headers)), appended))
        if inner.position != len(payload):
            raise Broken("bytes behind the records")
    return found
