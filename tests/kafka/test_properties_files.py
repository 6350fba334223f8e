"""Tests properties files for real brokers: the client and the proxy connect to each listener."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kproto import AuthenticationError, Client
from kproto.fuzz.broker import BrokerFuzzSettings, fuzz_broker
from kproto.fuzz.broker_connection import ConnectionSecurity
from kproto.messages import DescribeClusterRequest
from kproto.proxy import Proxy, ProxySettings
from kproto.security.properties import from_properties
from tools.kafka.secured import LISTENERS, MECHANISMS, SecuredKafka

#: The names of the files, by listener.
FILES = {
    listener: [f"{listener}-{name}" for name in MECHANISMS] if "SASL" in protocol else [listener]
    for listener, protocol in LISTENERS.items()
}
GOOD = [
    name
    for listener, names in FILES.items()
    if listener not in ("EXPIRED", "WRONG_HOST")
    for name in names
]
SECURED = [name for name in GOOD if not name.startswith(("PLAINTEXT", "SHORT"))]


@pytest.fixture
def files(secured: SecuredKafka) -> dict[str, Path]:
    """Returns the path of each properties file, by the file's name without its suffix."""
    return {path.stem: path for path in secured.write_properties()}


def no_secret_in(text: str, kafka: SecuredKafka) -> bool:
    return not any(password in text for password in kafka.passwords.values())


@pytest.mark.parametrize("name", GOOD)
async def test_a_file_connects(
    secured: SecuredKafka, files: dict[str, Path], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Client.from_properties(files[name.lower()]) as client:
        answer = await client.request(DescribeClusterRequest())
        assert not answer.error_code
        assert no_secret_in(caplog.text + repr(client.settings), secured)


@pytest.mark.parametrize(
    ("name", "said"),
    [("EXPIRED-PLAIN", "has expired"), ("WRONG_HOST-SCRAM-SHA-256", "is for another")],
)
async def test_a_wrong_certificate_is_one_error(
    secured: SecuredKafka, files: dict[str, Path], name: str, said: str
) -> None:
    client = Client.from_properties(files[name.lower()])
    with pytest.raises(AuthenticationError, match=said) as caught:
        await client.__aenter__()
    assert no_secret_in(str(caught.value), secured)


@pytest.mark.parametrize("name", SECURED)
async def test_the_proxy_reaches_a_broker_by_a_file(
    secured: SecuredKafka, files: dict[str, Path], name: str
) -> None:
    found = from_properties(files[name.lower()])
    settings = ProxySettings(rewrite=True, **found.settings)  # TLS and SASL
    assert found.bootstrap is not None
    told: list[str] = []
    async with (
        Proxy(
            "127.0.0.1:0",
            found.bootstrap,
            settings,
            on_notice=lambda text, _connection: told.append(text),
        ) as proxy,
        Client(proxy.listens_at) as client,
    ):
        answer = await client.request(DescribeClusterRequest())
        assert not answer.error_code
    assert no_secret_in("".join(told) + repr(settings), secured)


def test_frames_go_out_behind_an_authentication(
    secured: SecuredKafka, files: dict[str, Path]
) -> None:
    found = from_properties(files["sasl_ssl-scram-sha-512"])
    assert found.bootstrap is not None
    result = fuzz_broker(
        found.bootstrap,
        settings=BrokerFuzzSettings(frames=30, quiet_s=0.1),
        kinds=("sound", "size", "cut"),
        secured=ConnectionSecurity(found.settings["tls"], found.settings["sasl"]),
    )
    assert result.outcomes["answered"]
    assert not result.outcomes["no connection"]
    assert not [finding for finding in result.findings if not finding.harmless]
