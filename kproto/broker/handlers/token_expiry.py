"""Shared by the handlers of delegation tokens: who may change tokens, and the new expiry."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...wire.errors import BrokerResponseError
from ..context import Context
from ..security.tokens import check_token_request

__all__ = ["TokenExpiry", "changed_expiry"]


class TokenExpiry(NamedTuple):
    """When a token expires, in ms since 1970; -1 with an error code."""

    error_code: int
    expiry_timestamp_ms: int


def changed_expiry(context: Context, change: Callable[[], int]) -> TokenExpiry:
    """Returns the new expiry of a token after `change`, or the error."""
    try:
        check_token_request(
            context.security_protocol,
            context.principal,
            token_authenticated=context.token_authenticated,
        )
        return TokenExpiry(0, change())
    except BrokerResponseError as error:
        return TokenExpiry(error.code, -1)
