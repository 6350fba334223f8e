"""Reads numbers byte by byte, for compiled code.

Compiled code reads a number in this way in less time than a `struct.Struct` takes. Each function
raises IndexError if the data ends before the number does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .native import i64

__all__ = [
    "read_float64",
    "read_int8",
    "read_int16",
    "read_int32",
    "read_int64",
    "read_uint16",
    "read_uint32",
]

_FLOAT64: Final = struct.Struct(">d")


def read_int8(data: bytes, pos: i64) -> i64:
    """Reads an int8."""
    value: i64 = data[pos]
    return value if value < 128 else value - 256


def read_int16(data: bytes, pos: i64) -> i64:
    """Reads an int16."""
    value: i64 = data[pos]
    if value > 127:
        value -= 256
    low: i64 = data[pos + 1]
    return value << 8 | low


def read_uint16(data: bytes, pos: i64) -> i64:
    """Reads a uint16."""
    value: i64 = data[pos]
    low: i64 = data[pos + 1]
    return value << 8 | low


def read_int32(data: bytes, pos: i64) -> i64:
    """Reads an int32."""
    value = read_uint32(data, pos)
    return value if value < 0x80000000 else value - 0x100000000


def read_uint32(data: bytes, pos: i64) -> i64:
    """Reads a uint32."""
    first: i64 = data[pos]
    second: i64 = data[pos + 1]
    third: i64 = data[pos + 2]
    fourth: i64 = data[pos + 3]
    return first << 24 | second << 16 | third << 8 | fourth


def read_int64(data: bytes, pos: i64) -> i64:
    """Reads an int64."""
    high: i64 = read_int32(data, pos)
    return high << 32 | read_uint32(data, pos + 4)


def read_float64(data: bytes, pos: i64) -> float:
    """Reads a float64."""
    if pos + 8 > len(data):
        raise IndexError(pos)
    value: float = _FLOAT64.unpack_from(data, pos)[0]
    return value
