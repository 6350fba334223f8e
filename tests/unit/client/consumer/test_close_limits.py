"""Tests `timeout_ms` of a close: a broker that does not answer delays it no longer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, ClientSettings, ConfigurationError
from kproto.broker import Broker, SilentConnection
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
    OffsetCommitRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from kproto.messages.base import Request

#: A close that ignored its limit would take longer than a test may.
SETTINGS = ClientSettings(api_timeout_ms=3_600_000, request_timeout_ms=3_600_000)


@asynccontextmanager
async def reading(kind: str) -> AsyncIterator[tuple[Broker, Client, Any]]:
    """Yields a consumer of `kind`, a group or share consumer, that has returned a record."""
    async with Broker() as broker:
        broker.create_topic("t")
        client = Client(broker.bootstrap, SETTINGS)
        await client.__aenter__()
        async with client.producer() as producer:
            await producer.send("t", b"v")
        consumer: Any
        if kind == "group":
            consumer = client.consumer("t", group="g", start="earliest", group_protocol="consumer")
        else:
            group = ConfigResource(ConfigResourceType.GROUP, "g")
            await client.admin.incremental_alter_configs(
                {group: {"share.auto.offset.reset": "earliest"}}
            )
            consumer = client.share_consumer("t", group="g", acknowledgement="implicit")
        await anext(aiter(consumer))
        yield broker, client, consumer


def silence(broker: Broker, kind: str) -> None:
    """Makes the broker answer no request that a close sends."""
    requests: dict[str, list[type[Request[Any]]]] = {
        "group": [OffsetCommitRequest, ConsumerGroupHeartbeatRequest],
        "share": [ShareAcknowledgeRequest, ShareFetchRequest],
    }
    for each in requests[kind]:
        broker.control(SilentConnection(), request=each)


@pytest.mark.parametrize("kind", ["group", "share"])
async def test_consumer_is_closed_in_its_time_if_no_request_is_answered(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(kind) as (broker, client, consumer):
        silence(broker, kind)
        await consumer.close(timeout_ms=50)
        with pytest.raises(ConfigurationError, match="is closed"):
            await anext(aiter(consumer))
        await client.close()
    assert "closed within" in caplog.text or "could not" in caplog.text


@pytest.mark.parametrize("kind", ["group", "share"])
async def test_close_of_the_client_limits_the_close_of_its_consumers(kind: str) -> None:
    async with reading(kind) as (broker, client, _):
        silence(broker, kind)
        await client.close(timeout_ms=50)


@pytest.mark.parametrize("kind", ["group", "share"])
async def test_limit_of_a_close_is_a_number(kind: str) -> None:
    async with reading(kind) as (_, client, consumer):
        with pytest.raises(ConfigurationError, match="timeout_ms"):
            await consumer.close(timeout_ms=-1)
        await client.close()
