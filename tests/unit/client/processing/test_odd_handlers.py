"""Tests unusual handlers: errors without a text, BaseException, cancellation, seeks."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest

from kproto import ConfigurationError, ProducerRecord, Record, Retries, Stop, failure_of
from kproto.client.processing.failure_headers import FAILURE_HEADERS
from kproto.testing.clock import SkewedClock
from tests.unit.client.processing.orders import DEAD, TOPIC, orders, read_all

ORDERS = pytest.mark.parametrize("order", ["partition", "key", "none"])


class OddError(Exception):
    """An error whose `str` and `repr` raise an error."""

    def __str__(self) -> NoReturn:
        raise RuntimeError("it has no text")

    __repr__ = __str__


# Seeks: `run` ignores records of the partition that were polled before the seek


@pytest.mark.parametrize("end", [Stop(), Stop(done=True), SystemExit(3)])
async def test_handler_can_seek_and_end_run(end: BaseException) -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 4:
                consumer.seek((TOPIC, 0), 2)
                raise end

        if isinstance(end, Stop):
            await consumer.run(handle)
        else:
            with pytest.raises(SystemExit):
                await consumer.run(handle)
        assert it.handled == [(0, at) for at in range(5)]
        assert await it.committed(0) == [2]


@ORDERS
async def test_after_a_seek_no_handler_starts_before_the_seeking_one_ends(order: Any) -> None:
    async with orders(9) as it, it.consumer() as consumer:
        has_moved = is_in_flight = False

        async def handle(record: Record) -> None:
            nonlocal has_moved, is_in_flight
            assert not is_in_flight, "two at once"
            it.note(record)
            if record.offset == 3 and not has_moved:
                has_moved = is_in_flight = True
                consumer.seek((TOPIC, 0), 2)
                assert consumer._processing.pool is not None
                while not consumer._processing.pool.queued_positions:  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(0)
                await it.client.refresh([TOPIC])
                is_in_flight = False
            if record.offset == 8:
                raise Stop(done=True)

        async with asyncio.timeout(10):
            workers = 1 if order == "key" else 4
            await consumer.run(handle, order=order, workers=workers, retries=0)
        offsets = [offset for _, offset in it.handled]
        assert offsets[offsets.index(3) + 1 :] == [*range(2, 9)]


async def test_failure_after_a_seek_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if len(it.handled) == 5:
                consumer.seek((TOPIC, 0), 2)
                raise ValueError("no such order")
            if len(it.handled) == 6:
                raise Stop

        await consumer.run(handle)
        assert it.handled[-1] == (0, 2)
        assert "orders[0] at offset 4 failed after its partition was lost" in caplog.text
        assert "ValueError: no such order" in caplog.text


async def test_handler_cannot_subscribe_to_dead_letters_or_drop_retry_topics() -> None:
    async with orders(1, topics=[DEAD, "later.0ms"]) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            with pytest.raises(ConfigurationError, match="would be handled"):
                consumer.subscribe([TOPIC, DEAD])
            raise Stop

        await consumer.run(handle, retry_topics=["later.0ms"], dead_letter_topic=DEAD)


# Errors


@ORDERS
async def test_error_without_a_text_makes_a_dead_letter(order: Any) -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 4:
                raise OddError
            if len(it.handled) == 9:
                raise Stop(done=True)

        await consumer.run(handle, order=order, retries=0, dead_letter_topic=DEAD, workers=1)
        (letter,) = await read_all(it.client, DEAD)
        failure = failure_of(letter)
        assert failure is not None
        assert failure.error_message == "its text could not be made: RuntimeError"
        assert await it.committed(0) == [9]


@ORDERS
async def test_generator_exit_ends_run_at_once(order: Any) -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            if record.offset == 4:
                raise GeneratorExit

        async with asyncio.timeout(10):  # without waiting for `drain_timeout_ms`
            with pytest.raises(GeneratorExit):
                await consumer.run(handle, order=order, workers=1)
        assert await it.committed(0) == [4]


# Cancellation


@ORDERS
async def test_error_raised_on_cancellation_makes_no_dead_letter(order: Any) -> None:
    async with orders(9) as it:
        async with it.consumer() as consumer:
            begun = asyncio.Event()

            async def handle(record: Record) -> None:
                begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise OSError("the connection is closed") from None

            running = asyncio.create_task(
                consumer.run(
                    handle, order=order, retries=0, dead_letter_topic=DEAD, drain_timeout_ms=0
                )
            )
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert not await read_all(it.client, DEAD)
        assert await it.committed(0) in ([None], [0])


@ORDERS
async def test_cancelling_all_tasks_makes_no_dead_letters(order: Any) -> None:
    """A program can cancel all its tasks when it ends, including the handlers' tasks."""
    async with orders(9) as it:
        async with it.consumer() as consumer:
            begun = asyncio.Event()
            tasks: list[asyncio.Task[Any] | None] = []

            async def handle(record: Record) -> None:
                tasks.append(asyncio.current_task())
                begun.set()
                await asyncio.Event().wait()

            running = asyncio.create_task(
                consumer.run(
                    handle, order=order, retries=0, dead_letter_topic=DEAD, drain_timeout_ms=200
                )
            )
            await begun.wait()
            for each in [*tasks, running]:
                assert each is not None
                each.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert not await read_all(it.client, DEAD)
        assert await it.committed(0) in ([None], [0])


