"""Tests the client with a secured broker: each mechanism, refusals, and logs without secrets."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
import traceback

import pytest
import trustme

import kproto
from kproto.broker import Broker, BrokerSettings, Listener, ServerTls
from kproto.messages import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    MetadataRequest,
    SaslHandshakeRequest,
)
from kproto.protocol.sasl import BearerIdentity, BearerToken
from kproto.protocol.sasl.unsecured_jws import unsecured_token
from kproto.wire.errors import AuthenticationError, ConfigurationError
from tests.support.secured_broker import (
    ALL_MECHANISMS,
    PASSWORDS,
    authority_pem,
    of_kind,
    pem_of,
    server_tls,
)

PLAIN, SHA_256, _, BEARER = ALL_MECHANISMS
KINDS = ("SASL_PLAINTEXT", "SASL_SSL")
SECRET_KEY = "the key that tokens are made with"
HOUR_MS = 3_600_000
GUESSED = "guessed and wrong"
TRUST = kproto.Tls(ca=authority_pem())
ME = kproto.Tls(ca=authority_pem(), certificate=pem_of("me@example.org", common_name="me"))

STRANGER = kproto.Tls(
    ca=authority_pem(),
    certificate=trustme.CA()
    .issue_cert("eve@example.org")
    .private_key_and_cert_chain_pem.bytes()
    .decode(),
)


def settings(**more: object) -> BrokerSettings:
    return BrokerSettings(
        listeners=(
            *(of_kind(kind) for kind in ("PLAINTEXT", "SSL", *KINDS)),
            Listener("REQUIRED", tls=server_tls("required")),
        ),
        users=PASSWORDS,
        delegation_token_secret_key=SECRET_KEY,
        **more,  # type: ignore[arg-type]
    )


def sasl_of(mechanism: str, secret: str = PASSWORDS["alice"]) -> kproto.Sasl:
    if mechanism == "PLAIN":
        return kproto.Plain("alice", secret)
    if mechanism == "SCRAM-SHA-256":
        return kproto.ScramSha256("alice", secret)
    if mechanism == "SCRAM-SHA-512":
        return kproto.ScramSha512("alice", secret)
    late = 0 if secret == PASSWORDS["alice"] else 10 * HOUR_MS
    return kproto.OAuthBearer(lambda: unsecured_token("alice", now_ms=now_ms() - late))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def tls_of(kind: str) -> bool | kproto.Tls:
    return TRUST if "SSL" in kind else False


async def write_and_read(client: kproto.Client, topic: str) -> bytes | None:
    async with client.producer() as producer:
        await producer.send(topic, b"hello")
    async for record in client.consumer(topic, start="earliest"):
        return record.value
    return None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
async def test_client_writes_and_reads_without_secrets_in_logs(
    kind: str, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    sasl = sasl_of(mechanism)
    with caplog.at_level(logging.DEBUG):
        async with Broker(settings()) as broker:
            broker.create_topic("t")
            where = broker.bootstrap_of(kind)
            async with kproto.Client(where, tls=tls_of(kind), sasl=sasl) as client:
                assert await write_and_read(client, "t") == b"hello"
    assert "as User:alice" in caplog.text
    assert PASSWORDS["alice"] not in caplog.text
    assert "eyJ" not in caplog.text, "every token begins with it"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
async def test_wrong_secret_is_one_error_without_the_secret(
    kind: str, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    sasl = sasl_of(mechanism, GUESSED)
    with caplog.at_level(logging.DEBUG):
        async with Broker(settings()) as broker:
            began = time.monotonic()
            with pytest.raises(AuthenticationError) as caught:
                async with kproto.Client(
                    broker.bootstrap_of(kind), tls=tls_of(kind), sasl=sasl
                ) as client:
                    await client.request(MetadataRequest())
            # Otherwise the client would retry for two minutes (api_timeout_ms).
            assert time.monotonic() - began < 60
    text = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "authentication failed" in caplog.text
    for secret in (GUESSED, PASSWORDS["alice"], "eyJ"):
        assert secret not in text


async def test_client_certificate_authenticates() -> None:
    async with Broker(settings()) as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap_of("REQUIRED"), tls=ME) as client:
            assert await write_and_read(client, "t") == b"hello"


@pytest.mark.parametrize(
    ("kind", "tls", "sasl", "reason"),
    [
        ("SSL", kproto.Tls(), None, "certificate"),
        ("SSL", True, None, "certificate"),
        ("REQUIRED", TRUST, None, "certificate"),
        ("REQUIRED", STRANGER, None, "certificate"),
        ("SASL_PLAINTEXT", False, kproto.Plain("nobody", "x y z"), "Invalid username or password"),
        ("PLAINTEXT", False, kproto.Plain("alice", "x y z"), "has no SASL"),
    ],
)
async def test_mismatched_security_is_one_error(
    kind: str, tls: bool | kproto.Tls, sasl: kproto.Sasl | None, reason: str
) -> None:
    async with Broker(settings()) as broker:
        with pytest.raises(AuthenticationError, match=reason):
            async with kproto.Client(broker.bootstrap_of(kind), tls=tls, sasl=sasl) as client:
                await client.request(MetadataRequest())


async def test_error_names_enabled_mechanisms() -> None:
    listener = Listener("SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-256", "OAUTHBEARER"))
    async with Broker(BrokerSettings(listeners=(listener,), users=PASSWORDS)) as broker:
        with pytest.raises(AuthenticationError, match="SCRAM-SHA-256, OAUTHBEARER"):
            async with kproto.Client(broker.bootstrap, sasl=sasl_of("PLAIN")) as client:
                await client.request(MetadataRequest())


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        "SCRAM-SHA-512",
        *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (PLAIN, SHA_256, BEARER)),
    ],
)
async def test_reauthentication_under_load_loses_no_record(mechanism: str) -> None:
    async with Broker(settings(sasl_session_lifetime_ms=1500)) as broker:
        shaken: list[object] = []
        broker.control(shaken.append, request=SaslHandshakeRequest)  # returns None
        broker.create_topic("t")
        async with kproto.Client(
            broker.bootstrap_of("SASL_PLAINTEXT"), sasl=sasl_of(mechanism)
        ) as client:
            count = 0
            end = time.monotonic() + 3.5
            async with client.producer() as producer:
                while time.monotonic() < end:
                    acks = [producer.send("t", b"%d" % n) for n in range(count, count + 50)]
                    count += 50
                    await asyncio.gather(*acks)
        values = [record.value for record in broker.records("t")]
        assert values == [b"%d" % n for n in range(count)]
    assert len(shaken) >= 3


async def test_delegation_token_works_until_expired() -> None:
    async with Broker(settings()) as broker:
        where = broker.bootstrap_of("SASL_SSL")
        async with kproto.Client(where, tls=TRUST, sasl=sasl_of("SCRAM-SHA-512")) as client:
            made = await client.request(CreateDelegationTokenRequest())
            token = kproto.DelegationToken(made.token_id, base64.b64encode(made.hmac).decode())
            async with kproto.Client(where, tls=TRUST, sasl=token) as other:
                assert (await other.request(MetadataRequest())).controller_id == 1
            expire = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
            assert (await client.request(expire)).error_code == 0
        with pytest.raises(AuthenticationError, match="invalid credentials"):
            async with kproto.Client(where, tls=TRUST, sasl=token) as other:
                await other.request(MetadataRequest())


async def test_custom_validator_yields_the_principal() -> None:
    seen: list[BearerToken] = []

    def validate(token: BearerToken) -> BearerIdentity:
        seen.append(token)
        if token.value != "opaque":
            raise AuthenticationError("no")
        return BearerIdentity("carol", now_ms() + 60_000)

    async with Broker(settings(validate_token=validate)) as broker:
        where = broker.bootstrap_of("SASL_PLAINTEXT")
        bearer = kproto.OAuthBearer(lambda: "opaque", {"tenant": "bread"})
        async with kproto.Client(where, sasl=bearer) as client:
            await client.request(MetadataRequest())
        assert dict(seen[0].extensions) == {"tenant": "bread"}
        with pytest.raises(AuthenticationError, match="invalid_token"):
            async with kproto.Client(where, sasl=kproto.OAuthBearer(lambda: "other")) as client:
                await client.request(MetadataRequest())


@pytest.mark.slow
async def test_many_clients_authenticate_at_once() -> None:
    async with Broker(settings()) as broker:
        where = broker.bootstrap_of("SASL_SSL")

        async def one(mechanism: str) -> int:
            async with kproto.Client(where, tls=TRUST, sasl=sasl_of(mechanism)) as client:
                return (await client.request(MetadataRequest())).controller_id

        found = await asyncio.gather(*(one(each) for each in ALL_MECHANISMS * 8))
        assert found == [1] * 32
        while broker.connections:  # noqa: ASYNC110 - what is waited for is the broker's own affair
            await asyncio.sleep(0.01)


async def test_a_broker_with_an_unreadable_certificate_does_not_start() -> None:
    tls = server_tls()
    broken = Listener("SSL", tls=ServerTls(certificate="/nowhere/broker.pem"))
    broker = Broker(BrokerSettings(listeners=(Listener("other", tls=tls), broken)))
    with pytest.raises(ConfigurationError, match=r"/nowhere/broker\.pem"):
        await broker.start()
