"""RenewDelegationToken (39), v0 to v2.

v0      the end of a token is put off, by its owner or a renewer (KIP-48)
v1      throttle time first for the client
v2      flexible

Left out: nothing.
"""

from __future__ import annotations

from ...messages.renew_delegation_token_request import RenewDelegationTokenRequest
from ...messages.renew_delegation_token_response import RenewDelegationTokenResponse
from ...wire.errors import BrokerResponseError
from ..context import Context
from ..registry import handles
from ..security.tokens import check_may_ask


@handles(RenewDelegationTokenRequest, versions=range(3))
def renew_delegation_token(
    context: Context, request: RenewDelegationTokenRequest, version: int
) -> RenewDelegationTokenResponse:
    """Put the end of a token off."""
    try:
        check_may_ask(context.security_protocol, context.principal, by_token=context.by_token)
        ends = context.cluster.tokens.renew(
            request.hmac, context.principal, request.renew_period_ms, context.clock.now_ms()
        )
    except BrokerResponseError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=ends)
