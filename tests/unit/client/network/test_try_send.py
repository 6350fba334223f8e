"""Tests `BrokerConnection.try_send`, and the timer that all requests of a connection share."""

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
from kproto.protocol import received
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
        ClientSettings(**{"max_in_flight": 16} | settings),  # type: ignore[arg-type]  # numeric settings
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


async def test_responses_are_passed_in_the_order_of_the_requests() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        outcomes: list[Any] = []
        for number in range(5):
            assert connection.try_send(named(number), version=VERSION, callback=outcomes.append)
        asked = connection.request(named(5), version=VERSION)
        assert (await asked).cluster_id == "t5"
        assert [answer.cluster_id for answer in outcomes] == [f"t{number}" for number in range(5)]


async def test_try_send_follows_earlier_requests_of_the_same_loop_iteration() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        outcomes: list[Any] = []
        first = asyncio.create_task(connection.request(named(1), version=VERSION))
        await asyncio.sleep(0)
        assert connection.try_send(named(2), version=VERSION, callback=outcomes.append)
        assert (await first).cluster_id == "t1"
        await broker.until(lambda: bool(outcomes))
        assert outcomes[0].cluster_id == "t2"


async def test_sent_request_counts_as_in_flight() -> None:
    async with ScriptedBroker() as broker, connected(broker, max_in_flight=2) as connection:
        broker.answers[MetadataRequest] = silent
        outcomes: list[Any] = []
        assert connection.try_send(named(1), version=VERSION, callback=outcomes.append)
        assert connection.try_send(named(2), version=VERSION, callback=outcomes.append)
        assert not connection.try_send(named(3), version=VERSION, callback=outcomes.append)
        third = asyncio.create_task(connection.request(named(3), version=VERSION))
        await broker.until(lambda: broker.count(MetadataRequest) == 2)
        assert not third.done()
        broker.hang_up()
        with pytest.raises(BrokerConnectionError):
            await third
        assert [type(outcome) for outcome in outcomes] == [BrokerConnectionError] * 2


async def test_response_frees_its_in_flight_slot() -> None:
    async with ScriptedBroker() as broker, connected(broker, max_in_flight=1) as connection:
        broker.answers[MetadataRequest] = name_of
        outcomes: list[Any] = []
        for number in range(3):
            assert connection.try_send(named(number), version=VERSION, callback=outcomes.append)
            assert not connection.try_send(named(9), version=VERSION, callback=outcomes.append)
            await broker.until(lambda: len(outcomes) == number + 1)  # noqa: B023 - awaited at once
        assert [answer.cluster_id for answer in outcomes] == ["t0", "t1", "t2"]


async def test_invalid_request_is_refused_and_takes_no_slot() -> None:
    async with ScriptedBroker() as broker, connected(broker, max_in_flight=1) as connection:
        outcomes: list[Any] = []
        wrong: Any = MetadataRequest(topics=[MetadataRequestTopic(name=7)])  # type: ignore[arg-type]
        with pytest.raises(EncodeError):
            connection.try_send(wrong, version=VERSION, callback=outcomes.append)
        with pytest.raises(ConfigurationError, match="no broker answers"):
            connection.try_send(ProduceRequest(acks=0), version=VERSION, callback=outcomes.append)
        broker.answers[MetadataRequest] = name_of
        assert (await connection.request(named(1), version=VERSION)).cluster_id == "t1"
        assert outcomes == []


async def test_lost_connection_refuses_requests() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = silent
        outcomes: list[Any] = []
        assert connection.try_send(named(1), version=VERSION, callback=outcomes.append)
        await broker.until(lambda: broker.count(MetadataRequest) == 1)
        connection.abort()
        with pytest.raises(BrokerConnectionError):
            connection.try_send(named(2), version=VERSION, callback=outcomes.append)
        assert [str(outcome) for outcome in outcomes] == [
            f"{connection.address}: the connection was closed"
        ]


async def test_callback_may_send_the_next_request() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        outcomes: list[Any] = []

        def again(outcome: Any) -> None:
            outcomes.append(outcome.cluster_id)
            if len(outcomes) < 50:
                assert connection.try_send(named(len(outcomes)), version=VERSION, callback=again)

        assert connection.try_send(named(0), version=VERSION, callback=again)
        await broker.until(lambda: len(outcomes) == 50)
        assert outcomes == [f"t{number}" for number in range(50)]


# --- Timeouts ---


