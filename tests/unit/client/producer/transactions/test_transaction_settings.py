"""Tests the settings of transactional producers: arguments, properties, contradictions."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import Client, ConfigurationError
from kproto.client.producer.settings import ProducerSettings
from tests.unit.client.producer.transactions.transactional import ID, committed, scene


@pytest.mark.parametrize("given", ["", 7, b"x", ["x"]])
def test_transactional_id_is_a_name(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="transactional_id is"):
        ProducerSettings(transactional_id=given)


@pytest.mark.parametrize(
    ("settings", "name"), [({"idempotent": False}, "idempotent"), ({"acks": 1}, "acks")]
)
def test_transactions_need_idempotence(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is .*, and transactional_id is 'x'"):
        ProducerSettings(transactional_id="x", **settings)


@pytest.mark.parametrize("given", [0, -1, True, 1.5, "60000"])
def test_transaction_timeout_is_a_positive_whole_number(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="transaction_timeout_ms"):
        ProducerSettings(transactional_id="x", transaction_timeout_ms=given)


async def test_client_has_one_open_producer_with_an_id() -> None:
    async with scene(2) as (_, client):
        async with client.producer(transactional_id=ID):
            with pytest.raises(ConfigurationError, match="close it first"):
                client.producer(transactional_id=ID)
            async with client.producer(transactional_id="other"):
                pass
        async with client.producer(transactional_id=ID):
            pass


async def test_properties_set_the_id_and_the_timeout() -> None:
    async with scene(2) as (broker, observer):
        properties = {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": ID,
            "transaction.timeout.ms": "5000",
        }
        async with Client.from_properties(properties) as client:
            async with client.producer() as producer:
                assert producer.transactional_id == ID
                assert producer.settings.transaction_timeout_ms == 5_000
                async with producer.transaction():
                    await producer.send("t", b"1")
            assert client._forward_producer().transactional_id is None
        assert await committed(observer) == [b"1"]
