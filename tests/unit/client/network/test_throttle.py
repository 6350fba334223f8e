"""Quotas: a broker that asks its client to wait is not written to meanwhile (KIP-219)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import messages
from kproto.client import ClientSettings
from kproto.client.network.connection import BrokerConnection
from kproto.client.network.throttle import WAITS_BEHIND_FROM, throttle_time_ms_of
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


async def test_the_next_request_waits_and_its_time_does_not_run() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(5_000)
        connection = await opened(broker, clock, request_timeout_ms=1_000)
        await connection.request(ListGroupsRequest())
        asking = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(4_999)
        assert broker.count(MetadataRequest) == 0
        assert not asking.done()
        await clock.advance(1)
        await asking
        assert connection.node_state.throttled_ms == 5_000
        await connection.close()


async def test_nothing_is_posted_meanwhile() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(500)
        connection = await opened(broker, clock)
        await connection.request(ListGroupsRequest())
        told: list[object] = []
        request = MetadataRequest(topics=[])
        assert not connection.post(request, version=9, tell=told.append)
        await clock.advance(500)
        assert connection.post(request, version=9, tell=told.append)
        await broker.until(lambda: bool(told))
        await connection.close()


async def test_what_is_never_answered_waits_as_well() -> None:
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


async def test_one_answer_does_not_stop_a_client_for_days() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(2**31 - 1)
        connection = await opened(broker, clock, throttle_max_ms=3_000)
        await connection.request(ListGroupsRequest())
        asking = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(3_000)
        await asking
        assert connection.node_state.throttled_ms == 3_000
        await connection.close()


async def test_the_longest_wait_of_several_counts() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        times = [2_000, 100]
        broker.answers[ListGroupsRequest] = lambda asked: ListGroupsResponse(
            throttle_time_ms=times.pop(0)
        )
        connection = await opened(broker, clock)
        await asyncio.gather(*(connection.request(ListGroupsRequest()) for _ in range(2)))
        asking = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(1_999)
        assert not asking.done()
        await clock.advance(1)
        await asking
        await connection.close()


async def test_a_wait_that_is_prolonged_is_told_and_the_connection_stays() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        times = [1_000, 50_000]
        go_on = asyncio.Event()

        async def answer(asked: Any) -> Any:
            if len(times) == 1:
                await go_on.wait()
            return ListGroupsResponse(throttle_time_ms=times.pop(0))

        broker.answers[ListGroupsRequest] = answer
        connection = await opened(broker, clock, request_timeout_ms=2_000)
        slow = connection.request(ListGroupsRequest(), timeout_ms=100_000)
        both = asyncio.gather(connection.request(ListGroupsRequest()), slow)
        await broker.until(lambda: connection.node_state.throttled_ms == 1_000)
        asking = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await clock.advance(500)
        go_on.set()
        await both
        await clock.advance(2_500)
        with pytest.raises(RequestTimeoutError, match="by its quota the broker has this client"):
            await asking
        assert connection.usable
        await connection.close()


async def test_who_waits_is_told_when_the_connection_is_lost() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker:
        broker.answers[ListGroupsRequest] = throttled(5_000)
        connection = await opened(broker, clock)
        await connection.request(ListGroupsRequest())
        asking = asyncio.create_task(connection.request(MetadataRequest(topics=[])))
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(BrokerConnectionError) as told:
            await asking
        assert told.value.never_written
        assert clock.next_timer_ms is None


def test_older_brokers_have_waited_already() -> None:
    answer = produced_answer(700)
    assert throttle_time_ms_of(answer, 5) == 0
    assert throttle_time_ms_of(answer, 6) == 700
    assert throttle_time_ms_of(ListGroupsResponse(throttle_time_ms=-3), 4) == 0


def produced_answer(ms: int) -> Any:
    return messages.ProduceResponse(throttle_time_ms=ms)


@pytest.mark.parametrize("name", sorted(WAITS_BEHIND_FROM))
def test_the_versions_are_of_responses_that_have_the_field(name: str) -> None:
    spec = union()[f"{name}Response"]
    field = next(each for each in spec.fields if each.name == "ThrottleTimeMs")
    assert WAITS_BEHIND_FROM[name] in field.versions
    assert WAITS_BEHIND_FROM[name] > field.versions.lowest
