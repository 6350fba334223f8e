"""`SecurityAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/security_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...client.admin.acls import AclBinding, AclBindingFilter
from ...client.admin.admin import Admin
from ...client.admin.quotas import ClientQuotaEntity, ClientQuotaFilter
from ...client.admin.scram_users import ScramAlteration, ScramMechanism
from ...client.admin.tokens import DelegationTokenInfo
from ..wrapper import Wrapper

__all__ = ["SecurityAdmin"]


class SecurityAdmin(Wrapper[Admin]):
    """Administers rights, quotas and credentials."""

    __slots__ = ()

    def describe_acls(
        self, acl_filter: AclBindingFilter = AclBindingFilter(), *, timeout_ms: int | None = None
    ) -> list[AclBinding]:
        """Returns the ACLs that a filter matches, by default all."""
        return self._call(self._wrapped.describe_acls, acl_filter, timeout_ms=timeout_ms)

    def create_acls(self, acls: Iterable[AclBinding], *, timeout_ms: int | None = None) -> None:
        """Creates ACLs; an ACL that exists already is no error. Raises AdminError by ACL."""
        self._call(self._wrapped.create_acls, acls, timeout_ms=timeout_ms)

    def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout_ms: int | None = None
    ) -> dict[AclBindingFilter, list[AclBinding]]:
        """Deletes the ACLs that filters match; returns the deleted ACLs by filter.

        A request that was not answered is not repeated, because the deleted ACLs would be unknown.
        Raises AdminError by filter; the error of a filter is another AdminError by ACL if only some
        of its ACLs were deleted.
        """
        return self._call(self._wrapped.delete_acls, filters, timeout_ms=timeout_ms)

    def describe_client_quotas(
        self,
        quota_filter: ClientQuotaFilter = ClientQuotaFilter(),
        *,
        timeout_ms: int | None = None,
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Returns the quotas of the entities that a filter matches, by default of all.

        The names are Kafka's: "producer_byte_rate" and "consumer_byte_rate" (bytes/s),
        "request_percentage", "controller_mutation_rate" and "connection_creation_rate" (1/s).
        """
        return self._call(self._wrapped.describe_client_quotas, quota_filter, timeout_ms=timeout_ms)

    def alter_client_quotas(
        self,
        quotas: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Sets quotas of entities by name; None removes a quota. Raises AdminError by entity."""
        self._call(
            self._wrapped.alter_client_quotas,
            quotas,
            validate_only=validate_only,
            timeout_ms=timeout_ms,
        )

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> dict[str, dict[ScramMechanism, int]]:
        """Returns the SCRAM credentials of users: the iterations by user and mechanism.

        `users` are by default all users with credentials. Raises AdminError by user, with
        RESOURCE_NOT_FOUND for a user without credentials.
        """
        return self._call(
            self._wrapped.describe_user_scram_credentials, users, timeout_ms=timeout_ms
        )

    def alter_user_scram_credentials(
        self, alterations: Iterable[ScramAlteration], *, timeout_ms: int | None = None
    ) -> None:
        """Sets and deletes SCRAM credentials of users (Kafka 2.7, KIP-554).

        The client derives the salted passwords, in a thread; the broker gets no password. Raises
        AdminError by `ScramCredential`, with RESOURCE_NOT_FOUND for the deletion of a missing
        credential.
        """
        self._call(self._wrapped.alter_user_scram_credentials, alterations, timeout_ms=timeout_ms)

    def create_delegation_token(
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
        return self._call(
            self._wrapped.create_delegation_token,
            renewers=renewers,
            owner=owner,
            max_lifetime_ms=max_lifetime_ms,
            timeout_ms=timeout_ms,
        )

    def renew_delegation_token(
        self, hmac: bytes, *, renew_period_ms: int = -1, timeout_ms: int | None = None
    ) -> int:
        """Renews a token, by its HMAC; returns the time in ms since 1970 at which it expires now.

        `renew_period_ms` is the time from now on; -1 is the broker's setting.
        """
        return self._call(
            self._wrapped.renew_delegation_token,
            hmac,
            renew_period_ms=renew_period_ms,
            timeout_ms=timeout_ms,
        )

    def expire_delegation_token(
        self, hmac: bytes, *, expiry_period_ms: int = -1, timeout_ms: int | None = None
    ) -> int:
        """Sets the end of a token, by its HMAC; returns the time in ms since 1970.

        `expiry_period_ms` is the time from now on; -1 ends the token at once. Raises
        BrokerResponseError, with DELEGATION_TOKEN_NOT_FOUND for an unknown token; after an attempt
        that was not answered, a note on the error says so.
        """
        return self._call(
            self._wrapped.expire_delegation_token,
            hmac,
            expiry_period_ms=expiry_period_ms,
            timeout_ms=timeout_ms,
        )

    def describe_delegation_token(
        self, owners: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> list[DelegationTokenInfo]:
        """Returns the tokens that the client may describe, of `owners` or of all owners."""
        return self._call(self._wrapped.describe_delegation_token, owners, timeout_ms=timeout_ms)
