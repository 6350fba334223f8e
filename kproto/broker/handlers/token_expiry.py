"""Computes the responses of RenewDelegationToken and ExpireDelegationToken."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...wire.errors import BrokerResponseError
from ..context import Context
from ..security.tokens import check_token_request

__all__ = ["TokenExpiry", "changed_expiry"]


class TokenExpiry(NamedTuple):
    """Holds the fields of a response: the expiry time is in ms since 1970, -1 after an error."""

    error_code: int
    expiry_timestamp_ms: int


def changed_expiry(context: Context, change: Callable[[], int]) -> TokenExpiry:
    """Calls `change`, which sets the expiry time of a token and returns the new time.

    Returns the new time, or the error code that `change` raised. If the client may not send token
    requests, does not call `change`, and returns an error code.
    """
    try:
        check_token_request(
            context.security_protocol,
            context.principal,
            token_authenticated=context.token_authenticated,
        )
        return TokenExpiry(0, change())
    except BrokerResponseError as error:
        return TokenExpiry(error.code, -1)
