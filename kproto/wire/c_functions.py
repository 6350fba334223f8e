"""Defines functions that compiled code replaces by C functions, mostly for slots of objects.

In compiled code, mypyc calls the functions of `tools/setup/c_functions.h` instead of these; only
compiled code needs them. The C functions know the places of slots in memory, so compiled code calls
them only for classes for which `has_slots` returns True.
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeVar

__all__ = [
    "as_method",
    "compact_int32s",
    "crc32c_of",
    "get_slot",
    "has_slots",
    "headers_in",
    "int32s_at",
    "list_descriptor",
    "new_object",
    "new_untracked",
    "set_slot",
    "track_when_set",
]

T = TypeVar("T")

_HEADER_BYTES: Final = object.__basicsize__
#: A compact array of more numbers has a count of two bytes.
_MOST_IN_BYTE: Final = 126
_SLOT_BYTES: Final = tuple.__itemsize__


def new_object(cls: type[T]) -> T:
    """Returns a new object of `cls`, without a call of `__init__`; its slots are not set."""
    return cls.__new__(cls)


def new_untracked(cls: type[T]) -> T:
    """Returns a new object as `new_object` does; in compiled code, Python does not track it.

    The garbage collector then never visits the object. So the slots must have only values that are
    in no reference cycle, and `track_when_set` must have been called for `cls`.
    """
    return cls.__new__(cls)


def track_when_set(cls: type) -> None:
    """Makes the garbage collector track an object of `cls` once a program sets an attribute.

    In compiled code, this applies to values that the garbage collector visits, such as lists. In
    interpreted code, it tracks all objects from their creation.
    """


def set_slot(made: object, name: str, index: int, value: object) -> None:
    """Sets the slot `name`; `index` is its place among the slots in memory."""
    setattr(made, name, value)


def get_slot(made: object, cls: type, name: str, index: int) -> Any:
    """Returns the value of the slot, or of the attribute `name` if `cls` is not the exact class.

    Raises AttributeError if the slot is not set.
    """
    return getattr(made, name)


def list_descriptor(cls: type, name: str, index: int, names: list[str] | None) -> object:
    """Returns a descriptor that replaces the property `name`, whose slot has the place `index`.

    The descriptor returns a list in the slot; if the slot has another value, it calls the property.
    If `names` is given, the list has the headers of a record: the descriptor replaces bytes in the
    slot by the headers that `headers_in` returns.
    """
    return vars(cls)[name]


def int32s_at(data: bytes, pos: int, count: int) -> list[int]:
    """Returns the `count` values of int32 at `pos`; raises IndexError if `data` ends before."""
    if count < 0 or count > (len(data) - pos) // 4:
        raise IndexError(pos)
    return list(struct.unpack_from(f">{count}i", data, pos))


def compact_int32s(numbers: object) -> bytes | None:
    """Returns the encoded compact array of `numbers`, a list of fewer than 127 values of int32.

    Returns None for anything else.
    """
    if type(numbers) is not list or len(numbers) > _MOST_IN_BYTE:
        return None
    try:
        return struct.pack(f">B{len(numbers)}i", len(numbers) + 1, *numbers)
    except struct.error:
        return None


def crc32c_of(data: bytes, crc: int) -> int:
    """Returns the CRC-32C of `data`; `crc` is the checksum of the bytes before it."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def headers_in(
    block: bytes, pos: int, end: int, names: list[str]
) -> list[tuple[str, bytes | None]] | None:
    """Returns the headers of a record in `block[pos:end]`, from their count to the last value.

    Returns None if they are corrupt or longer than usual, and in interpreted code. `names` has the
    latest name of the first, the second and further headers, which are not decoded again.
    """
    return None


def as_method(function: T) -> T:
    """Returns a function of compiled code as a method, which gets the object as first argument.

    In interpreted code, every function is a method already.
    """
    return function


def has_slots(cls: type) -> bool:
    """Returns True if CPython places the slots of `cls` in memory as compiled code expects it.

    The slots of a base class come first, and the slots of a class are sorted by name. The function
    sets each slot of a new object by its index, and gets it by its name. It first checks the size
    of the object, so that no index is outside of the object.
    """
    bases = cls.__mro__[-2::-1]
    # A base class in C, such as `Generic` from Python 3.12 on, has no `__slots__`.
    names = [name for base in bases for name in sorted(vars(base).get("__slots__", ()))]
    if cls.__basicsize__ != _HEADER_BYTES + _SLOT_BYTES * len(names):
        return False
    if cls.__itemsize__ or cls.__dictoffset__ or cls.__weakrefoffset__:
        return False
    made: object = new_object(cls)
    for index, name in enumerate(names):
        value = object()
        set_slot(made, name, index, value)
        if getattr(made, name, None) is not value:
            return False
    return True
