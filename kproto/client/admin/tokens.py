"""Creates, renews, expires and describes delegation tokens: requests and results as plain data.

CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40) and
DescribeDelegationToken (41, KIP-48).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from ...messages.create_delegation_token_response import CreateDelegationTokenResponse
from ...messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from ...messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from ...messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from ...messages.renew_delegation_token_response import RenewDelegationTokenResponse
from ...security.mechanisms import DelegationToken
from ...wire.errors import ConfigurationError, KprotoError
from .calls import outcome

__all__ = [
    "DelegationTokenInfo",
    "create_token_request",
    "created_token",
    "describe_tokens_request",
    "described_tokens",
    "new_expiry",
]


@dataclass(frozen=True, slots=True)
class DelegationTokenInfo:
    """A delegation token; its HMAC is a secret, and hidden in the repr.

    Principals are texts such as "User:alice". The times are in ms since 1970: of the creation, of
    the end unless the token is renewed, and of the latest end.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    latest_expiry_ms: int
    hmac: bytes = field(repr=False)

    def sasl(self, mechanism: str = "SCRAM-SHA-256") -> DelegationToken:
        """Returns the credentials of a client that authenticates by this token."""
        return DelegationToken(
            self.token_id, base64.b64encode(self.hmac).decode(), mechanism=mechanism
        )


def _principal(text: str) -> tuple[str, str]:
    """Returns type and name of a principal. Raises ConfigurationError for another text."""
    kind, colon, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not kind or not colon or not name:
        raise ConfigurationError(f"{text!r:.80} is no principal, such as 'User:alice'")
    return kind, name


def create_token_request(
    renewers: Iterable[str], owner: str | None, max_lifetime_ms: int
) -> CreateDelegationTokenRequest:
    """Returns the request that creates a token; the lifetime -1 is the longest that is allowed.

    `owner` is the owner if it is not the principal of the client (Kafka 3.3, KIP-373).
    """
    kind, name = (None, None) if owner is None else _principal(owner)
    return CreateDelegationTokenRequest(
        owner_principal_type="" if kind is None else kind,
        owner_principal_name="" if name is None else name,
        renewers=[
            CreatableRenewers(principal_type=each[0], principal_name=each[1])
            for each in map(_principal, renewers)
        ],
        max_lifetime_ms=max_lifetime_ms,
    )


def created_token(
    response: CreateDelegationTokenResponse, renewers: Iterable[str]
) -> DelegationTokenInfo | KprotoError:
    """Returns the token of a response, or its error."""
    owner = f"{response.principal_type}:{response.principal_name}"
    requester = owner  # before Kafka 3.3
    if response.token_requester_principal_name:
        requester = (
            f"{response.token_requester_principal_type}:{response.token_requester_principal_name}"
        )
    return outcome(
        response.error_code,
        "creating a delegation token",
        None,
        DelegationTokenInfo(
            response.token_id,
            owner,
            requester,
            tuple(renewers),
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
            response.hmac,
        ),
    )


def new_expiry(
    response: RenewDelegationTokenResponse | ExpireDelegationTokenResponse, action: str
) -> int | KprotoError:
    """Returns the time in ms at which a token expires now, or the error of the response."""
    return outcome(response.error_code, action, None, response.expiry_timestamp_ms)


def describe_tokens_request(owners: Iterable[str] | None) -> DescribeDelegationTokenRequest:
    """Returns the request for the tokens of owners; None means all that the client may see."""
    if owners is None:
        return DescribeDelegationTokenRequest(owners=None)
    return DescribeDelegationTokenRequest(
        owners=[
            DescribeDelegationTokenOwner(principal_type=each[0], principal_name=each[1])
            for each in map(_principal, owners)
        ]
    )


def described_tokens(
    response: DescribeDelegationTokenResponse,
) -> list[DelegationTokenInfo] | KprotoError:
    """Returns the tokens of a response, or its error."""
    return outcome(
        response.error_code,
        "describing delegation tokens",
        None,
        [
            DelegationTokenInfo(
                each.token_id,
                f"{each.principal_type}:{each.principal_name}",
                f"{each.token_requester_principal_type}:{each.token_requester_principal_name}"
                if each.token_requester_principal_name
                else f"{each.principal_type}:{each.principal_name}",
                tuple(f"{it.principal_type}:{it.principal_name}" for it in each.renewers),
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
                each.hmac,
            )
            for each in response.tokens
        ],
    )
