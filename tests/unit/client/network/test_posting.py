"""Requests that are posted, and the one timer that keeps the time of all: no task, no wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.client import ClientSettings
from kproto.client.network.connection import BrokerConnection
from kproto.client.settings import Address
from kproto.messages import MetadataRequest, MetadataResponse, ProduceRequest
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.protocol.framing import frame
from kproto.testing.clock import ManualClock
from kproto.wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    EncodeError,
    RequestTimeoutError,
)
from tests.unit.client.scripted_broker import ScriptedBroker

VERSION = 12


@asynccontextmanager
async def connected(
    broker: ScriptedBroker, *, clock: ManualClock | None = None, **settings: int
) -> AsyncIterator[BrokerConnection]:
    address = Address("127.0.0.1", broker.port)
    connection = await BrokerConnection.open(
        address,
        ClientSettings(**{"max_in_flight": 16} | settings),  # type: ignore[arg-type]  # numbers
        clock or ManualClock(),
    )
    try:
        yield connection
    finally:
        await connection.close()


def named(number: int) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=f"t{number}")])


def name_of(asked: Any) -> MetadataResponse:
    return MetadataResponse(cluster_id=asked.message.topics[0].name)


def silent(asked: Any) -> None:
    return None


async def test_the_answer_is_told_in_the_order_of_the_requests() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        told: list[Any] = []
        for number in range(5):
            assert connection.post(named(number), version=VERSION, tell=told.append)
        asked = connection.request(named(5), version=VERSION)
        assert (await asked).cluster_id == "t5"
        assert [answer.cluster_id for answer in told] == [f"t{number}" for number in range(5)]


async def test_what_was_asked_before_in_this_turn_is_written_before() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        told: list[Any] = []
        first = asyncio.create_task(connection.request(named(1), version=VERSION))
        await asyncio.sleep(0)
        assert connection.post(named(2), version=VERSION, tell=told.append)
        assert (await first).cluster_id == "t1"
        await broker.until(lambda: bool(told))
        assert told[0].cluster_id == "t2"


async def test_it_takes_a_turn_as_any_other_request() -> None:
    async with ScriptedBroker() as broker, connected(broker, max_in_flight=2) as connection:
        broker.answers[MetadataRequest] = silent
        told: list[Any] = []
        assert connection.post(named(1), version=VERSION, tell=told.append)
        assert connection.post(named(2), version=VERSION, tell=told.append)
        assert not connection.post(named(3), version=VERSION, tell=told.append)
        third = asyncio.create_task(connection.request(named(3), version=VERSION))
        await broker.until(lambda: broker.count(MetadataRequest) == 2)
        assert not third.done()
        broker.hang_up()
        with pytest.raises(BrokerConnectionError):
            await third
        assert [type(outcome) for outcome in told] == [BrokerConnectionError] * 2


async def test_answers_give_the_turns_back() -> None:
    async with ScriptedBroker() as broker, connected(broker, max_in_flight=1) as connection:
        broker.answers[MetadataRequest] = name_of
        told: list[Any] = []
        for number in range(3):
            assert connection.post(named(number), version=VERSION, tell=told.append)
            assert not connection.post(named(9), version=VERSION, tell=told.append)
            await broker.until(lambda: len(told) == number + 1)  # noqa: B023 - awaited at once
        assert [answer.cluster_id for answer in told] == ["t0", "t1", "t2"]


async def test_what_cannot_be_written_is_refused_and_takes_no_turn() -> None:
    async with ScriptedBroker() as broker, connected(broker, max_in_flight=1) as connection:
        told: list[Any] = []
        wrong: Any = MetadataRequest(topics=[MetadataRequestTopic(name=7)])  # type: ignore[arg-type]
        with pytest.raises(EncodeError):
            connection.post(wrong, version=VERSION, tell=told.append)
        with pytest.raises(ConfigurationError, match="no broker answers"):
            connection.post(ProduceRequest(acks=0), version=VERSION, tell=told.append)
        broker.answers[MetadataRequest] = name_of
        assert (await connection.request(named(1), version=VERSION)).cluster_id == "t1"
        assert told == []


async def test_a_lost_connection_takes_no_more() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = silent
        told: list[Any] = []
        assert connection.post(named(1), version=VERSION, tell=told.append)
        await broker.until(lambda: broker.count(MetadataRequest) == 1)
        connection.abort()
        with pytest.raises(BrokerConnectionError):
            connection.post(named(2), version=VERSION, tell=told.append)
        assert [str(outcome) for outcome in told] == [
            f"{connection.address}: the connection was closed"
        ]


async def test_who_is_told_may_post_again() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        told: list[Any] = []

        def again(outcome: Any) -> None:
            told.append(outcome.cluster_id)
            if len(told) < 50:
                assert connection.post(named(len(told)), version=VERSION, tell=again)

        assert connection.post(named(0), version=VERSION, tell=again)
        await broker.until(lambda: len(told) == 50)
        assert told == [f"t{number}" for number in range(50)]


# --- Time ---


async def test_a_silent_broker_is_given_up_when_the_first_has_had_its_time() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        connected(broker, clock=clock, request_timeout_ms=5_000) as connection,
    ):
        broker.answers[MetadataRequest] = silent
        told: list[Any] = []
        assert connection.post(named(0), version=VERSION, tell=told.append)
        first = asyncio.create_task(connection.request(named(1), timeout_ms=3_000))
        await broker.until(lambda: broker.count(MetadataRequest) == 2)
        assert connection.post(named(2), version=VERSION, tell=told.append)
        await clock.advance(2_900)
        assert (told, first.done(), connection.usable) == ([], False, True)
        await clock.advance(200)
        assert not connection.usable
        with pytest.raises(RequestTimeoutError, match=r"MetadataRequest v13 .* in 3000 ms"):
            await first
        assert len(told) == 2
        for outcome in told:
            assert isinstance(outcome, BrokerConnectionError)
            assert "because another request timed out" in str(outcome)


async def test_time_runs_for_what_is_not_answered_alone() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, connected(broker, clock=clock) as connection:
        broker.answers[MetadataRequest] = name_of
        for _ in range(10):
            assert (await connection.request(named(1), timeout_ms=1_000)).cluster_id == "t1"
            await clock.advance(900)
        broker.answers[MetadataRequest] = silent
        last = asyncio.create_task(connection.request(named(2), timeout_ms=1_000))
        await broker.until(lambda: broker.count(MetadataRequest) == 11)
        await clock.advance(900)
        assert not last.done()
        await clock.advance(200)
        with pytest.raises(RequestTimeoutError, match="in 1000 ms"):
            await last


async def test_a_cancelled_request_has_no_time_any_more() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, connected(broker, clock=clock) as connection:
        broker.answers[MetadataRequest] = silent
        first = asyncio.create_task(connection.request(named(1), timeout_ms=1_000))
        second = asyncio.create_task(connection.request(named(2), timeout_ms=5_000))
        await broker.until(lambda: broker.count(MetadataRequest) == 2)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await clock.advance(2_000)
        assert connection.usable
        await clock.advance(4_000)
        with pytest.raises(RequestTimeoutError, match="in 5000 ms"):
            await second


async def test_what_came_while_the_loop_stood_still_is_read_before_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        connected(broker, clock=clock, request_timeout_ms=1_000) as connection,
    ):
        broker.answers[MetadataRequest] = silent
        told: list[Any] = []
        assert connection.post(named(1), version=VERSION, tell=told.append)
        correlation_id = connection._protocol.pending._waiting[0].correlation_id
        late = clock.monotonic() + 5
        monkeypatch.setattr(clock, "monotonic", lambda: late)
        connection._waiting._look()  # the timer is due in the turn in which the loop goes on
        assert told == []
        body = MetadataResponse(cluster_id="late").encode(VERSION)
        answer = frame(correlation_id.to_bytes(4, "big") + b"\0", body)
        connection.get_buffer(-1)[: len(answer)] = answer
        connection.buffer_updated(len(answer))
        await asyncio.sleep(0.01)
        assert [outcome.cluster_id for outcome in told] == ["late"]
        assert connection.usable


async def test_a_request_that_waits_for_the_broker_to_read_is_not_overtaken() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        told: list[Any] = []
        connection.pause_writing()
        assert not connection.post(named(1), version=VERSION, tell=told.append)
        first = asyncio.create_task(connection.request(named(1), version=VERSION))
        await asyncio.sleep(0)
        connection.resume_writing()
        assert not connection.post(named(2), version=VERSION, tell=told.append)
        assert (await first).cluster_id == "t1"
        assert connection.post(named(2), version=VERSION, tell=told.append)
        await broker.until(lambda: bool(told))


async def test_a_closed_connection_leaves_no_timer() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, connected(broker, clock=clock) as connection:
        await connection.request(named(1), version=VERSION)
        assert clock.next_timer_ms is not None
        await connection.request(named(1), version=VERSION, timeout_ms=10)
        await connection.close()
        assert clock.next_timer_ms is None


async def test_who_waited_until_the_broker_reads_is_not_overtaken_then() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        connection.pause_writing()
        waiting = [
            asyncio.create_task(connection.request(named(number), version=VERSION))
            for number in range(3)
        ]
        await asyncio.sleep(0)
        connection.resume_writing()  # it wakes them in the next turn
        last = asyncio.create_task(connection.request(named(3), version=VERSION))
        await asyncio.gather(*waiting, last)
        asked = [
            each.message.topics[0].name
            for each in broker.asked
            if isinstance(each.message, MetadataRequest) and each.message.topics
        ]
        assert asked == ["t0", "t1", "t2", "t3"]


async def test_a_fault_in_reading_an_answer_is_told_to_who_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As want of memory for it would be; the loop then drops the connection."""
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of

        def no_memory(data: bytes) -> None:
            raise MemoryError

        monkeypatch.setattr(connection._protocol, "receive_message", no_memory)
        told: list[Any] = []
        assert connection.post(named(0), version=VERSION, tell=told.append)
        with pytest.raises(BrokerConnectionError, match="the connection was lost"):
            await connection.request(named(1), version=VERSION)
        assert [type(outcome) for outcome in told] == [BrokerConnectionError]
        assert not connection.usable
    assert [type(fault["exception"]) for fault in faults] == [MemoryError]
