"""Bytes-like to bytes, for all who are given a buffer where bytes are wanted.

Owns which values are taken for bytes, and what is said of the others; a number or a list, of which
Python makes bytes too, is none. Whoever calls makes an error of its own of what is raised here, and
looks first whether the value is `bytes` already, as it mostly is.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

__all__ = ["BYTES_LIKE", "BytesLike", "octets", "octets_of_record"]

BytesLike: TypeAlias = "bytes | bytearray | memoryview"

#: The same, to be asked for with isinstance.
BYTES_LIKE: Final = (bytes, bytearray, memoryview)


def octets(value: Any) -> bytes:
    """Returns the bytes that a buffer of any kind holds, whatever its items are.

    Raises TypeError on what is none, ValueError on one that was released or gives no bytes.
    """
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(_unwanted(value)) from None
    except ValueError as error:
        raise ValueError(f"{_unwanted(value)} ({error})") from None


def octets_of_record(value: object) -> bytes:
    """Returns the bytes of a record's key, value or header: bytes, bytearray or memoryview.

    Other buffers are refused: what is one by chance, such as a number of numpy, is a mistake here.
    Raises TypeError on them, ValueError on a memoryview that was released.
    """
    if isinstance(value, BYTES_LIKE):
        return octets(value)
    raise TypeError(_unwanted(value))


def _unwanted(value: object) -> str:
    return f"bytes are wanted, not {type(value).__name__}"
