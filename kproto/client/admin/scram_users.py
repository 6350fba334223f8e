"""Describes and alters SCRAM credentials of users: requests and results as plain data.

DescribeUserScramCredentials (50) and AlterUserScramCredentials (51, KIP-554). The broker gets the
salted password, never the password.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ...messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ...messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from ...messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ...messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from ...protocol.kafka_enum import KafkaEnum
from ...protocol.sasl.credentials import MIN_ITERATIONS, SALT_BYTES, salted_password
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, KprotoError
from .calls import PartCall, error_in

__all__ = [
    "ScramAlteration",
    "ScramCredential",
    "ScramMechanism",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "alter_scram_call",
    "checked_alterations",
    "describe_users_request",
    "described_users",
    "rounds",
    "salted",
]

#: The most iterations that a broker accepts.
_MAX_ITERATIONS: Final = 16_384


class ScramMechanism(KafkaEnum):
    """The SCRAM mechanisms."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


#: The names in `hashlib`.
_HASHES: Final = {
    ScramMechanism.SCRAM_SHA_256: "sha256",
    ScramMechanism.SCRAM_SHA_512: "sha512",
}


class ScramCredential(NamedTuple):
    """Identifies a credential: a user, and one of its mechanisms."""

    user: str
    mechanism: ScramMechanism

    def __str__(self) -> str:
        return f"{self.mechanism.name} of user {self.user!r}"


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """A new password of a user for one mechanism; `salt` is by default random.

    The password is encoded as UTF-8 without SASLprep, as in Kafka's own clients and tools.
    """

    user: str
    mechanism: ScramMechanism
    password: str = field(repr=False)
    iterations: int = MIN_ITERATIONS
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """A credential to delete: of a user, for one mechanism."""

    user: str
    mechanism: ScramMechanism


ScramAlteration: TypeAlias = UserScramCredentialUpsertion | UserScramCredentialDeletion


def checked_alterations(alterations: Iterable[ScramAlteration]) -> list[ScramAlteration]:
    """Returns the alterations as a list. Raises ConfigurationError for invalid ones.

    No text of an error has a password.
    """
    found = list(alterations)
    seen = set()
    for each in found:
        if not isinstance(each, UserScramCredentialUpsertion | UserScramCredentialDeletion):
            raise ConfigurationError(
                f"alterations has a {type(each).__name__}; pass a UserScramCredentialUpsertion or "
                "a UserScramCredentialDeletion"
            )
        if each.mechanism not in _HASHES:
            raise ConfigurationError(f"{each.mechanism!r} of user {each.user!r} is no mechanism")
        if (each.user, each.mechanism) in seen:
            raise ConfigurationError(
                f"alterations has {each.mechanism.name} of user {each.user!r} twice"
            )
        seen.add((each.user, each.mechanism))
        if isinstance(each, UserScramCredentialUpsertion):
            what = f"the iterations of user {each.user!r}"
            check_whole_number(what, each.iterations, MIN_ITERATIONS, _MAX_ITERATIONS)
            if not isinstance(each.password, str) or not each.password:
                raise ConfigurationError(f"the password of user {each.user!r} is empty, or no str")
    return found


def salted(each: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    """Returns the request's credential: derives the SaltedPassword (PBKDF2; RFC 5802, 3).

    Takes about 10 ms with 16,384 iterations.
    """
    salt = secrets.token_bytes(SALT_BYTES) if each.salt is None else each.salt
    return ScramCredentialUpsertion(
        name=each.user,
        mechanism=each.mechanism,
        iterations=each.iterations,
        salt=salt,
        salted_password=salted_password(
            _HASHES[each.mechanism], each.password.encode(), salt, each.iterations
        ),
    )


def alter_scram_call(
    upsertions: Mapping[ScramCredential, ScramCredentialUpsertion],
) -> PartCall[ScramCredential, None]:
    """Returns the call that alters credentials; those without an upsertion are deleted.

    A request has one credential of a user at most.
    """

    def build(
        credentials: Sequence[ScramCredential], left_ms: int
    ) -> AlterUserScramCredentialsRequest:
        return AlterUserScramCredentialsRequest(
            deletions=[
                ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
                for each in credentials
                if each not in upsertions
            ],
            upsertions=[upsertions[each] for each in credentials if each in upsertions],
        )

    def read(
        response: AlterUserScramCredentialsResponse, credentials: Sequence[ScramCredential]
    ) -> dict[ScramCredential, KprotoError | None]:
        of_users = {each.user: each for each in response.results}
        return {
            each: error_in(it.error_code, f"altering {each}", it.error_message)
            for each in credentials
            if (it := of_users.get(each.user)) is not None
        }

    return PartCall(
        "altering SCRAM credentials",
        build,
        read,
        changes=True,
        done_errors=frozenset({"RESOURCE_NOT_FOUND"}),
    )


def rounds(credentials: Iterable[ScramCredential]) -> list[list[ScramCredential]]:
    """Splits credentials into lists with one credential of a user at most.

    The controller refuses a request that alters two credentials of a user.
    """
    found: list[list[ScramCredential]] = []
    count: dict[str, int] = {}
    for each in credentials:
        at = count.get(each.user, 0)
        count[each.user] = at + 1
        if at == len(found):
            found.append([])
        found[at].append(each)
    return found


def describe_users_request(users: Iterable[str] | None) -> DescribeUserScramCredentialsRequest:
    """Returns the request for the credentials of users; None means all users."""
    names = None if users is None else [UserName(name=each) for each in users]
    return DescribeUserScramCredentialsRequest(users=names)


def described_users(
    response: DescribeUserScramCredentialsResponse,
) -> Mapping[str, dict[ScramMechanism, int] | KprotoError] | KprotoError:
    """Returns the iterations of each user by mechanism, or the error of the response."""
    action = "describing SCRAM credentials"
    whole = error_in(response.error_code, action, response.error_message)
    if whole is not None:
        return whole
    found: dict[str, dict[ScramMechanism, int] | KprotoError] = {}
    for each in response.results:
        error = error_in(each.error_code, f"{action} of user {each.user!r}", each.error_message)
        found[each.user] = error or {
            ScramMechanism(it.mechanism): it.iterations for it in each.credential_infos
        }
    return found
