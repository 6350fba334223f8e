"""Cancels each coroutine of a share consumer at each point where it waits.

No task, socket or timer is left. A consumer that is not closed goes on, and the group accepts every
record; a closed consumer has released its records, so that another member reads them at once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeAlias

import pytest

import kproto
from kproto import ShareConsumer, ShareRecord, Stop
from kproto.broker import Broker, BrokerSettings
from tests.support.cancelling import KINDS, run_until_cancelled
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.share_groups import ShareQueue
from tests.support.suspensions import CancelAt, points

RECORDS = 4
SETTINGS = BrokerSettings(
    group_share_min_heartbeat_interval_ms=20,
    group_share_heartbeat_interval_ms=20,
    share_coordinator_state_topic_num_partitions=1,
    offsets_topic_num_partitions=1,
)

_names = itertools.count()

#: Starts the coroutine under test with a consumer.
Row: TypeAlias = Callable[[ShareConsumer], Coroutine[Any, Any, Any]]


async def the_next_record(consumer: ShareConsumer) -> None:
    await anext(aiter(consumer))


async def a_list(consumer: ShareConsumer) -> None:
    await anext(consumer.record_lists())


async def poll(consumer: ShareConsumer) -> None:
    await consumer.poll(5_000)


async def commit(consumer: ShareConsumer) -> None:
    await consumer.accept(await anext(aiter(consumer)))
    await consumer.commit()


async def run(consumer: ShareConsumer) -> None:
    async def handle(record: ShareRecord) -> None:
        if record.offset == 1:
            raise Stop(done=True)
        await asyncio.sleep(0)

    await consumer.run(handle, workers=2, stop_on=())


async def close(consumer: ShareConsumer) -> None:
    await anext(aiter(consumer))
    await consumer.close()


ROWS: list[Row] = [the_next_record, a_list, poll, commit, run, close]


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with threaded_broker(SETTINGS) as broker:
        yield broker


async def play(bootstrap: str, row: Row, cancel: CancelAt) -> None:
    async with kproto.Client(bootstrap) as client:
        queue = await ShareQueue(client).create()
        await queue.produce(0, RECORDS)
        consumer = queue.consumer(max_wait_ms=10)
        async with consumer:
            await cancel.run(row(consumer))
        async with queue.consumer(max_wait_ms=10) as other:
            left = await queue.lag()
            seen: Counter[int] = Counter()
            while len(seen) < left:
                record = await anext(aiter(other))
                seen[record.offset] += 1
                await other.accept(record)
            await other.commit()
            assert set(seen.values()) <= {1}
        assert await queue.lag() == 0


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_cancelled_share_consumer_leaves_no_task_and_loses_no_record(
    broker: ThreadedBroker, row: Row, late: bool
) -> None:
    points(lambda cancel: play(broker.bootstrap, row, cancel), late=late)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("explicit", [True, False], ids=["explicit", "implicit"])
async def test_cancelled_block_keeps_acceptances_and_releases_other_records_at_once(
    kind: str, explicit: bool
) -> None:
    ready = asyncio.Event()
    async with Broker(SETTINGS) as broker, kproto.Client(broker.bootstrap) as client:
        queue = await ShareQueue(client).create()
        await queue.produce(0, RECORDS)

        async def work() -> None:
            async with queue.consumer(explicit=explicit, max_wait_ms=10) as consumer:
                async for record in consumer:
                    if record.offset == 2:
                        ready.set()
                        await asyncio.Event().wait()
                    if explicit:
                        await consumer.accept(record)

        await run_until_cancelled(work(), ready, kind)
        async with queue.consumer(max_wait_ms=10) as other:
            record = await anext(aiter(other))
            assert (record.offset, record.delivery_count) == (2, 2)
