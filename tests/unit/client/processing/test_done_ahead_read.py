"""What was done behind a record that was not comes to nobody again: a commit tells it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kproto import GroupConsumer, Record, Stop
from kproto.broker import BrokerSettings
from kproto.client.commits.incomplete_offsets import IncompleteOffsets, ahead_in, ahead_of, text_of
from kproto.client.commits.requests import CommittedOffset
from kproto.messages import DeleteRecordsRequest
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from tests.unit.client.processing.orders import TOPIC, Orders, orders
from tests.unit.client.processing.test_truncated import cluster, send

P0 = (TOPIC, 0)


async def commit(it: Orders, offset: int, told: IncompleteOffsets | None) -> None:
    async with it.consumer([P0], auto_commit=False) as consumer:
        await consumer.commit({P0: offset}, text_of(told, offset))


async def committed(it: Orders, group: str = "billing") -> CommittedOffset:
    async with it.consumer([P0], group=group) as consumer:
        found = (await consumer.committed(P0))[P0]
    return found or CommittedOffset(-1, -1, "")


async def by_records(consumer: GroupConsumer, count: int) -> list[bytes | None]:
    return [(await anext(aiter(consumer))).value for _ in range(count)]


async def by_lists(consumer: GroupConsumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        found += [record.value for record in (await anext(consumer.record_lists())).records]
    return found


async def by_values(consumer: GroupConsumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        found += (await anext(consumer.values())).values
    return found


async def by_run(consumer: GroupConsumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []

    async def handle(record: Record) -> None:
        found.append(record.value)
        if len(found) == count:
            raise Stop(done=True)

    await consumer.run(handle)
    return found


READERS = [by_records, by_lists, by_values, by_run]


@pytest.mark.parametrize("read", READERS)
async def test_whoever_goes_on_is_given_what_is_not_done(read: Any) -> None:
    async with orders(12) as it:
        await commit(it, 3, ahead_of(10, [3, 4, 8], 0))
        async with it.consumer() as consumer:
            assert await read(consumer, 4) == [b"3", b"4", b"8", b"11"]
        assert await it.committed(0) == [12]


@pytest.mark.parametrize("read", READERS)
async def test_also_in_parts_of_a_large_batch_that_are_done_as_a_whole(read: Any) -> None:
    async with orders(2_000) as it:
        await commit(it, 0, ahead_of(1_990, [0, 1_600, 1_601], 0))
        wanted = [b"0", b"1600", b"1601", *(b"%d" % at for at in range(1_991, 2_000))]
        async with it.consumer() as consumer:
            assert await read(consumer, len(wanted)) == wanted
        assert await it.committed(0) == [2_000]


async def test_raw_batches_come_whole() -> None:
    async with orders(12) as it:
        await commit(it, 3, ahead_of(10, [3, 4, 8], 0))
        async with it.consumer() as consumer:
            its = await anext(consumer.raw_batches())
            assert [record.value for record in its.batch.records()] == [
                b"%d" % at for at in range(12)
            ]


@pytest.mark.parametrize("by_hand", [False, True])
async def test_who_commits_on_the_way_tells_what_is_still_ahead(by_hand: bool) -> None:
    async with orders(12) as it:
        await commit(it, 3, ahead_of(10, [3, 4, 8], 0))
        async with it.consumer(auto_commit=False) as consumer:
            records = [await anext(aiter(consumer)) for _ in range(2)]
            await (consumer.commit(records[1]) if by_hand else consumer.commit())
        its = await committed(it)
        assert its.offset == (5 if by_hand else 4)
        told = ahead_in(its.metadata, its.offset)
        assert told is not None
        assert [at for at in range(12) if told.has(at)] == [5, 6, 7, 9, 10]


async def test_what_the_user_has_committed_stays_where_nothing_more_is_done() -> None:
    """Also where something is ahead that others had done."""
    async with orders(12) as it:
        await commit(it, 3, ahead_of(10, [3, 4, 8], 0))
        async with it.consumer([P0]) as consumer:
            assert await consumer.position(P0) == 3
            await consumer.commit({P0: 1})
        assert (await committed(it)).offset == 1


async def test_what_is_done_ahead_before_anything_else_is_committed() -> None:
    """The first record of all is stuck: the offset is where all began."""
    async with orders(12) as it, it.consumer() as consumer:
        stuck = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 0:
                await stuck.wait()

        running = asyncio.create_task(consumer.run(handle, order="none", commit_interval_ms=0))
        while sum(map((told_by(await committed(it))).has, range(12))) < 11:
            pass
        assert (await committed(it)).offset == 0
        stuck.set()
        running.cancel()
        await asyncio.wait([running])


def told_by(its: CommittedOffset) -> IncompleteOffsets:
    return ahead_in(its.metadata, its.offset) or IncompleteOffsets(0, b"", 0)


@pytest.mark.parametrize("read", READERS)
async def test_what_is_done_stays_done_where_the_log_lost_its_start(read: Any) -> None:
    """As retention has it, which does not wait for a record that is stuck."""
    async with orders(12) as it:
        await commit(it, 3, ahead_of(10, [3, 4, 8], 0))
        partition = DeleteRecordsPartition(partition_index=0, offset=6)
        topics = [DeleteRecordsTopic(name=TOPIC, partitions=[partition])]
        await it.client.request(DeleteRecordsRequest(topics=topics, timeout_ms=1_000))
        async with it.consumer() as consumer:
            assert await read(consumer, 2) == [b"8", b"11"]
        assert await it.committed(0) == [12]


async def test_who_seeks_is_given_all() -> None:
    async with orders(12) as it:
        await commit(it, 3, ahead_of(10, [3, 4, 8], 0))
        async with it.consumer() as consumer:
            assert await by_records(consumer, 1) == [b"3"]
            consumer.seek(P0, 5)
            assert await by_records(consumer, 7) == [b"%d" % at for at in range(5, 12)]


@pytest.mark.parametrize("auto_commit", [False, True])
async def test_who_seeks_to_what_is_committed_and_commits_has_all_given_to_the_next(
    auto_commit: bool,
) -> None:
    async with orders(12) as it:
        await commit(it, 3, ahead_of(10, [3, 4, 8], 0))
        async with it.consumer([P0], auto_commit=auto_commit) as consumer:
            assert await consumer.position(P0) == 3
            consumer.seek(P0, 3)
            if not auto_commit:
                await consumer.commit()
        assert await committed(it) == (3, -1, "")


@pytest.mark.parametrize("order", ["key", "none"])
async def test_after_a_kill_only_what_was_in_hand_comes_again(order: Any) -> None:
    """What a member has committed when it vanishes is taken over by a group of another name."""
    async with orders(60) as it, it.consumer() as consumer:
        stuck = asyncio.Event()

        async def handle(record: Record) -> None:
            it.note(record)
            if record.offset == 7:
                await stuck.wait()

        running = asyncio.create_task(consumer.run(handle, order=order, commit_interval_ms=0))
        key_of_7 = {at for at in range(7, 60) if at % 3 == 1} if order == "key" else {7}
        while True:
            its = await committed(it)
            told = ahead_in(its.metadata, its.offset)
            if told is not None and sum(map(told.has, range(60))) == 60 - 7 - len(key_of_7):
                break
        assert its.offset == 7
        async with it.consumer([P0], group="next", auto_commit=False) as other:
            await other.commit({P0: its.offset}, its.metadata)
        async with it.consumer(group="next") as other:
            again = await by_run(other, len(key_of_7))
        assert again == [b"%d" % at for at in sorted(key_of_7)]
        assert (await committed(it, "next")).offset == 60
        stuck.set()
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.parametrize("read", READERS)
async def test_what_was_written_by_another_leader_in_the_place_of_what_was_done_is_not_done(
    read: Any,
) -> None:
    """An unclean election: offsets are given out again (KIP-320)."""
    async with cluster() as (its, client):
        async with client.consumer([P0], group="billing", auto_commit=False) as before:
            epoch = client._view.cluster.topics[TOPIC].partitions[0].leader_epoch
            await before.commit({P0: 2}, text_of(ahead_of(9, [2, 4], epoch), 2))
        its.truncate(TOPIC, 0, 7)
        await send(client, *range(90, 95))
        async with client.consumer(TOPIC, group="billing") as consumer:
            wanted = [b"2", b"4", *(b"%d" % at for at in range(90, 95))]
            assert await read(consumer, len(wanted)) == wanted


async def test_a_broker_that_takes_no_text_so_long_gets_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with orders(60, broker_settings=BrokerSettings(offset_metadata_max_bytes=8)) as it:
        async with it.consumer() as consumer:
            stuck = asyncio.Event()

            async def handle(record: Record) -> None:
                if record.offset == 7:
                    await stuck.wait()
                    raise Stop(done=True)

            with caplog.at_level(logging.WARNING, "kproto.client"):
                running = asyncio.create_task(
                    consumer.run(handle, order="none", commit_interval_ms=0)
                )
                while "takes no metadata of" not in caplog.text:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0)
            while (await committed(it)) != (7, 0, ""):
                pass
            stuck.set()
            await running
        assert await committed(it) == (60, 0, "")
    assert "was not committed" not in caplog.text
