"""Tests the first frames of a connection: versions, SASL handshake, tokens and refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.base import Message
from kproto.protocol.headers import encode_response_header, parse_request_header
from kproto.protocol.sasl import Credentials, SaltedCredential, client_exchange, server_exchange
from kproto.security.handshake import ConnectionHandshake
from kproto.wire.errors import AuthenticationError, DecodeError, ProtocolError

SALTED = SaltedCredential.derive("hunter2", salt=b"salt", prepare_strings=False)


class Listener:
    """A broker's side of the handshake; it authenticates one user by SCRAM-SHA-256."""

    def __init__(self, handshake: int = 1, authenticate: int | None = 2) -> None:
        self.keys = [(18, 4), (17, handshake)]
        if authenticate is not None:
            self.keys.append((36, authenticate))
        self.exchange = server_exchange("SCRAM-SHA-256", {"alice": SALTED}.get)
        self.is_bare = False
        self.clients: set[str | None] = set()

    def answer(self, frame: bytes) -> bytes:
        if self.is_bare:
            return self.exchange.next(frame)
        header = parse_request_header(frame)
        self.clients.add(header.client_id)
        key, version = header.api_key, header.api_version
        body = frame[header.body :]
        made: Message
        if key == ApiVersionsRequest.API_KEY:
            versions = [ApiVersion(api_key=k, min_version=0, max_version=v) for k, v in self.keys]
            made = ApiVersionsResponse(api_keys=versions)
        elif key == SaslHandshakeRequest.API_KEY:
            self.is_bare = version == 0
            asked = SaslHandshakeRequest.decode(body, version)
            is_known = asked.mechanism == "SCRAM-SHA-256"
            made = SaslHandshakeResponse(
                error_code=0 if is_known else 33, mechanisms=["SCRAM-SHA-256"]
            )
        else:
            token = SaslAuthenticateRequest.decode(body, version).auth_bytes
            try:
                made = SaslAuthenticateResponse(auth_bytes=self.exchange.next(token))
            except AuthenticationError:
                made = SaslAuthenticateResponse(error_code=58, error_message="no hunter2")
        return encode_response_header(type(made), version, header.correlation_id) + made.encode(
            version
        )


def opening(password: str = "hunter2", mechanism: str = "SCRAM-SHA-256") -> ConnectionHandshake:
    credentials = Credentials("alice", password, prepare_strings=False)
    return ConnectionHandshake(client_exchange(mechanism, credentials), "b:1", "me")


def played(one: ConnectionHandshake, answer: Callable[[bytes], bytes]) -> int:
    """Runs a handshake to its end; returns how many frames the client has sent."""
    count = 0
    sent: bytes | None = one.begin()
    while sent is not None:
        count += 1
        sent = one.next(answer(sent))
    return count


@pytest.mark.parametrize(
    "listener", [Listener(), Listener(authenticate=0), Listener(handshake=0, authenticate=None)]
)
def test_the_client_becomes_known(listener: Listener) -> None:
    assert played(opening(), listener.answer) == 4
    assert listener.exchange.done
    assert listener.clients == {"me"}


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (opening("wrong"), "^b:1: the broker refused the SCRAM-SHA-256 authentication"),
        (
            opening(mechanism="PLAIN"),
            "^b:1: the SASL mechanism PLAIN is not enabled .*: SCRAM-SHA-256$",
        ),
    ],
)
def test_a_refusal_is_told(one: ConnectionHandshake, said: str) -> None:
    with pytest.raises(AuthenticationError, match=said):
        played(one, Listener().answer)


def test_a_listener_before_kafka_1_closes_on_a_wrong_token() -> None:
    one = opening()
    listener = Listener(handshake=0, authenticate=None)
    sent: bytes | None = one.begin()
    assert one.disconnect_error() is None
    for _ in range(2):
        assert sent is not None
        sent = one.next(listener.answer(sent))
    assert isinstance(one.disconnect_error(), AuthenticationError)


def test_invalid_answer_is_reported() -> None:
    one = opening()
    one.begin()
    with pytest.raises(ProtocolError, match="has the correlation id 7, but 1 was expected"):
        one.next(encode_response_header(ApiVersionsResponse, 0, 7))
    with pytest.raises(DecodeError):
        one.next(b"\0")
