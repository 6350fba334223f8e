"""The consumer: what it hands out, where it begins and ends, and where it goes on."""

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


def places(records: list[Record]) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in records]


# --- From where to where ---


async def test_from_the_start_to_the_end() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(2, [b"c"]))
        found = await read(client)
        assert places(found) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert {(record.topic, record.partition) for record in found} == {("t", 0)}


async def test_an_empty_topic_ends_at_once() -> None:
    async with cluster(t=3) as (log, client):
        assert await read(client) == []
        assert log.fetches == []


async def test_from_the_end_on() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"before"]))
        assert await read(client, start="latest") == []
        async with client.consumer("t", start="latest", max_wait_ms=5) as consumer:
            assert consumer.positions == {("t", 0): 1}
            log.append(batch(1, [b"after"]))
            async for record in consumer:
                assert (record.offset, record.value) == (1, b"after")
                break


async def test_from_an_offset_inside_a_batch() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b", b"c"]))
        assert places(await read(client, start={("t", 0): 2})) == [(2, b"c")]
        assert places(await read(client, start={("t", 0): 3})) == []


async def test_it_ends_where_the_end_was_when_it_began() -> None:
    """Records that came since are left for another time, in the midst of a batch too."""
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            log.append(batch(2, [b"late"]))
            log.batches["t", 0][0] = batch(0, [b"a", b"b", b"x"])
            assert places([record async for record in consumer]) == [(0, b"a"), (1, b"b")]
            assert consumer.positions == {("t", 0): 2}


async def test_several_topics_and_partitions() -> None:
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


