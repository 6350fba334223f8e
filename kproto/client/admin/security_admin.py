"""The calls of `Admin` for ACLs, client quotas, SCRAM credentials and delegation tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from ...messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from ...messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from ...messages.renew_delegation_token_request import RenewDelegationTokenRequest
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, KprotoError
from .acls import (
    AclBinding,
    AclBindingFilter,
    create_acls_call,
    delete_acls_call,
    describe_acls_request,
    described_acls,
)
from .area import AdminArea
from .arguments import checked_list, checked_map, checked_names
from .calls import PartCall
from .errors import AdminError
from .quotas import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    QuotaName,
    alter_quotas_call,
    describe_quotas_request,
    described_quotas,
)
from .scram_users import (
    ScramAlteration,
    ScramCredential,
    ScramMechanism,
    UserScramCredentialUpsertion,
    alter_scram_call,
    checked_alterations,
    describe_users_request,
    described_users,
    rounds,
    salted,
)
from .tokens import (
    DelegationTokenInfo,
    create_token_request,
    created_token,
    describe_tokens_request,
    described_tokens,
    new_expiry,
)

__all__ = ["SecurityAdmin"]


class SecurityAdmin(AdminArea):
    """Administers rights, quotas and credentials."""

    # ACLs

    async def describe_acls(
        self,
        acl_filter: AclBindingFilter = AclBindingFilter(),  # noqa: B008 - immutable
        *,
        timeout_ms: int | None = None,
    ) -> list[AclBinding]:
        """Returns the ACLs that a filter matches, by default all."""
        _check_kind("acl_filter", acl_filter, AclBindingFilter)
        return await self._requester.single(
            "describing ACLs", describe_acls_request(acl_filter), described_acls, timeout_ms
        )

    async def create_acls(
        self, acls: Iterable[AclBinding], *, timeout_ms: int | None = None
    ) -> None:
        """Creates ACLs; an ACL that exists already is no error. Raises AdminError by ACL."""
        wanted = checked_list("acls", acls)
        for each in wanted:
            _check_kind("acls", each, AclBinding)
        await self._requester.by_part(create_acls_call(), wanted, timeout_ms)

    async def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout_ms: int | None = None
    ) -> dict[AclBindingFilter, list[AclBinding]]:
        """Deletes the ACLs that filters match; returns the deleted ACLs by filter.

        A request that was not answered is not repeated, because the deleted ACLs would be unknown.
        Raises AdminError by filter; the error of a filter is another AdminError by ACL if only some
        of its ACLs were deleted.
        """
        wanted = checked_list("filters", filters)
        for each in wanted:
            _check_kind("filters", each, AclBindingFilter)
        return await self._requester.by_part(delete_acls_call(), wanted, timeout_ms)

    # Quotas

    async def describe_client_quotas(
        self,
        quota_filter: ClientQuotaFilter = ClientQuotaFilter(),  # noqa: B008 - immutable
        *,
        timeout_ms: int | None = None,
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Returns the quotas of the entities that a filter matches, by default of all.

        The names are Kafka's: "producer_byte_rate" and "consumer_byte_rate" (bytes/s),
        "request_percentage", "controller_mutation_rate" and "connection_creation_rate" (1/s).
        """
        _check_kind("quota_filter", quota_filter, ClientQuotaFilter)
        return await self._requester.single(
            "describing quotas", describe_quotas_request(quota_filter), described_quotas, timeout_ms
        )

    async def alter_client_quotas(
        self,
        quotas: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Sets quotas of entities by name; None removes a quota. Raises AdminError by entity."""
        for entity in checked_map("quotas", quotas):
            _check_kind("quotas", entity, ClientQuotaEntity)
            if QuotaName.ANY in entity or entity == ClientQuotaEntity():
                raise ConfigurationError(
                    f"{entity!r} is no entity: set user, client_id or ip to a name or to "
                    "QuotaName.DEFAULT"
                )
        call = alter_quotas_call(quotas, validate_only=validate_only)
        await self._requester.by_part(call, quotas, timeout_ms)

    # SCRAM credentials

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> dict[str, dict[ScramMechanism, int]]:
        """Returns the SCRAM credentials of users: the iterations by user and mechanism.

        `users` are by default all users with credentials. Raises AdminError by user, with
        RESOURCE_NOT_FOUND for a user without credentials.
        """
        action = "describing SCRAM credentials"
        if users is None:
            found = await self._requester.single(
                action, describe_users_request(None), described_users, timeout_ms
            )
            errors = {user: it for user, it in found.items() if isinstance(it, KprotoError)}
            results = {user: it for user, it in found.items() if not isinstance(it, KprotoError)}
            if errors:
                raise AdminError(action, results, errors)
            return results

        def read(
            response: DescribeUserScramCredentialsResponse, names: Sequence[str]
        ) -> Mapping[str, dict[ScramMechanism, int] | KprotoError]:
            its = described_users(response)
            return dict.fromkeys(names, its) if isinstance(its, KprotoError) else its

        call: PartCall[str, dict[ScramMechanism, int]] = PartCall(
            action, build=lambda names, left_ms: describe_users_request(names), read=read
        )
        return await self._requester.by_part(call, checked_names("users", users), timeout_ms)

    async def alter_user_scram_credentials(
        self, alterations: Iterable[ScramAlteration], *, timeout_ms: int | None = None
    ) -> None:
        """Sets and deletes SCRAM credentials of users (Kafka 2.7, KIP-554).

        The client derives the salted passwords, in a thread; the broker gets no password. Raises
        AdminError by `ScramCredential`, with RESOURCE_NOT_FOUND for the deletion of a missing
        credential.
        """
        wanted = checked_alterations(alterations)
        upsertions = [each for each in wanted if isinstance(each, UserScramCredentialUpsertion)]
        credentials = await asyncio.to_thread(
            lambda: {
                ScramCredential(each.user, each.mechanism): salted(each) for each in upsertions
            }
        )
        call = alter_scram_call(credentials)

        async def send(
            parts: Sequence[ScramCredential], left_ms: int
        ) -> dict[ScramCredential, KprotoError | None]:
            found: dict[ScramCredential, KprotoError | None] = {}
            for each in rounds(parts):
                found |= await self._requester.attempt(call, each, left_ms)
            return found

        parts = [ScramCredential(each.user, each.mechanism) for each in wanted]
        await self._requester.run(call, send, parts, timeout_ms)

    # Delegation tokens

    async def create_delegation_token(
        self,
        *,
        renewers: Iterable[str] = (),
        owner: str | None = None,
        max_lifetime_ms: int = -1,
        timeout_ms: int | None = None,
    ) -> DelegationTokenInfo:
        """Creates a delegation token for the principal of this client, or for `owner` (KIP-373).

        `renewers` are principals that may renew the token, such as "User:alice"; the owner always
        may. `max_lifetime_ms` is the longest time with renewals; -1 is the longest that the brokers
        allow. A request that was not answered is not repeated, because it may have created a token.
        Raises BrokerResponseError, with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED on a connection
        without authentication.
        """
        check_whole_number("max_lifetime_ms", max_lifetime_ms, -1)
        names = checked_names("renewers", renewers)
        return await self._requester.single(
            "creating a delegation token",
            create_token_request(names, owner, max_lifetime_ms),
            lambda response: created_token(response, names),
            timeout_ms,
            changes=True,
            repeats=False,
        )

    async def renew_delegation_token(
        self, hmac: bytes, *, renew_period_ms: int = -1, timeout_ms: int | None = None
    ) -> int:
        """Renews a token, by its HMAC; returns the time in ms since 1970 at which it expires now.

        `renew_period_ms` is the time from now on; -1 is the broker's setting.
        """
        check_whole_number("renew_period_ms", renew_period_ms, -1)
        action = "renewing a delegation token"
        return await self._requester.single(
            action,
            RenewDelegationTokenRequest(hmac=_hmac(hmac), renew_period_ms=renew_period_ms),
            lambda response: new_expiry(response, action),
            timeout_ms,
            changes=True,
        )

    async def expire_delegation_token(
        self, hmac: bytes, *, expiry_period_ms: int = -1, timeout_ms: int | None = None
    ) -> int:
        """Sets the end of a token, by its HMAC; returns the time in ms since 1970.

        `expiry_period_ms` is the time from now on; -1 ends the token at once. Raises
        BrokerResponseError, with DELEGATION_TOKEN_NOT_FOUND for an unknown token; after an attempt
        that was not answered, a note on the error says so.
        """
        check_whole_number("expiry_period_ms", expiry_period_ms, -1)
        action = "expiring a delegation token"
        return await self._requester.single(
            action,
            ExpireDelegationTokenRequest(hmac=_hmac(hmac), expiry_time_period_ms=expiry_period_ms),
            lambda response: new_expiry(response, action),
            timeout_ms,
            changes=True,
            done_errors=frozenset({"DELEGATION_TOKEN_NOT_FOUND"}),
        )

    async def describe_delegation_token(
        self, owners: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> list[DelegationTokenInfo]:
        """Returns the tokens that the client may describe, of `owners` or of all owners."""
        wanted = None if owners is None else checked_names("owners", owners)
        return await self._requester.single(
            "describing delegation tokens",
            describe_tokens_request(wanted),
            described_tokens,
            timeout_ms,
        )


def _check_kind(what: str, value: object, kind: type[tuple[object, ...]]) -> None:
    if not isinstance(value, kind):
        raise ConfigurationError(f"{what} has {value!r:.80}, which is no {kind.__name__}")


def _hmac(hmac: object) -> bytes:
    if not isinstance(hmac, bytes):
        raise ConfigurationError("the HMAC of a delegation token is bytes: pass `token.hmac`")
    return hmac
