"""Tests which broker the client uses if any broker can answer.

If a broker is silent, the client tries the next broker after a short delay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, ClientSettings, ConfigurationError
from kproto.messages import ApiVersionsRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions


class SilentBroker(ScriptedBroker):
    """A broker that answers ApiVersions only after `answers_now` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers_now = asyncio.Event()

        async def versions(request: ReceivedRequest) -> Any:
            await self.answers_now.wait()
            return api_versions()

        self.answers[ApiVersionsRequest] = versions


@asynccontextmanager
async def opening(
    *brokers: ScriptedBroker, clock: ManualClock, **settings: Any
) -> AsyncIterator[tuple[Client, asyncio.Task[Client]]]:
    """Yields a client of these bootstrap servers, and the task that opens it."""
    servers = [broker.bootstrap for broker in brokers]
    client = Client(servers, ClientSettings(**settings), clock=clock)
    task = asyncio.create_task(client.__aenter__())
    try:
        yield client, task
    finally:
        task.cancel()
        await asyncio.wait([task])
        await client.close()


async def test_next_broker_is_tried_beside_a_silent_one() -> None:
    clock = ManualClock()
    async with (
        SilentBroker() as silent,
        ScriptedBroker() as broker,
        opening(silent, broker, clock=clock) as (client, task),
    ):
        await silent.until(lambda: silent.count(ApiVersionsRequest) == 1)
        await clock.advance(999)
        assert broker.connections == 0
        await clock.advance(1)
        await task
        assert client.cluster.brokers[0].port == broker.port
        assert client._view._pool._opening == {}


async def test_first_broker_is_used_if_it_answers_before_the_next_one() -> None:
    clock = ManualClock()
    async with (
        SilentBroker() as first,
        SilentBroker() as second,
        opening(first, second, clock=clock, connection_attempt_delay_ms=50) as (client, task),
    ):
        await first.until(lambda: first.count(ApiVersionsRequest) == 1)
        await clock.advance(50)
        await second.until(lambda: second.count(ApiVersionsRequest) == 1)
        first.answers_now.set()
        await task
        assert client.cluster.brokers[0].port == first.port
        assert first.connections == 1
        assert client._view._pool._opening == {}


async def test_failed_attempt_starts_the_next_one_at_once() -> None:
    async with ScriptedBroker() as away:
        pass
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        opening(away, broker, clock=clock) as (client, task),
    ):
        await task  # no time passes
        assert client.cluster.brokers[0].port == broker.port


async def test_cancelled_call_ends_all_attempts() -> None:
    clock = ManualClock()
    async with (
        SilentBroker() as first,
        SilentBroker() as second,
        opening(first, second, clock=clock) as (client, task),
    ):
        await first.until(lambda: first.count(ApiVersionsRequest) == 1)
        await clock.advance(1_000)
        await second.until(lambda: second.count(ApiVersionsRequest) == 1)
        task.cancel()
        await asyncio.wait([task])
        assert client._view._pool._opening == {}


def test_delay_of_zero_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="connection_attempt_delay_ms is 0"):
        ClientSettings(connection_attempt_delay_ms=0)