async def test_lists_say_whose_they_are() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        consumer = client.consumer("t", stop_at_end=True)
        (fetched,) = [fetched async for fetched in consumer.record_lists()]
        assert (fetched.topic, fetched.partition, fetched.high_watermark) == ("t", 0, 2)
        assert places(fetched.records) == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ([], "needs a topic"),
        (("t", 0), "0 is neither a topic nor a partition"),
        ([("t",)], "neither a topic nor"),
        ([5], "5 is neither"),
        ([("t", "0")], "neither"),
    ],
)
async def test_what_cannot_be_read(what: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Client("localhost:1").consumer(what)


@pytest.mark.parametrize("start", ["beginning", None, 5])
async def test_a_start_that_is_none(start: Any) -> None:
    with pytest.raises(ConfigurationError, match="it is 'earliest', 'latest' or an offset"):
        Client("localhost:1").consumer("t", start=start)


async def test_a_start_that_forgets_a_partition() -> None:
    async with cluster(t=2) as (_, client):
        with pytest.raises(ConfigurationError, match=r"start gives no offset for \('t', 1\)"):
            await read(client, start={("t", 0): 0})


@pytest.mark.parametrize("start", ["latest", "earliest", {("t", 0): 1}])
async def test_partitions_that_a_whole_topic_gets_later_are_read_from_their_start(
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


# --- What a log may hold ---


async def test_compaction_leaves_gaps() -> None:
    """Offsets are missing between, inside and at the end of batches."""
    async with cluster(t=1) as (log, client):
        full = [(b"a", b"a", (), 0), (b"b", b"b", (), 0)]
        log.append(batch(3, [b"d"]))
        shortened = bytearray(encode_batch(full, base_offset=7))
        shortened[23:27] = (9).to_bytes(4, "big")  # last offset delta: 7 to 16 were there once
        shortened[17:21] = crc32c(bytes(shortened[21:])).to_bytes(4, "big")
        log.append(bytes(shortened))
        log.append(batch(20, [b"z"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            found = [record async for record in consumer]
            assert places(found) == [(3, b"d"), (7, b"a"), (8, b"b"), (20, b"z")]
            assert consumer.positions == {("t", 0): 21}


async def test_what_a_fetch_repeats_is_handed_out_once() -> None:
    """Kafka 3.9 may begin anew at the end of a fetch that it converted to a message set."""
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


async def test_a_batch_that_compaction_has_emptied() -> None:
    async with cluster(t=1) as (log, client):
        emptied = bytearray(batch(0, [b"a"]))[:61]
        emptied[8:12] = (49).to_bytes(4, "big")
        emptied[57:61] = bytes(4)
        emptied[17:21] = crc32c(bytes(emptied[21:])).to_bytes(4, "big")
        log.append(bytes(emptied))
        log.append(batch(1, [b"b"]))
        assert places(await read(client)) == [(1, b"b")]


async def test_control_batches_are_passed_over() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"], producer_id=4, producer_epoch=0, is_transactional=True))
        log.append(marker(1, COMMIT, 4))
        log.append(batch(2, [b"b"]))
        log.append(marker(3, COMMIT, 4))
        for committed in (False, True):
            found = await read(client, read_committed=committed)
            assert places(found) == [(0, b"a"), (2, b"b")]


async def test_aborted_transactions_are_hidden_from_who_wants_committed_records() -> None:
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


async def test_a_batch_that_is_cut_comes_whole_with_the_next_fetch() -> None:
    async with cluster(t=1) as (log, client):
        for at in range(10):
            log.append(batch(2 * at, [b"%d" % at * 50, b"x" * 50]))
        size = len(log.batches["t", 0][0])
        found = await read(client, max_partition_fetch_bytes=2 * size + size // 2)
        assert [record.offset for record in found] == list(range(20))
        assert len(log.fetches) >= 5


async def test_a_batch_larger_than_the_bound_comes_all_the_same() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [bytes(5000)]))
        log.append(batch(1, [b"small"]))
        assert len(await read(client, max_partition_fetch_bytes=100)) == 2


@pytest.mark.parametrize("broken_at", [0, 2])
async def test_a_broken_batch_is_told_behind_the_good_ones(broken_at: int) -> None:
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

        with pytest.raises(CorruptBatchError, match="CRC") as told:
            await take()
        assert seen == list(range(broken_at))
        assert any("t[0]" in note for note in told.value.__notes__)


async def test_a_codec_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"], compression="snappy"))
        monkeypatch.setitem(sys.modules, "cramjam", None)
        with pytest.raises(MissingCodecError, match=r"kproto\[compression\]"):
            await read(client)


# --- Where it goes on ---


async def test_a_broken_off_iteration_goes_on_where_it_was() -> None:
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


async def test_positions_are_behind_what_was_handed_out() -> None:
    async with cluster(t=2) as (log, client):
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(4, [b"c", b"d"]), partition=1)
        async with client.consumer("t") as consumer:
            while not consumer._buffer.ready:
                await consumer._fetch_once()
            assert consumer.positions == {("t", 0): 0, ("t", 1): 4}
            taking = consumer.record_lists()
            first = await anext(taking)
            handed = {("t", first.partition): first.records[-1].offset + 1}
            assert consumer.positions == {("t", 0): 0, ("t", 1): 4} | handed
            await anext(taking)
            assert consumer.positions == {("t", 0): 2, ("t", 1): 6}
            await taking.aclose()


async def test_partitions_take_turns_when_a_response_is_full() -> None:
    """The order in a request decides who gets the room; who had it last comes last."""
    settings = ClientSettings(max_frame_bytes=3000)
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        for partition in range(3):
            for at in range(4):
                log.append(batch(at, [bytes(500)]), partition=partition)
        found = await read(client, max_partition_fetch_bytes=1200)
        assert [record.partition for record in found] == [0, 1, 2] * 4


async def test_a_response_fits_into_a_frame() -> None:
    settings = ClientSettings(max_frame_bytes=100_000)
    async with ScriptedBroker({"t": 200}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        await read(client, max_partition_fetch_bytes=1_000_000)
        assert max(request.max_bytes for request in log.fetches) == 50_000
        await read(client, [("t", 0)], max_partition_fetch_bytes=1_000)
        assert log.fetches[-1].max_bytes == 1_000


# --- Cancelling and closing ---


async def test_a_consumer_has_its_own_connection_and_gives_it_back() -> None:
    """A fetch that waits at the broker keeps no other request of the client waiting."""
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


async def test_the_connection_of_its_fetches_is_opened_while_positions_are_asked_for() -> None:
    release = asyncio.Event()
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        positions: Any = log.broker.answers[ListOffsetsRequest]

        async def answer(asked: ReceivedRequest) -> Any:
            await release.wait()
            return positions(asked)

        log.broker.answers[ListOffsetsRequest] = answer
        reading = asyncio.create_task(first_of(client.consumer("t")))
        await log.broker.until(lambda: log.broker.count(ApiVersionsRequest) == 2)
        assert log.broker.count(FetchRequest) == 0
        release.set()
        assert (await reading).value == b"a"
        assert log.broker.count(ApiVersionsRequest) == 2, "it is the one that fetches"


@pytest.mark.parametrize("by", ["record", "batch"])
async def test_an_anext_that_is_cancelled_loses_nothing_and_ends_nothing(by: str) -> None:
    """So `asyncio.wait_for(anext(…))` may poll, however often its time is over before one comes."""
    async with cluster(t=1) as (log, client):
        consumer = client.consumer("t", stop_at_end=True)
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(2, [b"c"]))
        held = asyncio.Event()

        def slowly(answer: Any) -> Any:
            async def answering(asked: ReceivedRequest) -> Any:
                await held.wait()
                held.clear()
                return await at_once(answer(asked))

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
                held.set()
            except StopAsyncIteration:
                break
            assert log.broker.count(FetchRequest) <= 2
        if by == "batch":
            found = [record for fetched in found for record in fetched.records]
        assert places(found) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert polls > 4
        assert log.broker.count(ListOffsetsRequest) == 2
        with pytest.raises(StopAsyncIteration):
            await anext(iteration)


async def at_once(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def test_a_second_iteration_is_refused_while_one_waits() -> None:
    async with cluster(t=1) as (log, client):
        consumer = client.consumer("t", max_wait_ms=5)
        first = asyncio.create_task(anext(aiter(consumer)))
        await log.broker.until(lambda: len(log.fetches) == 1)
        with pytest.raises(ConfigurationError, match="another iteration of this consumer waits"):
            await anext(consumer.record_lists())
        log.append(batch(0, [b"a"]))
        assert (await first).value == b"a"


async def test_an_iteration_that_is_dropped_ends_nothing_of_the_next() -> None:
    async with cluster(t=1) as (log, client):
        consumer = client.consumer("t", max_wait_ms=5)
        log.append(batch(0, [b"a"]))
        await first_of(consumer)
        log.append(batch(1, [b"b"]))
        connections = log.broker.connections
        assert (await first_of(consumer)).value == b"b"
        assert log.broker.connections == connections


async def test_an_iteration_that_is_dropped_gives_its_connection_back() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        consumer = client.consumer("t", max_wait_ms=60_000)
        await first_of(consumer)
        await log.broker.until(lambda: len(client._view._pool._open) == 1)


async def test_closing_ends_an_iteration_elsewhere() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        consumer = client.consumer("t", max_wait_ms=60_000)

        async def collect() -> list[Record]:
            return [record async for record in consumer]

        collecting = asyncio.create_task(collect())
        await log.broker.until(lambda: len(log.fetches) == 2)
        await consumer.close()
        assert places(await collecting) == [(0, b"a")]
        with pytest.raises(ConfigurationError, match="the consumer is closed"):
            await first_of(consumer)
        await consumer.close()


async def test_an_iteration_that_is_dropped_leaves_nothing() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        async for _ in client.consumer("t", max_wait_ms=60_000):
            break
    # The client was closed while a fetch was under way; no task, no warning may be left.


async def test_a_client_that_is_closed_ends_its_consumers() -> None:
    async with cluster(t=1) as (log, client):
        waiting = asyncio.create_task(first_of(client.consumer("t", max_wait_ms=60_000)))
        await log.broker.until(lambda: len(log.fetches) == 1)
        await client.close()
        with pytest.raises(ConfigurationError, match="the client is closed"):
            await waiting
