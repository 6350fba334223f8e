"""Tests each SASL mechanism over real sockets, and that each refusal raises one error."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest

from kproto import Client, OAuthBearer, Plain
from kproto.messages import (
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kproto.wire.errors import (
    AuthenticationError,
    RequestTimeoutError,
)
from tests.unit.client.network.secured import (
    GOOD,
    MECHANISMS,
    TRUSTING,
    connected,
    refused,
    who,
)
from tests.unit.client.secured_broker import (
    SECRET,
    USER,
    SecuredBroker,
    sasl_of,
)

# --- SASL ---


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("handshake", [0, 1])
async def test_client_authenticates_with_each_mechanism(
    mechanism: str, tls: bool, handshake: int
) -> None:
    broker = SecuredBroker(tls=GOOD if tls else None, mechanisms=MECHANISMS, handshake=handshake)
    async with (
        broker,
        connected(broker, sasl=who(mechanism), tls=TRUSTING if tls else False) as connection,
    ):
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"
        sent = [type(each.message) for each in broker.asked if each.message is not None]
        assert sent[1] is SaslHandshakeRequest
        assert (SaslAuthenticateRequest in sent) == bool(handshake)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("handshake", [0, 1])
async def test_wrong_secret_raises_without_showing_it(mechanism: str, handshake: int) -> None:
    wrong = "wrong-secret-0815"
    async with SecuredBroker(mechanisms=MECHANISMS, handshake=handshake) as broker:
        error = await refused(broker, sasl=who(mechanism, wrong))
    assert isinstance(error, AuthenticationError)
    assert mechanism in str(error)
    assert wrong not in "".join(traceback.format_exception(error))


async def test_message_of_the_broker_is_included_without_the_secret() -> None:
    async with SecuredBroker(mechanisms=("PLAIN",)) as broker:
        broker.message = "user alice, password wrong-secret: \x07no"
        error = await refused(broker, sasl=Plain("al", "wrong-secret"))
    assert "the broker refused the PLAIN authentication: user alice, password <hidden>: ?no" in str(
        error
    )


async def test_disabled_mechanism_is_an_error() -> None:
    async with SecuredBroker(mechanisms=("SCRAM-SHA-512", "OAUTHBEARER")) as broker:
        error = await refused(broker, sasl=who("PLAIN"))
    assert isinstance(error, AuthenticationError)
    assert "PLAIN is not enabled at this listener; these are: SCRAM-SHA-512, OAUTHBEARER" in str(
        error
    )


async def test_wrong_server_signature_is_an_error() -> None:
    async with SecuredBroker(mechanisms={"SCRAM-SHA-256": lambda: Impostor()}) as broker:
        error = await refused(broker, sasl=who("SCRAM-SHA-256"))
    assert isinstance(error, AuthenticationError)
    assert "the server's signature is wrong" in str(error)


class Impostor:
    """The server side of SCRAM-SHA-256 with a wrong server signature."""

    mechanism = "SCRAM-SHA-256"
    username = None

    def __init__(self) -> None:
        self.real = sasl_of("SCRAM-SHA-256")
        self.done = False

    def next(self, response: bytes) -> bytes:
        token = self.real.next(response)
        self.done = token.startswith(b"v=")
        return b"v=" + b"A" * 43 + b"=" if self.done else token


class Own:
    """A custom SASL mechanism; `at` is the name of the method that raises `fault`."""

    mechanism = "OWN"
    readable = False

    def __init__(self, fault: BaseException | None = None, at: str = "") -> None:
        self.fault, self.at, self.done = fault, at, False

    def _fail(self, at: str) -> None:
        if self.fault is not None and self.at == at:
            raise self.fault

    async def exchange(self, host: str) -> Any:
        self._fail("exchange")
        return self

    def first(self) -> bytes:
        self._fail("first")
        return f"\0{USER}\0{SECRET}".encode()

    def next(self, challenge: bytes) -> bytes:
        self._fail("next")
        self.done = True
        return b""


async def test_custom_mechanism_authenticates_or_fails() -> None:
    async with SecuredBroker(mechanisms={"OWN": lambda: sasl_of("PLAIN")}) as broker:
        async with connected(broker, sasl=Own()) as connection:
            assert connection.usable
        for at in ("exchange", "first", "next"):
            error = await refused(broker, sasl=Own(ValueError(SECRET), at))
            assert isinstance(error, AuthenticationError)
            assert "the mechanism OWN raised ValueError" in str(error)


async def test_missing_token_times_out() -> None:
    async def never() -> str:
        await asyncio.sleep(60)
        return ""

    async with SecuredBroker(mechanisms=("OAUTHBEARER",)) as broker:
        error = await refused(broker, sasl=OAuthBearer(never), connect_timeout_ms=200)
    assert isinstance(error, RequestTimeoutError)
    assert "OAUTHBEARER had no token within 200 ms (connect_timeout_ms)" in str(error)


async def test_token_function_that_cancels_itself_is_an_error() -> None:
    async def token() -> str:
        raise asyncio.CancelledError

    async with SecuredBroker(mechanisms=("OAUTHBEARER",)) as broker:
        client = Client(broker.bootstrap, sasl=OAuthBearer(token))
        with pytest.raises(AuthenticationError, match="OAUTHBEARER was cancelled from within"):
            await client.refresh([])
        await client.close()


async def test_wait_for_a_token_can_be_cancelled() -> None:
    async def token() -> str:
        await asyncio.sleep(3_600)
        return SECRET

    async with SecuredBroker(mechanisms=("OAUTHBEARER",)) as broker:
        client = Client(broker.bootstrap, sasl=OAuthBearer(token))
        call = asyncio.create_task(client.refresh([]))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await client.close()


async def test_scram_keys_are_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from kproto.protocol.sasl import credentials

    derive, derived = credentials.salted_password, []

    def note(*what: Any) -> bytes:
        derived.append(what)
        return derive(*what)

    monkeypatch.setattr(credentials, "salted_password", note)
    sasl = who("SCRAM-SHA-256")
    async with SecuredBroker(mechanisms=("SCRAM-SHA-256",)) as broker:
        for _ in range(3):
            async with connected(broker, sasl=sasl):
                pass
        assert broker.authentications == 3
    assert len(derived) == 1
