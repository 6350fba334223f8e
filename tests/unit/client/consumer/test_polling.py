"""Tests `poll`, without and with a group: lists of records by partition, and the timeout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, ConfigurationError, CorruptBatchError, Record
from kproto.client.commits.errors import CommitFailedError
from kproto.messages import ListOffsetsRequest
from tests.unit.client.consumer.grouped import FAR, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE
from tests.unit.client.scripted_broker import ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)

#: A timeout that no poll of these tests reaches, in ms.
LONG_MS = 60_000

Polled = dict[tuple[str, int], list[Record]]


@asynccontextmanager
async def cluster(**topics: int) -> AsyncIterator[tuple[ScriptedLog, Client]]:
    async with ScriptedBroker(topics) as broker, Client(broker.bootstrap, QUICK) as client:
        yield ScriptedLog(broker), client


def offsets(polled: Polled) -> dict[int, list[int]]:
    """Returns the polled offsets by partition; checks the partition of each record."""
    for tp, records in polled.items():
        assert records
        assert {(record.topic, record.partition) for record in records} == {tp}
    return {tp[1]: [record.offset for record in records] for tp, records in polled.items()}


async def all_offsets(consumer: Any, *arguments: int) -> dict[int, list[int]]:
    """Polls until the consumer is at its end; returns all offsets by partition."""
    found: dict[int, list[int]] = {}
    while not consumer.at_end:
        for partition, more in offsets(await consumer.poll(*arguments)).items():
            found.setdefault(partition, []).extend(more)
    return found


# --- Without a group ---


async def test_poll_returns_the_buffered_records_by_partition() -> None:
    async with cluster(t=2) as (log, client):
        log.append(batch(0, TEN))
        log.append(batch(0, THREE), partition=1)
        async with client.consumer("t") as consumer:
            polled = await consumer.poll(LONG_MS)
            assert offsets(polled) == {0: [*range(10)], 1: [0, 1, 2]}
            assert [record.value for record in polled["t", 1]] == THREE
            assert consumer.positions == {("t", 0): 10, ("t", 1): 3}
            assert await consumer.poll(1) == {}


async def test_poll_returns_at_most_max_records() -> None:
    async with cluster(t=2) as (log, client):
        log.append(batch(0, TEN))
        log.append(batch(0, THREE), partition=1)
        async with client.consumer("t", max_poll_records=7) as consumer:
            found = [
                offsets(await consumer.poll(LONG_MS, 4)),
                offsets(await consumer.poll(LONG_MS)),
            ]
            assert found == [{0: [0, 1, 2, 3]}, {0: [4, 5, 6, 7, 8, 9], 1: [0]}]
            assert consumer.positions == {("t", 0): 10, ("t", 1): 1}
            assert offsets(await consumer.poll(LONG_MS, max_records=1)) == {1: [1]}


async def test_poll_joins_the_lists_of_a_partition() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"v"] * 1_200))
        async with client.consumer("t", max_poll_records=2_000) as consumer:
            assert offsets(await consumer.poll(LONG_MS)) == {0: [*range(1_200)]}


async def test_max_poll_records_is_500_by_default() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"v"] * 501))
        async with client.consumer("t") as consumer:
            assert offsets(await consumer.poll(LONG_MS)) == {0: [*range(500)]}
            assert offsets(await consumer.poll(LONG_MS)) == {0: [500]}


async def test_poll_waits_for_the_first_record() -> None:
    async with cluster(t=1) as (log, client), client.consumer("t", max_wait_ms=5) as consumer:
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await asyncio.wait([poll], timeout=0.03)
        assert not poll.done()
        log.append(batch(0, [b"a"]))
        assert offsets(await poll) == {0: [0]}


@pytest.mark.parametrize("timeout_ms", [0, 1, LONG_MS])
async def test_polls_until_the_end_return_each_record_once(timeout_ms: int) -> None:
    async with cluster(t=3) as (log, client):
        log.append(batch(0, TEN))
        log.append(batch(0, THREE), partition=2)
        async with client.consumer("t", stop_at_end=True) as consumer:
            assert not consumer.at_end
            found = await all_offsets(consumer, timeout_ms, 2)
            assert found == {0: [*range(10)], 2: [0, 1, 2]}
            log.append(batch(10, [b"late"]))
            assert await consumer.poll(timeout_ms) == {}


async def test_consumer_without_an_end_is_never_at_its_end() -> None:
    async with cluster(t=1) as (_, client), client.consumer("t", max_wait_ms=5) as consumer:
        assert await consumer.poll(0) == {}
        assert not consumer.at_end


async def test_timeout_ends_the_wait_for_start_positions() -> None:
    """The look-up of the start positions goes on, and a later poll uses the result."""
    async with cluster(t=1) as (log, client):
        log.append(batch(0, TEN))
        may_answer = asyncio.Event()
        answer = log.broker.answers[ListOffsetsRequest]

        async def delayed(request: Any) -> Any:
            await may_answer.wait()
            return answer(request)

        log.broker.answers[ListOffsetsRequest] = delayed
        consumer = client.consumer("t")
        for timeout_ms in (0, 1, 5):
            assert await consumer.poll(timeout_ms) == {}
        may_answer.set()
        assert offsets(await consumer.poll(LONG_MS)) == {0: [*range(10)]}
        await consumer.close()
        lookups = [
            each for each in log.broker.asked if isinstance(each.message, ListOffsetsRequest)
        ]
        assert len(lookups) == 1


async def test_polls_and_iterations_continue_after_each_other() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, TEN))
        log.append(batch(10, TEN))
        async with client.consumer("t", stop_at_end=True) as consumer:
            records = aiter(consumer)
            found = [(await anext(records)).offset, (await anext(records)).offset]
            found += offsets(await consumer.poll(LONG_MS, 3))[0]
            found.append((await anext(records)).offset)
            found += offsets(await consumer.poll(LONG_MS, 1))[0]
            found += [each.offset for each in (await anext(consumer.record_lists())).records]
            found += (await all_offsets(consumer, LONG_MS)).get(0, [])
            assert found == list(range(20))


async def test_cancelled_poll_loses_no_record() -> None:
    async with cluster(t=1) as (log, client), client.consumer("t", max_wait_ms=5) as consumer:
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await asyncio.sleep(0)
        poll.cancel()
        await asyncio.wait([poll])
        log.append(batch(0, THREE))
        assert offsets(await consumer.poll(LONG_MS)) == {0: [0, 1, 2]}


async def test_broken_batch_raises_after_the_records_of_other_partitions() -> None:
    async with cluster(t=2) as (log, client):
        log.append(batch(0, THREE))
        broken = bytearray(batch(0, [b"a" * 50] * 3, compression="gzip"))
        broken[70:80] = bytes(10)
        log.append(_with_checksum(broken), partition=1)
        async with client.consumer("t") as consumer:
            assert offsets(await consumer.poll(LONG_MS)) == {0: [0, 1, 2]}
            with pytest.raises(CorruptBatchError, match="gzip"):
                await consumer.poll(LONG_MS)
            assert consumer.positions == {("t", 0): 3, ("t", 1): 3}
            assert await consumer.poll(0) == {}


def _with_checksum(data: bytearray) -> bytes:
    """Sets the CRC of the magic 2 batch `data`, whose bytes a test has changed."""
    from kproto.records.magic2.crc import crc32c

    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


async def test_closed_consumer_ends_a_poll_and_refuses_the_next() -> None:
    async with cluster(t=1) as (_, client):
        consumer = client.consumer("t")
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await asyncio.wait([poll], timeout=0.02)
        await consumer.close()
        assert await poll == {}
        with pytest.raises(ConfigurationError, match="closed"):
            await consumer.poll(0)


@pytest.mark.parametrize(
    "arguments", [(-1,), (1.5,), (None,), (1, 0), (1, -1), (1, True), (1, "all")]
)
async def test_invalid_argument_of_poll_is_refused(arguments: Any) -> None:
    consumer = Client("localhost:1").consumer("t")
    with pytest.raises(ConfigurationError, match=r"timeout_ms|max_records"):
        await consumer.poll(*arguments)


def test_max_poll_records_below_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_poll_records"):
        Client("localhost:1").consumer("t", max_poll_records=0)


def test_max_poll_records_is_a_property() -> None:
    properties = {"bootstrap.servers": "localhost:1", "max.poll.records": "7"}
    assert Client.from_properties(properties).consumer("t")._max_poll_records == 7


# --- With a group ---


async def test_polled_records_count_as_processed_at_the_next_poll() -> None:
    async with group(TEN, THREE) as it, it.consumer(auto_commit=False) as consumer:
        await it.owner.assign([P0, P1])
        found: dict[int, list[int]] = {}
        while len(found) < 2:
            found |= offsets(await consumer.poll(LONG_MS))
        polled = await consumer.poll(0)
        assert polled == {}  # a poll without records is a poll, too
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 10, P1: 3}]


async def test_commit_excludes_polled_records_of_every_partition() -> None:
    async with group(TEN, THREE) as it, it.consumer(auto_commit=False) as consumer:
        await it.owner.assign([P0, P1])
        await consumer.position(P0)
        await consumer.position(P1)
        first = offsets(await consumer.poll(LONG_MS, 12))
        assert sorted(map(len, first.values())) in ([2, 10], [3, 9])
        await consumer.commit()
        assert it.coordinator.committed == [{P0: 0, P1: 0}]
        await consumer.poll(LONG_MS)
        await consumer.commit()
        assert it.coordinator.committed[1] == {("t", at): len(each) for at, each in first.items()}


@pytest.mark.parametrize("revoked", [P0, P1])
async def test_revocation_waits_until_polled_records_are_processed(revoked: Any) -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0, P1])
        await consumer.position(P0)
        await consumer.position(P1)
        assert len(await consumer.poll(LONG_MS, 12)) == 2
        revoking = asyncio.create_task(it.owner.revoke([revoked], FAR))
        await asyncio.wait([revoking], timeout=0.05)
        assert not revoking.done()
        assert it.coordinator.commits == []
        await consumer.poll(0)
        await revoking
        assert it.coordinator.offsets[revoked][0] > 1


async def test_polled_records_can_be_committed() -> None:
    async with group(TEN, THREE) as it, it.consumer(auto_commit=False) as consumer:
        await it.owner.assign([P0, P1])
        await consumer.position(P0)
        await consumer.position(P1)
        polled = await consumer.poll(LONG_MS, 4)
        await consumer.commit(polled)
        expected = {tp: records[-1].offset + 1 for tp, records in polled.items()}
        assert it.coordinator.committed == [expected]
        with pytest.raises(CommitFailedError, match="not assigned"):
            await consumer.commit({("u", 0): polled[next(iter(polled))]})
        with pytest.raises(ConfigurationError, match="the offset of"):
            await consumer.commit({P0: "1"})  # type: ignore[arg-type]


async def test_paused_partition_is_not_polled() -> None:
    async with group(TEN, THREE) as it, it.consumer() as consumer:
        await it.owner.assign([P0, P1])
        consumer.pause(P0)
        assert offsets(await consumer.poll(LONG_MS)) == {1: [0, 1, 2]}
        assert await consumer.poll(30) == {}
        consumer.resume(P0)
        found: list[int] = []
        while len(found) < 10:
            found += offsets(await consumer.poll(LONG_MS, 4))[0]
        assert found == [*range(10)]


async def test_seek_between_polls_drops_the_rest_of_a_list() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        assert offsets(await consumer.poll(LONG_MS, 1)) == {0: [0]}
        consumer.seek(P0, 8)
        found: list[int] = []
        while len(found) < 2:
            found += offsets(await consumer.poll(LONG_MS))[0]
        assert found == [8, 9]


async def test_poll_before_the_assignment_returns_nothing() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        assert await consumer.poll(0) == {}
        assert await consumer.poll(5) == {}
        assert it.member.polls == 2
        await it.owner.assign([P0])
        assert 0 in offsets(await consumer.poll(LONG_MS))


async def test_poll_returns_no_record_while_the_session_may_have_expired() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        await it.owner.assign([P0])
        assert offsets(await consumer.poll(LONG_MS, 1)) == {0: [0]}
        it.member.assignment_valid_until = 0.0
        for timeout_ms in (0, 5):
            assert await consumer.poll(timeout_ms) == {}
        it.member.assignment_valid_until = float("inf")
        found: list[int] = []
        while len(found) < 9:
            found += offsets(await consumer.poll(LONG_MS))[0]
        assert found == [*range(1, 10)]


async def test_first_poll_without_a_block_joins_the_group() -> None:
    async with group(TEN) as it:
        consumer = it.consumer()
        assert await consumer.poll(0) == {}
        assert it.member.calls == ["start"]
        await it.owner.assign([P0])
        while not await consumer.poll(LONG_MS):
            pass
        await consumer.close()


async def test_poll_during_run_is_refused() -> None:
    async with group(TEN) as it, it.consumer() as consumer:
        running = asyncio.create_task(consumer.run(_ignore, stop_on=()))
        await asyncio.sleep(0.01)
        with pytest.raises(ConfigurationError, match=r"run\(\) polls this consumer"):
            await consumer.poll(0)
        running.cancel()
        await asyncio.wait([running])


async def _ignore(record: Record) -> None:
    """Does nothing."""
