"""The error codes that stand in a message, whatever the message is."""

from __future__ import annotations

from collections.abc import Iterator

from ..messages.base import Message, Struct

__all__ = ["error_codes_in"]


def error_codes_in(message: Message) -> Iterator[int]:
    """Every `error_code` of a message, in whatever struct it stands; 0 where there is no error."""
    left: list[Struct] = [message]
    while left:
        struct = left.pop()
        for name in struct._names():
            value = getattr(struct, name)
            if name == "error_code":
                yield value
            elif isinstance(value, Struct):
                left.append(value)
            elif isinstance(value, list) and value and isinstance(value[0], Struct):
                left += value
