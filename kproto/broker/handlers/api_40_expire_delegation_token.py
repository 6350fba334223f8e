"""ExpireDelegationToken (40), v0 to v2.

v0      a token ends sooner, or at once (KIP-48)
v1      throttle time first for the client
v2      flexible

Left out: nothing.
"""

from __future__ import annotations

from ...messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from ...messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from ...wire.errors import BrokerResponseError
from ..context import Context
from ..registry import handles
from ..security.tokens import check_may_ask


@handles(ExpireDelegationTokenRequest, versions=range(3))
def expire_delegation_token(
    context: Context, request: ExpireDelegationTokenRequest, version: int
) -> ExpireDelegationTokenResponse:
    """Let a token end."""
    try:
        check_may_ask(context.security_protocol, context.principal, by_token=context.by_token)
        ends = context.cluster.tokens.expire(
            request.hmac, context.principal, request.expiry_time_period_ms, context.clock.now_ms()
        )
    except BrokerResponseError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends)
