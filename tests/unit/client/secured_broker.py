"""Provides a scripted broker with TLS and SASL, by the server exchanges of kproto.protocol.

Like Kafka, the broker answers only ApiVersions before authentication. The broker answers
a failed authentication with error 58 and then closes the connection. `lifetime_ms` limits sessions
(KIP-368).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Self

import trustme

from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.protocol.connection import ReceivedRequest, ServerConnection
from kproto.protocol.framing import FrameReader, frame
from kproto.protocol.sasl import (
    BearerIdentity,
    BearerToken,
    OAuthBearerServer,
    SaltedCredential,
    ServerExchange,
    server_exchange,
)
from kproto.wire.errors import AuthenticationError
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions

__all__ = ["SECRET", "USER", "SecuredBroker", "client_ca", "sasl_of", "server_tls"]

USER = "alice"
SECRET = "open-sesame-4711"

#: Computed once, because 4096 rounds in each test would take longer than the test.
SALTED = {
    name: SaltedCredential.derive(
        SECRET, hash_name=name, salt=b"salt of alice", prepare_strings=False
    )
    for name in ("sha256", "sha512")
}


def client_ca(ca: trustme.CA) -> str:
    """Returns the PEM certificate of a CA."""
    return ca.cert_pem.bytes().decode()


def server_tls(
    ca: trustme.CA, *names: str, client_ca: trustme.CA | None = None, issued: Any = None
) -> ssl.SSLContext:
    """Returns the server's TLS context, with a certificate for `names`.

    If `client_ca` is given, the server requires a client certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (issued or ca.issue_cert(*names)).configure_cert(context)
    if client_ca is not None:
        client_ca.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def sasl_of(mechanism: str, secret: str = SECRET) -> ServerExchange:
    """Returns the server side of a mechanism, with one known user."""

    def lookup(name: str) -> SaltedCredential | None:
        salted = SALTED["sha512" if mechanism.endswith("512") else "sha256"]
        return salted if name == USER else None

    def validate(token: BearerToken) -> BearerIdentity:
        if token.value != secret:
            raise AuthenticationError("no such token")
        return BearerIdentity(USER)

    if mechanism == "OAUTHBEARER":
        return OAuthBearerServer(validate)
    return server_exchange(mechanism, lookup)


class _Session:
    """The authentication state of one connection."""

    def __init__(self) -> None:
        self.exchange: ServerExchange | None = None
        self.bare = False
        self.is_authenticated = False
        self.authenticated = 0


class SecuredBroker(ScriptedBroker):
    """Offers `mechanisms`: names, or a factory of the server exchange for each name.

    If `mechanisms` is empty, the broker requires no authentication.
    """

    def __init__(
        self,
        topics: dict[str, int] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        mechanisms: Mapping[str, Callable[[], ServerExchange]] | tuple[str, ...] = (),
        lifetime_ms: int = 0,
        handshake: int = 1,
    ) -> None:
        super().__init__(topics)
        self.tls = tls
        if isinstance(mechanisms, tuple):
            mechanisms = {name: lambda name=name: sasl_of(name) for name in mechanisms}  # type: ignore[misc]
        self.mechanisms = mechanisms
        self.lifetime_ms = lifetime_ms
        self.handshake = handshake
        self.sessions: dict[asyncio.StreamWriter, _Session] = {}
        self.message: str | None = "Authentication failed: Invalid username or password"
        self.answers[ApiVersionsRequest] = lambda asked: self._versions()

    def _versions(self) -> ApiVersionsResponse:
        answer = api_versions()
        for key in list(answer.api_keys):
            if key.api_key == SaslHandshakeRequest.API_KEY:
                key.max_version = self.handshake
            if key.api_key == SaslAuthenticateRequest.API_KEY and not self.handshake:
                answer.api_keys.remove(key)
        return answer

    @property
    def authentications(self) -> int:
        """The number of authentications on all connections."""
        return sum(session.authenticated for session in self.sessions.values())

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        session = self.sessions[writer] = _Session()
        frames, connection = FrameReader(), ServerConnection()
        try:
            while data := await reader.read(65_536):
                for content in frames.feed(data):
                    if session.bare and not session.is_authenticated:
                        stays_open = self._take_bare(session, content, writer)
                    else:
                        asked = connection.receive(content)
                        stays_open = await self._take(session, connection, asked, writer)
                    if not stays_open:
                        return
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    def _take_bare(self, session: _Session, token: bytes, writer: asyncio.StreamWriter) -> bool:
        assert session.exchange is not None
        try:
            writer.write(frame(session.exchange.next(token)))
        except AuthenticationError:
            return False
        session.is_authenticated = session.exchange.done
        return True

    async def _take(
        self,
        session: _Session,
        connection: ServerConnection,
        asked: ReceivedRequest,
        writer: asyncio.StreamWriter,
    ) -> bool:
        message = asked.message
        if isinstance(message, SaslHandshakeRequest):
            self.asked.append(asked)
            writer.write(connection.send(asked, self._shake(session, message, asked.version)))
            return session.exchange is not None
        if isinstance(message, SaslAuthenticateRequest):
            self.asked.append(asked)
            answer = self._authenticate(session, message)
            writer.write(connection.send(asked, answer))
            return not answer.error_code
        if (
            self.mechanisms
            and not session.is_authenticated
            and not isinstance(message, ApiVersionsRequest)
        ):
            return False
        return await self._answer(connection, asked, writer)

    def _shake(
        self, session: _Session, message: SaslHandshakeRequest, version: int
    ) -> SaslHandshakeResponse:
        if not self.mechanisms:
            return SaslHandshakeResponse(error_code=34)
        make = self.mechanisms.get(message.mechanism)
        session.exchange = None if make is None else make()
        session.bare = version == 0
        return SaslHandshakeResponse(
            error_code=33 if make is None else 0, mechanisms=list(self.mechanisms)
        )

    def _authenticate(
        self, session: _Session, message: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        assert session.exchange is not None
        try:
            token = session.exchange.next(message.auth_bytes)
        except AuthenticationError:
            return SaslAuthenticateResponse(error_code=58, error_message=self.message)
        if session.exchange.done:
            session.is_authenticated = True
            session.authenticated += 1
        return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=self.lifetime_ms)
