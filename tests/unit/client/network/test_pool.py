"""Tests the connection pool: shared connections, backoff, idle connections and reconnects."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import messages
from kproto.client import ClientSettings
from kproto.client.metadata.any_broker import connect, connect_any
from kproto.client.metadata.broker_selection import BrokerSelection
from kproto.client.network.connection import BrokerConnection
from kproto.client.network.pool import MAX_ADDRESSES, ConnectionPool
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

UNREACHABLE = Address("127.0.0.1", 1)


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


async def test_concurrent_callers_share_one_opening_connection() -> None:
    async with ScriptedBroker() as broker, pool_of() as pool:
        opened = await asyncio.gather(*(pool.connection(address(broker)) for _ in range(10)))
        assert len(set(opened)) == 1
        assert broker.connections == 1
        own = await pool.connection(address(broker), "owner")
        assert own is not opened[0]


async def test_each_caller_of_a_failed_attempt_gets_its_own_error() -> None:
    async with pool_of() as pool:
        calls = [pool.connection(UNREACHABLE) for _ in range(5)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert {str(error) for error in errors} == {
            "127.0.0.1:1: cannot connect: Connection refused"
        }
        assert len(set(map(id, errors))) == 5
        assert pool._node_state_of(UNREACHABLE).failures == 1


async def test_next_attempt_waits_for_the_backoff_and_is_shared() -> None:
    clock = ManualClock()
    async with pool_of(clock=clock) as pool:
        with pytest.raises(BrokerConnectionError):
            await pool.connection(UNREACHABLE)
        calls = [asyncio.create_task(pool.connection(UNREACHABLE)) for _ in range(3)]
        await clock.advance(39)
        assert not any(task.done() for task in calls)
        await clock.advance(22)
        await asyncio.wait(calls)
        assert pool._node_state_of(UNREACHABLE).failures == 2
        assert all(isinstance(task.exception(), BrokerConnectionError) for task in calls)


async def test_broker_without_backoff_is_chosen_first() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, pool_of(clock=clock) as pool:
        selection = BrokerSelection([UNREACHABLE, address(broker)], rebootstraps=True)
        with pytest.raises(BrokerConnectionError):
            await connect(pool, selection, UNREACHABLE)
        assert (await connect_any(pool, selection, [])).address == address(broker)


async def test_cancelled_call_does_not_cancel_others() -> None:
    async with ScriptedBroker() as broker, pool_of() as pool:
        first, second = (asyncio.create_task(pool.connection(address(broker))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).usable
        assert first.cancelled()


async def test_attempt_without_callers_is_cancelled() -> None:
    clock = ManualClock()
    async with pool_of(clock=clock) as pool:
        with pytest.raises(BrokerConnectionError):
            await pool.connection(UNREACHABLE)
        only = asyncio.create_task(pool.connection(UNREACHABLE))
        await asyncio.sleep(0)
        only.cancel()
        await asyncio.wait([only])
        await asyncio.gather(*pool._cancelled, return_exceptions=True)
        assert not pool._opening
        await clock.advance(1_000)
        assert pool._node_state_of(UNREACHABLE).failures == 1


async def test_cancellation_during_release_does_not_cancel_other_callers() -> None:
    answering = asyncio.Event()

    async def answer(asked: ReceivedRequest) -> ApiVersionsResponse:
        await answering.wait()
        return api_versions()

    async with ScriptedBroker() as broker, pool_of() as pool:
        broker.answers[ApiVersionsRequest] = answer
        waiting = asyncio.create_task(pool.connection(address(broker), "owner"))
        await broker.until(lambda: broker.count(ApiVersionsRequest) == 1)
        releasing = asyncio.create_task(pool.release("owner"))
        await asyncio.sleep(0)
        another = asyncio.create_task(pool.connection(address(broker), "owner"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        answering.set()
        assert (await another).usable
        await releasing


async def test_closing_pool_raises_for_waiting_callers() -> None:
    async with pool_of(clock=ManualClock()) as pool:
        with pytest.raises(BrokerConnectionError):
            await pool.connection(UNREACHABLE)
        waiting = asyncio.create_task(pool.connection(UNREACHABLE))
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(ConfigurationError, match="closed"):
            await waiting


# Idle connections


async def test_idle_connection_is_closed_and_reopened() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        pool_of(clock=clock, connect_timeout_ms=10_000_000) as pool,
    ):
        connection = await pool.connection(address(broker))
        await clock.advance(300_000)
        await connection.request(MetadataRequest(topics=[]))
        await clock.advance(539_000)
        assert len(pool._open) == 1
        await clock.advance(60_000)
        assert not connection.usable
        assert not pool._open
        await broker.until(lambda: not broker.writers)
        # A caller that kept the idle connection can still use it, without a backoff.
        answer = await connection.request(MetadataRequest(topics=[]))
        assert answer.cluster_id == "scripted"
        assert (await pool.connection(address(broker))).usable
        assert broker.connections == 2


async def test_connection_with_a_request_in_flight_is_not_idle() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker() as broker,
        pool_of(clock=clock, connections_max_idle_ms=1_000, request_timeout_ms=60_000) as pool,
    ):
        may_answer = asyncio.Event()

        async def later(asked: Any) -> Any:
            await may_answer.wait()
            return ListGroupsResponse()

        broker.answers[ListGroupsRequest] = later
        connection = await pool.connection(address(broker))
        calls = asyncio.create_task(connection.request(ListGroupsRequest()))
        await broker.until(lambda: broker.count(ListGroupsRequest) == 1)
        await clock.advance(20_000)
        assert len(pool._open) == 1
        may_answer.set()
        await calls
        await clock.advance(2_000)
        assert not connection.usable


async def test_idle_connections_stay_open_if_the_limit_is_0() -> None:
    clock = ManualClock()
    async with ScriptedBroker() as broker, pool_of(clock=clock, connections_max_idle_ms=0) as pool:
        connection = await pool.connection(address(broker))
        assert clock.next_timer_ms is None
        assert connection.usable


# The broker closes the connection during a request


@asynccontextmanager
async def quiet_connection(
    broker: ScriptedBroker,
) -> AsyncIterator[tuple[BrokerConnection, ManualClock]]:
    """Yields a connection that was idle for a minute."""
    clock = ManualClock()
    async with pool_of(clock=clock) as pool:
        connection = await pool.connection(address(broker))
        await clock.advance(60_000)
        yield connection, clock


async def test_connection_closed_while_the_loop_was_blocked_is_not_used() -> None:
    """The request starts before the event loop has noticed the close of the socket."""
    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[CreateTopicsRequest] = lambda asked: CreateTopicsResponse()
        for writer in broker.writers:
            shared = writer.get_extra_info("socket").fileno()
            with socket.socket(fileno=os.dup(shared)) as of_broker:  # uvloop's has no `shutdown`
                of_broker.shutdown(socket.SHUT_RDWR)
        await connection.request(CreateTopicsRequest(topics=[]))
        assert broker.count(CreateTopicsRequest) == 1
        assert broker.connections == 2


async def test_requests_that_wait_for_the_closed_check_keep_their_order() -> None:
    received = []

    def answer(asked: ReceivedRequest) -> CreateTopicsResponse:
        assert isinstance(asked.message, CreateTopicsRequest)
        received.append(asked.message.timeout_ms)
        return CreateTopicsResponse()

    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[CreateTopicsRequest] = answer
        calls = []
        for number in range(10):
            request = CreateTopicsRequest(topics=[], timeout_ms=number)
            calls.append(asyncio.create_task(connection.request(request)))
            await asyncio.sleep(0)
        await asyncio.gather(*calls)
    assert received == list(range(10))


def hanging_up_once(answer: Any) -> Any:
    """Returns an answer function that closes the connection at the first request."""
    requests: list[object] = []

    def answered(asked: Any) -> Any:
        requests.append(asked)
        return HANG_UP if len(requests) == 1 else answer

    return answered


async def test_read_request_is_repeated_when_the_broker_closed_the_idle_connection() -> None:
    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        await connection.request(ListGroupsRequest())
        assert broker.count(ListGroupsRequest) == 2


async def test_write_request_is_not_repeated() -> None:
    async with ScriptedBroker() as broker, quiet_connection(broker) as (connection, _):
        broker.answers[CreateTopicsRequest] = hanging_up_once(CreateTopicsResponse())
        with pytest.raises(BrokerConnectionError) as raised:
            await connection.request(CreateTopicsRequest(topics=[]))
        assert not raised.value.never_written
        assert broker.count(CreateTopicsRequest) == 1


async def test_read_request_on_a_busy_connection_is_not_repeated() -> None:
    """Only requests on an idle connection are repeated.

    Otherwise a broker that always closes the connection would get the request again and again.
    """
    async with ScriptedBroker() as broker, pool_of() as pool:
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        connection = await pool.connection(address(broker))
        with pytest.raises(BrokerConnectionError):
            await connection.request(ListGroupsRequest())
        assert broker.count(ListGroupsRequest) == 1


async def test_queued_request_moves_to_the_next_connection() -> None:
    async with ScriptedBroker() as broker, pool_of(max_in_flight=1) as pool:
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        broker.answers[CreateTopicsRequest] = lambda asked: CreateTopicsResponse()
        connection = await pool.connection(address(broker))
        first = asyncio.create_task(connection.request(ListGroupsRequest()))
        second = asyncio.create_task(connection.request(CreateTopicsRequest(topics=[])))
        await asyncio.wait([first, second])
        assert isinstance(first.exception(), BrokerConnectionError)
        await second
        assert broker.count(CreateTopicsRequest) == 1


async def test_lost_connection_counts_as_a_failure_unless_it_was_idle() -> None:
    async with ScriptedBroker() as broker, pool_of() as pool:
        broker.answers[ListGroupsRequest] = hanging_up_once(ListGroupsResponse())
        connection = await pool.connection(address(broker))
        with pytest.raises(BrokerConnectionError):
            await connection.request(ListGroupsRequest())
        assert pool._usable((address(broker), None)) is None
        node_state = pool._node_state_of(address(broker))
        assert node_state.failures == 1
        connection = await pool.connection(address(broker))
        assert node_state.failures == 0
        broker.hang_up()
        await broker.until(lambda: not connection.usable)
        assert pool._usable((address(broker), None)) is None
        assert node_state.failures == 0


def test_repeatable_requests_only_read() -> None:
    for name in REPEATABLE:
        assert getattr(messages, name).API_KEY >= 0
        assert name.startswith(("List", "Find", "Metadata", "ApiVersions", "Offset")) or (
            "Describe" in name
        )
    error = BrokerConnectionError("lost", never_written=True)
    assert may_resend(CreateTopicsRequest, error)


async def test_number_of_remembered_addresses_is_limited() -> None:
    async with pool_of() as pool:
        waiting = Address("waits", 1)
        pool._node_state_of(waiting).failed(
            BrokerConnectionError("no"), pool.clock.monotonic(), 0.9
        )
        pool._node_state_of(waiting).not_before = float("inf")
        for number in range(2 * MAX_ADDRESSES):
            pool._node_state_of(Address(f"moving-{number}", 1))
        assert len(pool._node_states) == MAX_ADDRESSES
        assert pool.backoff_s(waiting) > 0, "its backoff still runs"
