"""Converts bytes-like values to bytes, for all functions that accept a buffer.

Refuses numbers and lists, which `bytes()` would accept. For speed, callers should skip the
conversion if the value is `bytes` already. They should raise their own error instead of TypeError
or ValueError.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

__all__ = ["BYTES_LIKE", "BytesLike", "octets", "octets_of_record"]

BytesLike: TypeAlias = "bytes | bytearray | memoryview"

#: The types of `BytesLike`, for isinstance.
BYTES_LIKE: Final = (bytes, bytearray, memoryview)


def octets(value: Any) -> bytes:
    """Returns the bytes of a buffer, even of a buffer whose items have several bytes each.

    Raises TypeError if `value` is not a buffer, ValueError for a released memoryview.
    """
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(_unwanted(value)) from None
    except ValueError as error:
        raise ValueError(f"{_unwanted(value)} ({error})") from None


def octets_of_record(value: object) -> bytes:
    """Returns the bytes of a record's key, value or header: bytes, bytearray or memoryview.

    Raises TypeError for other values. Other buffers, such as a numpy number, are refused too: they
    are most likely a mistake. Raises ValueError for a released memoryview.
    """
    if isinstance(value, BYTES_LIKE):
        return octets(value)
    raise TypeError(_unwanted(value))


def _unwanted(value: object) -> str:
    return f"bytes are wanted, not {type(value).__name__}"