async def test_first_timeout_closes_the_connection() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        connected(broker, clock=clock, request_timeout_ms=5_000) as connection,
    ):
        broker.answers[MetadataRequest] = silent
        outcomes: list[Any] = []
        assert connection.try_send(named(0), version=VERSION, callback=outcomes.append)
        first = asyncio.create_task(connection.request(named(1), timeout_ms=3_000))
        await broker.until(lambda: broker.count(MetadataRequest) == 2)
        assert connection.try_send(named(2), version=VERSION, callback=outcomes.append)
        await clock.advance(2_900)
        assert (outcomes, first.done(), connection.usable) == ([], False, True)
        await clock.advance(200)
        assert not connection.usable
        with pytest.raises(RequestTimeoutError, match=r"MetadataRequest v13 .* in 3000 ms"):
            await first
        assert len(outcomes) == 2
        for outcome in outcomes:
            assert isinstance(outcome, BrokerConnectionError)
            assert "because another request timed out" in str(outcome)


async def test_answered_requests_do_not_time_out() -> None:
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


async def test_cancelled_request_does_not_time_out() -> None:
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


async def test_response_received_while_the_loop_was_blocked_prevents_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        connected(broker, clock=clock, request_timeout_ms=1_000) as connection,
    ):
        broker.answers[MetadataRequest] = silent
        outcomes: list[Any] = []
        assert connection.try_send(named(1), version=VERSION, callback=outcomes.append)
        correlation_id = connection._protocol.pending._waiting[0].correlation_id
        late = clock.monotonic() + 5
        monkeypatch.setattr(clock, "monotonic", lambda: late)
        connection._deadlines._on_timer()  # the timer fires before the loop reads the response
        assert outcomes == []
        body = MetadataResponse(cluster_id="late").encode(VERSION)
        answer = frame(correlation_id.to_bytes(4, "big") + b"\0", body)
        connection.get_buffer(-1)[: len(answer)] = answer
        connection.buffer_updated(len(answer))
        await asyncio.sleep(0.01)
        assert [outcome.cluster_id for outcome in outcomes] == ["late"]
        assert connection.usable


async def test_try_send_does_not_overtake_a_request_that_waits_for_the_write_buffer() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        outcomes: list[Any] = []
        connection.pause_writing()
        assert not connection.try_send(named(1), version=VERSION, callback=outcomes.append)
        first = asyncio.create_task(connection.request(named(1), version=VERSION))
        await asyncio.sleep(0)
        connection.resume_writing()
        assert not connection.try_send(named(2), version=VERSION, callback=outcomes.append)
        assert (await first).cluster_id == "t1"
        assert connection.try_send(named(2), version=VERSION, callback=outcomes.append)
        await broker.until(lambda: bool(outcomes))


async def test_closed_connection_leaves_no_timer() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, connected(broker, clock=clock) as connection:
        await connection.request(named(1), version=VERSION)
        assert clock.next_timer_ms is not None
        await connection.request(named(1), version=VERSION, timeout_ms=10)
        await connection.close()
        assert clock.next_timer_ms is None


async def test_requests_that_waited_for_the_write_buffer_keep_their_order() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of
        connection.pause_writing()
        waiting = [
            asyncio.create_task(connection.request(named(number), version=VERSION))
            for number in range(3)
        ]
        await asyncio.sleep(0)
        connection.resume_writing()  # wakes the waiting requests when the loop runs
        last = asyncio.create_task(connection.request(named(3), version=VERSION))
        await asyncio.gather(*waiting, last)
        sent = [
            each.message.topics[0].name
            for each in broker.asked
            if isinstance(each.message, MetadataRequest) and each.message.topics
        ]
        assert sent == ["t0", "t1", "t2", "t3"]


async def test_error_in_reading_a_response_fails_all_requests_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A MemoryError while the client reads a response makes the event loop close the connection."""
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = name_of

        def no_memory(*arguments: object) -> None:
            raise MemoryError

        monkeypatch.setattr(received, "read_response_message", no_memory)
        outcomes: list[Any] = []
        assert connection.try_send(named(0), version=VERSION, callback=outcomes.append)
        with pytest.raises(BrokerConnectionError, match="the connection was lost"):
            await connection.request(named(1), version=VERSION)
        assert [type(outcome) for outcome in outcomes] == [BrokerConnectionError]
        assert not connection.usable
    assert [type(fault["exception"]) for fault in faults] == [MemoryError]
