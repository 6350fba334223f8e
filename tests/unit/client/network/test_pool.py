"""Connections of a client: shared, tried again after a while, closed when idle, opened again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import messages
from kproto.client import ClientSettings
from kproto.client.metadata.any_broker import reach, reach_any
from kproto.client.metadata.broker_selection import BrokerSelection
from kproto.client.network.connection import BrokerConnection
from kproto.client.network.pool import MOST_ADDRESSES, ConnectionPool
from kproto.client.network.resend import REPEATABLE, may_resend
from kproto.client.observing.observer import Observer
from kproto.client.settings import Address
from kproto.clock import SYSTEM_CLOCK, Clock
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from kproto.wire.errors import BrokerConnectionError, ConfigurationError
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, api_versions

NOBODY = Address("127.0.0.1", 1)


@asynccontextmanager
async def pool_of(
    *addresses: Address, clock: Clock = SYSTEM_CLOCK, **settings: Any
) -> AsyncIterator[ConnectionPool]:
    observer = Observer(None, clock.monotonic)
    pool = ConnectionPool(addresses, ClientSettings(**settings), clock, observer)
    try:
        yield pool
    finally:
        await pool.close()


def address(broker: ScriptedBroker) -> Address:
    return Address("127.0.0.1", broker.port)


async def test_who_asks_while_one_is_opened_gets_that_one() -> None:
    async with ScriptedBroker() as broker, pool_of() as pool:
        opened = await asyncio.gather(*(pool.to(address(broker)) for _ in range(10)))
        assert len(set(opened)) == 1
        assert broker.connections == 1
        own = await pool.to(address(broker), "somebody")
        assert own is not opened[0]


async def test_who_waits_for_one_attempt_has_its_error_each_his_own() -> None:
    async with pool_of() as pool:
        asking = [pool.to(NOBODY) for _ in range(5)]
        errors = await asyncio.gather(*asking, return_exceptions=True)
        assert {str(error) for error in errors} == {
            "127.0.0.1:1: cannot connect: Connection refused"
        }
        assert len(set(map(id, errors))) == 5
        assert pool._node_state_of(NOBODY).failures == 1


async def test_the_next_attempt_waits_and_others_join_it() -> None:
    clock = ManualClock()
    async with pool_of(clock=clock) as pool:
        with pytest.raises(BrokerConnectionError):
            await pool.to(NOBODY)
        asking = [asyncio.create_task(pool.to(NOBODY)) for _ in range(3)]
        await clock.advance(39)
        assert not any(task.done() for task in asking)
        await clock.advance(22)
        await asyncio.wait(asking)
        assert pool._node_state_of(NOBODY).failures == 2
        assert all(isinstance(task.exception(), BrokerConnectionError) for task in asking)


async def test_any_broker_is_first_one_that_need_not_be_waited_for() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, pool_of(clock=clock) as pool:
        choosing = BrokerSelection([NOBODY, address(broker)], goes_back=True)
        with pytest.raises(BrokerConnectionError):
            await reach(pool, choosing, NOBODY)
        assert (await reach_any(pool, choosing, [])).address == address(broker)


async def test_a_cancelled_call_takes_no_other_along() -> None:
    async with ScriptedBroker() as broker, pool_of() as pool:
        first, second = (asyncio.create_task(pool.to(address(broker))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).usable
        assert first.cancelled()


async def test_what_nobody_waits_for_is_not_opened() -> None:
    clock = ManualClock()
    async with pool_of(clock=clock) as pool:
        with pytest.raises(BrokerConnectionError):
            await pool.to(NOBODY)
        only = asyncio.create_task(pool.to(NOBODY))
        await asyncio.sleep(0)
        only.cancel()
        await asyncio.wait([only])
        await asyncio.gather(*pool._ending, return_exceptions=True)
        assert not pool._opening
        await clock.advance(1_000)
        assert pool._node_state_of(NOBODY).failures == 1


async def test_who_is_cancelled_while_it_is_given_up_takes_no_other_along() -> None:
    answering = asyncio.Event()

    async def answer(asked: ReceivedRequest) -> ApiVersionsResponse:
        await answering.wait()
        return api_versions()

    async with ScriptedBroker() as broker, pool_of() as pool:
        broker.answers[ApiVersionsRequest] = answer
        waiting = asyncio.create_task(pool.to(address(broker), "somebody"))
        await broker.until(lambda: broker.count(ApiVersionsRequest) == 1)
        releasing = asyncio.create_task(pool.release("somebody"))
        await asyncio.sleep(0)
        another = asyncio.create_task(pool.to(address(broker), "somebody"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        answering.set()
        assert (await another).usable
        await releasing


async def test_a_pool_that_closes_tells_who_waits() -> None:
    async with pool_of(clock=ManualClock()) as pool:
        with pytest.raises(BrokerConnectionError):
            await pool.to(NOBODY)
        waiting = asyncio.create_task(pool.to(NOBODY))
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(ConfigurationError, match="closed"):
            await waiting


# Idle connections


async def test_an_idle_connection_is_closed_and_opened_again() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        pool_of(clock=clock, connect_timeout_ms=10_000_000) as pool,
    ):
        connection = await pool.to(address(broker))
        await clock.advance(300_000)
        await connection.request(MetadataRequest(topics=[]))
        await clock.advance(539_000)
        assert len(pool._open) == 1
        await clock.advance(60_000)
        assert not connection.usable
        assert not pool._open
        await broker.until(lambda: not broker.writers)
        # Who has kept it goes on with it; and nobody waits for a backoff.
        answer = await connection.request(MetadataRequest(topics=[]))
        assert answer.cluster_id == "scripted"
        assert (await pool.to(address(broker))).usable
        assert broker.connections == 2


async def test_a_connection_that_waits_for_an_answer_is_not_idle() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        pool_of(clock=clock, connections_max_idle_ms=1_000, request_timeout_ms=60_000) as pool,
    ):
        go_on = asyncio.Event()

        async def later(asked: Any) -> Any:
            await go_on.wait()
            return ListGroupsResponse()

        broker.answers[ListGroupsRequest] = later
        connection = await pool.to(address(broker))
        asking = asyncio.create_task(connection.request(ListGroupsRequest()))
        await broker.until(lambda: broker.count(ListGroupsRequest) == 1)
        await clock.advance(20_000)
        assert len(pool._open) == 1
        go_on.set()
        await asking
        await clock.advance(2_000)
        assert not connection.usable


async def test_none_is_idle_where_that_is_turned_off() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, pool_of(clock=clock, connections_max_idle_ms=0) as pool:
        connection = await pool.to(address(broker))
        assert clock.next_timer_ms is None
        assert connection.usable


# The broker closes, while something is asked


@asynccontextmanager
async def quiet_connection(
    broker: ScriptedBroker,
) -> AsyncIterator[tuple[BrokerConnection, ManualClock]]:
    """One on which nothing has passed for a minute."""
    clock = ManualClock()
    async with pool_of(clock=clock) as pool:
        connection = await pool.to(address(broker))
        await clock.advance(60_000)
        yield connection, clock


async def test_what_the_broker_closed_while_the_loop_stood_still_is_not_used() -> None:
    """The request comes before the loop has looked at the socket: nothing is written to it."""
    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[CreateTopicsRequest] = lambda asked: CreateTopicsResponse()
        for writer in broker.writers:
            writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        await connection.request(CreateTopicsRequest(topics=[]))
        assert broker.count(CreateTopicsRequest) == 1
        assert broker.connections == 2


async def test_nobody_overtakes_who_waits_to_see_whether_the_broker_has_closed() -> None:
    came = []

    def answer(asked: ReceivedRequest) -> CreateTopicsResponse:
        assert isinstance(asked.message, CreateTopicsRequest)
        came.append(asked.message.timeout_ms)
        return CreateTopicsResponse()

    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[CreateTopicsRequest] = answer
        asking = []
        for number in range(10):
            request = CreateTopicsRequest(topics=[], timeout_ms=number)
            asking.append(asyncio.create_task(connection.request(request)))
            await asyncio.sleep(0)
        await asyncio.gather(*asking)
    assert came == list(range(10))


def hanging_up_once(answer: Any) -> Any:
    """Hang up instead of the first answer."""
    asked_before: list[object] = []

    def answered(asked: Any) -> Any:
        asked_before.append(asked)
        return HANG_UP if len(asked_before) == 1 else answer

    return answered


async def test_a_question_is_asked_again_when_the_broker_closed_at_that_moment() -> None:
    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        await connection.request(ListGroupsRequest())
        assert broker.count(ListGroupsRequest) == 2


async def test_what_may_have_been_done_is_not_done_again() -> None:
    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[CreateTopicsRequest] = hanging_up_once(CreateTopicsResponse())
        with pytest.raises(BrokerConnectionError) as told:
            await connection.request(CreateTopicsRequest(topics=[]))
        assert not told.value.never_written
        assert broker.count(CreateTopicsRequest) == 1


async def test_a_question_that_ends_no_silence_is_not_asked_again() -> None:
    """A broker that closes at each question is not asked for ever: its caller decides."""
    async with ScriptedBroker() as broker, pool_of() as pool:
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        connection = await pool.to(address(broker))
        with pytest.raises(BrokerConnectionError):
            await connection.request(ListGroupsRequest())
        assert broker.count(ListGroupsRequest) == 1


async def test_who_waits_for_his_turn_goes_on_with_the_next_connection() -> None:
    async with ScriptedBroker() as broker, pool_of(max_in_flight=1) as pool:
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        broker.answers[CreateTopicsRequest] = lambda asked: CreateTopicsResponse()
        connection = await pool.to(address(broker))
        first = asyncio.create_task(connection.request(ListGroupsRequest()))
        second = asyncio.create_task(connection.request(CreateTopicsRequest(topics=[])))
        await asyncio.wait([first, second])
        assert isinstance(first.exception(), BrokerConnectionError)
        await second
        assert broker.count(CreateTopicsRequest) == 1


async def test_a_lost_connection_is_a_failure_of_its_broker_and_an_idle_one_is_not() -> None:
    async with ScriptedBroker() as broker, pool_of() as pool:
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        connection = await pool.to(address(broker))
        with pytest.raises(BrokerConnectionError):
            await connection.request(ListGroupsRequest())
        assert pool._usable((address(broker), None)) is None
        reach = pool._node_state_of(address(broker))
        assert reach.failures == 1
        connection = await pool.to(address(broker))
        assert reach.failures == 0
        broker.hang_up()
        await broker.until(lambda: not connection.usable)
        assert pool._usable((address(broker), None)) is None
        assert reach.failures == 0


def test_what_only_asks_is_a_request_and_changes_nothing() -> None:
    for name in REPEATABLE:
        assert getattr(messages, name).API_KEY >= 0
        assert name.startswith(("List", "Find", "Metadata", "ApiVersions", "Offset")) or (
            "Describe" in name
        )
    error = BrokerConnectionError("lost", never_written=True)
    assert may_resend(CreateTopicsRequest, error)


async def test_addresses_that_are_met_do_not_fill_the_memory() -> None:
    async with pool_of() as pool:
        waiting = Address("waits", 1)
        pool._node_state_of(waiting).failed(
            BrokerConnectionError("no"), pool.clock.monotonic(), 0.9
        )
        pool._node_state_of(waiting).not_before = float("inf")
        for number in range(2 * MOST_ADDRESSES):
            pool._node_state_of(Address(f"moving-{number}", 1))
        assert len(pool._node_states) == MOST_ADDRESSES
        assert pool.wait_s(waiting) > 0, "its backoff is not over"
