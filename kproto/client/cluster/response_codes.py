"""What the error codes of a response say of who sent it, whatever the response is.

Plain functions on messages: what follows is `view`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...messages.base import Message, Struct
from ...protocol.error_codes import code_of
from ..retry import Remedy, remedy_of_code

__all__ = ["error_codes_in", "says_it_is_no_controller", "says_it_is_no_coordinator"]

_NOT_CONTROLLER: Final = code_of("NOT_CONTROLLER")


def error_codes_in(response: Message) -> Iterator[int]:
    """Every error code of a response, in whatever struct it stands."""
    left: list[Struct] = [response]
    while left:
        struct = left.pop()
        for name in struct._names():
            value = getattr(struct, name)
            if name == "error_code":
                yield value
            elif isinstance(value, Struct):
                left.append(value)
            elif isinstance(value, list):
                left += [element for element in value if isinstance(element, Struct)]


def says_it_is_no_coordinator(response: Message) -> bool:
    """True when the coordinator is another, or gone."""
    return any(remedy_of_code(c) is Remedy.FIND_COORDINATOR for c in error_codes_in(response))


def says_it_is_no_controller(response: Message) -> bool:
    """True when the controller is another."""
    return _NOT_CONTROLLER in error_codes_in(response)
