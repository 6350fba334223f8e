"""RenewDelegationToken (39), v0 to v2.

v0      the owner or a renewer renews a token (KIP-48)
v1      a throttled response is sent at once (KIP-219)
v2      flexible

Left out: nothing.
"""

from __future__ import annotations

from ...messages.renew_delegation_token_request import RenewDelegationTokenRequest
from ...messages.renew_delegation_token_response import RenewDelegationTokenResponse
from ..context import Context
from ..registry import handles
from .token_expiry import changed_expiry


@handles(RenewDelegationTokenRequest, versions=range(3))
def renew_delegation_token(
    context: Context, request: RenewDelegationTokenRequest, version: int
) -> RenewDelegationTokenResponse:
    """Renews a delegation token, and returns its new expiry time."""
    expiry = changed_expiry(
        context,
        lambda: context.cluster.tokens.renew(
            request.hmac, context.principal, request.renew_period_ms, context.clock.now_ms()
        ),
    )
    return RenewDelegationTokenResponse(**expiry._asdict())
