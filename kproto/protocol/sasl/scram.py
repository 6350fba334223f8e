"""Implements SCRAM (RFC 5802, RFC 7677) for both sides: the order of messages, and the proofs.

`scram_messages` reads and writes the messages. Does no I/O, and reads no clock. The derivation of
the key takes milliseconds at usual iteration counts, and is bounded by `MAX_ITERATIONS`. A caller
that must not block that long may call `next` in a thread.
"""

from __future__ import annotations

import hmac
import secrets
from enum import Enum, auto
from typing import ClassVar, Final

from ...wire.checks import check_whole_number
from ...wire.errors import AuthenticationError, ConfigurationError
from .credentials import (
    INVALID_CREDENTIALS,
    MIN_ITERATIONS,
    CredentialLookup,
    Credentials,
    SaltedCredential,
    Salting,
    client_key,
    salted_password,
    server_key,
    stored_key,
)
from .saslprep import saslprep
from .scram_messages import ClientFinal, ClientFirst, ServerFinal, ServerFirst, is_nonce
from .text import encode_text

__all__ = [
    "MAX_ITERATIONS",
    "ScramClient",
    "ScramServer",
    "ScramSha256Client",
    "ScramSha256Server",
    "ScramSha512Client",
    "ScramSha512Server",
]

#: Maximum number of PBKDF2 rounds that a client computes, because a server may be hostile: sixteen
#: times Kafka's maximum (16,384), about a quarter of a second with SHA-512.
MAX_ITERATIONS: Final = 262_144

#: Random bytes of a nonce; 18 make 24 characters without padding.
NONCE_BYTES: Final = 18


class _Step(Enum):
    """Names the next step of an exchange, or its result.

    FIRST and FINAL: the client's first or final message is next. VERIFY: the client verifies the
    server's final message next.

    A failed exchange stays failed; each authentication needs a new exchange.
    """

    FIRST = auto()
    FINAL = auto()
    VERIFY = auto()
    DONE = auto()
    FAILED = auto()


