"""Tests `run` of a share consumer: acceptance, release, rejection, dead letters, renewal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import kproto
from kproto import Retries, ShareRecord, ShareRunSummary, Stop
from kproto.client.processing.settings import RunSettings, share_run_settings
from kproto.client.processing.share_look_ahead import ShareLookAhead
from kproto.client.processing.share_policy import (
    Accept,
    DeadLetter,
    Reject,
    Release,
    ShareStep,
    share_step,
)
from tests.unit.client.consumer.scripted_share import ShareBroker
from tests.unit.client.consumer.test_share_consumer import sharing

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

#: Retries that need no time.
AT_ONCE = Retries(3, backoff_ms=0)


@pytest.mark.parametrize(
    ("error", "deliveries", "topic", "is_decoded", "step"),
    [
        (ValueError(), 1, None, True, Release(0.0)),
        (ValueError(), 3, None, True, Release(0.0)),
        (ValueError(), 4, None, True, Reject()),
        (ValueError(), 4, "dead", True, DeadLetter("dead")),
        (ValueError(), 1, None, False, Reject()),
        (ValueError(), 1, "dead", False, DeadLetter("dead")),
        (Stop(), 1, None, True, Release(0.0, stops=True)),
        (Stop(done=True), 9, "dead", True, Accept(stops=True)),
    ],
)
def test_step_depends_on_error_and_deliveries(
    error: Exception, deliveries: int, topic: str | None, is_decoded: bool, step: ShareStep
) -> None:
    settings = RunSettings.of(order="none", retries=AT_ONCE, dead_letter_topic=topic)
    assert share_step(settings, error, deliveries, 0.5, is_decoded=is_decoded) == step


def test_excluded_exception_is_rejected_at_once() -> None:
    settings = RunSettings.of(order="none", retries=Retries(3, exceptions=(OSError,)))
    assert share_step(settings, ValueError(), 1, 0.5, is_decoded=True) == Reject()


@pytest.mark.parametrize("name", ["retry_topics", "order", "bogus"])
def test_argument_of_other_runs_is_refused(name: str) -> None:
    arguments: Any = {name: ["jobs.retry.5s"]}
    words = f"no argument '{name}'; it has workers, retries, dead_letter_topic"
    with pytest.raises(kproto.ConfigurationError, match=words):
        share_run_settings(arguments)


async def run(broker: ShareBroker, handle: Any, **settings: Any) -> ShareRunSummary:
    """Runs `handle` on the records of `broker`, until the handler raises `Stop`."""
    async with sharing(broker, "explicit") as consumer:
        return await consumer.run(handle, retries=AT_ONCE, **settings)


async def test_records_are_accepted_when_their_handler_returns() -> None:
    async with ShareBroker() as broker:
        broker.produce(30)
        seen = []
        running = most = 0

        async def handle(record: ShareRecord) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            seen.append(record.offset)
            if len(seen) == 30:
                raise Stop(done=True)

        summary = await run(broker, handle, workers=4)
        assert summary == ShareRunSummary(handled=30)
        assert sorted(broker.acks) == [(at, ACCEPT) for at in range(30)]
        assert most == 4


async def test_failed_record_is_released_and_then_rejected() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        deliveries = []

        async def handle(record: ShareRecord) -> None:
            if record.offset == 1:
                deliveries.append(record.delivery_count)
                raise ValueError
            if record.offset == 3:
                raise Stop(done=True)

        running = asyncio.create_task(run(broker, handle))
        await broker.until(lambda: broker.states[1] == "archived")
        broker.produce(3)
        assert await running == ShareRunSummary(handled=3, released=3, rejected=1)
        assert deliveries == [1, 2, 3, 4]
        assert [kind for offset, kind in broker.acks if offset == 1] == [RELEASE] * 3 + [REJECT]


async def test_corrupt_batch_is_rejected_and_the_run_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ShareBroker() as broker:
        broker.corrupt = {3}
        broker.produce(9)
        seen = []

        async def handle(record: ShareRecord) -> None:
            seen.append(record.offset)
            if record.offset == 9:
                raise Stop(done=True)

        running = asyncio.create_task(run(broker, handle))
        await broker.until(lambda: running.done() or len(seen) == 6)
        broker.produce(1)
        assert await running == ShareRunSummary(handled=7)
        assert sorted(seen) == [0, 1, 2, 6, 7, 8, 9]
        assert [offset for offset, kind in broker.acks if kind == REJECT] == [3, 4, 5]
    lines = [each for each in caplog.messages if "the run continues after them" in each]
    assert len(lines) == 1
    assert "jobs[0]" in lines[0]


async def test_lock_of_a_slow_handler_is_renewed() -> None:
    async with ShareBroker(lock_ms=200) as broker:
        broker.produce(1)
        broker.batch = 1

        async def handle(record: ShareRecord) -> None:
            await asyncio.sleep(0.6)
            raise Stop(done=True)

        assert await run(broker, handle) == ShareRunSummary(handled=1)
        assert [kind for _, kind in broker.acks].count(RENEW) >= 2
        assert broker.acks[-1] == (0, ACCEPT)


async def test_cancelled_run_releases_its_records() -> None:
    async with ShareBroker() as broker:
        broker.produce(6)
        started = asyncio.Event()

        async def handle(record: ShareRecord) -> None:
            started.set()
            await asyncio.sleep(60)

        async with sharing(broker, "explicit") as consumer:
            task = asyncio.create_task(consumer.run(handle, workers=2, drain_timeout_ms=0))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await consumer.commit()
            assert set(broker.states.values()) == {"available"}
            async for record in consumer:  # the consumer can be used again
                assert record.delivery_count >= 1
                break


async def test_close_stops_a_run_and_waits_for_its_handlers() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        started = asyncio.Event()

        async def handle(record: ShareRecord) -> None:
            started.set()
            await asyncio.sleep(0.05)

        async with sharing(broker, "explicit") as consumer:
            task = asyncio.create_task(consumer.run(handle, workers=1))
            await started.wait()
            await consumer.close()
            assert (await task).handled == 1
        assert broker.acks.count((0, ACCEPT)) == 1


async def test_handler_that_closes_its_consumer_is_refused() -> None:
    async with ShareBroker() as broker:
        broker.produce(1)
        broker.batch = 1
        async with sharing(broker, "explicit") as consumer:

            async def handle(record: ShareRecord) -> None:
                with pytest.raises(kproto.ConfigurationError, match=r"raise kproto\.Stop"):
                    await consumer.close()
                raise Stop(done=True)

            assert (await consumer.run(handle)).handled == 1


async def test_plain_function_ends_the_run_and_releases_the_record() -> None:
    async with ShareBroker() as broker:
        broker.produce(1)
        broker.batch = 1
        async with sharing(broker, "explicit") as consumer:
            with pytest.raises(kproto.ConfigurationError, match="make it `async def`"):
                await consumer.run(lambda record: None)  # type: ignore[arg-type, return-value]
            await consumer.commit()
        assert broker.acks == [(0, RELEASE)]


async def test_stopped_runs_cost_records_that_no_handler_started_few_deliveries() -> None:
    """Before, each of five stops cost all 60 records of the batch a delivery: the limit is five."""
    async with ShareBroker(batch=60) as broker:
        broker.produce(60)

        async def handle(record: ShareRecord) -> None:
            raise Stop(done=True)

        for handled in range(1, 6):
            assert await run(broker, handle, workers=1) == ShareRunSummary(handled=1)
            accepted = [at for at, kind in broker.acks if kind == ACCEPT]
            assert accepted == list(range(handled))
        assert max(broker.deliveries.values()) <= 2
        assert len(broker.deliveries) <= 6


async def test_slow_handlers_have_one_record_in_advance_for_each_worker() -> None:
    async with ShareBroker(batch=60) as broker:
        broker.produce(60)
        started = 0
        is_done = asyncio.Event()

        async def handle(record: ShareRecord) -> None:
            nonlocal started
            started += 1
            await is_done.wait()

        async with sharing(broker, "explicit") as consumer:
            task = asyncio.create_task(consumer.run(handle, workers=3))
            await broker.until(lambda: started == 3)
            assert len(broker.deliveries) == 6
            is_done.set()
            await broker.until(lambda: started == 60)  # fast handlers get all records
            await consumer.close()
            assert (await task).handled == 60


def look_ahead_after(*steps: tuple[int, int, float], workers: int = 4) -> ShareLookAhead:
    """Returns the look-ahead after fills of records, of which some are left after some seconds."""
    look_ahead = ShareLookAhead(workers, 500)
    now = 0.0
    for queued, left, took in steps:
        look_ahead.on_filled(queued, now)
        now += took
        look_ahead.on_poll(left, now, has_more=True)
    return look_ahead


def test_look_ahead_grows_while_handlers_are_fast() -> None:
    assert look_ahead_after().fetch_limit(3) == 5
    assert look_ahead_after((8, 2, 0.01)).fetch_limit(6) == 26
    fast = look_ahead_after((8, 2, 0.01), (32, 8, 0.01), (128, 30, 0.01))
    assert (fast.is_limited, fast.fetch_limit(30), fast.refill_at) == (False, None, 3)


def test_look_ahead_shrinks_at_once_if_handlers_become_slow() -> None:
    slow = look_ahead_after((8, 2, 0.01), (32, 8, 0.01), (128, 30, 0.01), (500, 490, 5.0))
    assert (slow.size, slow.fetch_limit(8), slow.refill_at) == (8, 1, 2)


def test_look_ahead_does_not_grow_if_no_more_records_are_available() -> None:
    look_ahead = ShareLookAhead(4, 500)
    look_ahead.on_filled(8, 0.0)
    look_ahead.on_poll(2, 0.01, has_more=False)
    assert look_ahead.size == 8
