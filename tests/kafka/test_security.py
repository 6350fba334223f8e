"""Tests the client on secured brokers: mechanisms authenticate, each refusal raises one error."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

import kproto
from kproto.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
)
from kproto.wire.errors import KprotoError
from tests.support.secured import Operation, allow, remove_right, sasl_of
from tools.kafka.certificates import Authority
from tools.kafka.secured import MECHANISMS, SESSION_MS, SecuredKafka, unsecured_token

LONG_MS = 60_000
PATIENT = kproto.ClientSettings(
    connect_timeout_ms=LONG_MS,
    connect_timeout_max_ms=LONG_MS,
    request_timeout_ms=LONG_MS,
    reconnect_backoff_ms=LONG_MS,
    reconnect_backoff_max_ms=LONG_MS,
    retry_backoff_ms=LONG_MS,
    retry_backoff_max_ms=LONG_MS,
)
"""With these settings every retry and every timeout takes a minute."""

AT_ONCE_S = 30.0
"""The latest time for an error in seconds: too short for any retry or timeout of `PATIENT`."""


@pytest_asyncio.fixture
async def admin(secured: SecuredKafka) -> AsyncIterator[kproto.Client]:
    """Yields a client with all rights, which connects to the unsecured listener."""
    async with kproto.Client(secured.bootstrap["PLAINTEXT"]) as client:
        yield client


@pytest_asyncio.fixture
async def topic(admin: kproto.Client) -> AsyncIterator[str]:
    """Yields a topic with one partition, to which no user has a right."""
    name = f"secured-{uuid.uuid4().hex}"
    await admin.create_topics(kproto.NewTopic(name, 1, 1))
    await admin.topic(name)
    yield name
    await admin.delete_topics(name)


def tls(kafka: SecuredKafka, **parts: Any) -> kproto.Tls:
    return kproto.Tls(**{"ca": kafka.authority.pem, **parts})


async def write_and_read(client: kproto.Client, topic: str, value: bytes) -> bytes | None:
    async with client.producer() as producer:
        ack = await producer.send(topic, value)
    async with client.consumer(topic, start="earliest") as consumer:
        async for record in consumer:
            if record.offset == ack.offset:
                return record.value
    return None


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "listener", [pytest.param("SASL_PLAINTEXT", marks=pytest.mark.exhaustive), "SASL_SSL"]
)
async def test_records_are_sent_and_read_with_every_mechanism(
    secured: SecuredKafka, admin: kproto.Client, topic: str, listener: str, mechanism: str
) -> None:
    await allow(admin, topic, Operation.READ, Operation.WRITE)
    encrypted = tls(secured) if listener == "SASL_SSL" else False
    async with kproto.Client(
        secured.bootstrap[listener], tls=encrypted, sasl=sasl_of(secured, mechanism)
    ) as client:
        assert await write_and_read(client, topic, b"hello") == b"hello"


async def test_records_are_sent_and_read_over_tls(
    secured: SecuredKafka, admin: kproto.Client, topic: str
) -> None:
    await allow(admin, topic, Operation.READ, Operation.WRITE, user="ANONYMOUS")
    async with kproto.Client(secured.bootstrap["SSL"], tls=tls(secured)) as client:
        assert await write_and_read(client, topic, b"x" * 900_000) == b"x" * 900_000


async def test_client_certificate_authenticates(secured: SecuredKafka) -> None:
    mine = secured.client_certificate
    for key, password in ((mine.key, None), (mine.encrypted_key("secret"), "secret")):
        shown = tls(secured, certificate=mine.chain, key=key, key_password=password)
        async with kproto.Client(secured.bootstrap["MTLS"], tls=shown) as client:
            assert client.cluster.brokers


async def test_delegation_token_authenticates(secured: SecuredKafka) -> None:
    async with kproto.Client(
        secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=sasl_of(secured, "SCRAM-SHA-512")
    ) as client:
        made = await client.request(CreateDelegationTokenRequest(max_lifetime_ms=600_000))
        assert made.error_code == 0
        hmac = base64.b64encode(made.hmac).decode()
        await wait_for_token(client, made.token_id)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        token = kproto.DelegationToken(made.token_id, hmac, mechanism)
        async with kproto.Client(
            secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=token
        ) as client:
            assert client.cluster.brokers
    wrong = kproto.DelegationToken(made.token_id, base64.b64encode(b"guessed").decode())
    with pytest.raises(kproto.AuthenticationError, match="SCRAM-SHA-256"):
        async with kproto.Client(secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=wrong):
            pass
    # Other tests on this broker list the tokens.
    async with kproto.Client(
        secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=sasl_of(secured, "PLAIN")
    ) as client:
        expired = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
        assert (await client.request(expired)).error_code == 0


async def wait_for_token(client: kproto.Client, token_id: str) -> None:
    """Waits until the broker has received a newly created token from its controller."""
    async with asyncio.timeout(10):
        while True:
            answer = await client.request(DescribeDelegationTokenRequest(owners=None))
            if token_id in {each.token_id for each in answer.tokens}:
                return
            await asyncio.sleep(0.05)


async def test_client_credentials_grant_authenticates(secured: SecuredKafka) -> None:
    """The test issues the tokens itself; the broker is real."""
    requests: list[bytes] = []

    async def issue(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        body = json.dumps({"access_token": unsecured_token("alice"), "expires_in": 60}).encode()
        head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    issuer = await asyncio.start_server(issue, "127.0.0.1", 0)
    async with issuer:
        port = issuer.sockets[0].getsockname()[1]
        grant = kproto.ClientCredentials(f"http://127.0.0.1:{port}/token", "me", "hush-5")
        async with kproto.Client(
            secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=grant
        ) as client:
            assert client.cluster.brokers
    assert len(requests) == 1
    assert b"Authorization: Basic " in requests[0]


class Wrong(NamedTuple):
    """Client settings with one mistake, and a text that the resulting error must contain."""

    listener: str
    tls: Callable[[SecuredKafka], Any]
    sasl: Callable[[SecuredKafka], Any]
    error_text: str


def right_user(kafka: SecuredKafka) -> kproto.Sasl:
    return sasl_of(kafka, "SCRAM-SHA-512")


def no_sasl(_kafka: SecuredKafka) -> None:
    return None


WRONG = {
    "password of PLAIN": Wrong(
        "SASL_SSL", tls, lambda it: sasl_of(it, "PLAIN", password="hush-1"), "PLAIN"
    ),
    "password of SCRAM-SHA-256": Wrong(
        "SASL_SSL", tls, lambda it: sasl_of(it, "SCRAM-SHA-256", password="hush-2"), "SCRAM-SHA-256"
    ),
    "password of SCRAM-SHA-512": Wrong(
        "SASL_PLAINTEXT",
        lambda _: False,
        lambda it: sasl_of(it, "SCRAM-SHA-512", password="hush-3"),
        "SCRAM-SHA-512",
    ),
    "user": Wrong("SASL_SSL", tls, lambda it: sasl_of(it, "PLAIN", "mallory"), "PLAIN"),
    "token": Wrong("SASL_SSL", tls, lambda _: kproto.OAuthBearer(lambda: "hush-4"), "OAUTHBEARER"),
    "certificate that is expired": Wrong("EXPIRED", tls, right_user, "expired"),
    "certificate for another host": Wrong("WRONG_HOST", tls, right_user, "127.0.0.1"),
    "authority that is not trusted": Wrong(
        "SASL_SSL", lambda _: kproto.Tls(ca=Authority().pem), right_user, "certificate"
    ),
    "authority that the system does not know": Wrong(
        "SASL_SSL", lambda _: True, right_user, "certificate"
    ),
    "no client certificate": Wrong("MTLS", tls, no_sasl, "certificate"),
    "client certificate of another authority": Wrong(
        "MTLS",
        lambda it: tls(it, certificate=(other := Authority().client("alice")).chain, key=other.key),
        no_sasl,
        "certificate",
    ),
    "TLS to a listener without": Wrong("PLAINTEXT", tls, no_sasl, "TLS"),
    "TLS to a SASL listener without": Wrong("SASL_PLAINTEXT", tls, right_user, "TLS"),
    "no TLS to a listener with": Wrong("SSL", lambda _: False, no_sasl, "TLS"),
    "no TLS to a SASL listener with": Wrong("SASL_SSL", lambda _: False, right_user, "TLS"),
    "no SASL to a listener with": Wrong("SASL_PLAINTEXT", lambda _: False, no_sasl, "SASL"),
    "no SASL to a listener with both": Wrong("SASL_SSL", tls, no_sasl, "SASL"),
    "SASL to a listener without": Wrong("PLAINTEXT", lambda _: False, right_user, "SASL"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_settings_raise_at_once(
    secured: SecuredKafka, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = WRONG[name]
    encrypted, sasl = wrong.tls(secured), wrong.sasl(secured)  # not part of the measured time
    began = time.monotonic()
    with pytest.raises(KprotoError) as caught:
        async with kproto.Client(
            secured.bootstrap[wrong.listener], PATIENT, tls=encrypted, sasl=sasl
        ):
            pass
    assert time.monotonic() - began < AT_ONCE_S
    assert wrong.error_text in str(caught.value)
    said = f"{caught.value!r} {caught.value.__cause__!r} {caplog.text} {secured.node.log}"
    for secret in ("hush-", *secured.passwords.values()):
        assert secret not in said


async def test_removed_write_right_fails_the_producer(
    secured: SecuredKafka, admin: kproto.Client, topic: str
) -> None:
    await allow(admin, topic, Operation.READ, Operation.WRITE)
    async with (
        kproto.Client(
            secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=sasl_of(secured, "PLAIN")
        ) as client,
        client.producer() as producer,
    ):
        await producer.send(topic, b"allowed")
        await remove_right(admin, topic, Operation.WRITE)

        async def send_until_refused() -> None:
            async with asyncio.timeout(10):  # until the broker applies the removal of the ACL
                while True:
                    await producer.send(topic, b"x")

        with pytest.raises(KprotoError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
            await send_until_refused()
        assert topic in str(caught.value)


async def test_one_denied_topic_does_not_fail_the_others(
    secured: SecuredKafka, admin: kproto.Client, topic: str
) -> None:
    denied = f"{topic}-denied"
    await admin.create_topics(kproto.NewTopic(denied, 1, 1))
    await allow(admin, topic, Operation.READ, Operation.WRITE)
    await allow(admin, denied, Operation.DESCRIBE)
    async with (
        kproto.Client(
            secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=sasl_of(secured, "SCRAM-SHA-256")
        ) as client,
        client.producer() as producer,
    ):
        results = await asyncio.gather(
            *(producer.send(name, b"x") for name in (topic, denied) * 5), return_exceptions=True
        )
    assert [isinstance(result, KprotoError) for result in results] == [False, True] * 5
    assert "TOPIC_AUTHORIZATION_FAILED" in str(results[1])
    await admin.delete_topics(denied)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_sasl_sessions_are_renewed_while_records_flow(
    secured: SecuredKafka, admin: kproto.Client, topic: str, mechanism: str
) -> None:
    """Records are sent through several SASL sessions without loss, duplicates or reordering."""
    await allow(admin, topic, Operation.READ, Operation.WRITE)
    ends = time.monotonic() + 3.5 * SESSION_MS / 1000
    async with kproto.Client(
        secured.bootstrap["SHORT"], tls=tls(secured), sasl=sasl_of(secured, mechanism)
    ) as client:
        sent = 0
        async with client.producer() as producer:

            async def send() -> None:
                nonlocal sent
                while time.monotonic() < ends:
                    await asyncio.gather(
                        *(producer.send(topic, b"%d" % (sent + n)) for n in range(20))
                    )
                    sent += 20
                await producer.send(topic, b"-1")

            sending = asyncio.create_task(send())
            read: list[int] = []
            async with client.consumer(topic, start="earliest") as consumer:
                async for record in consumer:
                    assert record.value is not None
                    if record.value == b"-1":
                        break
                    read.append(int(record.value))
            await sending
    assert read == list(range(sent))
    assert sent > 100


async def test_many_clients_authenticate_at_once(secured: SecuredKafka) -> None:
    async def connect(mechanism: str) -> int:
        async with kproto.Client(
            secured.bootstrap["SASL_SSL"], tls=tls(secured), sasl=sasl_of(secured, mechanism)
        ) as client:
            return len(client.cluster.brokers)

    assert await asyncio.gather(*(connect(it) for it in MECHANISMS * 8)) == [1] * 32