class ScramClient:
    """Implements the client: call `first()`, then `next()` for each server message until `done`.

    The subclass sets the hash. `nonce` is for tests; it is random by default. `max_iterations`
    bounds the work that a server can demand. `salting` derives the salted password; pass one
    `PasswordSalter` to several exchanges to derive the password only once.

    Raises `AuthenticationError` from `first` for credentials that SASLprep refuses, and from `next`
    for a refusal, a malformed message or an iteration count outside the bounds. `next` also raises
    `AuthenticationError` if the server does not prove that it has the user's keys.
    """

    mechanism = ""
    hash_name: ClassVar[str]

    def __init__(
        self,
        credentials: Credentials,
        *,
        nonce: str | None = None,
        max_iterations: int = MAX_ITERATIONS,
        salting: Salting = salted_password,
    ) -> None:
        check_whole_number("max_iterations", max_iterations, MIN_ITERATIONS)
        self._credentials = credentials
        self._nonce = _nonce_or_random(nonce)
        self._max_iterations = max_iterations
        self._salting = salting
        self._password = b""
        self._client_first: ClientFirst | None = None
        self._server_signature = b""
        self._step = _Step.FIRST

    @property
    def done(self) -> bool:
        """Returns True if the server accepted the proof and proved that it has the user's keys."""
        return self._step is _Step.DONE

    def first(self) -> bytes:
        """Returns the message that opens the exchange."""
        if self._step is not _Step.FIRST:
            raise AuthenticationError(f"{self.mechanism}: this exchange has already begun")
        self._step = _Step.FAILED
        name, password = self._credentials.username, self._credentials.password
        if self._credentials.prepare_strings:
            name, password = saslprep(name, "user name"), saslprep(password, "password")
        self._password = encode_text(password, "password")
        opening = ClientFirst.build(
            name, self._nonce, token_auth=self._credentials.delegation_token
        )
        token = opening.encode()
        self._client_first = opening
        self._step = _Step.FINAL
        return token

    def next(self, challenge: bytes) -> bytes:
        """Returns the answer to `challenge`, a message of the server.

        The answer to the first message is the client's proof; the answer to the final message is
        b"". Raises AuthenticationError for a wrong or unexpected message.
        """
        step, self._step = self._step, _Step.FAILED
        if step is _Step.FINAL:
            response = self._prove(ServerFirst.parse(challenge))
            self._step = _Step.VERIFY
            return response
        if step is _Step.VERIFY:
            self._verify(ServerFinal.parse(challenge))
            self._step = _Step.DONE
            return b""
        raise AuthenticationError(f"{self.mechanism}: unexpected message of the server")

    def _prove(self, server_first: ServerFirst) -> bytes:
        """Returns the final message, the proof of the password (RFC 5802, 3)."""
        self._check(server_first)
        salted = self._salting(
            self.hash_name, self._password, server_first.salt, server_first.iterations
        )
        assert self._client_first is not None
        gs2_header = self._client_first.gs2_header
        without_proof = ClientFinal.text_to_sign(gs2_header, server_first.nonce)
        signed = _auth_message(self._client_first, server_first, without_proof)
        key = client_key(self.hash_name, salted)
        signature = hmac.digest(stored_key(self.hash_name, key), signed, self.hash_name)
        self._server_signature = hmac.digest(
            server_key(self.hash_name, salted), signed, self.hash_name
        )
        return ClientFinal.encode(without_proof, _xor(key, signature))

    def _check(self, server_first: ServerFirst) -> None:
        """Raises AuthenticationError for a nonce that does not continue the client's nonce.

        Also raises it for an iteration count out of bounds.
        """
        nonce, iterations = server_first.nonce, server_first.iterations
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise AuthenticationError(
                f"{self.mechanism}: the server's nonce does not continue the client's: its message"
                " is not an answer to this exchange"
            )
        if iterations < MIN_ITERATIONS:
            raise AuthenticationError(
                f"{self.mechanism}: the server requires {iterations} iterations, fewer than the"
                f" {MIN_ITERATIONS} that are safe: raise the user's iteration count on the broker"
            )
        if iterations > self._max_iterations:
            raise AuthenticationError(
                f"{self.mechanism}: the server requires {iterations} iterations, more than the"
                f" {self._max_iterations} that are allowed: raise max_iterations if you"
                " trust the server"
            )

    def _verify(self, server_final: ServerFinal) -> None:
        if not hmac.compare_digest(server_final.signature, self._server_signature):
            raise AuthenticationError(
                f"{self.mechanism}: the server's signature is wrong: the server does not have this"
                " user's keys, do not trust the server"
            )