@ORDERS
@pytest.mark.parametrize("retries", [0, 1])
async def test_handler_that_cancels_its_own_task_fails(order: Any, retries: int) -> None:
    async with orders(9) as it:
        async with it.consumer() as consumer:
            failed: list[Record] = []

            async def handle(record: Record) -> None:
                if record.offset == 4 and not failed:
                    failed.append(record)
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                    raise ValueError
                it.note(record)
                if len(it.handled) == 8 + retries:
                    raise Stop(done=True)

            await consumer.run(
                handle,
                order=order,
                retries=Retries(retries, backoff_ms=0),
                dead_letter_topic=DEAD,
                max_offset_gap=2,
            )
        assert len(await read_all(it.client, DEAD)) == 1 - retries
        assert await it.committed(0) == [9]


async def test_handler_that_swallows_its_cancellation_gets_no_more_records() -> None:
    async with orders(600) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 500:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    it.handled.append((9, 9))
            elif record.offset > 510:
                await asyncio.Event().wait()

        running = asyncio.create_task(
            consumer.run(handle, order="key", workers=2, drain_timeout_ms=0)
        )
        while (0, 511) not in it.handled:  # noqa: ASYNC110 - notes, and no event
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert it.handled[-1] == (9, 9)
        assert await it.committed(0) == [503]  # the next record with the key of 500, now processed


async def test_signal_does_not_wait_for_a_retry() -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 0:
                raise ValueError

        running = asyncio.create_task(
            consumer.run(handle, order="none", retries=Retries(1, backoff_ms=10_000))
        )
        while len(it.handled) < 9:  # noqa: ASYNC110 - notes, and no event
            await asyncio.sleep(0)
        assert consumer._processing.pool is not None
        consumer._processing.pool.on_signal()
        async with asyncio.timeout(5):
            assert (await running).retried == 1
        assert it.count(0) == 9
        assert await it.committed(0) == [0]


# Clocks


async def test_record_waits_at_most_the_delay_of_its_retry_topic() -> None:
    headers = dict.fromkeys(FAILURE_HEADERS, b"1") | {"kproto.retry.due": b"9" * 400}
    async with orders(1, topics=["later.10ms"]) as it, it.consumer() as consumer:
        await it.send([ProducerRecord(b"late", None, list(headers.items()))], "later.10ms")

        async def handle(record: Record) -> None:
            if record.topic == "later.10ms":
                raise Stop(done=True)

        async with asyncio.timeout(10):
            await consumer.run(handle, retry_topics=["later.10ms"])
        assert await it.committed(0, topic="later.10ms") == [1]


@ORDERS
@pytest.mark.slow
async def test_clock_that_is_set_back_does_not_delay_a_retry_topic(order: Any) -> None:
    clock = SkewedClock()
    async with orders(2, topics=["later.200ms"], clock=clock) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.topic == TOPIC:
                assert consumer._processing.pool is not None
                while record.offset and not consumer._processing.pool.queued_positions:  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(0)  # until the first record is in the retry topic
                clock.move(-3_600_000 * record.offset)
                raise ValueError
            if record.offset:
                raise Stop(done=True)

        async with asyncio.timeout(10):
            await consumer.run(handle, order=order, retry_topics=["later.200ms"])
        assert it.handled == [(0, 0), (0, 1)] * 2
        assert await it.committed(0, topic="later.200ms") == [2]


@pytest.mark.parametrize(
    ("raised", "committed"),
    [
        ([Stop()], 4),
        ([Stop(done=True)], 5),
        ([Stop(done=True), ExceptionGroup("", [Stop(done=True)])], 5),
        ([Stop(done=True), ExceptionGroup("", [Stop()])], 4),
        ([Stop(done=True), ValueError("no such order")], 4),
    ],
)
async def test_stop_in_an_exception_group_ends_run(
    raised: list[Exception], committed: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with orders(9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 4:
                raise ExceptionGroup("of tasks", raised)

        await consumer.run(handle)
        assert len(it.handled) == 5
        assert await it.committed(0) == [committed]
        assert ("is not processed" in caplog.text) == (committed == 4)


# Groups


async def test_retry_topic_of_another_group_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with orders(1, topics=["later.0ms"]) as it:

        async def handle(record: Record) -> None:
            if record.topic == TOPIC:
                raise ValueError
            raise Stop

        for group in ("billing", "shipping"):
            async with it.consumer(group=group) as consumer:
                await consumer.run(handle, retry_topics=["later.0ms"])
        assert "group billing has sent records to retry topic later.0ms" in caplog.text
        assert "group shipping" not in caplog.text
