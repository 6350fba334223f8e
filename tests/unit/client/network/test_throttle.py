"""Tests that the client sends nothing to a broker that throttles it by a quota (KIP-219)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import messages
from kproto.client import ClientSettings
from kproto.client.network.connection import BrokerConnection
from kproto.client.network.throttle import CLIENT_SIDE_FROM_VERSION, throttle_time_ms_of
from kproto.client.settings import Address
from kproto.messages import (
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    ProduceRequest,
)
from kproto.schema.definitions import union
from kproto.testing.clock import ManualClock
from kproto.wire.errors import BrokerConnectionError, RequestTimeoutError
from tests.unit.client.scripted_broker import ScriptedBroker


async def opened(broker: ScriptedBroker, clock: ManualClock, **settings: int) -> BrokerConnection:
    return await BrokerConnection.open(
        Address("127.0.0.1", broker.port),
        ClientSettings(**settings),  # type: ignore[arg-type]
        clock,
    )


def throttled(ms: int) -> Any:
    return lambda asked: ListGroupsResponse(throttle_time_ms=ms)


async def test_request_waits_for_the_throttle_without_timing_out() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(5_000)
        connection = await opened(broker, clock, request_timeout_ms=1_000)
        await connection.request(ListGroupsRequest())
        call = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(4_999)
        assert broker.count(MetadataRequest) == 0
        assert not call.done()
        await clock.advance(1)
        await call
        assert connection.node_state.throttled_ms == 5_000
        await connection.close()


async def test_post_is_refused_during_a_throttle() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(500)
        connection = await opened(broker, clock)
        await connection.request(ListGroupsRequest())
        outcomes: list[object] = []
        request = MetadataRequest(topics=[])
        assert not connection.try_send(request, version=9, callback=outcomes.append)
        await clock.advance(500)
        assert connection.try_send(request, version=9, callback=outcomes.append)
        await broker.until(lambda: bool(outcomes))
        await connection.close()


async def test_request_without_a_response_waits_for_the_throttle() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(500)
        broker.answers[ProduceRequest] = lambda asked: None
        connection = await opened(broker, clock)
        await connection.request(ListGroupsRequest())
        request = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
        sending = asyncio.create_task(connection.send_only(request, version=9))
        await clock.advance(499)
        assert not sending.done()
        await clock.advance(1)
        await sending
        await broker.until(lambda: broker.count(ProduceRequest) == 1)
        await connection.close()


async def test_throttle_time_is_limited() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(2**31 - 1)
        connection = await opened(broker, clock, throttle_max_ms=3_000)
        await connection.request(ListGroupsRequest())
        call = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(3_000)
        await call
        assert connection.node_state.throttled_ms == 3_000
        await connection.close()


async def test_longest_of_several_throttle_times_is_used() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        times = [2_000, 100]
        broker.answers[ListGroupsRequest] = lambda asked: ListGroupsResponse(
            throttle_time_ms=times.pop(0)
        )
        connection = await opened(broker, clock)
        await asyncio.gather(*(connection.request(ListGroupsRequest()) for _ in range(2)))
        call = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(1_999)
        assert not call.done()
        await clock.advance(1)
        await call
        await connection.close()


async def test_extended_throttle_times_out_the_request_and_keeps_the_connection() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        times = [1_000, 50_000]
        may_answer = asyncio.Event()

        async def answer(asked: Any) -> Any:
            if len(times) == 1:
                await may_answer.wait()
            return ListGroupsResponse(throttle_time_ms=times.pop(0))

        broker.answers[ListGroupsRequest] = answer
        connection = await opened(broker, clock, request_timeout_ms=2_000)
        slow = connection.request(ListGroupsRequest(), timeout_ms=100_000)
        both = asyncio.gather(connection.request(ListGroupsRequest()), slow)
        await broker.until(lambda: connection.node_state.throttled_ms == 1_000)
        call = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(500)
        may_answer.set()
        await both
        await clock.advance(2_500)
        with pytest.raises(
            RequestTimeoutError, match="the broker throttles this client by its quota"
        ):
            await call
        assert connection.usable
        await connection.close()


async def test_closed_connection_fails_a_throttled_request() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(5_000)
        connection = await opened(broker, clock)
        await connection.request(ListGroupsRequest())
        call = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(BrokerConnectionError) as outcomes:
            await call
        assert outcomes.value.never_written
        assert clock.next_timer_ms is None


def test_throttle_of_old_versions_is_ignored() -> None:
    answer = produced_answer(700)
    assert throttle_time_ms_of(answer, 5) == 0
    assert throttle_time_ms_of(answer, 6) == 700
    assert throttle_time_ms_of(ListGroupsResponse(throttle_time_ms=-3), 4) == 0


def produced_answer(ms: int) -> Any:
    return messages.ProduceResponse(throttle_time_ms=ms)


@pytest.mark.parametrize("name", sorted(CLIENT_SIDE_FROM_VERSION))
def test_throttle_versions_have_the_throttle_field(name: str) -> None:
    spec = union()[f"{name}Response"]
    field = next(each for each in spec.fields if each.name == "ThrottleTimeMs")
    assert CLIENT_SIDE_FROM_VERSION[name] in field.versions
    assert CLIENT_SIDE_FROM_VERSION[name] > field.versions.lowest
