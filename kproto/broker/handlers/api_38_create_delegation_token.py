"""CreateDelegationToken (38), v0 to v3.

v0      creates a token that the client owns, with renewers (KIP-48)
v1      a throttled response is sent at once (KIP-219)
v2      flexible
v3      another owner than the client (KIP-373)

A client that is not authenticated, or that authenticated by a token, gets
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. A token for another owner requires CREATE_TOKENS on that user.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.create_delegation_token_request import CreateDelegationTokenRequest
from ...messages.create_delegation_token_response import CreateDelegationTokenResponse
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..principals import USER, Principal
from ..registry import handles
from ..security.tokens import DelegationToken, check_token_request

_FIRST_VERSION_WITH_OWNER = 3


@handles(CreateDelegationTokenRequest, versions=range(4))
def create_delegation_token(
    context: Context, request: CreateDelegationTokenRequest, version: int
) -> CreateDelegationTokenResponse:
    """Creates a delegation token, and returns its id, HMAC and times."""
    owner = context.principal
    if version >= _FIRST_VERSION_WITH_OWNER and request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    response = CreateDelegationTokenResponse(principal_type=owner.kind, principal_name=owner.name)
    if version >= _FIRST_VERSION_WITH_OWNER:
        response.token_requester_principal_type = context.principal.kind
        response.token_requester_principal_name = context.principal.name
    try:
        token = _create(context, request, owner)
    except BrokerResponseError as error:
        response.error_code = error.code
        return response
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token.token_id
    response.hmac = token.hmac
    return response


def _create(
    context: Context, request: CreateDelegationTokenRequest, owner: Principal
) -> DelegationToken:
    check_token_request(
        context.security_protocol,
        context.principal,
        token_authenticated=context.token_authenticated,
    )
    if owner != context.principal:
        check(context, Operation.CREATE_TOKENS, ResourceType.USER, str(owner))
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    for principal in (owner, *renewers):
        if principal.kind != USER:
            raise api_error("INVALID_PRINCIPAL_TYPE", f"the type of {principal} is not {USER}")
    return context.cluster.tokens.create(
        owner, context.principal, renewers, request.max_lifetime_ms, context.clock.now_ms()
    )
