"""What the handlers of tokens have in common: who may ask, and the answer to another end."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...wire.errors import BrokerResponseError
from ..context import Context
from ..security.tokens import check_token_request

__all__ = ["TokenEnd", "token_end"]


class TokenEnd(NamedTuple):
    """When a token ends, in ms since 1970; -1 with the code of an error."""

    error_code: int
    expiry_timestamp_ms: int


def token_end(context: Context, change: Callable[[], int]) -> TokenEnd:
    """The end that `change` gives a token, unless the client may not ask for it."""
    try:
        check_token_request(
            context.security_protocol,
            context.principal,
            token_authenticated=context.token_authenticated,
        )
        return TokenEnd(0, change())
    except BrokerResponseError as error:
        return TokenEnd(error.code, -1)
