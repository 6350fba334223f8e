"""Tests calls for which a group consumer raises an error at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kproto import ConfigurationError
from tests.unit.client.consumer.grouped import group
from tests.unit.client.consumer.test_group_reading import P0, TEN


async def test_closed_consumer_cannot_start() -> None:
    """A start would join the group and trigger a rebalance, without reading any record."""
    async with group(TEN) as it:
        consumer = it.consumer()
        await consumer.close()
        with pytest.raises(ConfigurationError, match="was closed already"):
            await consumer.__aenter__()
        assert "start" not in it.member.calls
        async with it.consumer() as begun:
            with pytest.raises(ConfigurationError, match="was started already"):
                await begun.__aenter__()


async def test_plain_methods_are_refused_in_another_thread_or_loop() -> None:
    """The call would change state that the consumer's own event loop is using."""
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        calls: list[Callable[[], object]] = [
            lambda: consumer.seek(P0, 1),
            lambda: consumer.pause(P0),
            lambda: consumer.resume(P0),
            lambda: consumer.subscribe("u"),
            consumer.unsubscribe,
            consumer.enforce_rebalance,
        ]

        async def call_in_another_loop(call: Callable[[], object]) -> None:
            call()

        for call in calls:
            with pytest.raises(ConfigurationError, match="belongs to the event loop"):
                await asyncio.to_thread(call)
            with pytest.raises(ConfigurationError, match="belongs to the event loop"):
                await asyncio.to_thread(asyncio.run, call_in_another_loop(call))
        assert await consumer.position(P0) == 0
        assert consumer.paused == frozenset()
        assert it.member.calls == ["start"]


async def test_coroutines_are_refused_in_another_loop_without_effect() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 0
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: consumer.commit({P0: 5}),
                consumer.commit,
                lambda: consumer.position(P0),
                consumer.lag,
                consumer.committed,
                consumer.close,
            ]

            async def call_in_another_loop(call: Callable[[], Awaitable[object]]) -> None:
                await call()

            for call in calls:
                with pytest.raises(ConfigurationError, match="belongs to the event loop"):
                    await asyncio.to_thread(asyncio.run, call_in_another_loop(call))
        assert it.coordinator.committed == []


async def test_invalid_reason_and_leave_are_refused() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        with pytest.raises(ConfigurationError, match="reason is 7"):
            consumer.enforce_rebalance(7)  # type: ignore[arg-type]  # that is the fault
        with pytest.raises(ConfigurationError, match="leave is 'no'"):
            await consumer.close(leave="no")  # type: ignore[arg-type]  # this, too
        assert it.member.calls == ["start"]
