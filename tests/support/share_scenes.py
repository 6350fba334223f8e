"""Scenes of share consumers, which run on a real broker and on the embedded broker.

Each scene is a coroutine function with the parameter `client`, whose broker has `SHARE_CONFIG`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import pytest
from kproto_cloudevents import CloudEvent, CloudEvents

import kproto
from kproto import (
    AcknowledgeResult,
    LockLostError,
    NewTopic,
    Retries,
    ShareConsumer,
    ShareRecord,
    ShareRunSummary,
    Stop,
    Undecodable,
    UndecodableRecordError,
)
from kproto.codecs import DecodeContext, StringCodec

from .patience import until
from .share_groups import ShareQueue

__all__ = ["SCENES", "Scene"]

Scene: TypeAlias = Callable[[kproto.Client], Awaitable[None]]

#: All scenes, by name.
SCENES: Final[dict[str, Scene]] = {}


def scene(function: Scene) -> Scene:
    """Adds a scene to `SCENES`."""
    SCENES[function.__name__] = function
    return function


def number(record: kproto.Record) -> int:
    return int(record.value or b"")


def number_of(data: bytes, context: DecodeContext) -> int:
    """Decodes a number, and raises for any other value."""
    return int(data)


@scene
async def implicit_members_read_each_record_once(client: kproto.Client) -> None:
    queue = await ShareQueue(client, partitions=2).create()
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


@scene
async def released_record_comes_again_and_rejected_record_never(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
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


@scene
async def record_without_an_acknowledgement_comes_again_after_its_lock(
    client: kproto.Client,
) -> None:
    queue = await ShareQueue(client).create(share_record_lock_duration_ms="1000")
    await queue.produce(0)
    async with queue.consumer() as consumer:
        iteration = aiter(consumer)
        first = await anext(iteration)
        began = asyncio.get_running_loop().time()
        assert consumer.lock_timeout_ms == 1_000
        second = await anext(iteration)
        assert asyncio.get_running_loop().time() - began > 0.7
        assert (second.delivery_count, second.offset) == (2, first.offset)
        with pytest.raises(LockLostError):
            await consumer.accept(first)
        await consumer.accept(second)
        (result,) = await consumer.commit()
        assert result.error is None


@scene
async def renewed_record_keeps_its_lock(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create(share_record_lock_duration_ms="1000")
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


@scene
async def run_renews_the_locks_of_slow_handlers(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create(share_record_lock_duration_ms="2000")
    await queue.produce(0, 4)
    handled: Counter[int] = Counter()

    async def handle(record: ShareRecord) -> None:
        await asyncio.sleep(2.4)
        handled[number(record)] += record.delivery_count
        if len(handled) == 4:
            raise Stop(done=True)

    async with queue.consumer() as consumer:
        summary = await consumer.run(handle, workers=2)
        assert summary.handled == 4
        assert await consumer.poll(2_500) == {}
    assert handled == dict.fromkeys(range(4), 1)


@scene
async def run_delivers_failed_records_again_and_then_rejects_them(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
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


@scene
async def two_members_share_one_partition(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
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


@scene
async def close_releases_records_at_once(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.produce(0, 100)
    async with queue.consumer() as consumer:
        await anext(aiter(consumer))
    async with queue.consumer() as other:
        began = asyncio.get_running_loop().time()
        record = await anext(aiter(other))
        assert (number(record), record.delivery_count) == (0, 2)
        assert asyncio.get_running_loop().time() - began < 10  # a lock lasts for 15 s


@asynccontextmanager
async def member_that_has_lost_a_partition(
    queue: ShareQueue, results: list[AcknowledgeResult]
) -> AsyncIterator[tuple[ShareConsumer[Any, Any, Any], ShareConsumer[Any, Any, Any]]]:
    """Yields a member that has fetched 40 records of two partitions, and another member.

    The group has assigned one of the partitions to the other member since. The first member has
    returned one record. `results` gets its results.
    """
    await queue.produce(0, 40)
    async with queue.consumer(on_acknowledged=results.append) as first:
        await first.accept(await anext(aiter(first)))
        await asyncio.sleep(1)  # the records of both partitions are fetched
        async with queue.consumer() as second:
            assert await second.poll(500) == {}
            await until(lambda: len(first.partitions) == len(second.partitions) == 1)
            yield first, second


@scene
async def fetched_records_of_a_revoked_partition_are_returned_and_accepted(
    client: kproto.Client,
) -> None:
    queue = await ShareQueue(client, partitions=2).create()
    results: list[AcknowledgeResult] = []
    seen: list[int] = []
    async with member_that_has_lost_a_partition(queue, results) as (first, second):
        while len(seen) < 39:
            for record in await polled(first):
                seen.append(number(record))
                assert record.delivery_count == 1
                await first.accept(record)
        await first.commit()
        assert await second.poll(500) == {}
    assert len(set(seen)) == 39
    assert all(each.error is None and each.offsets == each.accepted for each in results)
    assert sum(len(its) for each in results for its in each.accepted) == 40


@scene
async def close_releases_fetched_records_of_a_revoked_partition(client: kproto.Client) -> None:
    queue = await ShareQueue(client, partitions=2).create()
    async with member_that_has_lost_a_partition(queue, []) as (first, second):
        await first.close()
        began = asyncio.get_running_loop().time()
        counts = [each.delivery_count for _ in range(3) for each in await polled(second)]
        assert counts[:20] == [2] * 20
        assert asyncio.get_running_loop().time() - began < 10  # a lock lasts for 15 s


async def polled(consumer: ShareConsumer[Any, Any, Any]) -> list[Any]:
    """Returns the records of a poll, of all partitions."""
    return [each for its in (await consumer.poll(2_000)).values() for each in its]


@scene
async def records_of_a_former_topic_are_released_at_once(client: kproto.Client) -> None:
    former = await ShareQueue(client).create()
    other = await ShareQueue(client).create()
    await former.produce(0, 20)
    results: list[AcknowledgeResult] = []
    async with former.consumer(on_acknowledged=results.append) as consumer:
        record = await anext(aiter(consumer))
        consumer.subscribe(other.topic)
        await consumer.accept(record)
        await consumer.commit()
        async with former.consumer() as second:
            counts = Counter(each.delivery_count for each in await polled(second))
        assert counts == {2: 19}
        consumer.subscribe(former.topic)
        counts = Counter(each.delivery_count for each in await polled(consumer))
        assert counts == {3: 19}
    assert [each.accepted for each in results] == [(range(1),)]
    assert [at for each in results for its in each.offsets for at in its] == [*range(20)]


@scene
async def stop_of_run_costs_waiting_records_one_delivery(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.produce(0, 50)

    async def handle(record: ShareRecord) -> None:
        raise Stop(done=True)

    async with queue.consumer() as consumer:
        assert (await consumer.run(handle, workers=1)).handled == 1
        await consumer.commit()
        await asyncio.sleep(0.5)
        assert (await consumer.run(handle, workers=1)).handled == 1
    async with queue.consumer() as consumer:
        found = await polled(consumer)
    # Each run has acquired one record in advance, and has released it.
    assert [(number(each), each.delivery_count) for each in found] == [
        (2, 2),
        *[(at, 1) for at in range(3, 50)],
    ]


@scene
async def run_drops_waiting_records_whose_locks_have_ended(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create(share_record_lock_duration_ms="1000")
    await queue.produce(0, 20)
    deliveries = {}

    async def handle(record: ShareRecord) -> None:
        assert number(record) not in deliveries
        deliveries[number(record)] = record.delivery_count
        if number(record) == 0:
            assert record.acquisition is not None
            record.acquisition.lose(1, 19)
        if len(deliveries) == 20:
            raise Stop(done=True)

    async with queue.consumer() as consumer:
        summary = await consumer.run(handle, workers=10)
    assert summary == ShareRunSummary(handled=20)
    assert deliveries == {0: 1} | dict.fromkeys(range(1, 20), 2)


@scene
async def lost_connection_releases_records(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.produce(0, 10)
    async with queue.consumer() as consumer:
        iteration = aiter(consumer)
        record = await anext(iteration)
        client._view.abort(consumer._fetcher._exchange.owner)
        again = await anext(iteration)
        while again.delivery_count == 1:  # fetched before the client noticed the loss
            again = await anext(iteration)
        assert (number(again), again.delivery_count) == (0, 2)
        with pytest.raises(LockLostError):
            await consumer.accept(record)
        await consumer.accept(again)
        (result,) = await consumer.commit()
        assert result.error is None


@scene
async def delivery_count_never_exceeds_the_limit(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
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


@scene
async def record_limit_is_exact(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.produce(0, 100)  # one batch
    settings: dict[str, Any] = {"max_poll_records": 7, "acquire_mode": "record_limit"}
    async with queue.consumer(**settings) as consumer, queue.consumer(**settings) as other:
        polled = await consumer.poll(5_000)
        assert [number(each) for each in polled[queue.topic, 0]] == list(range(7))
        polled = await other.poll(5_000)
        assert [number(each) for each in polled[queue.topic, 0]] == list(range(7, 14))


@scene
async def committed_records_are_delivered_and_aborted_ones_left_out(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create(share_isolation_level="read_committed")
    async with client.producer(transactional_id=queue.group) as producer:
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


@scene
async def group_of_another_kind_is_refused(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.produce(0)
    async with client.consumer(queue.topic, group=queue.group) as consumer:
        await anext(aiter(consumer))
        async with queue.consumer() as sharing:
            with pytest.raises(kproto.BrokerResponseError, match="a group of another kind"):
                await sharing.poll(10_000)


@scene
async def missing_topic_is_read_once_it_exists(client: kproto.Client) -> None:
    queue = ShareQueue(client)
    async with queue.consumer(explicit=False) as consumer:
        assert await consumer.poll(300) == {}
        await queue.create()
        await queue.produce(0)
        assert number(await anext(aiter(consumer))) == 0


@scene
async def added_partition_is_read(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    async with queue.consumer(explicit=False) as consumer:
        await consumer.poll(0)
        await until(lambda: consumer.partitions)
        await client.admin.create_partitions({queue.topic: 3})
        await until(lambda: len(consumer.partitions) == 3)
        async with client.producer() as producer:
            await producer.send(queue.topic, b"7", partition=2)
        record = await anext(aiter(consumer))
        assert (record.partition, number(record)) == (2, 7)


@scene
async def late_member_leaves_and_rejoins_on_the_next_poll(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.produce(0, 2)
    async with queue.consumer(max_poll_interval_ms=600, max_poll_records=1) as consumer:
        iteration = aiter(consumer)
        await consumer.accept(await anext(iteration))
        await until(lambda: not consumer.partitions)
        await consumer.accept(await anext(iteration))


@scene
async def unsubscribed_topic_is_read_no_more(client: kproto.Client) -> None:
    first = await ShareQueue(client).create()
    second = await ShareQueue(client).create()
    await first.produce(0)
    await second.produce(10)
    async with first.consumer(explicit=False) as consumer:
        assert number(await anext(aiter(consumer))) == 0
        consumer.subscribe(second.topic)
        assert number(await anext(aiter(consumer))) == 10
        assert consumer.partitions == [(second.topic, 0)]


@scene
async def accepted_records_are_not_delivered_again_after_a_reload(client: kproto.Client) -> None:
    """The broker loads the state again while a part of a record batch is in flight."""
    queue = await ShareQueue(client).create()
    await queue.produce(0, 9)  # one batch
    async with queue.consumer(max_poll_records=3, acquire_mode="record_limit") as consumer:
        polled = await consumer.poll(5_000)
        await consumer.accept(polled[queue.topic, 0][0])
    async with queue.consumer() as consumer:
        polled = await consumer.poll(5_000)
        records = polled[queue.topic, 0]
        if len(records) < 8:
            records += (await consumer.poll(5_000))[queue.topic, 0]
        assert [number(each) for each in records] == list(range(1, 9))
        await consumer.release(records[3])
        await consumer.accept([each for each in records if number(each) != 4])
        await consumer.commit()
        seen = []
        while polled := await consumer.poll(1_500):
            seen += [(number(each), each.delivery_count) for each in polled[queue.topic, 0]]
            await consumer.accept(polled[queue.topic, 0])
        assert seen == [(4, 2)]


@scene
async def undecodable_records_are_released_and_rejected(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.send(b"0", b"bad", b"2", b"worse")
    seen: list[Any] = []
    async with queue.consumer(value=number_of, undecodable=Undecodable) as consumer:
        async for record in consumer:
            seen.append((record.value, record.delivery_count))
            if not isinstance(record, Undecodable):
                await consumer.accept(record)
            elif record.delivery_count == 1:
                await consumer.release(record)
            else:
                await consumer.reject(record)
            if len(seen) == 6:
                break
        assert all(each.error is None for each in await consumer.commit())
        assert await consumer.poll(1_000) == {}
    assert seen[:4] == [(0, 1), (b"bad", 1), (2, 1), (b"worse", 1)]
    assert sorted(seen[4:]) == [(b"bad", 2), (b"worse", 2)]


@scene
async def undecodable_record_raises_once_and_the_consumer_continues(
    client: kproto.Client,
) -> None:
    values = [b"x", b"1", b"2", b"y", b"z", b"3"]
    for how in ("records", "record_lists", "poll"):
        for explicit in (False, True):
            queue = await ShareQueue(client).create()
            await queue.send(*values)
            async with queue.consumer(explicit=explicit, value=number_of) as consumer:
                found = await _values_read(consumer, how, len(values), accepts=explicit)
                assert await consumer.poll(500) == {}
            assert found == [b"x", 1, 2, b"y", b"z", 3]
            async with queue.consumer() as other:
                assert await other.poll(500) == {}


async def _values_read(
    consumer: kproto.ShareConsumer[bytes, int], how: str, count: int, *, accepts: bool
) -> list[Any]:
    """Returns values, and the bytes of undecodable records, until there are `count` of them."""
    found: list[Any] = []
    records, lists = aiter(consumer), consumer.record_lists()
    while len(found) < count:
        try:
            if how == "records":
                its = [await anext(records)]
            elif how == "record_lists":
                its = await anext(lists)
            else:
                its = [each for part in (await consumer.poll(500)).values() for each in part]
            if accepts:
                await consumer.accept(its)
            found += [each.value for each in its]
        except UndecodableRecordError as error:
            found.append(error.raw)
    return found


@scene
async def undecodable_record_that_ends_the_block_comes_again(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    await queue.send(b"1", b"x", b"2")

    async def read() -> None:
        async with queue.consumer(explicit=False, value=number_of) as consumer:
            async for _ in consumer:
                pass

    with pytest.raises(UndecodableRecordError, match=r"at offset 1: the value "):
        await read()
    async with queue.consumer() as other:
        polled = await other.poll(5_000)
        found = [(each.value, each.delivery_count) for each in polled[queue.topic, 0]]
    assert found == [(b"x", 2), (b"2", 2)]


@scene
async def run_sends_undecodable_records_to_the_dead_letter_topic(client: kproto.Client) -> None:
    for dead_letter_topic in (True, False):
        queue = await ShareQueue(client).create()
        dead = f"{queue.topic}.dead"
        await client.create_topics(NewTopic(dead, 1))
        await queue.send(b"1", b"bad", b"2")
        handled: list[Any] = []

        async def handle(record: ShareRecord[str, int], to: list[Any] = handled) -> None:
            to.append((record.key, record.value, record.delivery_count))
            if record.value == 2:
                raise Stop(done=True)

        async with queue.consumer(key=StringCodec(), value=number_of) as consumer:
            topic = dead if dead_letter_topic else None
            summary = await consumer.run(handle, workers=1, dead_letter_topic=topic)
            assert await consumer.poll(500) == {}
        assert handled == [(None, 1, 1), (None, 2, 1)]
        assert (summary.dead_letters, summary.rejected) == ((1, 0) if topic else (0, 1))
        letters = [each async for each in client.consumer(dead, stop_at_end=True)]
        assert [each.value for each in letters] == ([b"bad"] if dead_letter_topic else [])


@scene
async def events_are_decoded_and_acknowledged(client: kproto.Client) -> None:
    queue = await ShareQueue(client).create()
    event = CloudEvent(id="1", source="/shop", type="placed", data=b"12")
    async with client.producer(value=CloudEvents()) as producer:
        await producer.send(queue.topic, event)
    await queue.send(b"no event")
    codecs: dict[str, Any] = {"value": CloudEvents(), "undecodable": Undecodable}
    async with queue.consumer(**codecs) as consumer:
        iteration = aiter(consumer)
        first, second = await anext(iteration), await anext(iteration)
        assert isinstance(first, ShareRecord)
        assert first.value == event
        assert isinstance(second, Undecodable)
        await consumer.accept(first)
        await consumer.reject(second)
        assert all(each.error is None for each in await consumer.commit())
        assert await consumer.poll(1_000) == {}
