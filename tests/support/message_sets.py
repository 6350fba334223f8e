"""Builds small message sets for tests, including invalid ones, which kproto does not build."""

from __future__ import annotations

import struct
from zlib import crc32

from kproto.records import codec_for_name, encode_message_set

from .batches import TIMESTAMP

__all__ = ["message", "message_set", "wrapped"]


def message_set(
    count: int = 1,
    *,
    value: bytes = b"v",
    magic: int = 1,
    compression: str = "none",
    timestamp: int = TIMESTAMP,
    log_append_time: int | None = None,
    base_offset: int = 0,
) -> bytes:
    """Returns a message set of `count` records.

    With magic 1, each timestamp is 1 ms later than the one before. If `log_append_time` is given,
    all messages have this timestamp instead.
    """
    return encode_message_set(
        [(b"k", value, (), timestamp + index) for index in range(count)],
        magic=magic,
        compression=compression,
        log_append_time=log_append_time,
        base_offset=base_offset,
    )


def message(
    *,
    offset: int = 0,
    magic: int = 1,
    codec: int = 0,
    attributes: int = 0,
    timestamp: int = TIMESTAMP,
    key: bytes | None = None,
    value: bytes | None = b"v",
    key_length: int | None = None,
    value_length: int | None = None,
    more: bytes = b"",
    size: int | None = None,
    crc: int | None = None,
) -> bytes:
    """Returns one message; each of the last five arguments makes the message invalid.

    These arguments override the lengths, the size and the checksum, or add bytes.
    """
    body = struct.pack(">bb", magic, attributes | codec)
    if magic:
        body += struct.pack(">q", timestamp)
    for content, length in ((key, key_length), (value, value_length)):
        right = -1 if content is None else len(content)
        body += struct.pack(">i", right if length is None else length) + (content or b"")
    body += more
    head = struct.pack(">qi", offset, 4 + len(body) if size is None else size)
    return head + struct.pack(">I", crc32(body) if crc is None else crc) + body


def wrapped(
    messages: bytes,
    *,
    offset: int = 0,
    magic: int = 1,
    codec: str = "gzip",
    attributes: int = 0,
    timestamp: int = TIMESTAMP,
) -> bytes:
    """Returns a wrapper message that contains `messages`, compressed; `messages` may be invalid."""
    used = codec_for_name(codec)
    return message(
        offset=offset,
        magic=magic,
        codec=used.id,
        attributes=attributes,
        timestamp=timestamp,
        value=used.compress(messages, used.default_level),
    )
