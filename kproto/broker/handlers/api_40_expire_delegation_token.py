"""ExpireDelegationToken (40), v0 to v2.

v0      the owner or a renewer sets the expiry time of a token, or deletes the token (KIP-48)
v1      a throttled response is sent at once (KIP-219)
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
    """Sets the expiry time of a delegation token, and returns that time."""
    expiry = changed_expiry(
        context,
        lambda: context.cluster.tokens.expire(
            request.hmac, context.principal, request.expiry_time_period_ms, context.clock.now_ms()
        ),
    )
    return ExpireDelegationTokenResponse(**expiry._asdict())
