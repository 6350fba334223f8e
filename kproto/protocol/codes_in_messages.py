"""Finds the fields `error_code` in any message."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..messages.base import Message, Struct

__all__ = ["error_codes_in"]

_WORD: Final = re.compile(r"\w+")


class _ErrorCodeFields(NamedTuple):
    """Describes where a struct class has error codes.

    `has_code` is True if the class has the field `error_code`. `struct_fields` are the names of the
    fields whose structs have `error_code`, directly or in an inner struct.
    """

    has_code: bool
    struct_fields: tuple[str, ...]


def error_codes_in(message: Message) -> Iterator[int]:
    """Yields the value of each field `error_code` of a message and its structs, 0 included."""
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
            elif isinstance(value, list) and value:
                if _shape_of(type(value[0])).struct_fields:  # type: ignore[arg-type]  # as above
                    pending += value
                else:  # often thousands of partitions
                    yield from [each.error_code for each in value]


@lru_cache(maxsize=1024)  # more than there are structs in all responses
def _shape_of(kind: type[Struct]) -> _ErrorCodeFields:
    """Derives the `_ErrorCodeFields` of a struct from the annotations of its generated class."""
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
    return _ErrorCodeFields("error_code" in names, struct_fields)
