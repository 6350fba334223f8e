"""Tests commits that list processed records after an incomplete record.

The group does not redeliver the listed records.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kproto import GroupConsumer, Record, Stop
from kproto.broker import BrokerSettings
from kproto.client.commits.offset_requests import CommittedOffset
from kproto.client.commits.processed_bitmap import (
    ProcessedBitmap,
    build_bitmap,
    decode_bitmap,
    encode_bitmap,
)
from kproto.messages import DeleteRecordsRequest
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from tests.unit.client.processing.orders import TOPIC, Orders, orders
from tests.unit.client.processing.test_truncation_during_run import cluster, send

P0 = (TOPIC, 0)


async def commit(it: Orders, offset: int, ahead: ProcessedBitmap | None) -> None:
    async with it.consumer([P0], auto_commit=False) as consumer:
        await consumer.commit({P0: offset}, encode_bitmap(ahead, offset))


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
async def test_next_member_gets_only_incomplete_records(read: Any) -> None:
    async with orders(12) as it:
        await commit(it, 3, build_bitmap(10, [3, 4, 8], 0))
        async with it.consumer() as consumer:
            assert await read(consumer, 4) == [b"3", b"4", b"8", b"11"]
        assert await it.committed(0) == [12]


@pytest.mark.parametrize("read", READERS)
async def test_next_member_skips_processed_parts_of_a_large_batch(read: Any) -> None:
    async with orders(2_000) as it:
        await commit(it, 0, build_bitmap(1_990, [0, 1_600, 1_601], 0))
        wanted = [b"0", b"1600", b"1601", *(b"%d" % at for at in range(1_991, 2_000))]
        async with it.consumer() as consumer:
            assert await read(consumer, len(wanted)) == wanted
        assert await it.committed(0) == [2_000]


async def test_raw_batches_include_processed_records() -> None:
    async with orders(12) as it:
        await commit(it, 3, build_bitmap(10, [3, 4, 8], 0))
        async with it.consumer() as consumer:
            its = await anext(consumer.raw_batches())
            assert [record.value for record in its.batch.records()] == [
                b"%d" % at for at in range(12)
            ]


@pytest.mark.parametrize("by_record", [False, True])
async def test_commit_in_between_keeps_the_offsets_processed_ahead(by_record: bool) -> None:
    async with orders(12) as it:
        await commit(it, 3, build_bitmap(10, [3, 4, 8], 0))
        async with it.consumer(auto_commit=False) as consumer:
            records = [await anext(aiter(consumer)) for _ in range(2)]
            await (consumer.commit(records[1]) if by_record else consumer.commit())
        its = await committed(it)
        assert its.offset == (5 if by_record else 4)
        ahead = decode_bitmap(its.metadata, its.offset)
        assert ahead is not None
        assert [at for at in range(12) if ahead.is_processed(at)] == [5, 6, 7, 9, 10]


async def test_commit_of_the_user_stays_without_later_records() -> None:
    """The caller commits an offset below the processed offsets that an earlier commit lists."""
    async with orders(12) as it:
        await commit(it, 3, build_bitmap(10, [3, 4, 8], 0))
        async with it.consumer([P0]) as consumer:
            assert await consumer.position(P0) == 3
            await consumer.commit({P0: 1})
        assert (await committed(it)).offset == 1


async def test_offsets_processed_ahead_are_committed_at_the_start_position() -> None:
    """The handler of the first record hangs, so the committed offset stays the start position."""
    async with orders(12) as it, it.consumer() as consumer:
        stuck = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 0:
                await stuck.wait()

        running = asyncio.create_task(consumer.run(handle, order="none", commit_interval_ms=0))
        while sum(map((ahead_or_empty(await committed(it))).is_processed, range(12))) < 11:
            pass
        assert (await committed(it)).offset == 0
        stuck.set()
        running.cancel()
        await asyncio.wait([running])


def ahead_or_empty(its: CommittedOffset) -> ProcessedBitmap:
    return decode_bitmap(its.metadata, its.offset) or ProcessedBitmap(0, b"", 0)


@pytest.mark.parametrize("read", READERS)
async def test_processed_records_stay_processed_after_retention(read: Any) -> None:
    """The incomplete records are deleted; the processed records after them are not redelivered."""
    async with orders(12) as it:
        await commit(it, 3, build_bitmap(10, [3, 4, 8], 0))
        partition = DeleteRecordsPartition(partition_index=0, offset=6)
        topics = [DeleteRecordsTopic(name=TOPIC, partitions=[partition])]
        await it.client.request(DeleteRecordsRequest(topics=topics, timeout_ms=1_000))
        async with it.consumer() as consumer:
            assert await read(consumer, 2) == [b"8", b"11"]
        assert await it.committed(0) == [12]


async def test_seek_returns_processed_records_again() -> None:
    async with orders(12) as it:
        await commit(it, 3, build_bitmap(10, [3, 4, 8], 0))
        async with it.consumer() as consumer:
            assert await by_records(consumer, 1) == [b"3"]
            consumer.seek(P0, 5)
            assert await by_records(consumer, 7) == [b"%d" % at for at in range(5, 12)]


@pytest.mark.parametrize("auto_commit", [False, True])
async def test_commit_after_a_seek_clears_the_offsets_processed_ahead(
    auto_commit: bool,
) -> None:
    async with orders(12) as it:
        await commit(it, 3, build_bitmap(10, [3, 4, 8], 0))
        async with it.consumer([P0], auto_commit=auto_commit) as consumer:
            assert await consumer.position(P0) == 3
            consumer.seek(P0, 3)
            if not auto_commit:
                await consumer.commit()
        assert await committed(it) == (3, -1, "")


@pytest.mark.parametrize("order", ["key", "none"])
async def test_after_a_kill_only_records_in_flight_are_redelivered(order: Any) -> None:
    """The test copies the member's commit to a second group.

    A member of that group reads on from the commit, as if the first member had been killed.
    """
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
            ahead = decode_bitmap(its.metadata, its.offset)
            processed = 0 if ahead is None else sum(map(ahead.is_processed, range(60)))
            if processed == 60 - 7 - len(key_of_7):
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
async def test_offsets_rewritten_by_another_leader_are_not_processed(
    read: Any,
) -> None:
    """After an unclean election, the same offsets belong to other records (KIP-320)."""
    async with cluster() as (its, client):
        async with client.consumer([P0], group="billing", auto_commit=False) as before:
            epoch = client._view.cluster.topics[TOPIC].partitions[0].leader_epoch
            await before.commit({P0: 2}, encode_bitmap(build_bitmap(9, [2, 4], epoch), 2))
        its.truncate(TOPIC, 0, 7)
        await send(client, *range(90, 95))
        async with client.consumer(TOPIC, group="billing") as consumer:
            wanted = [b"2", b"4", *(b"%d" % at for at in range(90, 95))]
            assert await read(consumer, len(wanted)) == wanted


async def test_commit_omits_metadata_that_is_too_large_for_the_broker(
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
                while "accepts no metadata of" not in caplog.text:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0)
            while (await committed(it)) != (7, 0, ""):
                pass
            stuck.set()
            await running
        assert await committed(it) == (60, 0, "")
    assert "was not committed" not in caplog.text
