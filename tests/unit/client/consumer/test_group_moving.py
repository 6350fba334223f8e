"""Tests seek, pause, position, lag and offsets for times of assigned partitions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import ConfigurationError
from tests.unit.client.consumer.grouped import FAR, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, quiet, take


async def test_seek_drops_buffered_records_and_fetches_in_flight() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 2)
        consumer.seek(P0, 8)
        assert consumer.positions == {P0: 8}
        assert await take(records, 2) == [(0, 8), (0, 9)]
        consumer.seek(P0, "earliest")
        assert consumer.positions == {}
        assert await take(records, 2) == [(0, 0), (0, 1)]
        consumer.seek(P0, "latest")
        assert await consumer.position(P0) == 10
        await quiet(records)


async def test_seek_sets_the_offset_of_the_next_commit() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 5)
        consumer.seek(P0, 2)
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 2}]


async def test_record_stays_in_flight_after_a_seek() -> None:
    """The caller may still be processing the record: no other member may receive it yet."""
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 6)
        consumer.seek(P0, 2)
        revoking = asyncio.create_task(it.owner.revoke([P0], FAR))
        await it.client.refresh(["t"])
        assert not revoking.done()
        assert it.coordinator.committed == []
        poll = asyncio.create_task(anext(records))
        await revoking
        assert it.coordinator.committed == [{P0: 2}]
        poll.cancel()


async def test_seek_overrides_a_pending_position_lookup() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        it.coordinator.offsets[P0] = (3, -1, "")
        await it.owner.assign([P0])
        lookup = asyncio.create_task(consumer.position(P0))
        await asyncio.sleep(0)
        consumer.seek(P0, 9)
        assert await lookup == 9
        assert await take(aiter(consumer), 1) == [(0, 9)]


async def test_paused_partition_keeps_its_records() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 2)
        consumer.pause(P0)
        assert consumer.paused == {P0}
        await it.owner.assign([P1])
        assert await take(records, 3) == [(1, 0), (1, 1), (1, 2)]
        await quiet(records)
        assert consumer.positions == {P0: 2, P1: 3}
        poll = asyncio.create_task(anext(records))
        await asyncio.sleep(0.01)
        consumer.resume(P0)
        assert (await poll).offset == 2
        assert await take(records, 7) == [(0, at) for at in range(3, 10)]


async def test_reassigned_partition_is_not_paused() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 2)
        consumer.pause(P0)
        await it.owner.on_partitions_lost([P0])
        assert consumer.paused == frozenset()
        await it.owner.assign([P0])
        assert await take(aiter(consumer), 1) == [(0, 0)]


async def test_paused_partition_accepts_a_seek() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 2)
        consumer.pause(P0)
        consumer.seek(P0, 7)
        await quiet(records)
        consumer.resume(P0)
        assert await take(records, 3) == [(0, 7), (0, 8), (0, 9)]


@pytest.mark.parametrize(
    ("what", "matches"),
    [
        (lambda consumer: consumer.seek(P0, 1), "is not assigned .* is now nothing"),
        (lambda consumer: consumer.pause(P0), "is not assigned"),
        (lambda consumer: consumer.resume(P0), "is not assigned"),
    ],
)
async def test_seek_pause_and_position_need_an_assigned_partition(what: Any, matches: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        with pytest.raises(ConfigurationError, match=matches):
            what(consumer)
        with pytest.raises(ConfigurationError, match="is not assigned"):
            await consumer.position(P0)


async def test_seek_to_an_invalid_offset_is_refused() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        for where in (-1, "middle", 1.5, True):
            with pytest.raises(ConfigurationError, match="seek"):
                consumer.seek(P0, where)  # type: ignore[arg-type]  # that is the fault


# Requests to the cluster


async def test_lag_counts_records_after_the_position() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        assert await consumer.lag() == {}
        it.coordinator.offsets[P1] = (1, -1, "")
        await it.owner.assign([P0, P1])
        assert await consumer.lag() == {P0: 10, P1: 2}
        consumer.pause(P1)
        await take(aiter(consumer), 4)
        assert await consumer.lag() == {P0: 6, P1: 2}


async def test_offsets_for_times_refuses_a_negative_time() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        assert await consumer.offsets_for_times({}) == {}
        with pytest.raises(ConfigurationError, match="the time of"):
            await consumer.offsets_for_times({P0: -1})


@pytest.mark.parametrize(
    ("what", "matches"),
    [
        (lambda consumer: consumer.pause([P0]), r"\[\('t', 0\)\] is no partition"),
        (lambda consumer: consumer.resume("t"), "'t' is no partition"),
        (lambda consumer: consumer.seek(0, 1), "0 is no partition"),
    ],
)
async def test_invalid_partition_is_refused(what: Any, matches: str) -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        with pytest.raises(ConfigurationError, match=matches):
            what(consumer)
        with pytest.raises(ConfigurationError, match="no partition"):
            await consumer.position([P0])  # type: ignore[arg-type]  # that is the fault
        with pytest.raises(ConfigurationError, match="no partition"):
            await consumer.offsets_for_times({"t": 1})  # type: ignore[dict-item]  # this, too
