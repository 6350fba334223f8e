"""Tests settings and bootstrap addresses: valid values, and the errors of invalid values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import Plain
from kproto.client import Client, ClientSettings
from kproto.client.settings import Address, parse_bootstrap
from kproto.wire.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("localhost", [("localhost", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , b , ", [("a", 1), ("b", 9092)]),
        ("10.0.0.1:65535", [("10.0.0.1", 65535)]),
        ("[::1]:19092", [("::1", 19092)]),
        ("[fe80::1]", [("fe80::1", 9092)]),
        ("[::1]:1,localhost:2", [("::1", 1), ("localhost", 2)]),
        (["a:1", "b:2"], [("a", 1), ("b", 2)]),
        (("a:1",), [("a", 1)]),
        ("PLAINTEXT://a:1,SASL_SSL://b,ssl://[::1]:3", [("a", 1), ("b", 9092), ("::1", 3)]),
        (["EXTERNAL://a:1", "my-listener.x://b:2"], [("a", 1), ("b", 2)]),
    ],
)
def test_bootstrap_addresses_are_parsed(text: Any, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == [Address(*pair) for pair in addresses]


@pytest.mark.parametrize(
    "text",
    [
        "localhost:",
        ":9092",
        "localhost:0",
        "localhost:65536",
        "localhost:-1",
        "localhost:http",
        "localhost:90 92",
        "localhost:\u0669",
        "localhost:" + "9" * 5000,
        "://localhost:9092",
        "SSL://",
        "SSL://SSL://localhost:9092",
        "::1",
        "::1:9092",
        "[::1",
        "[]:9092",
    ],
)
def test_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(
        ConfigurationError, match="is no address of a broker; write host:port"
    ) as raised:
        parse_bootstrap(f"good:1,{text}")
    assert repr(text) in str(raised.value)


CONTRADICTIONS: list[tuple[str, dict[str, Any], str | None]] = [
    (
        "SSL://h:1",
        {},
        "SSL://h:1: the prefix has no effect, but SSL uses TLS, and this client has no",
    ),
    ("ssl://h:1", {}, "uses TLS, and this client has no tls"),
    (
        "SASL_PLAINTEXT://h:1",
        {"tls": True},
        "has no TLS, and this client has tls; it uses SASL, and",
    ),
    ("PLAINTEXT://h:1", {"sasl": Plain("u", "p")}, "has no SASL, and this client has sasl"),
    ("SASL_SSL://h:1", {"tls": True, "sasl": Plain("u", "p")}, None),
    ("PLAINTEXT://h:1", {}, None),
    ("EXTERNAL://h:1", {}, None),
    ("h:1", {"tls": True}, None),
]


@pytest.mark.parametrize(("servers", "settings", "warning"), CONTRADICTIONS)
def test_prefix_that_contradicts_the_settings_is_logged(
    servers: str, settings: dict[str, Any], warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(servers, **settings)
    assert client.settings.tls == settings.get("tls", False)
    texts = [each.getMessage() for each in caplog.records if "prefix" in each.getMessage()]
    assert len(texts) == (warning is not None)
    assert warning is None or warning in texts[0]


def test_prefix_in_properties_is_ignored_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    Client.from_properties({"bootstrap.servers": "SASL_SSL://b1:9092"})
    assert "SASL_SSL uses TLS, and this client has no tls; it uses SASL" in caplog.text


@pytest.mark.parametrize("servers", ["", " , ", [], [""]])
def test_empty_bootstrap_list_is_refused(servers: Any) -> None:
    with pytest.raises(ConfigurationError, match="no bootstrap server is given"):
        parse_bootstrap(servers)


@pytest.mark.parametrize("servers", [[1], b"a:1", [None]])
def test_address_that_is_no_str_is_refused(servers: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no address of a broker"):
        parse_bootstrap(servers)


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        found = parse_bootstrap(text)
    except ConfigurationError:
        return
    assert all(address.host and 0 < address.port < 65_536 for address in found)
    assert parse_bootstrap([str(address) for address in found]) == found


LIMITS = [
    "connect_timeout_ms",
    "request_timeout_ms",
    "delivery_timeout_ms",
    "api_timeout_ms",
    "retry_backoff_ms",
    "retry_backoff_max_ms",
    "metadata_max_age_ms",
    "metadata_wait_ms",
    "max_frame_bytes",
    "max_decompressed_bytes",
    "max_in_flight",
]


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [0, -1, 1.5, "10", None, True])
def test_invalid_limit_is_refused(name: str, value: object) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(
        ConfigurationError, match=f"^{name} is .*; it must be a whole number"
    ) as raised:
        ClientSettings(**wrong)
    assert repr(value) in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("name", LIMITS)
def test_limit_of_one_is_accepted(name: str) -> None:
    right: dict[str, Any] = {name: 1}
    assert getattr(ClientSettings(**right), name) == 1


def test_settings_are_immutable() -> None:
    with pytest.raises(AttributeError):
        ClientSettings().client_id = "another"  # type: ignore[misc]  # the tested assignment


def test_rack_must_be_a_str() -> None:
    with pytest.raises(ConfigurationError, match="rack is 7"):
        ClientSettings(rack=7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fallback", "broker_version"),
    [("0.9.0", "0.9.0"), ("0.8.2.2", "0.8.2.2"), ("0.10.0.0", None), ("1.0", None)],
)
def test_librdkafkas_fallback_is_the_release_of_brokers_without_api_versions(
    fallback: str, broker_version: str | None
) -> None:
    client = Client.from_properties(
        {"bootstrap.servers": "localhost", "broker.version.fallback": fallback}
    )
    assert client.settings.broker_version == broker_version
    with pytest.raises(ConfigurationError, match="it must be a release such as"):
        Client.from_properties({"bootstrap.servers": "a", "broker.version.fallback": "x"})


def test_client_arguments_override_settings() -> None:
    base = ClientSettings(rack="a", broker_version="2.8", client_id="me")
    client = Client("localhost", base, rack="b", broker_version="0.9")
    assert client.settings == ClientSettings(rack="b", broker_version="0.9", client_id="me")
    assert Client("localhost", base).settings == base
    from_file = Client.from_properties({"bootstrap.servers": "localhost", "client.rack": "c"})
    assert from_file.settings.rack == "c"
