"""Converts bytes-like values to bytes, for every function that takes a buffer.

Decides which values are accepted, and the error text for others: a number or a list is refused,
although `bytes()` accepts both. The caller turns the error into one of its own, and checks first
whether the value is `bytes` already, as it mostly is.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

__all__ = ["BYTES_LIKE", "BytesLike", "octets", "octets_of_record"]

BytesLike: TypeAlias = "bytes | bytearray | memoryview"

#: The same for isinstance.
BYTES_LIKE: Final = (bytes, bytearray, memoryview)


def octets(value: Any) -> bytes:
    """Returns the bytes in a buffer of any item type.

    Raises TypeError for anything else, ValueError for a buffer that was released or gives no bytes.
    """
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(_unwanted(value)) from None
    except ValueError as error:
        raise ValueError(f"{_unwanted(value)} ({error})") from None


def octets_of_record(value: object) -> bytes:
    """Returns the bytes of a record's key, value or header: bytes, bytearray or memoryview.

    Refuses other buffers, because a value that is a buffer by chance, such as a numpy number, is a
    mistake here. Raises TypeError for them, ValueError for a memoryview that was released.
    """
    if isinstance(value, BYTES_LIKE):
        return octets(value)
    raise TypeError(_unwanted(value))


def _unwanted(value: object) -> str:
    return f"bytes are wanted, not {type(value).__name__}"
