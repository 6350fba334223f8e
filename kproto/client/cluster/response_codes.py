"""What the error codes of a response say of who sent it, whatever the response is.

Plain functions on messages: what follows is `view`'s.
"""

from __future__ import annotations

from typing import Final

from ...messages.base import Message
from ...protocol.codes_in_messages import error_codes_in
from ...protocol.error_codes import code_of
from ..retry import Remedy, remedy_of_code

__all__ = ["says_it_is_no_controller", "says_it_is_no_coordinator"]

_NOT_CONTROLLER: Final = code_of("NOT_CONTROLLER")


def says_it_is_no_coordinator(response: Message) -> bool:
    """True when the coordinator is another, or gone."""
    return any(remedy_of_code(c) is Remedy.FIND_COORDINATOR for c in error_codes_in(response))


def says_it_is_no_controller(response: Message) -> bool:
    """True when the controller is another."""
    return _NOT_CONTROLLER in error_codes_in(response)
