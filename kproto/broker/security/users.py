"""Holds the users of a cluster with their credentials: salted keys instead of passwords.

PLAIN and SCRAM start with the same users. AlterUserScramCredentials (KIP-554) changes only SCRAM,
because PLAIN's users are a separate list in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol.sasl import MIN_ITERATIONS, SaltedCredential
from ...wire.errors import AuthenticationError, ConfigurationError
from ..log_escaping import is_encodable

__all__ = ["SCRAM_MECHANISMS", "ScramMechanism", "Users", "check_users"]


class ScramMechanism(NamedTuple):
    """Holds a SCRAM mechanism: its number in AlterUserScramCredentials (KIP-554), name and hash."""

    number: int
    name: str
    hash_name: str


#: The SCRAM mechanisms by their numbers in AlterUserScramCredentials.
SCRAM_MECHANISMS: Final[Mapping[int, ScramMechanism]] = {
    each.number: each
    for each in (
        ScramMechanism(1, "SCRAM-SHA-256", "sha256"),
        ScramMechanism(2, "SCRAM-SHA-512", "sha512"),
    )
}


def check_users(users: Mapping[str, str]) -> None:
    """Raises ConfigurationError for a name or password that is empty or that SASL cannot transfer.

    Also raises ConfigurationError if `users` is not a mapping. The error contains no password.
    """
    if not isinstance(users, Mapping):
        raise ConfigurationError(
            f"users is a {type(users).__name__}; give a mapping of names to passwords"
        )
    for name, password in users.items():
        if not isinstance(name, str) or not isinstance(password, str) or not name or not password:
            raise ConfigurationError(
                f"users: {name!r} has no name or no password; both are texts, and not empty"
            )
        for what, text in (("name", name), ("password", password)):
            if "\0" in text or not is_encodable(text):
                raise ConfigurationError(
                    f"users: the {what} of {name!r} contains a NUL or a lone surrogate, which"
                    " SASL cannot transfer"
                )


class Users:
    """Holds the users of a cluster. `passwords` maps user names to passwords.

    The derivation of the keys takes some ms for each user. Passwords are used without SASLprep, as
    in Kafka.
    """

    def __init__(self, passwords: Mapping[str, str], iterations: int = MIN_ITERATIONS) -> None:
        self._scram: dict[int, dict[str, SaltedCredential]] = {
            number: {
                name: SaltedCredential.derive(
                    password,
                    hash_name=mechanism.hash_name,
                    iterations=iterations,
                    prepare_strings=False,
                )
                for name, password in passwords.items()
            }
            for number, mechanism in SCRAM_MECHANISMS.items()
        }
        self._plain = dict(self._scram[1])

    def for_plain(self, name: str) -> SaltedCredential | None:
        """Returns a user's credential for PLAIN; None for an unknown user."""
        return self._plain.get(name)

    def for_scram(self, number: int, name: str) -> SaltedCredential | None:
        """Returns a user's credential for SCRAM mechanism `number`; None for an unknown user."""
        return self._scram[number].get(name)

    @property
    def names(self) -> list[str]:
        """Returns the names of the users with SCRAM credentials, sorted."""
        return sorted(set().union(*self._scram.values()))

    def credentials(self, name: str) -> dict[int, SaltedCredential]:
        """Returns a user's SCRAM credentials by mechanism number; empty for an unknown user."""
        return {
            number: credentials[name]
            for number, credentials in self._scram.items()
            if name in credentials
        }

    def set(self, number: int, name: str, credential: SaltedCredential) -> None:
        """Sets a user's credential for SCRAM mechanism `number`.

        Raises AuthenticationError if the credential is for another hash.
        """
        if credential.hash_name != SCRAM_MECHANISMS[number].hash_name:
            raise AuthenticationError(f"a credential for {credential.hash_name} is of another hash")
        self._scram[number][name] = credential

    def remove(self, number: int, name: str) -> None:
        """Removes a user's credential for SCRAM mechanism `number`; open connections stay open."""
        del self._scram[number][name]