class ScramServer:
    """Implements the server: call `next()` for each message of the client until `done`.

    `lookup` returns the credential of a user for this mechanism. `token_lookup` returns the
    credential of a delegation token by the token's id; it is called if the client sends
    `tokenauth=true`. If `token_lookup` is None, the server refuses such a client. `nonce` is for
    tests; it is random by default. With `prepare_strings` the server applies SASLprep to a name
    before it looks the name up.

    `next` raises `AuthenticationError` for a malformed or unexpected message, an authorization id
    other than the user, an unknown user (at once, as Kafka's broker does) and a wrong password. A
    broker reports this error in SaslAuthenticate as error code 58. `next` raises
    `ConfigurationError` if the user's credential is for another hash.
    """

    mechanism = ""
    hash_name: ClassVar[str]

    def __init__(
        self,
        lookup: CredentialLookup,
        *,
        token_lookup: CredentialLookup | None = None,
        nonce: str | None = None,
        prepare_strings: bool = True,
    ) -> None:
        self._lookup = lookup
        self._token_lookup = token_lookup
        self._nonce = _nonce_or_random(nonce)
        self._prepare_strings = prepare_strings
        self._client_first: ClientFirst | None = None
        self._server_first: ServerFirst | None = None
        self._credential: SaltedCredential | None = None
        self._username = ""
        self._step = _Step.FIRST

    @property
    def done(self) -> bool:
        """Returns True if the client is authenticated."""
        return self._step is _Step.DONE

    @property
    def username(self) -> str | None:
        """Returns the user, or the id of the delegation token; None unless `done`."""
        return self._username if self.done else None

    @property
    def token_auth(self) -> bool:
        """Returns True if `username` is the id of a delegation token; False unless `done`."""
        return self.done and self._client_first is not None and self._client_first.token_auth

    def next(self, response: bytes) -> bytes:
        """Answers the client: salt and iterations first, then the server's own proof."""
        step, self._step = self._step, _Step.FAILED
        if step is _Step.FIRST:
            challenge = self._challenge(ClientFirst.parse(response))
            self._step = _Step.FINAL
            return challenge
        if step is _Step.FINAL:
            challenge = self._verify(ClientFinal.parse(response))
            self._step = _Step.DONE
            return challenge
        raise AuthenticationError(f"{self.mechanism}: unexpected message of the client")

    def _challenge(self, client_first: ClientFirst) -> bytes:
        """Returns the server's first message: the combined nonce, the salt and the iterations."""
        name, other = client_first.username, client_first.authorization_id
        if self._prepare_strings:
            name = saslprep(name, "user name")
            other = saslprep(other, "authorization id") if other else ""
        if other not in ("", name):
            raise AuthenticationError(f"{self.mechanism}: a user may act only for itself")
        lookup = self._token_lookup if client_first.token_auth else self._lookup
        credential = lookup(name) if lookup is not None else None
        if credential is None:
            raise AuthenticationError(f"{self.mechanism}: {INVALID_CREDENTIALS}")
        if credential.hash_name != self.hash_name:
            raise ConfigurationError(
                f"{self.mechanism}: the user's credential is for {credential.hash_name}: derive"
                f" one for {self.hash_name}"
            )
        self._username = name
        self._credential = credential
        self._client_first = client_first
        self._server_first = ServerFirst.build(
            client_first.nonce + self._nonce, credential.salt, credential.iterations
        )
        return self._server_first.encode()

    def _verify(self, client_final: ClientFinal) -> bytes:
        """Returns the final message if the client's proof holds (RFC 5802, 3).

        Raises AuthenticationError for a wrong proof, nonce or channel binding.
        """
        assert self._client_first is not None
        assert self._server_first is not None
        assert self._credential is not None
        if client_final.channel_binding != self._client_first.gs2_header.encode():
            raise AuthenticationError(
                f"{self.mechanism}: the client's channel binding differs from its first message"
            )
        if client_final.nonce != self._server_first.nonce:
            raise AuthenticationError(f"{self.mechanism}: the client's nonce is not the server's")
        signed = _auth_message(self._client_first, self._server_first, client_final.without_proof)
        signature = hmac.digest(self._credential.stored_key, signed, self.hash_name)
        if not self._is_proof(client_final.proof, signature):
            raise AuthenticationError(f"{self.mechanism}: {INVALID_CREDENTIALS}")
        return ServerFinal(
            hmac.digest(self._credential.server_key, signed, self.hash_name)
        ).encode()

    def _is_proof(self, proof: bytes, signature: bytes) -> bool:
        """Returns True if H(ClientKey) is StoredKey, for ClientKey := proof XOR signature."""
        assert self._credential is not None
        if len(proof) != len(signature):
            return False
        offered = stored_key(self.hash_name, _xor(proof, signature))
        return hmac.compare_digest(offered, self._credential.stored_key)


class ScramSha256Client(ScramClient):
    """Implements a client of SCRAM-SHA-256 (RFC 7677)."""

    mechanism = "SCRAM-SHA-256"
    hash_name = "sha256"


class ScramSha512Client(ScramClient):
    """Implements a client of SCRAM-SHA-512: Kafka's name for RFC 5802 with SHA-512."""

    mechanism = "SCRAM-SHA-512"
    hash_name = "sha512"


class ScramSha256Server(ScramServer):
    """Implements a server of SCRAM-SHA-256 (RFC 7677)."""

    mechanism = "SCRAM-SHA-256"
    hash_name = "sha256"


class ScramSha512Server(ScramServer):
    """Implements a server of SCRAM-SHA-512: Kafka's name for RFC 5802 with SHA-512."""

    mechanism = "SCRAM-SHA-512"
    hash_name = "sha512"


def _nonce_or_random(nonce: str | None) -> str:
    if nonce is None:
        return secrets.token_urlsafe(NONCE_BYTES)
    if not is_nonce(nonce):
        raise ConfigurationError("a SCRAM nonce is printable ASCII without a comma, and not empty")
    return nonce


def _auth_message(
    client_first: ClientFirst, server_first: ServerFirst, without_proof: str
) -> bytes:
    """Returns AuthMessage (RFC 5802, 3), which both sides sign: all messages before the proof."""
    return f"{client_first.bare},{server_first.text},{without_proof}".encode()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
