"""ExpireDelegationToken (40), v0 to v2.

v0      a token expires earlier, or at once (KIP-48)
v1      throttle time first for the client
v2      flexible

Left out: nothing.
"""

from __future__ import annotations

from ...messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from ...messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from ..context import Context
from ..registry import handles
from .token_expiry import changed_expiry


@handles(ExpireDelegationTokenRequest, versions=range(3))
def expire_delegation_token(
    context: Context, request: ExpireDelegationTokenRequest, version: int
) -> ExpireDelegationTokenResponse:
    """Expires a token."""
    expiry = changed_expiry(
        context,
        lambda: context.cluster.tokens.expire(
            request.hmac, context.principal, request.expiry_time_period_ms, context.clock.now_ms()
        ),
    )
    return ExpireDelegationTokenResponse(**expiry._asdict())
