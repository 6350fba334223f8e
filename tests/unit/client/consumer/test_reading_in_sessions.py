"""Tests the consumer with fetch sessions (KIP-227): fetch requests and returned records."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from kproto import Client, Consumer, CorruptBatchError
from kproto.client.network.connection import IDLE_S
from kproto.clock import SYSTEM_CLOCK, Clock
from kproto.messages import FetchRequest, FetchResponse
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.support.selection import rest_slow
from tests.unit.client.broker_sessions import BrokerSessions
from tests.unit.client.consumer.reading import first_of, read
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=2000)


@asynccontextmanager
async def cluster(
    partitions: int = 2, settings: Any = QUICK, clock: Clock = SYSTEM_CLOCK
) -> AsyncIterator[tuple[ScriptedBroker, ScriptedLog, Client]]:
    async with (
        ScriptedBroker({"t": partitions}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        log = ScriptedLog(broker)
        log.sessions = BrokerSessions()
        yield broker, log, client


def named(fetch: FetchRequest) -> dict[int, int]:
    """Returns the fetch offset of each partition that a fetch request names."""
    return {
        part.partition: part.fetch_offset for topic in fetch.topics for part in topic.partitions
    }


async def next_value(consumer: Consumer) -> bytes | None:
    return (await first_of(consumer)).value


async def test_fetch_in_a_session_has_only_changed_partitions() -> None:
    async with cluster(3) as (broker, log, client):
        log.append(batch(0, [b"a"]), partition=1)
        async with client.consumer("t", max_wait_ms=5) as consumer:
            records = aiter(consumer)
            assert (await anext(records)).value == b"a"
            waiting = asyncio.create_task(anext(records))
            await broker.until(lambda: len(log.fetches) >= 4)
            log.append(batch(1, [b"b"]), partition=1)
            assert (await waiting).value == b"b"
        sessions = {fetch.session_id for fetch in log.fetches[1:]}
        assert sessions == {101}
        assert [named(fetch) for fetch in log.fetches[:3]] == [{0: 0, 1: 0, 2: 0}, {1: 1}, {}]
        assert [fetch.session_epoch for fetch in log.fetches[:4]] == [0, 1, 2, 3]
        await broker.until(lambda: log.sessions.closed == [101])
        assert log.sessions.sessions == {}


async def test_session_is_closed_although_the_other_connection_is_quiet() -> None:
    """Only the fetch connection is in use; the connection for other requests is idle."""
    clock = ManualClock()
    async with cluster(clock=clock) as (broker, log, client):
        log.append(batch(0, [b"a"]))
        async with client.consumer("t", max_wait_ms=5) as consumer:
            records = aiter(consumer)
            assert (await anext(records)).value == b"a"
            await clock.advance(1_000 * IDLE_S + 1)
        await broker.until(lambda: log.sessions.closed == [101])


async def test_partition_read_to_its_end_is_forgotten_in_the_session() -> None:
    async with cluster() as (_, log, client):
        log.append(batch(0, [b"a"]), partition=0)
        for at in range(3):
            log.append(batch(at, [b"b"]), partition=1)
        # Each fetch returns one batch.
        values = await read(client, max_partition_fetch_bytes=1)
        assert sorted(values) == [b"a", b"b", b"b", b"b"]  # type: ignore[type-var]
        forgotten = [
            each.partitions for fetch in log.fetches for each in fetch.forgotten_topics_data
        ]
        assert forgotten == [[0]]


async def test_fetch_sessions_can_be_disabled() -> None:
    async with cluster(settings=replace(QUICK, fetch_sessions=False)) as (_, log, client):
        log.append(batch(0, [b"a"]))
        assert await read(client) == [b"a"]
        assert {(fetch.session_id, fetch.session_epoch) for fetch in log.fetches} == {(0, -1)}


async def test_lost_session_is_replaced() -> None:
    async with cluster() as (broker, log, client):
        log.append(batch(0, [b"a"]))
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await next_value(consumer) == b"a"
            records = aiter(consumer)
            waiting = asyncio.create_task(anext(records))
            count = len(log.fetches)
            await broker.until(lambda: len(log.fetches) > count + 2)
            log.sessions.sessions.clear()
            log.append(batch(1, [b"b"]))
            assert (await waiting).value == b"b"


@pytest.mark.parametrize("answer", [HANG_UP, FetchResponse(error_code=71)])
async def test_lost_response_or_wrong_epoch_starts_a_new_session(answer: Any) -> None:
    async with cluster() as (broker, log, client):
        log.append(batch(0, [b"a"]))
        faults: list[Any] = []

        def fetch(request: ReceivedRequest) -> Any:
            if faults:
                return faults.pop()
            return log.fetch(request)

        broker.answers[FetchRequest] = fetch
        async with client.consumer("t", max_wait_ms=5) as consumer:
            records = aiter(consumer)
            assert (await anext(records)).value == b"a"
            waiting = asyncio.create_task(anext(records))
            await broker.until(lambda: len(log.fetches) > 2)
            faults.append(answer)
            await broker.until(lambda: not faults)
            log.append(batch(1, [b"b"]))
            assert (await waiting).value == b"b"
            assert log.sessions.closed == [101]


async def test_empty_throttled_response_is_retried() -> None:
    async with cluster() as (broker, log, client):
        log.append(batch(0, [b"a"]))
        answers: list[Any] = [FetchResponse(throttle_time_ms=5)]
        broker.answers[FetchRequest] = lambda request: (
            answers.pop() if answers else log.fetch(request)
        )
        assert await read(client) == [b"a"]


async def test_corrupt_batch_is_fetched_again() -> None:
    async with cluster() as (_, log, client):
        log.append(batch(0, [b"a"]))
        log.append(batch(1, [b"b"], compression="gzip"))
        whole = log.batches["t", 0][-1]
        async with client.consumer([("t", 0)], max_wait_ms=5) as consumer:
            log.damage(70, b"\0\0")
            assert await next_value(consumer) == b"a"
            for _ in range(2):
                with pytest.raises(CorruptBatchError):
                    await first_of(consumer)
            log.batches["t", 0][-1] = whole
            assert await next_value(consumer) == b"b"


@pytest.mark.parametrize("seed", rest_slow(range(8), 2))
async def test_each_record_is_read_once_under_random_faults(seed: int) -> None:
    chance = random.Random(seed)
    ends = [0, 0, 0, 0]
    async with cluster(len(ends)) as (broker, log, client):

        def fetch(request: ReceivedRequest) -> Any:
            fate = chance.random()
            if fate < 0.05:
                log.sessions.sessions.clear()
            elif fate < 0.1:
                return HANG_UP
            elif fate < 0.15:
                return FetchResponse(error_code=71)
            elif fate < 0.2:
                log.errors = [6]
            elif fate < 0.25:
                log.sessions.room = 1 - log.sessions.room
            for _ in range(chance.randrange(4)):
                at = chance.randrange(len(ends))
                log.append(batch(ends[at], [b"%d" % ends[at]]), partition=at)
                ends[at] += 1
            return log.fetch(request)

        broker.answers[FetchRequest] = fetch
        seen: dict[int, list[int]] = {}
        async with client.consumer("t", max_wait_ms=1, max_partition_fetch_bytes=100) as consumer:
            while len(log.fetches) < 60:
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.02):
                        async for fetched in consumer.record_lists():
                            offsets = [record.offset for record in fetched.records]
                            seen.setdefault(fetched.partition, []).extend(offsets)
                            if chance.random() < 0.05:
                                break
            broker.answers[FetchRequest] = log.fetch
            log.sessions.room = 1
            batches = consumer.record_lists()
            while sum(map(len, seen.values())) < sum(ends):
                fetched = await anext(batches)
                offsets = [record.offset for record in fetched.records]
                seen.setdefault(fetched.partition, []).extend(offsets)
        assert seen == {at: list(range(end)) for at, end in enumerate(ends) if end}
