"""Tests which errors a consumer retries, which it raises, and that it loses no record."""

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


RETRIED = [
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


@pytest.mark.parametrize("error", RETRIED)
async def test_retriable_fetch_error_is_retried(error: str) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [int(error.partition(":")[2])] * 2
        assert await read(client) == [b"a"]
        assert len(log.fetches) == 3


async def test_error_of_the_whole_response_is_retried_or_raised() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        answers: list[Any] = [FetchResponse(error_code=106), FetchResponse(error_code=106)]
        broker.answers[FetchRequest] = lambda request: (
            answers.pop() if answers else log.fetch(request)
        )
        assert await read(client) == [b"a"]
        answers.append(FetchResponse(error_code=29))
        with pytest.raises(BrokerResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
            await read(client)


@pytest.mark.parametrize(("code", "name"), [(29, "TOPIC_AUTHORIZATION_FAILED"), (-1, "UNKNOWN_S")])
async def test_permanent_fetch_error_is_raised(code: int, name: str) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [code]
        with pytest.raises(BrokerResponseError, match=rf"{name}.* fetching t\[0\] from offset 0"):
            await read(client)


@pytest.mark.slow
async def test_persistent_retriable_error_is_raised_at_the_timeout() -> None:
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


async def test_lost_connection_loses_no_record() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.append(batch(1, [b"b"]))
        answers: list[Any] = [HANG_UP, HANG_UP]
        broker.answers[FetchRequest] = lambda request: (
            answers.pop() if answers else log.fetch(request)
        )
        assert await read(client) == [b"a", b"b"]


async def test_restarted_broker_is_read_on() -> None:
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


async def test_stopped_broker_raises_at_the_timeout() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        consumer = client.consumer("t", max_wait_ms=5)
        assert (await first_of(consumer)).value == b"a"
        await broker.stop()
        with pytest.raises(BrokerConnectionError):
            await first_of(consumer)


async def test_intermittent_failures_do_not_add_up_to_the_timeout() -> None:
    """Each fetch that succeeds restarts the timeout, even if it returns no records."""
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
        requests = 0

        def answer(request: ReceivedRequest) -> Any:
            nonlocal requests
            requests += 1
            if requests == 40:
                log.append(batch(0, [b"at last"]))
            return HANG_UP if requests % 2 else log.fetch(request)

        broker.answers[FetchRequest] = answer
        passing = asyncio.create_task(pass_the_waits())
        consumer = client.consumer("t", max_wait_ms=1)
        assert (await first_of(consumer)).value == b"at last"
        passing.cancel()
        assert clock.monotonic() * 1000 > settings.api_timeout_ms


def with_leader(broker: ScriptedBroker, leaders: dict[int, int]) -> None:
    """Makes Metadata report these leaders of topic t."""

    def metadata(request: ReceivedRequest) -> Any:
        response = broker.metadata(request)
        for topic in response.topics:
            topic.partitions = [
                MetadataResponsePartition(partition_index=at, leader_id=leader)
                for at, leader in leaders.items()
            ]
        return response

    broker.answers[MetadataRequest] = metadata


async def test_partition_without_a_leader_does_not_block_others() -> None:
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


async def test_silent_broker_raises_at_the_timeout() -> None:
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=3_000, request_timeout_ms=40_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        ScriptedLog(broker)
        broker.answers[FetchRequest] = lambda request: None
        reading = asyncio.create_task(first_of(client.consumer("t", max_wait_ms=500)))
        await broker.until(lambda: broker.count(FetchRequest) == 1)
        await clock.advance(3_499)
        assert not reading.done()
        await clock.advance(1)
        with pytest.raises(BrokerConnectionError):
            await reading


@pytest.mark.parametrize("other", [False, True], ids=["alone", "beside another"])
async def test_silent_connection_raises_at_the_timeout(other: bool) -> None:
    """The timeout also applies to a connection that another task of the client is opening."""
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=1_500, reconnect_backoff_max_ms=50)
    async with ScriptedBroker({"t": 1}) as broker:
        client = Client(broker.bootstrap, settings, clock=clock)
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        records = aiter(client.consumer("t", max_wait_ms=500))
        assert (await anext(records)).value == b"a"
        broker.answers[ApiVersionsRequest] = lambda request: None
        broker.hang_up()
        count = len(broker.asked)
        if other:
            opened = client._view._pool._open.values()
            await broker.until(lambda: not any(connection.usable for connection in opened))
            sending = asyncio.create_task(client.refresh(["other"]))
            await broker.until(lambda: len(broker.asked) > count)
        reading = asyncio.ensure_future(anext(records))
        await broker.until(lambda: clock.next_timer_ms is not None and clock.next_timer_ms < 500)
        await clock.advance(121)  # the first backoff has passed
        await broker.until(lambda: len(broker.asked) > count)
        await clock.advance(1_378)
        assert not reading.done()
        await clock.advance(2)
        with pytest.raises(BrokerConnectionError, match=r"1500 ms \(api_timeout_ms\)"):
            await reading
        await client.close()
        if other:
            await asyncio.wait([sending])
            sending.exception()


@pytest.mark.slow
async def test_broker_that_restarts_just_before_the_timeout_is_read_on() -> None:
    """The next backoff is longer than the remaining time, so the consumer shortens the backoff."""
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
            await asyncio.wait([reading], timeout=0.1)  # network I/O needs real time
        await clock.advance(1)
        assert (await reading).value == b"b"
        await client.close()


async def test_polls_with_a_timeout_raise_for_a_silent_broker() -> None:
    """The consumer raises BrokerConnectionError when `api_timeout_ms` is over.

    A TimeoutError would look like the TimeoutError of `asyncio.wait_for`, which limits each poll.
    """
    settings = quick(metadata_wait_ms=100, delivery_timeout_ms=300)

    async def poll(records: AsyncIterator[Record]) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(anext(records), 0.02)

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        ScriptedLog(broker)
        broker.answers[FetchRequest] = lambda request: None
        async with client.consumer("t", max_wait_ms=1) as consumer:
            with pytest.raises(BrokerConnectionError):
                await poll(aiter(consumer))


async def test_time_without_a_pending_poll_does_not_count_to_the_timeout() -> None:
    """A fetch failed while no poll was pending; the next poll has the whole timeout."""
    clock = ManualClock()
    settings = ClientSettings(api_timeout_ms=3_000, retry_backoff_ms=1)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        answers: list[Any] = [HANG_UP, None]
        broker.answers[FetchRequest] = lambda request: (
            (answers.pop() or log.fetch(request)) if answers else log.fetch(request)
        )
        async with client.consumer("t", max_wait_ms=1) as consumer:
            async for record in consumer:
                if record.value == b"b":
                    break
                await broker.until(lambda: not answers)
                await asyncio.sleep(0.01)  # the connection is lost while no poll is pending
                await clock.advance(10_000)
                log.append(batch(1, [b"b"]))
                passing = asyncio.create_task(pass_time(broker, clock))
            passing.cancel()


async def pass_time(broker: ScriptedBroker, clock: ManualClock) -> None:
    """Advances the clock to the next timer whenever this timer is due within 6 ms."""
    while True:
        await broker.until(lambda: 0 < (clock.next_timer_ms or 0) <= 6)
        await clock.advance(clock.next_timer_ms or 0)


async def test_consumer_starts_before_its_broker() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        ScriptedLog(broker).append(batch(0, [b"a"]))
        await broker.stop()
        reading = asyncio.create_task(first_of(client.consumer("t")))
        await asyncio.sleep(0.05)
        assert not reading.done()
        await broker.start_again()
        assert (await reading).value == b"a"


async def test_fetch_response_without_the_partition_raises() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        broker.answers[FetchRequest] = lambda request: FetchResponse()
        with pytest.raises(ProtocolError, match=r"a Fetch lacks t\[0\]"):
            await read(client)


async def test_topic_error_in_metadata_is_raised_at_once() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        ScriptedLog(broker).append(batch(0, [b"a"]))
        async with client.consumer("t", stop_at_end=True) as consumer:

            def denied(request: ReceivedRequest) -> Any:
                response = broker.metadata(request)
                for topic in response.topics:
                    topic.error_code = 29
                    topic.partitions = []
                return response

            broker.answers[MetadataRequest] = denied
            client.cluster.forget(["t"])
            with pytest.raises(BrokerResponseError, match=r"TOPIC_AUTHORIZATION_FAILED .* t\[0\]"):
                await first_of(consumer)


async def test_new_partition_without_a_leader_does_not_end_reading() -> None:
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
            count = broker.count(MetadataRequest)
            async for record in consumer:
                if record.partition:
                    assert (record.offset, record.value) == (3, b"new")
                    break
                if broker.count(MetadataRequest) > count + 5:
                    leaders[1] = 0
                log.append(batch(record.offset + 1, [b"more"]))
                await asyncio.sleep(0.005)


async def test_close_ends_an_iteration_during_a_backoff() -> None:
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


async def test_error_of_one_partition_follows_the_records_of_another() -> None:
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
async def test_failing_partitions_do_not_delay_a_healthy_one(fault: str) -> None:
    """Three partitions keep failing on a stopped clock: no backoff may delay the healthy one."""
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
                broker.answers[ListOffsetsRequest] = lambda request: None
            else:
                log.failing |= {("t", at): 6 for at in (1, 2, 3)}
            async for record in consumer:
                if record.value == b"last":
                    break
                log.append(batch(record.offset + 1, [b"next" if record.offset < 9 else b"last"]))
            assert consumer.positions["t", 0] == 11
        assert clock.monotonic() == 0


async def test_failed_partition_is_fetched_again_after_its_backoff() -> None:
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


@pytest.mark.slow
async def test_leader_without_an_address_raises_at_the_timeout() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        leaders = {0: 0}
        with_leader(broker, leaders)
        async with client.consumer("t", stop_at_end=True) as consumer:
            leaders[0] = 9  # Metadata has no address of this node
            client.cluster.forget(["t"])
            with pytest.raises(BrokerResponseError, match=r"LEADER_NOT_AVAILABLE .* t\[0\]"):
                await first_of(consumer)


@pytest.mark.slow
async def test_removed_partition_raises() -> None:
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


async def test_unknown_topic_raises() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        with pytest.raises(
            BrokerResponseError, match=r"UNKNOWN_TOPIC_OR_PARTITION .* topic 'nope'"
        ):
            await read(client, "nope")


async def test_unknown_partition_raises() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        words = "topic 't' has 2 partitions, and none is 5"
        with pytest.raises(BrokerResponseError, match=words):
            await read(client, [("t", 5)])


async def test_list_offsets_response_without_the_partition_raises() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ListOffsetsRequest] = lambda request: ListOffsetsResponse()
        with pytest.raises(ProtocolError, match=r"lacks t\[0\]"):
            await read(client)
