"""Finds the error codes in any message."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..messages.base import Message, Struct

__all__ = ["error_codes_in"]

_WORD: Final = re.compile(r"\w+")


class _Shape(NamedTuple):
    """The error codes of a struct class.

    `has_code` is True if it has the field `error_code`. The structs in `struct_fields` have that
    field, or contain structs that have it.
    """

    has_code: bool
    struct_fields: tuple[str, ...]


def error_codes_in(message: Message) -> Iterator[int]:
    """Yields every `error_code` of a message and its structs; 0 for no error."""
    pending: list[Any] = [message]
    while pending:
        struct = pending.pop()
        has_code, struct_fields = _shape_of(type(struct))  # type: ignore[arg-type]  # a struct has no hash
        if has_code:
            yield struct.error_code
        for name in struct_fields:
            value = getattr(struct, name)
            if isinstance(value, Struct):
                pending.append(value)
            elif isinstance(value, list):
                pending += value


@lru_cache(maxsize=1024)  # more than there are structs in all responses
def _shape_of(kind: type[Struct]) -> _Shape:
    """Derives the `_Shape` of a struct class from the annotations of the generated class."""
    made = kind._generated()
    types = vars(sys.modules[made.__module__])
    names = made._names()

    def leads_to_code(name: str) -> bool:
        words = _WORD.findall(made.__init__.__annotations__[name])
        inner: list[Any] = [types[word] for word in words if word in types]
        return any(
            any(_shape_of(each))  # type: ignore[arg-type]  # as above
            for each in inner
            if isinstance(each, type) and issubclass(each, Struct)
        )

    struct_fields = tuple(name for name in names if leads_to_code(name))
    return _Shape("error_code" in names, struct_fields)
