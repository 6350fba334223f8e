"""Tests that errors of the client name the options of the data source."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from kproto_pipeline.spark.client_pool import close_clients, with_client
from kproto_pipeline.spark.options.errors import OptionError
from kproto_pipeline.spark.options.option_table import parse_read_options, parse_write_options
from kproto_pipeline.spark.options.option_words import option_text

from kproto.wire.errors import BrokerResponseError, ConfigurationError
from tests.unit.client.scripted_broker import ScriptedBroker

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = {"kafka.bootstrap.servers": "h:1", "topic": "t"}


@pytest.mark.parametrize(
    ("of_client", "of_option"),
    [
        (
            "no broker acknowledged it within 9 ms (delivery_timeout_ms)",
            "no broker acknowledged it within 9 ms (kafka.delivery.timeout.ms)",
        ),
        (
            "after transaction_timeout_ms (transaction.timeout.ms)",
            "after kafka.transaction.timeout.ms",
        ),
        ("set kafka.sasl.mechanism", "set kafka.sasl.mechanism"),
        ("see auto.create.topics.enable", "see auto.create.topics.enable"),
        ("requested for 5000 ms (metadata_wait_ms)", "requested for 5000 ms"),
        (
            "/etc/ssl.key.location, my.ssl.key.location",
            "/etc/ssl.key.location, my.ssl.key.location",
        ),
        ("set ssl.key.location.", "set kafka.ssl.key.location."),
    ],
)
def test_names_of_the_client_become_options(of_client: str, of_option: str) -> None:
    assert option_text(of_client) == of_option
    assert option_text(of_option) == of_option


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"kafka.security.protocol": "x"}, "option kafka.security.protocol is 'x'; it must be"),
        ({"kafka.linger.ms": "-5"}, "option kafka.linger.ms is '-5'; it must be a whole number"),
        ({"kafka.retry.backoff.ms": "x"}, "option kafka.retry.backoff.ms is 'x'"),
        ({"brokerVersion": "x"}, "option brokerVersion 'x' is no release of Kafka"),
        (
            {"kafka.sasl.pasword": "hunter2"},
            (
                "option kafka.sasl.pasword is no property of any client of Kafka; the nearest: "
                "kafka.sasl.password"
            ),
        ),
        (
            {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"},
            "set kafka.sasl.username, or kafka.sasl.jaas.config",
        ),
    ],
)
def test_wrong_property_is_named_as_an_option(changed: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_write_options(GIVEN | changed)
    assert str(caught.value).startswith("option ")
    assert text in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_unknown_topic_of_a_read_names_no_setting_of_the_client() -> None:
    async with ScriptedBroker({"other": 1}) as broker:
        given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        options = parse_read_options(given)

        async def waits_in_vain(client: object) -> None:
            raise BrokerResponseError(
                3,
                "UNKNOWN_TOPIC_OR_PARTITION",
                "topic 't'; it was requested for 5000 ms (metadata_wait_ms); metadata requests "
                "create no topics: see Client.create_topics, or set allow_auto_create_topics",
            )

        with pytest.raises(BrokerResponseError) as caught:
            await asyncio.to_thread(with_client, options.client, waits_in_vain)
        await asyncio.to_thread(close_clients)
    assert str(caught.value) == (
        "UNKNOWN_TOPIC_OR_PARTITION (3): topic 't'; it was requested for 5000 ms; "
        "create the topic first"
    )


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("ssl.truststore.certificates", "option kafka.ssl.truststore.certificates (inline PEM)"),
        ("ssl.truststore.location", "option kafka.ssl.truststore.location ('"),
    ],
)
def test_broken_certificate_names_its_option(name: str, start: str, tmp_path: Path) -> None:
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(pem)
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    given |= {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM"}
    given[f"kafka.{name}"] = str(tmp_path / "ca.pem") if name.endswith("location") else pem
    options = parse_write_options(given)

    async def never(client: object) -> None:
        raise AssertionError("the client cannot connect")

    with pytest.raises(ConfigurationError, match="holds a broken certificate") as caught:
        with_client(options.client, never)
    close_clients()
    assert str(caught.value).startswith(start)
