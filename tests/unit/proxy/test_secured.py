"""Tests the proxy for brokers with TLS and SASL; its clients use plaintext, without SASL."""

from __future__ import annotations

import ssl

import pytest
import trustme

from kproto import Client
from kproto.messages import MetadataRequest
from kproto.protocol.sasl import ClientExchange
from kproto.proxy import Proxy, ProxySettings
from kproto.security import OAuthBearer, Plain, ScramSha256, ScramSha512, Tls
from kproto.wire.errors import BrokerConnectionError, ConfigurationError
from tests.unit.client.secured_broker import SECRET, USER, SecuredBroker, client_ca, server_tls

LOCAL = "127.0.0.1:0"
CA = trustme.CA()
TRUSTED = Tls(ca=client_ca(CA))


def behind_tls(*names: str) -> ssl.SSLContext:
    return server_tls(CA, *(names or ("127.0.0.1",)))


def raises() -> str:
    raise RuntimeError(SECRET)


class Raising:
    """A user's mechanism that raises an error."""

    mechanism = "MINE"
    readable = False

    async def exchange(self, host: str) -> ClientExchange:
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("handshake", [1, 0])
@pytest.mark.parametrize("sasl", [Plain(USER, SECRET), ScramSha512(USER, SECRET)])
async def test_a_client_reaches_a_secured_broker_through_the_proxy(
    sasl: Plain | ScramSha512, handshake: int
) -> None:
    settings = ProxySettings(rewrite=True, tls=TRUSTED, sasl=sasl)
    told: list[str] = []
    mechanisms = ("PLAIN", "SCRAM-SHA-512")
    async with (
        SecuredBroker(tls=behind_tls(), mechanisms=mechanisms, handshake=handshake) as broker,
        Proxy(
            LOCAL, broker.bootstrap, settings, on_notice=lambda text, _number: told.append(text)
        ) as proxy,
        Client(proxy.listens_at) as client,
    ):
        answer = await client.request(MetadataRequest())
        ports = {each.port for each in answer.brokers}
        assert ports
        assert broker.port not in ports
    assert SECRET not in "".join(told) + repr(settings)


@pytest.mark.parametrize(
    ("names", "settings", "said"),
    [
        ((), ProxySettings(tls=True), "not known|not trusted"),
        (("elsewhere",), ProxySettings(tls=TRUSTED), "is for another"),
        (
            (),
            ProxySettings(tls=TRUSTED, sasl=Plain(USER, "wrong")),
            "the broker refused the PLAIN authentication",
        ),
        (
            (),
            ProxySettings(tls=TRUSTED, sasl=ScramSha256(USER, SECRET)),
            "the SASL mechanism SCRAM-SHA-256 is not enabled",
        ),
        ((), ProxySettings(tls=Tls(ca="/no/such/file")), "/no/such/file"),
        ((), ProxySettings(sasl=Plain(USER, SECRET)), "PLAIN without TLS: the proxy"),
        ((), ProxySettings(tls=TRUSTED, sasl=OAuthBearer(raises)), "raised RuntimeError"),
        ((), ProxySettings(tls=TRUSTED, sasl=Raising()), "the mechanism MINE raised RuntimeError"),
    ],
)
async def test_a_broker_that_will_not_have_the_proxy_is_told(
    names: tuple[str, ...], settings: ProxySettings, said: str
) -> None:
    told: list[str] = []
    async with (
        SecuredBroker(tls=behind_tls(*names), mechanisms=("PLAIN",)) as broker,
        Proxy(
            LOCAL, broker.bootstrap, settings, on_notice=lambda text, _number: told.append(text)
        ) as proxy,
    ):
        with pytest.raises(BrokerConnectionError):
            async with Client(proxy.listens_at):
                raise AssertionError("nobody answers")
    text = "\n".join(told)
    assert any(word in text for word in said.split("|")), text
    assert "error in the proxy" not in text
    assert SECRET not in text


def test_wrong_settings_are_told() -> None:
    with pytest.raises(ConfigurationError, match="tls is a str"):
        ProxySettings(tls="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="sasl"):
        ProxySettings(sasl="PLAIN")  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [ProxySettings(), ProxySettings(tls=TRUSTED)])
async def test_a_name_that_no_host_has_is_told(settings: ProxySettings) -> None:
    told: list[str] = []
    async with Proxy(
        LOCAL, "a..b:9092", settings, on_notice=lambda text, _number: told.append(text)
    ) as proxy:
        with pytest.raises(BrokerConnectionError):
            async with Client(proxy.listens_at):
                pass
    assert any("a..b:9092: cannot be reached: " in line for line in told)
    assert not any("mistake" in line for line in told)
