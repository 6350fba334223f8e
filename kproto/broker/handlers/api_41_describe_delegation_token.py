"""DescribeDelegationToken (41), v0 to v3.

v0      the tokens of some owners, or all for null (KIP-48)
v1      throttle time first for the client
v2      flexible
v3      the requester of each (KIP-373)

A client that authenticated by a token gets none. A client gets the tokens that it owns or may
renew; others require DESCRIBE of the token or DESCRIBE_TOKENS of its owner, which are granted
without an authorizer.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from ...messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from ...wire.errors import BrokerResponseError
from ..authorization import allows
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..principals import Principal
from ..registry import handles
from ..security.tokens import Token, check_token_request

_FIRST_VERSION_WITH_REQUESTER = 3


@handles(DescribeDelegationTokenRequest, versions=range(4))
def describe_delegation_token(
    context: Context, request: DescribeDelegationTokenRequest, version: int
) -> DescribeDelegationTokenResponse:
    """Describes the tokens that the client may see."""
    requested = None
    if request.owners is not None:
        requested = [Principal(each.principal_type, each.principal_name) for each in request.owners]
    try:
        check_token_request(
            context.security_protocol,
            context.principal,
            token_authenticated=context.token_authenticated,
        )
        tokens = list(context.cluster.tokens.all_tokens(context.clock.now_ms()))
    except BrokerResponseError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token, version)
            for token in tokens
            if (requested is None or any(token.is_of(each) for each in requested))
            and _may_see(context, token)
        ]
    )


def _may_see(context: Context, token: Token) -> bool:
    return (
        token.is_of(context.principal)
        or allows(context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or allows(context, Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def _described(token: Token, version: int) -> DescribedDelegationToken:
    all_tokens = DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=token.hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.kind, principal_name=each.name)
            for each in token.renewers
        ],
    )
    if version >= _FIRST_VERSION_WITH_REQUESTER:
        all_tokens.token_requester_principal_type = token.requester.kind
        all_tokens.token_requester_principal_name = token.requester.name
    return all_tokens
