"""Tests a group consumer without `async with`: the first poll joins, close leaves the group."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.client.consumer.group_consumer import GroupConsumer
from tests.unit.client.consumer.grouped import Group, group
from tests.unit.client.consumer.test_group_reading import P0, TEN

ITERATIONS: dict[str, Callable[[GroupConsumer], Any]] = {
    "records": aiter,
    "record_lists": GroupConsumer.record_lists,
    "values": GroupConsumer.values,
    "raw_batches": GroupConsumer.raw_batches,
}


async def first(it: Group, iteration: Any) -> Any:
    """Starts the first poll, assigns the partition, and returns the first item."""
    poll = asyncio.create_task(anext(iteration))
    await it.broker.until(lambda: "start" in it.member.calls)
    await it.owner.assign([P0])
    return await poll


@pytest.mark.parametrize("kind", ITERATIONS)
async def test_the_first_poll_joins_and_aclose_leaves(kind: str) -> None:
    async with group(TEN) as it:
        consumer = it.consumer()
        assert it.member.calls == []
        iteration = ITERATIONS[kind](consumer)
        assert it.member.calls == [], "no record was polled"
        await first(it, iteration)
        await iteration.aclose()
        assert it.member.calls == ["start", ("leave", True), "close"]
        assert consumer._in_flight.fetches == {}
        with pytest.raises(ConfigurationError, match="is closed"):
            await anext(aiter(consumer))


async def test_close_commits_what_is_processed_and_not_what_is_in_flight() -> None:
    async with group(TEN) as it:
        consumer = it.consumer()
        records = aiter(consumer)
        assert (await first(it, records)).offset == 0
        assert (await anext(records)).offset == 1
        await consumer.close()
        assert it.coordinator.committed[-1][P0] == 1
        assert it.member.calls == ["start", ("leave", True), "close"]
        with pytest.raises(StopAsyncIteration):
            await anext(records)


async def test_dropped_iteration_leaves_the_group_in_the_background() -> None:
    async with group(TEN) as it:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            consumer = it.consumer()
            records = aiter(consumer)
            await first(it, records)
            assert (await anext(records)).offset == 1
            del records
            await it.broker.until(lambda: "close" in it.member.calls)
        assert it.member.calls == ["start", ("leave", True), "close"]
        assert it.coordinator.committed[-1][P0] == 1
        assert consumer._in_flight.fetches == {}


async def test_cancelled_poll_does_not_end_the_iteration() -> None:
    async with group(TEN) as it:
        consumer = it.consumer()
        records = aiter(consumer)
        poll = asyncio.create_task(anext(records))
        await it.broker.until(lambda: "start" in it.member.calls)
        poll.cancel()
        await asyncio.wait([poll])
        await it.owner.assign([P0])
        assert (await anext(records)).offset == 0
        assert it.member.calls == ["start"]
        await consumer.close()


async def test_commit_before_the_start_is_refused() -> None:
    async with group(TEN) as it:
        consumer = it.consumer()
        with pytest.raises(ConfigurationError, match="async with"):
            await consumer.commit()
        await consumer.close()
        assert it.member.calls == ["close"]
