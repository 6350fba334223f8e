"""Tests the end of `run` by `Stop`, a signal, a cancellation or `close`.

Records in flight are finished, unless the drain timeout or a second signal cancels their handlers.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from kproto import ConfigurationError, DeliveryError, NewTopic, Record, Retries, Stop
from kproto.broker import Delay
from kproto.messages import OffsetCommitRequest
from tests.unit.client.processing.orders import DEAD, SETTINGS, Orders, orders, until

NO_RETRIES = Retries(0)


async def until_handled(it: Orders, count: int) -> None:
    while len(it.handled) < count:  # noqa: ASYNC110 - a list, and no event
        await asyncio.sleep(0)


async def test_stop_commits_its_record_only_if_done() -> None:
    async with orders(9) as it:
        for at, done in ((3, False), (5, True)):
            async with it.consumer() as consumer:

                async def handle(record: Record, at: int = at, done: bool = done) -> None:
                    it.note(record)
                    if record.offset == at:
                        raise Stop("enough", done=done)

                await consumer.run(handle)
        assert it.handled == [(0, each) for each in (0, 1, 2, 3, 3, 4, 5)]
        assert await it.committed(0) == [6]


async def test_records_in_flight_are_finished_and_none_is_redelivered() -> None:
    """Some records are processed while an earlier record of another key is still in process."""
    async with orders(300) as it:
        for _ in range(5):
            async with it.consumer() as consumer:
                begun = len(it.handled)

                async def handle(record: Record, begun: int = begun) -> None:
                    for _ in range(20 if record.key == b"k1" else 1):
                        await asyncio.sleep(0)
                    it.note(record)
                    if len(it.handled) == begun + 8:
                        raise Stop(done=True)

                await consumer.run(handle, order="key")
        assert len(it.handled) == len(set(it.handled))
        (committed,) = await it.committed(0)
        assert committed is not None
        assert committed < len(it.handled), "no record was processed after an incomplete one"
        async with it.consumer() as consumer:
            while len(it.handled) < 300:
                it.note(await anext(aiter(consumer)))
        assert sorted(it.handled) == [(0, at) for at in range(300)]
        assert await it.committed(0) == [300]


async def test_signal_finishes_records_in_flight() -> None:
    before = signal.getsignal(signal.SIGTERM)
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            if record.offset == 4:
                os.kill(os.getpid(), signal.SIGTERM)
                for _ in range(20):
                    await asyncio.sleep(0)
            it.note(record)

        assert (await consumer.run(handle)).handled == 5
        assert it.handled == [(0, at) for at in range(5)]
        assert await it.committed(0) == [5]
    assert signal.getsignal(signal.SIGTERM) is before


async def test_second_signal_cancels_records_in_flight() -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 4:
                os.kill(os.getpid(), signal.SIGUSR1)
                await asyncio.sleep(0.01)
                os.kill(os.getpid(), signal.SIGUSR1)
                await asyncio.Event().wait()

        await consumer.run(handle, stop_on=[signal.SIGUSR1])
        assert await it.committed(0) == [4]


async def test_signal_ends_several_runs_and_keeps_the_handler_of_the_loop() -> None:
    async with orders(1) as it, it.consumer() as one, it.consumer(group="other") as other:
        loop = asyncio.get_running_loop()
        received: list[str] = []

        async def handle(record: Record) -> None:
            it.note(record)
            if len(it.handled) == 2:
                os.kill(os.getpid(), signal.SIGTERM)

        await asyncio.gather(one.run(handle), other.run(handle))
        loop.add_signal_handler(signal.SIGTERM, lambda: received.append("own"))
        try:
            await it.send([b"more"])

            async def once(record: Record) -> None:
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0.01)
                assert received == ["own"]
                raise Stop

            await one.run(once)
            with pytest.raises(ConfigurationError, match="has a handler of SIGTERM already"):
                await one.run(once, stop_on=[signal.SIGTERM])
        finally:
            loop.remove_signal_handler(signal.SIGTERM)


async def test_cancelled_run_finishes_records_in_flight() -> None:
    async with orders(9) as it, it.consumer() as consumer:
        begun = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 4:
                begun.set()
                for _ in range(20):
                    await asyncio.sleep(0)
            it.note(record)

        running = asyncio.create_task(consumer.run(handle))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(it.handled) == 5
        assert await it.committed(0) == [5]


async def test_cancelled_run_logs_the_error_that_it_does_not_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with orders(1) as it, it.consumer() as consumer:
        begun, may_fail = asyncio.Event(), asyncio.Event()

        async def handle(record: Record) -> None:
            begun.set()
            await may_fail.wait()
            raise ValueError("not paid")

        running = asyncio.create_task(consumer.run(handle, retries=0))
        await begun.wait()
        running.cancel()
        await asyncio.sleep(0)
        may_fail.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert "not raised: ValueError: not paid; raised by the handler of orders[0]" in (
            caplog.text
        )


async def test_handler_longer_than_the_drain_timeout_is_cancelled_and_not_committed() -> None:
    async with orders(9) as it, it.consumer() as consumer:
        cancelled = []

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 4:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.append(record.offset)
                    raise

        running = asyncio.create_task(consumer.run(handle, drain_timeout_ms=20))
        await until_handled(it, 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert cancelled == [4]
        assert await it.committed(0) == [4]


async def test_last_commit_has_the_rest_of_the_drain_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = replace(SETTINGS, error_flush_ms=20)
    async with orders(1, settings=settings) as it:

        async def handle(record: Record) -> None:
            await it.broker.close()
            raise Stop(done=True)

        with suppress(LookupError):
            async with it.consumer() as consumer:
                assert (await consumer.run(handle, drain_timeout_ms=20)).handled == 1
                assert "processed offsets were not committed at the end of run()" in caplog.text
                raise LookupError  # after an error, close waits at most error_flush_ms


@pytest.mark.parametrize("end", ["error", "dead letter", "cancelled"])
@pytest.mark.slow
async def test_last_commit_has_the_drain_timeout_for_every_end(end: str) -> None:
    settings = replace(SETTINGS, error_flush_ms=20)
    async with orders(9, settings=settings, topics=[]) as it:
        await it.client.create_topics(NewTopic(DEAD, 1, configs={"max.message.bytes": "1"}))
        it.broker.control(lambda received: Delay(300), request=OffsetCommitRequest)

        async def handle(record: Record) -> None:
            if record.offset == 4:
                if end == "cancelled":
                    running.cancel()
                raise ValueError("not paid")

        async def run() -> None:
            dead = DEAD if end == "dead letter" else None
            given: Any = {"dead_letter_topic": dead, "commit_interval_ms": 60_000}
            async with it.consumer() as consumer:
                await consumer.run(handle, retries=0, **given)

        raised = asyncio.CancelledError if end == "cancelled" else ValueError
        running = asyncio.create_task(run())
        with pytest.raises(DeliveryError if end == "dead letter" else raised):
            await running
        assert await it.committed(0) == [4]


@pytest.mark.parametrize(("cancelled", "drain_timeout_ms"), [(0, 20), (1, 20), (2, 60_000)])
async def test_unanswered_commit_does_not_block_the_end(
    cancelled: int, drain_timeout_ms: int
) -> None:
    """`run` waits for the commit until `drain_timeout_ms` is over.

    If less than `error_flush_ms` of this time is left, `run` waits for `error_flush_ms`. After a
    second cancellation, `run` waits for `error_flush_ms`.
    """
    settings = replace(SETTINGS, error_flush_ms=20)
    async with orders(9, settings=settings) as it:
        it.broker.control(lambda received: Delay(60_000), request=OffsetCommitRequest)
        begun = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 4:
                begun.set()
                if cancelled:
                    await asyncio.Event().wait()
                raise ValueError("not paid")

        async def run() -> None:
            async with it.consumer() as consumer:
                await consumer.run(handle, retries=0, drain_timeout_ms=drain_timeout_ms)

        running = asyncio.create_task(run())
        await begun.wait()
        for _ in range(cancelled):
            running.cancel()
            for _ in range(10):  # otherwise the second cancellation would repeat the first one
                await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError if cancelled else ValueError):
            await running


async def test_run_waits_for_a_handler_that_swallows_its_cancellation() -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            if record.offset == 4:
                for _ in range(2):
                    try:
                        await asyncio.sleep(0.05)
                    except asyncio.CancelledError:
                        it.handled.append((9, 9))
            it.note(record)

        running = asyncio.create_task(consumer.run(handle, drain_timeout_ms=0))
        await until_handled(it, 4)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert it.handled == [*((0, at) for at in range(4)), (9, 9), (0, 4)]
        assert await it.committed(0) == [5]


async def test_close_ends_run() -> None:
    async with orders(9) as it, it.consumer() as consumer:
        begun = asyncio.Event()

        async def handle(record: Record) -> None:
            begun.set()
            for _ in range(5):
                await asyncio.sleep(0)
            it.note(record)

        running = asyncio.create_task(consumer.run(handle))
        await begun.wait()
        await consumer.close()
        assert (await running).handled == len(it.handled) > 0
        assert await it.committed(0) == [len(it.handled)]


async def test_reading_resumes_after_the_processed_records() -> None:
    async with orders(900) as it, it.consumer() as consumer:
        await consumer.run(until(it, 5), order="key")
        done = len(it.handled)
        assert (await anext(aiter(consumer))).offset == done
        it.handled.clear()
        await consumer.run(until(it, 3))
        assert it.handled == [(0, done + 1), (0, done + 2), (0, done + 3)]
