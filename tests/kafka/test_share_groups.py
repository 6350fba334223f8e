"""Tests share consumers on a real broker: acknowledgements, locks, limits, members, errors."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

import kproto
from kproto import InvalidRecordStateError, LockLostError, Retries, ShareRecord, Stop
from tests.kafka.members_of_groups import until
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tools.kafka import KafkaNode

from .share_groups import SHARE_CONFIG, SHARE_VERSION, ShareQueue


@pytest.fixture(scope="module")
def share_node() -> Iterator[KafkaNode]:
    """Yields a broker with short acquisition locks."""
    try:
        kafka = KafkaNode(SHARE_VERSION, config=SHARE_CONFIG)
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {SHARE_VERSION}", error)
    yield kafka
    kafka.close()


@pytest_asyncio.fixture
async def share_client(share_node: KafkaNode) -> AsyncIterator[kproto.Client]:
    """Yields a client of the broker."""
    async with kproto.Client(share_node.bootstrap) as client:
        yield client


def number(record: kproto.Record) -> int:
    return int(record.value or b"")


async def test_implicit_members_read_each_record_once(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client, partitions=2).create()
    await queue.produce(0, 2_000)
    seen: Counter[int] = Counter()

    async def read() -> None:
        async with queue.consumer(explicit=False, max_poll_records=50) as consumer:
            async for record in consumer:
                seen[number(record)] += 1
                assert record.delivery_count == 1
                if len(seen) == 2_000:
                    return
                await asyncio.sleep(0)

    readers = [asyncio.create_task(read()) for _ in range(2)]
    await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    assert set(seen) == set(range(2_000))
    assert set(seen.values()) == {1}


async def test_released_record_comes_again_and_rejected_record_never(
    share_client: kproto.Client,
) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0, 5)
    async with queue.consumer() as consumer:
        seen = []
        async for record in consumer:
            seen.append((number(record), record.delivery_count))
            if number(record) == 1 and record.delivery_count == 1:
                await consumer.release(record)
            elif number(record) == 2:
                await consumer.reject(record)
            else:
                await consumer.accept(record)
            if len(seen) == 6:
                break
        assert all(each.error is None for each in await consumer.commit())
        assert await consumer.poll(1_000) == {}
    assert seen == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (1, 2)]


async def test_record_without_an_acknowledgement_comes_again_after_its_lock(
    share_client: kproto.Client,
) -> None:
    queue = await ShareQueue(share_client).create(share_record_lock_duration_ms="1000")
    await queue.produce(0)
    async with queue.consumer() as consumer:
        iteration = aiter(consumer)
        first = await anext(iteration)
        began = time.monotonic()
        assert consumer.lock_timeout_ms == 1_000
        second = await anext(iteration)
        assert time.monotonic() - began > 0.7
        assert (second.delivery_count, second.offset) == (2, first.offset)
        with pytest.raises(LockLostError):
            await consumer.accept(first)
        await consumer.accept(second)
        (result,) = await consumer.commit()
        assert result.error is None


async def test_renewed_record_keeps_its_lock(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create(share_record_lock_duration_ms="1000")
    await queue.produce(0)
    async with queue.consumer() as consumer, queue.consumer() as other:
        record = await anext(aiter(consumer))
        for _ in range(5):
            await asyncio.sleep(0.5)
            await consumer.renew(record)
            (result,) = await consumer.commit()
            assert result.error is None
        assert await other.poll(0) == {}
        await consumer.accept(record)
        (result,) = await consumer.commit()
        assert result.error is None
        assert await other.poll(1_500) == {}


async def test_run_renews_the_locks_of_slow_handlers(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create(share_record_lock_duration_ms="1000")
    await queue.produce(0, 4)
    handled: Counter[int] = Counter()

    async def handle(record: ShareRecord) -> None:
        await asyncio.sleep(1.6)
        handled[number(record)] += record.delivery_count
        if len(handled) == 4:
            raise Stop(done=True)

    async with queue.consumer() as consumer:
        summary = await consumer.run(handle, workers=2)
        assert summary.handled == 4
        assert await consumer.poll(1_500) == {}
    assert handled == dict.fromkeys(range(4), 1)


async def test_run_delivers_failed_records_again_and_then_rejects_them(
    share_client: kproto.Client,
) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0, 20)
    calls: Counter[int] = Counter()

    async def handle(record: ShareRecord) -> None:
        calls[number(record)] += 1
        assert calls[number(record)] == record.delivery_count
        if number(record) % 10 == 3:
            raise ValueError

    async with queue.consumer() as consumer:
        running = asyncio.create_task(consumer.run(handle, retries=Retries(2, backoff_ms=10)))
        await until(lambda: calls[3] == calls[13] == 3 and len(calls) == 20)
        await asyncio.sleep(0.2)
        await consumer.close()
        assert await running == (18, 4, 2, 0)


async def test_two_members_share_one_partition(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    async with (
        queue.consumer(max_poll_records=1, acquire_mode="record_limit") as first,
        queue.consumer(max_poll_records=1, acquire_mode="record_limit") as second,
    ):
        await queue.produce(0, 2)
        ours, theirs = await asyncio.gather(anext(aiter(first)), anext(aiter(second)))
        assert {number(ours), number(theirs)} == {0, 1}
        assert first.partitions == second.partitions == [(queue.topic, 0)]
        await first.accept(ours)
        await second.accept(theirs)


async def test_close_releases_records_at_once(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0, 100)
    async with queue.consumer() as consumer:
        await anext(aiter(consumer))
    async with queue.consumer() as other:
        began = time.monotonic()
        record = await anext(aiter(other))
        assert (number(record), record.delivery_count) == (0, 2)
        assert time.monotonic() - began < 10  # a lock lasts for 15 s


async def test_lost_connection_releases_records(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0, 10)
    async with queue.consumer() as consumer:
        iteration = aiter(consumer)
        record = await anext(iteration)
        share_client._view.abort(consumer._fetcher._owner)
        again = await anext(iteration)
        while again.delivery_count == 1:  # fetched before the client noticed the loss
            again = await anext(iteration)
        assert (number(again), again.delivery_count) == (0, 2)
        await consumer.accept(record)  # the broker decides: this member has the record again
        results = await consumer.commit()
        assert all(
            each.error is None or isinstance(each.error, InvalidRecordStateError)
            for each in results
        )


async def test_delivery_count_never_exceeds_the_limit(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0)
    async with queue.consumer() as consumer:
        counts = []
        for _ in range(5):
            record = await anext(aiter(consumer))
            counts.append(record.delivery_count)
            await consumer.release(record)
        await consumer.commit()
        assert await consumer.poll(1_500) == {}
    assert counts == [1, 2, 3, 4, 5]


async def test_record_limit_is_exact(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0, 100)  # one batch
    settings: dict[str, Any] = {"max_poll_records": 7, "acquire_mode": "record_limit"}
    async with queue.consumer(**settings) as consumer, queue.consumer(**settings) as other:
        polled = await consumer.poll(5_000)
        assert [number(each) for each in polled[queue.topic, 0]] == list(range(7))
        polled = await other.poll(5_000)
        assert [number(each) for each in polled[queue.topic, 0]] == list(range(7, 14))


async def test_committed_records_are_delivered_and_aborted_ones_left_out(
    share_client: kproto.Client,
) -> None:
    queue = await ShareQueue(share_client).create(share_isolation_level="read_committed")
    async with share_client.producer(transactional_id=queue.group) as producer:
        for first, fails in ((0, False), (10, True), (20, False)):
            try:
                async with producer.transaction():
                    await producer.send_many(queue.topic, [b"%d" % (first + at) for at in range(3)])
                    if fails:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass
    async with queue.consumer(explicit=False) as consumer:
        seen = []
        async for record in consumer:
            seen.append(number(record))
            if len(seen) == 6:
                break
        assert await consumer.poll(500) == {}
    assert seen == [0, 1, 2, 20, 21, 22]


async def test_group_of_another_kind_is_refused(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0)
    async with share_client.consumer(queue.topic, group=queue.group) as consumer:
        await anext(aiter(consumer))
        async with queue.consumer() as sharing:
            with pytest.raises(kproto.BrokerResponseError, match="a group of another kind"):
                await sharing.poll(10_000)


async def test_missing_topic_is_read_once_it_exists(share_client: kproto.Client) -> None:
    queue = ShareQueue(share_client)
    async with queue.consumer(explicit=False) as consumer:
        assert await consumer.poll(300) == {}
        await queue.create()
        await queue.produce(0)
        assert number(await anext(aiter(consumer))) == 0


async def test_added_partition_is_read(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    async with queue.consumer(explicit=False) as consumer:
        await consumer.poll(0)
        await until(lambda: consumer.partitions)
        await share_client.admin.create_partitions({queue.topic: 3})
        await until(lambda: len(consumer.partitions) == 3)
        async with share_client.producer() as producer:
            await producer.send(queue.topic, b"7", partition=2)
        record = await anext(aiter(consumer))
        assert (record.partition, number(record)) == (2, 7)


async def test_late_member_leaves_and_rejoins_on_the_next_poll(
    share_client: kproto.Client,
) -> None:
    queue = await ShareQueue(share_client).create()
    await queue.produce(0, 2)
    async with queue.consumer(max_poll_interval_ms=600, max_poll_records=1) as consumer:
        iteration = aiter(consumer)
        await consumer.accept(await anext(iteration))
        await until(lambda: not consumer.partitions)
        await consumer.accept(await anext(iteration))


async def test_unsubscribed_topic_is_read_no_more(share_client: kproto.Client) -> None:
    first = await ShareQueue(share_client).create()
    second = await ShareQueue(share_client).create()
    await first.produce(0)
    await second.produce(10)
    async with first.consumer(explicit=False) as consumer:
        assert number(await anext(aiter(consumer))) == 0
        consumer.subscribe(second.topic)
        assert number(await anext(aiter(consumer))) == 10
        assert consumer.partitions == [(second.topic, 0)]
