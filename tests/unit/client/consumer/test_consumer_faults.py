"""The consumer when things go wrong: what it waits out, what it tells, and that nothing is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from kproto import (
    BrokerConnectionError,
    BrokerResponseError,
    Client,
    ClientSettings,
    Consumer,
    ProtocolError,
    Record,
)
from kproto.messages import (
    ApiVersionsRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    MetadataRequest,
)
from kproto.messages.list_offsets_response import ListOffsetsResponse
from kproto.messages.metadata_response import MetadataResponsePartition
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.consumer.reading import first_of, read
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


WAITED_OUT = [
    "NOT_LEADER_OR_FOLLOWER:6",
    "LEADER_NOT_AVAILABLE:5",
    "FENCED_LEADER_EPOCH:74",
    "UNKNOWN_LEADER_EPOCH:75",
    "OFFSET_NOT_AVAILABLE:78",
    "KAFKA_STORAGE_ERROR:56",
    "REPLICA_NOT_AVAILABLE:9",
    "UNKNOWN_TOPIC_OR_PARTITION:3",
    "UNKNOWN_TOPIC_ID:100",
    "INCONSISTENT_TOPIC_ID:103",
]


@pytest.mark.parametrize("error", WAITED_OUT)
async def test_errors_that_time_mends(error: str) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [int(error.partition(":")[2])] * 2
        assert await read(client) == [b"a"]
        assert len(log.fetches) == 3


async def test_an_error_for_the_whole_response() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        answers: list[Any] = [FetchResponse(error_code=106), FetchResponse(error_code=106)]
        broker.answers[FetchRequest] = lambda asked: answers.pop() if answers else log.fetch(asked)
        assert await read(client) == [b"a"]
        answers.append(FetchResponse(error_code=29))
        with pytest.raises(BrokerResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
            await read(client)


@pytest.mark.parametrize(("code", "name"), [(29, "TOPIC_AUTHORIZATION_FAILED"), (-1, "UNKNOWN_S")])
async def test_an_error_that_nothing_mends(code: int, name: str) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [code]
        with pytest.raises(BrokerResponseError, match=rf"{name}.* fetching t\[0\] from offset 0"):
            await read(client)


async def test_an_error_that_does_not_go_away() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [6] * 10_000
        begun = time.monotonic()
        with pytest.raises(BrokerResponseError, match="NOT_LEADER_OR_FOLLOWER"):
            await read(client)
        longest_wait_ms = 1.2 * QUICK.retry_backoff_max_ms
        lasted_ms = (time.monotonic() - begun) * 1000
        assert lasted_ms >= QUICK.delivery_timeout_ms - longest_wait_ms
        assert len(log.fetches) > 5


async def test_a_connection_that_is_lost() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.append(batch(1, [b"b"]))
        answers: list[Any] = [HANG_UP, HANG_UP]
        broker.answers[FetchRequest] = lambda asked: answers.pop() if answers else log.fetch(asked)
        assert await read(client) == [b"a", b"b"]


async def test_a_broker_that_is_away_for_a_moment() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        consumer = client.consumer("t", max_wait_ms=5)
        assert (await first_of(consumer)).value == b"a"
        await broker.stop()
        waiting = asyncio.create_task(first_of(consumer))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await broker.start_again()
        log.append(batch(1, [b"b"]))
        assert (await waiting).value == b"b"


async def test_a_broker_that_stays_away() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        consumer = client.consumer("t", max_wait_ms=5)
        assert (await first_of(consumer)).value == b"a"
        await broker.stop()
        with pytest.raises(BrokerConnectionError):
            await first_of(consumer)


async def test_failures_that_come_and_go_are_not_added_up() -> None:
    """A tailing consumer of a quiet topic may lose its connection any number of times."""
    clock = ManualClock()
    settings = quick(metadata_wait_ms=5_000, delivery_timeout_ms=15)
    longest_wait_ms = 6.0

    async def pass_the_waits() -> None:
        while True:
            await broker.until(lambda: 0 < (clock.next_timer_ms or 0) <= longest_wait_ms)
            await clock.advance(clock.next_timer_ms or 0)

    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        log = ScriptedLog(broker)
        turns = 0

        def answer(asked: ReceivedRequest) -> Any:
            nonlocal turns
            turns += 1
            if turns == 40:
                log.append(batch(0, [b"at last"]))
            return HANG_UP if turns % 2 else log.fetch(asked)

        broker.answers[FetchRequest] = answer
        passing = asyncio.create_task(pass_the_waits())
        consumer = client.consumer("t", max_wait_ms=1)
        assert (await first_of(consumer)).value == b"at last"
        passing.cancel()
        assert clock.monotonic() * 1000 > settings.api_timeout_ms


def with_leader(broker: ScriptedBroker, leaders: dict[int, int]) -> None:
    """Let Metadata name other leaders of topic t."""

    def metadata(asked: ReceivedRequest) -> Any:
        response = broker.metadata(asked)
        for topic in response.topics:
            topic.partitions = [
                MetadataResponsePartition(partition_index=at, leader_id=leader)
                for at, leader in leaders.items()
            ]
        return response

    broker.answers[MetadataRequest] = metadata


async def test_a_partition_without_a_leader_keeps_no_other_waiting() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.append(batch(0, [b"b"]), partition=1)
        leaders = {0: 0, 1: 0}
        with_leader(broker, leaders)
        async with client.consumer("t", stop_at_end=True) as consumer:
            leaders[1] = -1
            client.cluster.forget(["t"])
            found = []
            async for record in consumer:
                found.append(record.value)
                leaders[1] = 0
            assert found == [b"a", b"b"]


async def test_a_broker_that_is_silent_ends_the_reading_at_its_time() -> None:
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=3_000, request_timeout_ms=40_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        ScriptedLog(broker)
        broker.answers[FetchRequest] = lambda asked: None
        reading = asyncio.create_task(first_of(client.consumer("t", max_wait_ms=500)))
        await broker.until(lambda: broker.count(FetchRequest) == 1)
        await clock.advance(3_499)
        assert not reading.done()
        await clock.advance(1)
        with pytest.raises(BrokerConnectionError):
            await reading


@pytest.mark.parametrize("other", [False, True], ids=["alone", "beside another"])
async def test_a_port_that_accepts_in_silence_ends_the_reading_at_its_time(other: bool) -> None:
    """However long a connection may take: also where another of the client opens it just now."""
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=1_500, reconnect_backoff_max_ms=50)
    async with ScriptedBroker({"t": 1}) as broker:
        client = Client(broker.bootstrap, settings, clock=clock)
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        records = aiter(client.consumer("t", max_wait_ms=500))
        assert (await anext(records)).value == b"a"
        broker.answers[ApiVersionsRequest] = lambda asked: None
        broker.hang_up()
        asked = len(broker.asked)
        if other:
            opened = client._view._pool._open.values()
            await broker.until(lambda: not any(connection.usable for connection in opened))
            sending = asyncio.create_task(client.refresh(["other"]))
            await broker.until(lambda: len(broker.asked) > asked)
        reading = asyncio.ensure_future(anext(records))
        await broker.until(lambda: clock.next_timer_ms is not None and clock.next_timer_ms < 500)
        await clock.advance(121)  # the first wait is over
        await broker.until(lambda: len(broker.asked) > asked)
        await clock.advance(1_378)
        assert not reading.done()
        await clock.advance(2)
        with pytest.raises(BrokerConnectionError, match=r"1500 ms \(api_timeout_ms\)"):
            await reading
        await client.close()
        if other:
            await asyncio.wait([sending])
            sending.exception()


async def test_a_broker_that_is_back_just_in_time_is_read_on() -> None:
    """The next wait would be longer than what is left of the time."""
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=1_500, reconnect_backoff_max_ms=50)
    async with ScriptedBroker({"t": 1}) as broker:
        client = Client(broker.bootstrap, settings, clock=clock)
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        records = aiter(client.consumer("t"))
        assert (await anext(records)).value == b"a"
        await broker.stop()
        reading = asyncio.ensure_future(anext(records))
        while clock.monotonic() < 1.4:
            await broker.until(lambda: clock.next_timer_ms is not None or reading.done())
            assert not reading.done()
            await clock.advance(10)
        log.append(batch(1, [b"b"]))
        await broker.start_again()
        while clock.monotonic() < 1.5 and not reading.done():
            await clock.advance(10)
            await asyncio.wait([reading], timeout=0.1)  # bytes move in real time
        await clock.advance(1)
        assert (await reading).value == b"b"
        await client.close()


async def test_who_polls_is_told_of_a_broker_that_is_silent() -> None:
    """By an error that is no TimeoutError: that is what polling ends with by itself."""
    settings = quick(metadata_wait_ms=100, delivery_timeout_ms=300)

    async def poll(records: AsyncIterator[Record]) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(anext(records), 0.02)

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        ScriptedLog(broker)
        broker.answers[FetchRequest] = lambda asked: None
        async with client.consumer("t", max_wait_ms=1) as consumer:
            with pytest.raises(BrokerConnectionError):
                await poll(aiter(consumer))


async def test_time_in_which_nobody_read_is_no_failure() -> None:
    """A fetch that was lost while the reader was busy, or away, is asked for again."""
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=3_000, retry_backoff_ms=1)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        answers: list[Any] = [HANG_UP, None]
        broker.answers[FetchRequest] = lambda asked: (
            (answers.pop() or log.fetch(asked)) if answers else log.fetch(asked)
        )
        async with client.consumer("t", max_wait_ms=1) as consumer:
            async for record in consumer:
                if record.value == b"b":
                    break
                await broker.until(lambda: not answers)
                await asyncio.sleep(0.01)  # the connection is lost, and nobody has looked
                await clock.advance(10_000)
                log.append(batch(1, [b"b"]))
                passing = asyncio.create_task(pass_time(broker, clock))
            passing.cancel()


async def pass_time(broker: ScriptedBroker, clock: ManualClock) -> None:
    """Turn the hands to each wait of a few ms."""
    while True:
        await broker.until(lambda: 0 < (clock.next_timer_ms or 0) <= 6)
        await clock.advance(clock.next_timer_ms or 0)


async def test_a_reader_that_begins_while_the_broker_is_away() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        ScriptedLog(broker).append(batch(0, [b"a"]))
        await broker.stop()
        reading = asyncio.create_task(first_of(client.consumer("t")))
        await asyncio.sleep(0.05)
        assert not reading.done()
        await broker.start_again()
        assert (await reading).value == b"a"


async def test_a_response_that_lacks_what_was_asked_is_told() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        broker.answers[FetchRequest] = lambda asked: FetchResponse()
        with pytest.raises(ProtocolError, match=r"a Fetch lacks t\[0\]"):
            await read(client)


async def test_what_metadata_says_of_a_topic_is_told_at_once() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        ScriptedLog(broker).append(batch(0, [b"a"]))
        async with client.consumer("t", stop_at_end=True) as consumer:

            def denied(asked: ReceivedRequest) -> Any:
                response = broker.metadata(asked)
                for topic in response.topics:
                    topic.error_code = 29
                    topic.partitions = []
                return response

            broker.answers[MetadataRequest] = denied
            client.cluster.forget(["t"])
            with pytest.raises(BrokerResponseError, match=r"TOPIC_AUTHORIZATION_FAILED .* t\[0\]"):
                await first_of(consumer)


async def test_a_new_partition_without_a_leader_ends_nobody_s_reading() -> None:
    settings = ClientSettings(
        metadata_max_age_ms=10, metadata_wait_ms=20, retry_backoff_ms=1, retry_backoff_max_ms=5
    )
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        leaders = {0: 0}
        with_leader(broker, leaders)
        async with client.consumer("t", max_wait_ms=5) as consumer:
            leaders[1] = -1
            log.append(batch(3, [b"new"]), partition=1)
            asked = broker.count(MetadataRequest)
            async for record in consumer:
                if record.partition:
                    assert (record.offset, record.value) == (3, b"new")
                    break
                if broker.count(MetadataRequest) > asked + 5:
                    leaders[1] = 0
                log.append(batch(record.offset + 1, [b"more"]))
                await asyncio.sleep(0.005)


async def test_closing_ends_an_iteration_that_waits_for_its_partitions() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, SLOW_BACKOFF, clock=clock) as client,
    ):
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [6]
        consumer = client.consumer("t")
        reading = asyncio.create_task(read_all(consumer))
        await broker.until(lambda: 0 < (clock.next_timer_ms or 0) <= 600)
        await consumer.close()
        assert await reading == []
        assert clock.monotonic() == 0


async def read_all(consumer: Consumer) -> list[Record]:
    return [record async for record in consumer]


async def test_the_error_of_one_partition_comes_behind_the_records_of_another() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.append(batch(0, [b"b"]), partition=1)
        log.failing["t", 1] = 29
        consumer = client.consumer("t", stop_at_end=True)
        assert (await first_of(consumer)).value == b"a"
        with pytest.raises(BrokerResponseError, match=r"TOPIC_AUTHORIZATION_FAILED .* t\[1\]"):
            await first_of(consumer)


SLOW_BACKOFF = ClientSettings(retry_backoff_ms=500, retry_backoff_max_ms=500)


@pytest.mark.parametrize("fault", ["no leader", "NOT_LEADER_OR_FOLLOWER", "out of range"])
async def test_failing_partitions_keep_a_healthy_one_waiting_for_nothing(fault: str) -> None:
    """Three siblings fail all the time, and time stands still: no backoff is waited out."""
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 4}) as broker,
        Client(broker.bootstrap, SLOW_BACKOFF, clock=clock) as client,
    ):
        log = ScriptedLog(broker)
        log.append(batch(0, [b"first"]))
        leaders = dict.fromkeys(range(4), 0)
        with_leader(broker, leaders)
        async with client.consumer("t", max_wait_ms=1) as consumer:
            if fault == "no leader":
                leaders |= dict.fromkeys((1, 2, 3), -1)
                client.cluster.forget(["t"])
            elif fault == "out of range":
                log.starts |= {("t", at): 5 for at in (1, 2, 3)}
                broker.answers[ListOffsetsRequest] = lambda asked: None
            else:
                log.failing |= {("t", at): 6 for at in (1, 2, 3)}
            async for record in consumer:
                if record.value == b"last":
                    break
                log.append(batch(record.offset + 1, [b"next" if record.offset < 9 else b"last"]))
            assert consumer.positions["t", 0] == 11
        assert clock.monotonic() == 0


async def test_a_partition_that_failed_is_asked_again_at_its_time() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, SLOW_BACKOFF, clock=clock) as client,
    ):
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [6]
        consumer = client.consumer("t")
        reading = asyncio.create_task(first_of(consumer))
        await broker.until(lambda: len(log.fetches) == 1)
        await broker.until(lambda: 0 < (clock.next_timer_ms or 0) <= 600)
        await clock.advance(399)
        await asyncio.sleep(0.02)
        assert len(log.fetches) == 1
        await clock.advance(201)
        assert (await reading).value == b"a"


async def test_a_leader_that_stays_away_is_told() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        leaders = {0: 0}
        with_leader(broker, leaders)
        async with client.consumer("t", stop_at_end=True) as consumer:
            leaders[0] = 9  # of whom Metadata does not say where it is
            client.cluster.forget(["t"])
            with pytest.raises(BrokerResponseError, match=r"LEADER_NOT_AVAILABLE .* t\[0\]"):
                await first_of(consumer)


async def test_a_partition_that_has_gone() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]), partition=1)
        leaders = {0: 0, 1: 0}
        with_leader(broker, leaders)
        async with client.consumer([("t", 1)]) as consumer:
            del leaders[1]
            client.cluster.forget(["t"])
            with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await first_of(consumer)


async def test_an_unknown_topic() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        with pytest.raises(
            BrokerResponseError, match=r"UNKNOWN_TOPIC_OR_PARTITION .* topic 'nope'"
        ):
            await read(client, "nope")


async def test_an_unknown_partition() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        words = "topic 't' has 2 partitions, and none is 5"
        with pytest.raises(BrokerResponseError, match=words):
            await read(client, [("t", 5)])


async def test_a_response_that_lacks_an_offset() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ListOffsetsRequest] = lambda asked: ListOffsetsResponse()
        with pytest.raises(ProtocolError, match=r"lacks t\[0\]"):
            await read(client)
