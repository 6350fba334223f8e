"""Encodes and reads the numbers in records: signed varints (zigzag, base 128).

For speed, `magic2.record_decoding` and `magic2.value_decoding` read varints of one and two bytes
inline, and call `read_varint` and `read_varlong` only for longer ones.
"""

from __future__ import annotations

from typing import Final

__all__ = ["VARINTS", "encode_varint", "int64", "read_varint", "read_varlong", "zigzag"]

_MAX_VARINT_BYTES: Final = 5
_MAX_VARLONG_BYTES: Final = 10


def encode_varint(value: int) -> bytes:
    """Encodes a signed integer of up to 64 bits as a zigzag varint (or varlong, the same bytes)."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


#: The varints of 0 to 8191, of one or two bytes. A list index is faster than encoding.
VARINTS: Final = [bytes((low,)) for low in range(0, 0x80, 2)] + [
    bytes((low, high)) for high in range(1, 0x80) for low in range(0x80, 0x100, 2)
]


def zigzag(unsigned: int) -> int:
    """Returns the signed value of a zigzag integer: 0, 1, 2, 3 … become 0, -1, 1, -2 …"""
    return (unsigned >> 1) ^ -(unsigned & 1)


def int64(value: int) -> int:
    """Returns `value` wrapped to a signed 64-bit integer, like a Java long that overflows."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Reads up to 5 bytes at `pos`; returns the unsigned (still zigzag) value and the new position.

    Accepts unnecessarily long varints and drops bits above the 32nd, as Kafka's classes do. Raises
    ValueError if the fifth byte does not end the varint, IndexError at the end of the buffer.
    """
    return _read(data, pos, _MAX_VARINT_BYTES, 0xFFFFFFFF)


def read_varlong(data: bytes, pos: int) -> tuple[int, int]:
    """Reads a varint like `read_varint`, but of up to 10 bytes and 64 bits."""
    return _read(data, pos, _MAX_VARLONG_BYTES, 0xFFFFFFFFFFFFFFFF)


def _read(data: bytes, pos: int, longest: int, mask: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, longest * 7, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & mask, pos
    raise ValueError(f"varint too long: no end within {longest} bytes")
