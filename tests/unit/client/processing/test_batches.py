"""Tests `run_batches`: batches of records, and outcomes of single records."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import chain
from typing import Any

import pytest

from kproto import ConfigurationError, GroupConsumer, Record, Retries, RunSummary, Stop, failure_of
from tests.unit.client.consumer.grouped import FAR, Group, group
from tests.unit.client.consumer.test_group_reading import P0, TEN
from tests.unit.client.processing.orders import DEAD, Orders, orders, read_all

ORDERS = pytest.mark.parametrize("order", ["partition", "key", "none"])
AT_ONCE = Retries(3, backoff_ms=0)


class Log:
    """A handler that notes its batches, and stops `run_batches` after `count` processed records.

    `fails` says how many times the handler fails at each offset.
    """

    def __init__(self, count: int, fails: dict[int, int] | None = None) -> None:
        self.count = count
        self.left = dict(fails or {})
        self.batches: list[list[tuple[int, int]]] = []
        self.processed: list[tuple[int, int]] = []
        self.active: dict[int, int] = defaultdict(int)
        self.most_active: dict[int, int] = defaultdict(int)

    async def __call__(self, records: list[Record]) -> dict[int, Exception] | None:
        partition = records[0].partition
        self.active[partition] += 1
        most = max(self.most_active[partition], self.active[partition])
        self.most_active[partition] = most
        self.batches.append([(record.partition, record.offset) for record in records])
        await asyncio.sleep(0.001)
        self.active[partition] -= 1
        failed: dict[int, Exception] = {}
        for index, record in enumerate(records):
            if self.left.get(record.offset, 0):
                self.left[record.offset] -= 1
                failed[index] = ValueError(f"offset {record.offset}")
            else:
                self.processed.append((record.partition, record.offset))
        if len(self.processed) == self.count and not failed:
            raise Stop(done=True)
        return failed or None


async def run(it: Orders, handler: Any, **given: Any) -> Any:
    async with it.consumer() as consumer:
        return await consumer.run_batches(handler, **{"retries": AT_ONCE, "stop_on": (), **given})


@ORDERS
async def test_every_record_is_processed_once_in_batches(order: Any) -> None:
    async with orders(40, 25) as it:
        log = Log(65)
        summary = await run(it, log, batch_size=7, order=order)
        assert sorted(log.processed) == [(0, n) for n in range(40)] + [(1, n) for n in range(25)]
        assert summary.handled == 65
        assert await it.committed(0, 1) == [40, 25]
        for batch in log.batches:
            assert 1 <= len(batch) <= 7
            assert batch == sorted(batch)
            assert len({partition for partition, _ in batch}) == 1


async def test_batches_of_a_partition_are_handled_one_after_the_other() -> None:
    async with orders(40, 25) as it:
        log = Log(65)
        await run(it, log, batch_size=4)
        assert log.most_active == {0: 1, 1: 1}
        for partition in (0, 1):
            offsets = [at for its, at in log.processed if its == partition]
            assert offsets == sorted(offsets)


async def test_batch_has_one_record_of_each_key() -> None:
    """The keys repeat k0, k1, k2."""
    async with orders(30) as it:
        log = Log(30)
        await run(it, log, batch_size=10, order="key")
        for batch in log.batches:
            assert len({offset % 3 for _, offset in batch}) == len(batch)
        for key in range(3):
            offsets = [at for _, at in log.processed if at % 3 == key]
            assert offsets == sorted(offsets)


@ORDERS
async def test_failed_records_are_retried_alone(order: Any) -> None:
    async with orders(12) as it:
        log = Log(12, {2: 1, 3: 2})
        summary = await run(it, log, batch_size=6, order=order)
        assert sorted(at for _, at in log.processed) == list(range(12))
        assert summary.handled == 12
        assert summary.retried == 3
        assert await it.committed(0) == [12]


async def test_later_records_of_the_partition_wait_for_a_retry() -> None:
    async with orders(12) as it:
        log = Log(12, {2: 1, 4: 2})
        await run(it, log, batch_size=6, order="partition")
        assert log.batches[0] == [(0, at) for at in range(6)]
        assert [offset for _, offset in chain.from_iterable(log.batches[1:-1])] in (
            [2, 4, 4],
            [4, 2, 4],
        )
        assert log.batches[-1] == [(0, at) for at in range(6, 12)]


@ORDERS
async def test_exhausted_records_become_dead_letters(order: Any) -> None:
    async with orders(9) as it:
        log = Log(7, {1: 99, 5: 99})
        summary = await run(
            it, log, batch_size=4, order=order, retries=0, dead_letter_topic=DEAD, workers=1
        )
        assert (summary.handled, summary.dead_letters) == (7, 2)
        letters = await read_all(it.client, DEAD)
        assert sorted(letter.value or b"" for letter in letters) == [b"1", b"5"]
        for letter in letters:
            failure = failure_of(letter)
            assert failure is not None
            assert failure.error_message == f"offset {failure.offset}"
        assert await it.committed(0) == [9]


async def test_exception_fails_all_records_of_the_batch() -> None:
    async with orders(6) as it:
        calls: list[list[int]] = []

        async def handle(records: list[Record]) -> None:
            calls.append([record.offset for record in records])
            if len(calls) == 1:
                raise LookupError("all")
            if records[-1].offset == 5:
                raise Stop(done=True)

        summary = await run(it, handle, batch_size=6)
        assert calls[0] == [0, 1, 2, 3, 4, 5]
        assert sorted(chain.from_iterable(calls[1:])) == [0, 1, 2, 3, 4, 5]
        assert (summary.handled, summary.retried) == (6, 6)
        assert await it.committed(0) == [6]


async def test_without_a_dead_letter_topic_the_error_is_raised() -> None:
    """The first unprocessed record is redelivered; processed records after it are not."""
    async with orders(6) as it:
        log = Log(99, {2: 99})
        with pytest.raises(ValueError, match="offset 2"):
            await run(it, log, batch_size=6, retries=0)
        assert await it.committed(0) == [2]
        again = Log(1)
        await run(it, again, batch_size=6)
        assert again.processed == [(0, 2)]


@pytest.mark.parametrize("done", [True, False])
async def test_stop_applies_to_the_whole_batch(done: bool) -> None:
    async with orders(6) as it:

        async def handle(records: list[Record]) -> None:
            raise Stop(done=done)

        summary = await run(it, handle, batch_size=4)
        assert summary.handled == (4 if done else 0)
        assert await it.committed(0) == [4 if done else 0]


@pytest.mark.parametrize(
    "answer", [True, [0], {9: ValueError()}, {-1: ValueError()}, {0: "failed"}, {"0": ValueError()}]
)
async def test_other_result_of_a_handler_of_batches_is_refused(answer: Any) -> None:
    async with orders(3) as it:

        async def handle(records: list[Record]) -> Any:
            return answer

        with pytest.raises(ConfigurationError, match="return None, or a dict from the index"):
            await run(it, handle)
        assert await it.committed(0) == [0]


async def test_plain_function_as_handler_of_batches_is_refused() -> None:
    async with orders(3) as it:
        with pytest.raises(ConfigurationError, match="make it `async def`"):
            await run(it, lambda records: None)


@pytest.mark.parametrize(
    "given", [{"batch_size": 0}, {"batch_size": 1.5}, {"handler": None}, {"order": "all"}]
)
async def test_invalid_argument_of_run_batches_is_refused(given: Any) -> None:
    async with orders(1) as it, it.consumer() as consumer:
        with pytest.raises(ConfigurationError, match=r"batch_size|handler|order"):
            await consumer.run_batches(**{"handler": Log(1), **given})


@ORDERS
async def test_cancelled_run_waits_for_its_batches(order: Any) -> None:
    async with orders(10) as it, it.consumer() as consumer:
        started, may_end = asyncio.Event(), asyncio.Event()
        handled: list[int] = []

        async def handle(records: list[Record]) -> None:
            started.set()
            await may_end.wait()
            handled.extend(record.offset for record in records)

        running = asyncio.create_task(
            consumer.run_batches(handle, batch_size=3, order=order, workers=1, stop_on=())
        )
        await started.wait()
        running.cancel()
        await asyncio.sleep(0.01)
        assert not running.done()
        may_end.set()
        await asyncio.wait([running])
        assert running.cancelled()
        assert handled == [0, 1, 2]
        assert await it.committed(0) == [3]


async def test_batch_may_be_larger_than_a_list() -> None:
    async with orders(900) as it:
        log = Log(900)
        await run(it, log, batch_size=800)
        assert max(map(len, log.batches)) > 300


# --- Revocation and loss ---


class Gated:
    """A handler that waits in each batch until `may_end` is set."""

    def __init__(self) -> None:
        self.begun: list[list[int]] = []
        self.ended: list[list[int]] = []
        self.cancelled = 0
        self.may_end = asyncio.Event()

    async def __call__(self, records: list[Record]) -> None:
        offsets = [record.offset for record in records]
        self.begun.append(offsets)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.ended.append(offsets)


async def started(
    it: Group, consumer: GroupConsumer, handler: Gated, order: Any
) -> asyncio.Task[RunSummary]:
    """Returns a running `run_batches`, after its first batch has started."""
    await it.owner.assign([P0])
    running = asyncio.create_task(
        consumer.run_batches(handler, batch_size=4, workers=1, order=order, stop_on=())
    )
    while not handler.begun:  # noqa: ASYNC110 - a list, and no event
        await asyncio.sleep(0)
    return running


async def ended(running: asyncio.Task[RunSummary]) -> None:
    running.cancel()
    await asyncio.wait([running])


@ORDERS
async def test_revocation_waits_for_the_batch_in_flight_and_commits_it(order: Any) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        handler = Gated()
        running = await started(it, consumer, handler, order)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await it.client.refresh(["t"])
        assert not revoking.done()
        handler.may_end.set()
        await revoking
        (batch,) = handler.ended
        assert it.coordinator.offsets[P0][0] == batch[-1] + 1
        await ended(running)


@ORDERS
async def test_lost_partition_cancels_its_batch_and_starts_again(order: Any) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        handler = Gated()
        running = await started(it, consumer, handler, order)
        first = handler.begun[0]
        await it.owner.on_partitions_lost([P0])
        while not handler.cancelled:  # noqa: ASYNC110 - a number, and no event
            await asyncio.sleep(0)
        handler.may_end.set()
        await it.owner.assign([P0])
        while sum(map(len, handler.ended)) < len(TEN):  # noqa: ASYNC110 - a list, and no event
            await asyncio.sleep(0.001)
        assert handler.ended[0][0] == first[0]
        assert sorted(chain.from_iterable(handler.ended)) == list(range(10))
        await ended(running)
        assert it.coordinator.offsets[P0][0] == 10


@ORDERS
async def test_timeout_of_the_drain_cancels_the_batch(order: Any) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        handler = Gated()
        await it.owner.assign([P0])
        running = asyncio.create_task(
            consumer.run_batches(
                handler, batch_size=4, workers=1, order=order, drain_timeout_ms=0, stop_on=()
            )
        )
        while not handler.begun:  # noqa: ASYNC110 - a list, and no event
            await asyncio.sleep(0)
        await ended(running)
        assert handler.cancelled == 1
        assert it.coordinator.offsets.get(P0, (0, -1, ""))[0] == 0
        assert (await anext(aiter(consumer))).offset == 0
