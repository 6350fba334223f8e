"""Tests that `run` processes records concurrently in order, and commits processed records."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import kproto
from kproto import ConfigurationError, Record, Retries, RunSummary, Stop
from kproto.broker import BrokerSettings
from tests.unit.client.processing.orders import SETTINGS, TOPIC, orders, until

NO_RETRIES = Retries(0)
SOON = Retries(2, backoff_ms=1)


# Order and concurrency


async def test_records_are_processed_in_the_order_of_their_partition() -> None:
    async with orders(700, 3, 40) as it, it.consumer() as consumer:
        assert await consumer.run(until(it, 743)) == RunSummary(743)
        assert await it.committed(0, 1, 2) == [700, 3, 40]
        for partition, count in enumerate([700, 3, 40]):
            offsets = [offset for at, offset in it.handled if at == partition]
            assert offsets == list(range(count))


@pytest.mark.parametrize("order", ["partition", "key", "none"])
@pytest.mark.slow
async def test_processed_records_are_committed_in_time_although_handlers_become_slow(
    order: Any,
) -> None:
    """Fast handlers process many records between two commit checks.

    When the handlers become slow, the next commit check must not be late.
    """
    slow, more = 3_000, 3
    async with orders(4_000) as it, it.consumer(auto_commit_interval_ms=10**8) as consumer:
        may_end = asyncio.Semaphore(0)

        async def handle(record: Record) -> None:
            if record.offset >= slow:
                await may_end.acquire()
            it.note(record)

        running = asyncio.create_task(consumer.run(handle, workers=1, order=order))
        for done in (slow, slow + more):
            while await it.committed(0) != [done]:
                pass
            for _ in range(more):
                may_end.release()
        running.cancel()
        for _ in range(it.count(0), 4_000):
            may_end.release()
        with pytest.raises(asyncio.CancelledError):
            await running


@pytest.mark.parametrize("order", ["partition", "none"])
@pytest.mark.slow
async def test_handlers_that_become_slow_do_not_block_the_loop_for_long(order: Any) -> None:
    async with orders(4_000) as it, it.consumer() as consumer:
        iterations = 0
        in_iteration: Counter[int] = Counter()

        async def count_iterations() -> None:
            nonlocal iterations
            while True:
                await asyncio.sleep(0)
                iterations += 1

        async def handle(record: Record) -> None:
            if record.offset >= 3_000:
                in_iteration[iterations] += 1
                time.sleep(0.003)  # noqa: ASYNC251 - a handler that computes
            if record.offset == 3_200:
                raise Stop(done=True)

        counting = asyncio.create_task(count_iterations())
        await consumer.run(handle, order=order)
        counting.cancel()
        assert max(in_iteration.values()) <= 64, "run must check the clock within an iteration"


async def test_partitions_are_concurrent_and_records_of_one_are_not() -> None:
    async with orders(5, 5) as it, it.consumer() as consumer:
        in_flight: set[tuple[int, int]] = set()
        both = asyncio.Event()

        async def handle(record: Record) -> None:
            in_flight.add((record.partition, record.offset))
            assert len({partition for partition, _ in in_flight}) == len(in_flight)
            if len(in_flight) == 2:
                both.set()
            await both.wait()
            in_flight.discard((record.partition, record.offset))
            it.note(record)
            if len(it.handled) == 10:
                raise Stop(done=True)

        await consumer.run(handle)
        assert sorted(it.handled) == [(p, at) for p in range(2) for at in range(5)]


async def test_keys_are_concurrent_and_records_of_one_are_not() -> None:
    async with orders(30) as it, it.consumer() as consumer:
        in_flight: set[bytes | None] = set()
        three = asyncio.Event()

        async def handle(record: Record) -> None:
            assert record.key not in in_flight
            in_flight.add(record.key)
            if len(in_flight) == 3:
                three.set()
            await three.wait()
            in_flight.discard(record.key)
            it.note(record)
            if len(it.handled) == 30:
                raise Stop(done=True)

        await consumer.run(handle, order="key")
        for key in range(3):
            offsets = [offset for _, offset in it.handled if offset % 3 == key]
            assert offsets == sorted(offsets)


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_concurrent_handlers_are_limited_by_workers(order: Any) -> None:
    async with orders(20, 20, 20, 20, 20) as it, it.consumer() as consumer:
        most = now = 0

        async def handle(record: Record) -> None:
            nonlocal most, now
            now += 1
            most = max(most, now)
            for _ in range(record.offset % 4):
                await asyncio.sleep(0)
            now -= 1
            it.note(record)
            if len(it.handled) == 100:
                raise Stop(done=True)

        await consumer.run(handle, workers=3, order=order)
        assert most == 3
        assert len(set(it.handled)) == 100


async def test_commit_does_not_pass_an_incomplete_record() -> None:
    async with orders(9) as it, it.consumer(auto_commit=False) as consumer:
        first = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 2:
                await first.wait()
            it.note(record)
            if len(it.handled) == 8:
                await consumer.commit()
                assert await it.committed(0) == [2]
                first.set()
            if len(it.handled) == 9:
                raise Stop(done=True)

        await consumer.run(handle, order="none")
        await consumer.commit()
        assert await it.committed(0) == [9]


async def test_refused_commit_is_not_repeated_before_its_backoff(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = replace(SETTINGS, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
    rights = ("create cluster kafka-cluster", f"all topic {TOPIC}", "describe group billing")
    acls = tuple(f"allow User:ANONYMOUS {right}" for right in rights)
    broker = BrokerSettings(authorizer=True, acls=acls)
    tp = (TOPIC, 0)
    async with orders(9, topics=(), settings=settings, broker_settings=broker) as it:

        async def handle(record: Record) -> None:
            it.note(record)
            for _ in range(2):
                await consumer.committed(tp)  # its response follows those of earlier commits
            if len(it.handled) == 9:
                raise Stop(done=True)

        async with it.consumer([tp]) as consumer:
            await consumer.run(handle, commit_interval_ms=0)
        assert caplog.text.count("processed offsets were not committed, and will be retried") == 1
        assert "were not committed at the end of run()" in caplog.text


async def test_handlers_stay_within_max_offset_gap() -> None:
    async with orders(50) as it, it.consumer() as consumer:
        first = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 0:
                await first.wait()
            it.note(record)
            if len(it.handled) == 9:
                for _ in range(20):
                    await asyncio.sleep(0)
                assert len(it.handled) == 9
                first.set()
            if len(it.handled) == 50:
                raise Stop(done=True)

        await consumer.run(handle, order="none", max_offset_gap=10)
        assert sorted(it.handled[:9]) == [(0, at) for at in range(1, 10)]


# Refused calls and settings


async def test_other_reads_are_refused_during_run() -> None:
    async with orders(9) as it, it.consumer() as consumer:
        faults: list[str] = []

        async def handle(record: Record) -> None:
            for call in (
                consumer.run(handle),
                anext(aiter(consumer)),
                consumer.close(),
                consumer.commit(record),
            ):
                with pytest.raises(ConfigurationError) as refused:
                    await call
                faults.append(str(refused.value))
            raise Stop

        await consumer.run(handle)
        assert "reads this consumer already" in faults[0]
        assert "run() polls this consumer" in faults[1]
        assert "raise kproto.Stop" in faults[2]
        assert "run() tracks processed offsets" in faults[3]


async def test_run_is_refused_while_an_iteration_waits() -> None:
    async with orders(0) as it, it.consumer() as consumer:
        poll = asyncio.ensure_future(anext(aiter(consumer)))
        await asyncio.sleep(0)
        with pytest.raises(ConfigurationError, match="reads this consumer already"):
            await consumer.run(until(it, 1))
        poll.cancel()


async def test_run_outside_of_the_block_is_refused() -> None:
    async with orders(1) as it:
        consumer = it.consumer()
        with pytest.raises(ConfigurationError, match="within its block"):
            await consumer.run(until(it, 1))
        async with consumer:
            pass
        with pytest.raises(ConfigurationError, match="is closed"):
            await consumer.run(until(it, 1))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"order": "topic"}, "order is 'topic'"),
        ({"max_offset_gap": 0}, "max_offset_gap is 0"),
        ({"drain_timeout_ms": -1}, "drain_timeout_ms is -1"),
        ({"retries": -1}, "attempts of retries is -1"),
        ({"retries": True}, "retries is True"),
        ({"cancel_lost": 1}, "cancel_lost is 1"),
        ({"stop_on": signal.SIGTERM}, "stop_on is"),
        ({"stop_on": [12345]}, "12345 is not a valid Signals"),
        ({"dead_letter_topic": ""}, "dead_letter_topic is ''"),
        ({"dead_letter_topic": "orders"}, "would be handled"),
        ({"dead_letter_topic": "none"}, "'none', to which failed records are sent, does not exist"),
        ({"retry_topics": "orders.5s"}, "retry_topics is 'orders.5s'"),
        ({"retry_topics": ["orders.later"]}, "has no delay in its name"),
        ({"retry_topics": ["a.5s", "b.1s"]}, "has a shorter delay"),
        ({"retry_topics": ["a.5s", "a.5s"]}, "names a topic twice"),
        ({"retry_topics": ["a.5s"]}, "'a.5s', to which failed records are sent, does not exist"),
        ({"retry_topics": ["a.5s"], "dead_letter_topic": "a.5s"}, "is retry and dead letter topic"),
        ({"decode": 5}, "decode is 5"),
    ],
)
async def test_invalid_settings_are_refused_before_any_handler_runs(
    given: dict[str, Any], why: str
) -> None:
    async with orders(1) as it, it.consumer() as consumer:
        with pytest.raises(ConfigurationError) as refused:
            await consumer.run(until(it, 1), **given)
        assert why in str(refused.value)
        assert it.handled == []
        assert await consumer.run(until(it, 1)) == RunSummary(1)


async def test_handler_must_be_async() -> None:
    async with orders(1) as it, it.consumer() as consumer:
        with pytest.raises(ConfigurationError, match="handler is 5"):
            await consumer.run(5)  # type: ignore[call-overload]
        with pytest.raises(ConfigurationError, match="is a plain function"):
            await consumer.run(it.note)  # type: ignore[arg-type]
        assert await it.committed(0) == [None]
        handle = until(it, 2)
        await consumer.run(lambda record: handle(record))
        assert await it.committed(0) == [1]


# Handlers that seek, pause, fail or are cancelled


async def test_seek_of_a_handler_discards_polled_records() -> None:
    async with orders(20) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 4 and it.count(0) == 5:
                consumer.seek(("orders", 0), 17)
            if record.offset == 19:
                raise Stop(done=True)

        await consumer.run(handle)
        assert [offset for _, offset in it.handled] == [0, 1, 2, 3, 4, 17, 18, 19]
        assert await it.committed(0) == [20]


async def test_no_polled_record_starts_after_a_seek() -> None:
    async with orders(30) as it, it.consumer() as consumer:
        has_sought = asyncio.Event()

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 0:
                await has_sought.wait()  # blocks the records 3, 6, ... of the same key
            if record.offset == 4:
                consumer.seek(("orders", 0), 27)
                has_sought.set()
            if record.offset == 29:
                raise Stop(done=True)

        await consumer.run(handle, order="key")
        assert {offset for _, offset in it.handled} <= {0, 1, 2, 4, 5, 27, 28, 29}
        assert await it.committed(0) == [30]


@pytest.mark.parametrize("order", ["partition", "none"])
async def test_pause_stops_polled_records_too(order: Any) -> None:
    async with orders(600, 600) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            await asyncio.sleep(0)
            if it.handled == [(0, 0)] or (record.partition, record.offset) == (0, 0):
                consumer.pause(("orders", 0))
            if record.partition == 1 and record.offset == 599:
                assert it.count(0) < 40
                assert consumer.paused == {("orders", 0)}
                consumer.resume(("orders", 0))
            if len(it.handled) == 1200:
                raise Stop(done=True)

        await consumer.run(handle, order=order)
        assert len(set(it.handled)) == 1200
        assert await it.committed(0, 1) == [600, 600]


async def test_lag_counts_records_that_have_not_started() -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 4:
                assert await consumer.lag() == {("orders", 0): 4}
                assert consumer.positions == {("orders", 0): 5}
                assert await consumer.position(("orders", 0)) == 5
                raise Stop(done=True)

        await consumer.run(handle)


async def test_base_exception_ends_run_and_is_raised() -> None:
    class Gone(BaseException):
        pass

    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 3:
                raise Gone

        with pytest.raises(Gone):
            await consumer.run(handle, dead_letter_topic="orders.dead")
        assert await it.committed(0) == [3]


async def test_cancelled_error_raised_by_a_handler_is_a_failure() -> None:
    async with orders(3) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            if record.offset == 1:
                raise asyncio.CancelledError
            it.note(record)
            if record.offset == 2:
                raise Stop(done=True)

        done = await consumer.run(handle, retries=SOON, dead_letter_topic="orders.dead")
        assert done == RunSummary(2, retried=2, dead_letters=1)
        assert await it.committed(0) == [3]


async def test_run_processes_manually_assigned_partitions() -> None:
    async with orders(4, 4) as it, it.consumer([("orders", 1)]) as consumer:
        await consumer.run(until(it, 4))
        assert it.handled == [(1, at) for at in range(4)]
        assert await consumer.committed(("orders", 1)) == {
            ("orders", 1): kproto.CommittedOffset(4, 0, "")
        }
