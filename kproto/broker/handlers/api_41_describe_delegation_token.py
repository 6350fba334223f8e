"""DescribeDelegationToken (41), v0 to v3.

v0      the tokens that the named principals own or may renew; all tokens for null (KIP-48)
v1      a throttled response is sent at once (KIP-219)
v2      flexible
v3      the requester of each token (KIP-373)

A client that is not authenticated, or that authenticated by a token, gets
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Other clients get the tokens that they own or may renew.
Further tokens require DESCRIBE on the token or DESCRIBE_TOKENS on its owner; without an authorizer
both are allowed.

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
from ..security.tokens import DelegationToken, check_token_request

_FIRST_VERSION_WITH_REQUESTER = 3


@handles(DescribeDelegationTokenRequest, versions=range(4))
def describe_delegation_token(
    context: Context, request: DescribeDelegationTokenRequest, version: int
) -> DescribeDelegationTokenResponse:
    """Returns the requested tokens that the client may describe."""
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


def _may_see(context: Context, token: DelegationToken) -> bool:
    return (
        token.is_of(context.principal)
        or allows(context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or allows(context, Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def _described(token: DelegationToken, version: int) -> DescribedDelegationToken:
    described = DescribedDelegationToken(
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
        described.token_requester_principal_type = token.requester.kind
        described.token_requester_principal_name = token.requester.name
    return described
