"""Holds the credentials of a user on each side of a SASL exchange.

A client holds `Credentials`: name and password. A server needs only a `SaltedCredential`, from
which the password cannot be recovered. The reprs of these two classes show no secrets. The
functions derive the keys of SCRAM (RFC 5802, 3).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, TypeAlias

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from .saslprep import saslprep
from .text import encode_text

__all__ = [
    "MIN_ITERATIONS",
    "CredentialLookup",
    "Credentials",
    "PasswordSalter",
    "SaltedCredential",
    "Salting",
]

#: Minimum number of PBKDF2 rounds, as in RFC 7677 (section 4) and in Kafka's client and broker.
MIN_ITERATIONS: Final = 4096

#: The error for an unknown user and for a wrong password: it does not reveal which of the two.
INVALID_CREDENTIALS: Final = "invalid user name or password"

#: Bytes of a new random salt.
SALT_BYTES: Final = 16

#: Maximum number of salted passwords that `PasswordSalter` caches. All brokers of a cluster store
#: the same salt for a user; each change of the password brings a new salt.
MAX_CACHED_PASSWORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Credentials:
    """Holds a client's user name and password, or a delegation token's id and HMAC (KIP-48).

    With `prepare_strings` SCRAM applies SASLprep (RFC 4013) to name and password first, as RFC 5802
    requires. Kafka's own classes use the UTF-8 unchanged. The results differ only for text that
    SASLprep changes or refuses, such as compatibility characters. For such a password, set
    `prepare_strings=False` if the broker has salted it unchanged.

    Raises `ConfigurationError` for a name or password that is empty or has a NUL.
    """

    username: str
    password: str = field(repr=False)
    delegation_token: bool = False
    prepare_strings: bool = True

    def __post_init__(self) -> None:
        for what, text in (("user name", self.username), ("password", self.password)):
            if not text:
                raise ConfigurationError(f"the SASL {what} is empty: set it")
            if "\0" in text:
                raise ConfigurationError(f"the SASL {what} holds a NUL, which SASL cannot carry")


@dataclass(frozen=True, slots=True)
class SaltedCredential:
    """Holds what a server stores for a password (RFC 5802, 3): salt, StoredKey and ServerKey.

    `hash_name` is a name of `hashlib`, such as `sha256`; StoredKey and ServerKey have the length of
    the hash's digest.

    Raises `ConfigurationError` for values that no client would accept: too few iterations, no
    salt, keys of a wrong length, an unknown hash.
    """

    hash_name: str
    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_salting(self.hash_name, self.iterations, self.salt)
        size = _digest_size(self.hash_name)
        if len(self.stored_key) != size or len(self.server_key) != size:
            raise ConfigurationError(
                f"stored key and server key of {self.hash_name} have {size} bytes,"
                f" not {len(self.stored_key)} and {len(self.server_key)}"
            )

    @classmethod
    def derive(
        cls,
        password: str,
        *,
        hash_name: str = "sha256",
        iterations: int = MIN_ITERATIONS,
        salt: bytes | None = None,
        prepare_strings: bool = True,
    ) -> SaltedCredential:
        """Returns the credential of `password`, salted with `salt` (by default random bytes).

        Raises `AuthenticationError` for a password that SASLprep or UTF-8 does not allow, and
        `ConfigurationError` for a hash, an iteration count or a salt that no client would accept.
        """
        if salt is None:
            salt = secrets.token_bytes(SALT_BYTES)
        _check_salting(hash_name, iterations, salt)
        prepared = saslprep(password, "password", stored=True) if prepare_strings else password
        salted = salted_password(hash_name, encode_text(prepared, "password"), salt, iterations)
        return cls.from_salted_password(
            salted, hash_name=hash_name, iterations=iterations, salt=salt
        )

    @classmethod
    def from_salted_password(
        cls, salted: bytes, *, hash_name: str, iterations: int, salt: bytes
    ) -> SaltedCredential:
        """Returns the credential of a SaltedPassword, as in AlterUserScramCredentials (KIP-554)."""
        return cls(
            hash_name=hash_name,
            iterations=iterations,
            salt=salt,
            stored_key=stored_key(hash_name, client_key(hash_name, salted)),
            server_key=server_key(hash_name, salted),
        )

    def matches(self, password: str, *, prepare_strings: bool = True) -> bool:
        """Returns True if `password` is the user's; compares in constant time.

        Raises `AuthenticationError` for a password that SASLprep or UTF-8 does not allow.
        """
        prepared = saslprep(password, "password") if prepare_strings else password
        salted = salted_password(
            self.hash_name, encode_text(prepared, "password"), self.salt, self.iterations
        )
        offered = stored_key(self.hash_name, client_key(self.hash_name, salted))
        return hmac.compare_digest(offered, self.stored_key)


#: Returns the credential of a user, None if there is no such user. The argument is the user name,
#: after SASLprep if the server applies it.
CredentialLookup: TypeAlias = Callable[[str], SaltedCredential | None]


def _check_salting(hash_name: str, iterations: int, salt: bytes) -> None:
    """Raises ConfigurationError for a hash, iteration count or salt that no client accepts."""
    if _digest_size(hash_name) == 0:
        raise ConfigurationError(f"{hash_name!r} is no hash for SCRAM: take sha256 or sha512")
    check_whole_number("iterations", iterations, MIN_ITERATIONS)
    if not salt:
        raise ConfigurationError("a credential without a salt: draw some random bytes")


def _digest_size(hash_name: str) -> int:
    """Returns the length of a digest in bytes; 0 for an unknown hash or a variable length."""
    try:
        return hashlib.new(hash_name).digest_size
    except ValueError:
        return 0


def salted_password(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Returns SaltedPassword := Hi(password, salt, i), which is PBKDF2."""
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)


#: Returns the SaltedPassword by name of the hash, password, salt and iterations.
Salting: TypeAlias = Callable[[str, bytes, bytes, int], bytes]


class PasswordSalter:
    """Salts one user's password, and caches the last results, so that reconnecting costs no time.

    Several threads may call a salter at the same time; the calls run one after another. Copies and
    pickles have no cached results.
    """

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[str, bytes, bytes, int], bytes] = OrderedDict()
        self._lock = Lock()

    def __call__(self, hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Returns the result of `salted_password`, from the cache if the cache has it."""
        key = (hash_name, password, salt, iterations)
        with self._lock:
            found = self._cache.pop(key, None)
            if found is None:
                found = salted_password(hash_name, password, salt, iterations)
            self._cache[key] = found
            if len(self._cache) > MAX_CACHED_PASSWORDS:
                self._cache.popitem(last=False)
        return found

    def __reduce__(self) -> tuple[type[PasswordSalter], tuple[()]]:
        """Omits the cached results, which are as secret as the password."""
        return PasswordSalter, ()


def client_key(hash_name: str, salted: bytes) -> bytes:
    """Returns ClientKey := HMAC(SaltedPassword, "Client Key")."""
    return hmac.digest(salted, b"Client Key", hash_name)


def stored_key(hash_name: str, client: bytes) -> bytes:
    """Returns StoredKey := H(ClientKey)."""
    return hashlib.new(hash_name, client).digest()


def server_key(hash_name: str, salted: bytes) -> bytes:
    """Returns ServerKey := HMAC(SaltedPassword, "Server Key")."""
    return hmac.digest(salted, b"Server Key", hash_name)
