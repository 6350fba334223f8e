"""Tests consumers without a group: start, end, records, positions, cancellation and closing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import (
    Client,
    ClientSettings,
    ConfigurationError,
    Consumer,
    CorruptBatchError,
    Record,
)
from kproto.messages import ApiVersionsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest
from kproto.messages.fetch_response import AbortedTransaction
from kproto.protocol.connection import ReceivedRequest
from kproto.records import NewRecord, crc32c, encode_batch, encode_message_set
from kproto.wire.errors import MissingCodecError
from tests.unit.client.scripted_broker import ScriptedBroker, quick
from tests.unit.client.scripted_log import ABORT, COMMIT, ScriptedLog, batch, marker

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


@asynccontextmanager
async def cluster(**topics: int) -> AsyncIterator[tuple[ScriptedLog, Client]]:
    async with ScriptedBroker(topics) as broker, Client(broker.bootstrap, QUICK) as client:
        yield ScriptedLog(broker), client


async def read(client: Client, what: Any = "t", **options: Any) -> list[Record]:
    return [record async for record in client.consumer(what, stop_at_end=True, **options)]


async def first_of(consumer: Consumer) -> Record:
    async for record in consumer:
        return record
    raise AssertionError("the consumer came to an end")


def offsets_and_values(records: list[Record]) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in records]


# --- Start and end ---


async def test_topic_is_read_from_start_to_end() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(2, [b"c"]))
        found = await read(client)
        assert offsets_and_values(found) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert {(record.topic, record.partition) for record in found} == {("t", 0)}


async def test_empty_topic_ends_at_once() -> None:
    async with cluster(t=3) as (log, client):
        assert await read(client) == []
        assert log.fetches == []


async def test_start_at_latest_reads_only_new_records() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"before"]))
        assert await read(client, start="latest") == []
        async with client.consumer("t", start="latest", max_wait_ms=5) as consumer:
            assert consumer.positions == {("t", 0): 1}
            log.append(batch(1, [b"after"]))
            async for record in consumer:
                assert (record.offset, record.value) == (1, b"after")
                break


async def test_start_inside_a_batch_is_exact() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b", b"c"]))
        assert offsets_and_values(await read(client, start={("t", 0): 2})) == [(2, b"c")]
        assert offsets_and_values(await read(client, start={("t", 0): 3})) == []


async def test_stop_at_end_uses_the_end_offset_at_the_start() -> None:
    """Later records are not read, even if their batch begins before the end offset."""
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            log.append(batch(2, [b"late"]))
            log.batches["t", 0][0] = batch(0, [b"a", b"b", b"x"])
            assert offsets_and_values([record async for record in consumer]) == [
                (0, b"a"),
                (1, b"b"),
            ]
            assert consumer.positions == {("t", 0): 2}


async def test_several_topics_and_partitions_share_a_fetch() -> None:
    async with cluster(t=2, u=1) as (log, client):
        log.append(batch(0, [b"t0"]))
        log.append(batch(5, [b"t1"]), partition=1)
        log.append(batch(0, [b"u0", b"u1"]), topic="u")
        found = await read(client, ["t", "u"])
        assert {(r.topic, r.partition, r.offset, r.value) for r in found} == {
            ("t", 0, 0, b"t0"),
            ("t", 1, 5, b"t1"),
            ("u", 0, 0, b"u0"),
            ("u", 0, 1, b"u1"),
        }
        found = await read(client, [("t", 1), ("u", 0)], start={("t", 1): 0, ("u", 0): 1})
        assert {record.value for record in found} == {b"t1", b"u1"}
        assert len({len(request.topics) for request in log.fetches}) == 1, "one fetch for all"


async def test_lists_have_their_partition_and_high_watermark() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        consumer = client.consumer("t", stop_at_end=True)
        (fetched,) = [fetched async for fetched in consumer.record_lists()]
        assert (fetched.topic, fetched.partition, fetched.high_watermark) == ("t", 0, 2)
        assert offsets_and_values(fetched.records) == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ([], "needs a topic"),
        (("t", 0), "is a single partition; pass a list"),
        ([("t",)], "neither a topic nor"),
        ([5], "5 is neither"),
        ([("t", "0")], "neither"),
    ],
)
async def test_invalid_topics_are_refused(what: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Client("localhost:1").consumer(what)


@pytest.mark.parametrize("start", ["beginning", None, 5])
async def test_invalid_start_is_refused(start: Any) -> None:
    with pytest.raises(ConfigurationError, match="it is 'earliest', 'latest', an offset"):
        Client("localhost:1").consumer("t", start=start)


async def test_start_without_an_offset_for_a_partition_is_refused() -> None:
    async with cluster(t=2) as (_, client):
        with pytest.raises(ConfigurationError, match=r"start has no offset for \('t', 1\)"):
            await read(client, start={("t", 0): 0})


@pytest.mark.parametrize("start", ["latest", "earliest", {("t", 0): 1}])
async def test_partitions_added_later_are_read_from_their_start(
    start: Any,
) -> None:
    settings = ClientSettings(metadata_max_age_ms=20)
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"old"]))
        async with client.consumer("t", start=start, max_wait_ms=5) as consumer:
            log.append(batch(7, [b"new"]), partition=1)
            log.starts["t", 1] = 7
            broker.topics["t"] = 2
            async for record in consumer:
                if record.partition:
                    assert (record.offset, record.value) == (7, b"new")
                    break
            assert consumer.positions["t", 1] == 8
        async with client.consumer([("t", 0)], max_wait_ms=5, stop_at_end=True) as consumer:
            assert [record.value async for record in consumer] == [b"old"]


# --- Gaps, repetitions, control batches and faults in the log ---


async def test_offset_gaps_of_compaction_are_skipped() -> None:
    """Offsets are missing between, inside and at the end of batches."""
    async with cluster(t=1) as (log, client):
        full = [(b"a", b"a", (), 0), (b"b", b"b", (), 0)]
        log.append(batch(3, [b"d"]))
        shortened = bytearray(encode_batch(full, base_offset=7))
        shortened[23:27] = (9).to_bytes(4, "big")  # last offset delta; 7 to 16 are removed
        shortened[17:21] = crc32c(bytes(shortened[21:])).to_bytes(4, "big")
        log.append(bytes(shortened))
        log.append(batch(20, [b"z"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            found = [record async for record in consumer]
            assert offsets_and_values(found) == [(3, b"d"), (7, b"a"), (8, b"b"), (20, b"z")]
            assert consumer.positions == {("t", 0): 21}


async def test_records_repeated_in_a_fetch_are_returned_once() -> None:
    """When Kafka 3.9 converts a fetch to a message set, it can repeat batches at the end."""
    values: list[NewRecord] = [(b"k", b"%d" % number, (), 0) for number in range(6)]
    again = encode_message_set(values[:3], compression="gzip") + b"".join(
        encode_message_set([values[number]], base_offset=number) for number in (3, 4, 5)
    )
    async with cluster(t=1) as (log, client):
        log.append(encode_batch(values) + again + again)
        log.append(batch(6, [b"6"]))
        for start in (0, 2, 4):
            async with client.consumer("t", stop_at_end=True, start={("t", 0): start}) as consumer:
                found = [(record.offset, record.value) async for record in consumer]
                assert found == [(number, b"%d" % number) for number in range(start, 7)]
                assert consumer.positions == {("t", 0): 7}


async def test_batch_emptied_by_compaction_is_skipped() -> None:
    async with cluster(t=1) as (log, client):
        emptied = bytearray(batch(0, [b"a"]))[:61]
        emptied[8:12] = (49).to_bytes(4, "big")
        emptied[57:61] = bytes(4)
        emptied[17:21] = crc32c(bytes(emptied[21:])).to_bytes(4, "big")
        log.append(bytes(emptied))
        log.append(batch(1, [b"b"]))
        assert offsets_and_values(await read(client)) == [(1, b"b")]


async def test_control_batches_are_skipped() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"], producer_id=4, producer_epoch=0, is_transactional=True))
        log.append(marker(1, COMMIT, 4))
        log.append(batch(2, [b"b"]))
        log.append(marker(3, COMMIT, 4))
        for committed in (False, True):
            found = await read(client, read_committed=committed)
            assert offsets_and_values(found) == [(0, b"a"), (2, b"b")]


async def test_read_committed_hides_aborted_transactions() -> None:
    def mine(base_offset: int, value: bytes, producer_id: int) -> bytes:
        return batch(
            base_offset, [value], producer_id=producer_id, producer_epoch=0, is_transactional=True
        )

    async with cluster(t=1) as (log, client):
        log.append(mine(0, b"aborted", 4))
        log.append(mine(1, b"committed", 5))
        log.append(batch(2, [b"plain"]))
        log.append(mine(3, b"aborted too", 4))
        log.append(marker(4, ABORT, 4))
        log.append(mine(5, b"second try", 4))
        log.append(marker(6, COMMIT, 5))
        log.append(marker(7, COMMIT, 4))
        log.append(mine(8, b"open", 6))
        log.stable["t", 0] = 8
        log.aborted = [AbortedTransaction(producer_id=4, first_offset=0)]
        everything = [b"aborted", b"committed", b"plain", b"aborted too", b"second try", b"open"]
        assert [record.value for record in await read(client)] == everything
        committed = await read(client, read_committed=True)
        assert [record.value for record in committed] == [b"committed", b"plain", b"second try"]


async def test_cut_batch_is_read_whole_by_the_next_fetch() -> None:
    async with cluster(t=1) as (log, client):
        for at in range(10):
            log.append(batch(2 * at, [b"%d" % at * 50, b"x" * 50]))
        size = len(log.batches["t", 0][0])
        found = await read(client, max_partition_fetch_bytes=2 * size + size // 2)
        assert [record.offset for record in found] == list(range(20))
        assert len(log.fetches) >= 5


async def test_batch_larger_than_max_partition_fetch_bytes_is_read() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [bytes(5000)]))
        log.append(batch(1, [b"small"]))
        assert len(await read(client, max_partition_fetch_bytes=100)) == 2


@pytest.mark.parametrize("broken_at", [0, 2])
async def test_corrupt_batch_raises_after_the_good_ones(broken_at: int) -> None:
    async with cluster(t=1) as (log, client):
        for at in range(3):
            log.append(batch(at, [b"%d" % at]))
        broken = bytearray(log.batches["t", 0][broken_at])
        broken[-1] ^= 1
        log.batches["t", 0][broken_at] = bytes(broken)
        seen: list[int] = []

        async def take() -> None:
            async for record in client.consumer("t", stop_at_end=True):
                seen.append(record.offset)  # noqa: PERF401 - a comprehension would lose them

        with pytest.raises(CorruptBatchError, match="CRC") as raised:
            await take()
        assert seen == list(range(broken_at))
        assert str(raised.value).startswith("t[0] at offset ")


async def test_missing_codec_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"], compression="snappy"))
        monkeypatch.setitem(sys.modules, "cramjam", None)
        with pytest.raises(MissingCodecError, match=r"kproto\[compression\]"):
            await read(client)


# --- Positions ---


async def test_next_iteration_resumes_at_the_position() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"%d" % at for at in range(5)]))
        log.append(batch(5, [b"%d" % at for at in range(5, 8)]))
        consumer = client.consumer("t", stop_at_end=True)
        assert consumer.positions == {}
        seen: list[int] = []
        while len(seen) < 6:
            async for record in consumer:
                seen.append(record.offset)
                assert consumer.positions == {("t", 0): record.offset + 1}
                if record.offset % 2:
                    break
        (fetched,) = [fetched async for fetched in consumer.record_lists()]
        assert seen + [record.offset for record in fetched.records] == list(range(8))
        assert consumer.positions == {("t", 0): 8}
        assert [record async for record in consumer] == []


async def test_positions_follow_returned_records() -> None:
    async with cluster(t=2) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(4, [b"c", b"d"]), partition=1)
        async with client.consumer("t") as consumer:
            while not consumer._buffer.ready:
                await consumer._fetch_once()
            assert consumer.positions == {("t", 0): 0, ("t", 1): 4}
            taking = consumer.record_lists()
            first = await anext(taking)
            returned = {("t", first.partition): first.records[-1].offset + 1}
            assert consumer.positions == {("t", 0): 0, ("t", 1): 4} | returned
            await anext(taking)
            assert consumer.positions == {("t", 0): 2, ("t", 1): 6}
            await taking.aclose()


async def test_partitions_alternate_when_a_response_is_full() -> None:
    """Partitions that fill a response come last in the next fetch request."""
    settings = ClientSettings(max_frame_bytes=3000)
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        for partition in range(3):
            for at in range(4):
                log.append(batch(at, [bytes(500)]), partition=partition)
        found = await read(client, max_partition_fetch_bytes=1200)
        assert [record.partition for record in found] == [0, 1, 2] * 4


async def test_fetch_max_bytes_fits_into_a_frame() -> None:
    settings = ClientSettings(max_frame_bytes=100_000)
    async with ScriptedBroker({"t": 200}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        await read(client, max_partition_fetch_bytes=1_000_000)
        assert max(request.max_bytes for request in log.fetches) == 50_000
        await read(client, [("t", 0)], max_partition_fetch_bytes=1_000)
        assert log.fetches[-1].max_bytes == 1_000


# --- Cancelling and closing ---


async def test_consumer_closes_its_own_connection_on_cancellation() -> None:
    """A fetch that waits at the broker has its own connection, and delays no other request."""
    async with cluster(t=1) as (log, client):
        consumer = client.consumer("t", max_wait_ms=60_000)
        waiting = asyncio.create_task(first_of(consumer))
        await log.broker.until(lambda: len(log.fetches) == 1)
        async with asyncio.timeout(2):
            await client.refresh([])
            assert await client.list_offsets({("t", 0): "latest"}) == {("t", 0): 0}
        assert len(log.broker.writers) == 2
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await log.broker.until(lambda: len(client._view._pool._open) == 1)


async def test_fetch_connection_opens_during_the_position_lookup() -> None:
    release = asyncio.Event()
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        positions: Any = log.broker.answers[ListOffsetsRequest]

        async def answer(request: ReceivedRequest) -> Any:
            await release.wait()
            return positions(request)

        log.broker.answers[ListOffsetsRequest] = answer
        reading = asyncio.create_task(first_of(client.consumer("t")))
        await log.broker.until(lambda: log.broker.count(ApiVersionsRequest) == 2)
        assert log.broker.count(FetchRequest) == 0
        release.set()
        assert (await reading).value == b"a"
        assert log.broker.count(ApiVersionsRequest) == 2, "the fetch uses the same connection"


@pytest.mark.parametrize("by", ["record", "batch"])
async def test_cancelled_poll_loses_no_record_and_ends_no_iteration(by: str) -> None:
    """`asyncio.wait_for(anext(…))` times out several times before a record arrives."""
    async with cluster(t=1) as (log, client):
        consumer = client.consumer("t", stop_at_end=True)
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(2, [b"c"]))
        released = asyncio.Event()

        def slowly(answer: Any) -> Any:
            async def answering(request: ReceivedRequest) -> Any:
                await released.wait()
                released.clear()
                return await at_once(answer(request))

            return answering

        answers = log.broker.answers
        for request in (MetadataRequest, ListOffsetsRequest, FetchRequest):
            answers[request] = slowly(answers[request])
        found: list[Any] = []
        iteration: Any = aiter(consumer) if by == "record" else consumer.record_lists()
        polls = 0
        while True:
            polls += 1
            try:
                found.append(await asyncio.wait_for(anext(iteration), 0.001))
            except TimeoutError:
                released.set()
            except StopAsyncIteration:
                break
            assert log.broker.count(FetchRequest) <= 2
        if by == "batch":
            found = [record for fetched in found for record in fetched.records]
        assert offsets_and_values(found) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert polls > 4
        assert log.broker.count(ListOffsetsRequest) == 2
        with pytest.raises(StopAsyncIteration):
            await anext(iteration)


async def at_once(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def test_second_iteration_is_refused_while_another_waits() -> None:
    async with cluster(t=1) as (log, client):
        consumer = client.consumer("t", max_wait_ms=5)
        first = asyncio.create_task(anext(aiter(consumer)))
        await log.broker.until(lambda: len(log.fetches) == 1)
        with pytest.raises(ConfigurationError, match="another iteration of this consumer waits"):
            await anext(consumer.record_lists())
        log.append(batch(0, [b"a"]))
        assert (await first).value == b"a"


async def test_next_iteration_reuses_the_connection_of_a_dropped_one() -> None:
    async with cluster(t=1) as (log, client):
        consumer = client.consumer("t", max_wait_ms=5)
        log.append(batch(0, [b"a"]))
        await first_of(consumer)
        log.append(batch(1, [b"b"]))
        connections = log.broker.connections
        assert (await first_of(consumer)).value == b"b"
        assert log.broker.connections == connections


async def test_dropped_iteration_closes_its_connection() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        consumer = client.consumer("t", max_wait_ms=60_000)
        await first_of(consumer)
        await log.broker.until(lambda: len(client._view._pool._open) == 1)


async def test_close_ends_an_iteration_of_another_task() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        consumer = client.consumer("t", max_wait_ms=60_000)

        async def collect() -> list[Record]:
            return [record async for record in consumer]

        collecting = asyncio.create_task(collect())
        await log.broker.until(lambda: len(log.fetches) == 2)
        await consumer.close()
        assert offsets_and_values(await collecting) == [(0, b"a")]
        with pytest.raises(ConfigurationError, match="the consumer is closed"):
            await first_of(consumer)
        await consumer.close()


async def test_dropped_iteration_leaves_no_task() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        async for _ in client.consumer("t", max_wait_ms=60_000):
            break
    # The client was closed with a fetch in flight; no task and no warning may be left.


async def test_client_close_ends_its_consumers() -> None:
    async with cluster(t=1) as (log, client):
        records = aiter(client.consumer("t", max_wait_ms=60_000))
        waiting = asyncio.create_task(anext(records, None))
        await log.broker.until(lambda: len(log.fetches) == 1)
        await client.close()
        assert await waiting is None
