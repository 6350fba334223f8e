"""Users and their credentials: salted keys, from which no password can be recovered.

Knows no message and no connection. PLAIN and SCRAM start with the same users; later changes
(KIP-554) apply to SCRAM alone, because PLAIN has its own list in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol.sasl import MIN_ITERATIONS, SaltedCredential
from ...wire.errors import AuthenticationError, ConfigurationError
from ..log_escaping import is_encodable

__all__ = ["SCRAM_MECHANISMS", "ScramMechanism", "Users", "check_users"]


class ScramMechanism(NamedTuple):
    """A mechanism by its number in AlterUserScramCredentials (KIP-554)."""

    number: int
    name: str
    hash_name: str


#: The SCRAM mechanisms by number.
SCRAM_MECHANISMS: Final[Mapping[int, ScramMechanism]] = {
    each.number: each
    for each in (
        ScramMechanism(1, "SCRAM-SHA-256", "sha256"),
        ScramMechanism(2, "SCRAM-SHA-512", "sha512"),
    )
}


def check_users(users: Mapping[str, str]) -> None:
    """Raises ConfigurationError for users that could not authenticate; it shows no password."""
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
                    f"users: the {what} of {name!r} holds a NUL or half a character, which SASL"
                    " cannot carry"
                )


class Users:
    """The users of a cluster. Deriving their keys takes some ms each.

    Passwords are used as they are, without SASLprep, as in Kafka's own classes.
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
        """Returns a user's credential for the SCRAM mechanism with this number."""
        return self._scram[number].get(name)

    @property
    def names(self) -> list[str]:
        """Returns the users with SCRAM credentials, sorted."""
        return sorted(set().union(*self._scram.values()))

    def credentials(self, name: str) -> dict[int, SaltedCredential]:
        """Returns a user's credentials by mechanism number; empty for an unknown user."""
        return {
            number: credentials[name]
            for number, credentials in self._scram.items()
            if name in credentials
        }

    def set(self, number: int, name: str, credential: SaltedCredential) -> None:
        """Sets a user's credential."""
        if credential.hash_name != SCRAM_MECHANISMS[number].hash_name:
            raise AuthenticationError(f"a credential for {credential.hash_name} is of another hash")
        self._scram[number][name] = credential

    def remove(self, number: int, name: str) -> None:
        """Removes a user's credential; open connections stay."""
        del self._scram[number][name]
