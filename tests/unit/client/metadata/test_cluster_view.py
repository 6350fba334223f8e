"""Tests requests to several brokers, time limits of requests, and coordinators that move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import (
    BrokerConnectionError,
    BrokerResponseError,
    Client,
    ClientSettings,
    ConfigurationError,
    KprotoError,
    RequestTimeoutError,
)
from kproto.client.core.retry import TIMER_RESOLUTION_S
from kproto.client.metadata.response_hints import is_not_coordinator
from kproto.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kproto.messages.base import Response
from kproto.messages.create_topics_response import CreatableTopicResult
from kproto.messages.describe_groups_response import DescribedGroup
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.list_groups_response import ListedGroup
from kproto.messages.metadata_response import MetadataResponseBroker
from kproto.messages.offset_commit_response import (
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.support.leaders import leader_of
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


@asynccontextmanager
async def two_brokers(
    settings: ClientSettings = QUICK,
) -> AsyncIterator[tuple[ScriptedBroker, ScriptedBroker, Client]]:
    """Yields nodes 0 and 1 and a client; node 0 leads partitions 0 and 2, node 1 leads 1 and 3."""

    def metadata(asked: ReceivedRequest) -> MetadataResponse:
        response = one.metadata(asked)
        response.brokers.append(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=two.port))
        for topic in response.topics:
            for part in topic.partitions:
                part.leader_id = part.partition_index % 2
        return response

    async with ScriptedBroker({"t": 4}) as one, ScriptedBroker({"t": 4}) as two:
        one.answers[MetadataRequest] = two.answers[MetadataRequest] = metadata
        async with Client(one.bootstrap, settings) as client:
            yield one, two, client


# --- Every broker ---


async def test_groups_are_listed_from_every_broker() -> None:
    async with two_brokers() as (one, two, client):
        one.answers[ListGroupsRequest] = lambda asked: groups("a")
        two.answers[ListGroupsRequest] = lambda asked: groups("b")
        found = await client.request(ListGroupsRequest())
        assert sorted(group.group_id for group in found.groups) == ["a", "b"]
        found = await client.request(ListGroupsRequest(), broker=1)
        assert [group.group_id for group in found.groups] == ["b"]


def groups(*names: str) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in names])


async def test_list_without_a_broker_is_an_error() -> None:
    async with two_brokers() as (one, two, client):
        one.answers[ListGroupsRequest] = lambda asked: ListGroupsResponse()
        two.answers[ListGroupsRequest] = lambda asked: HANG_UP
        with pytest.raises(BrokerConnectionError):
            await client.request(ListGroupsRequest())


# --- Leaders ---


@pytest.mark.slow
async def test_offsets_are_requested_from_leaders_concurrently() -> None:
    async with two_brokers() as (one, two, client):
        logs = [ScriptedLog(one), ScriptedLog(two)]
        for at in range(4):
            logs[at % 2].starts["t", at] = 10 + at
        wanted: dict[tuple[str, int], Any] = {("t", at): "earliest" for at in range(4)}
        assert await client.list_offsets(wanted) == {("t", at): 10 + at for at in range(4)}
        assert one.count(ListOffsetsRequest) == two.count(ListOffsetsRequest) == 1
        two.answers[ListOffsetsRequest] = lambda asked: HANG_UP
        with pytest.raises(BrokerConnectionError):
            await client.list_offsets(wanted)


async def test_missing_topic_has_one_time_limit() -> None:
    """A retry does not restart the time limit of the search for a leader."""
    async with two_brokers() as (_, _, client):
        with pytest.raises(BrokerResponseError, match=r"UNKNOWN_TOPIC_OR_PARTITION .* 100 ms"):
            await client.list_offsets({("nope", 0): "latest"})


# --- The controller, and brokers that move ---


async def test_moved_controller_is_found() -> None:
    async with two_brokers() as (one, two, client):
        controller = [0]
        metadata = one.answers[MetadataRequest]

        def with_controller(asked: ReceivedRequest) -> Any:
            response = metadata(asked)
            response.controller_id = controller[0]
            return response

        one.answers[MetadataRequest] = two.answers[MetadataRequest] = with_controller
        await client.refresh([])
        one.answers[CreateTopicsRequest] = lambda asked: created(41)
        two.answers[CreateTopicsRequest] = lambda asked: created(0)
        controller[0] = 1
        with pytest.raises(BrokerResponseError, match="NOT_CONTROLLER"):
            await client.create_topics("new")
        await client.create_topics("new")
        assert (one.count(CreateTopicsRequest), two.count(CreateTopicsRequest)) == (1, 1)
        controller[0] = 0
        two.answers[CreateTopicsRequest] = lambda asked: HANG_UP
        one.answers[CreateTopicsRequest] = lambda asked: created(0)
        await client.retrying(lambda: client.create_topics("new"))
        assert (one.count(CreateTopicsRequest), two.count(CreateTopicsRequest)) == (2, 2)


async def test_named_broker_that_is_away_is_retried() -> None:
    async with two_brokers() as (one, two, client):
        metadata = one.answers[MetadataRequest]
        away = [True]

        def without_two(asked: ReceivedRequest) -> Any:
            response = metadata(asked)
            if away[0]:
                response.brokers = [each for each in response.brokers if each.port != two.port]
            return response

        await client.refresh([])
        (node,) = [node for node, at in client._view.cluster.brokers.items() if at.port == two.port]
        one.answers[MetadataRequest] = two.answers[MetadataRequest] = without_two
        await client.refresh([])
        with pytest.raises(BrokerConnectionError, match=f"broker {node} is away"):
            await client.request(MetadataRequest(), broker=node)
        with pytest.raises(ConfigurationError, match="no broker 77"):
            await client.request(MetadataRequest(), broker=77)
        waiting = asyncio.create_task(
            client.retrying(lambda: client.request(MetadataRequest(), broker=node))
        )
        requests = one.count(MetadataRequest)
        await one.until(lambda: one.count(MetadataRequest) > requests)
        away[0] = False
        await waiting


def created(error_code: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=error_code)])


async def test_timeout_of_the_operation_is_not_retried() -> None:
    runs = 0

    async def operation() -> None:
        nonlocal runs
        runs += 1
        async with asyncio.timeout(0.001):
            await asyncio.sleep(1)

    async with two_brokers() as (_, _, client):
        with pytest.raises(TimeoutError) as raised:
            await client.retrying(operation)
        assert not isinstance(raised.value, KprotoError)
        assert runs == 1


# --- Deadlines ---


@asynccontextmanager
async def with_manual_clock(
    **settings: int,
) -> AsyncIterator[tuple[ScriptedBroker, Client, ManualClock]]:
    clock = ManualClock()
    async with ScriptedBroker({"t": 1}) as broker:
        numbers = ClientSettings(**settings)  # type: ignore[arg-type]  # the numeric ones
        async with Client(broker.bootstrap, numbers, clock=clock) as client:
            yield broker, client, clock


@pytest.mark.parametrize("limit", [400, 700, 1_500])
async def test_last_attempt_starts_at_the_deadline(limit: int) -> None:
    async with with_manual_clock(api_timeout_ms=limit) as (_, client, clock):
        times: list[float] = []

        async def operation() -> None:
            times.append(clock.monotonic())
            raise BrokerConnectionError("lost")

        retrying = asyncio.create_task(client.retrying(operation))
        await clock.advance(limit + 1)
        with pytest.raises(BrokerConnectionError):
            await retrying
        assert times[-1] == pytest.approx(limit / 1000, abs=TIMER_RESOLUTION_S)


@pytest.mark.parametrize(
    ("limit_ms", "words"),
    [(None, "700 ms (api_timeout_ms)"), (700, "700 ms (api_timeout_ms)"), (50, "50 ms")],
)
async def test_timeout_error_names_its_limit(limit_ms: int | None, words: str) -> None:
    async with with_manual_clock(api_timeout_ms=700) as (_, client, clock):
        until = clock.monotonic() + 0.05
        waiting = asyncio.create_task(
            client._view.with_deadline(until, asyncio.Event().wait(), limit_ms)
        )
        await clock.advance(51)
        with pytest.raises(RequestTimeoutError) as raised:
            await waiting
        assert str(raised.value) == f"no broker answered within {words}"


async def test_unanswered_last_attempt_ends_soon() -> None:
    async with with_manual_clock(api_timeout_ms=700) as (_, client, clock):

        async def operation() -> None:
            if clock.monotonic() > 0.699:
                await asyncio.Event().wait()
            raise BrokerConnectionError("lost")

        retrying = asyncio.create_task(client.retrying(operation))
        await clock.advance(705)
        assert not retrying.done()
        await clock.advance(100)
        with pytest.raises(BrokerConnectionError):
            await retrying


async def test_missing_topic_is_requested_until_its_timeout() -> None:
    async with with_manual_clock(metadata_wait_ms=700) as (broker, client, clock):
        call = asyncio.create_task(client.topic("nope"))
        asked = 1
        while clock.monotonic() < 0.695:
            asked += 1
            await broker.until(lambda: broker.count(MetadataRequest) == asked)  # noqa: B023
            await broker.until(lambda: clock.next_timer_ms is not None)
            while broker.count(MetadataRequest) == asked and clock.monotonic() < 0.695:
                await clock.advance(5)
        assert not call.done()
        await clock.advance(10)
        with pytest.raises(BrokerResponseError, match="requested for 700 ms"):
            await call


async def test_topic_and_leader_are_requested_again_after_a_lost_connection() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        lost = [HANG_UP, HANG_UP]
        broker.answers[MetadataRequest] = lambda asked: (
            lost.pop() if lost else broker.metadata(asked)
        )
        assert len((await client.topic("t")).partitions) == 1
        client.cluster.forget(["t"])
        lost.append(HANG_UP)
        assert await leader_of(client, "t", 0) == 0


async def test_deleted_topics_are_forgotten_by_a_full_refresh() -> None:
    async with two_brokers() as (one, _, client):
        await client.topic("t")
        one.topics.clear()
        await client.refresh()
        assert client.cluster.topics == {}


# --- Coordinators ---


@asynccontextmanager
async def coordinated(
    answer: Any, request: Any = HeartbeatRequest
) -> AsyncIterator[tuple[Client, list[int]]]:
    """Yields a client of nodes 0 and 1, and a list with the node id of all groups' coordinator.

    The coordinator is node 0 until the test changes the list's element. After that, node 0 answers
    `request` with `answer`. Node 1 always answers with success.
    """
    nodes = [0]

    def find(asked: ReceivedRequest) -> FindCoordinatorResponse:
        assert isinstance(asked.message, FindCoordinatorRequest)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=nodes[0]) for key in asked.message.coordinator_keys
            ]
        )

    async with two_brokers() as (one, two, client):
        one.answers[FindCoordinatorRequest] = two.answers[FindCoordinatorRequest] = find
        one.answers[request] = lambda asked: answer(asked) if nodes[0] else fine(asked)
        two.answers[request] = fine
        yield client, nodes


def fine(asked: ReceivedRequest) -> Response:
    if isinstance(asked.message, HeartbeatRequest):
        return HeartbeatResponse()
    return OffsetCommitResponse()


@pytest.mark.parametrize("name", ["NOT_COORDINATOR:16", "COORDINATOR_NOT_AVAILABLE:15"])
async def test_refusing_coordinator_is_forgotten(name: str) -> None:
    code = int(name.partition(":")[2])
    async with coordinated(lambda asked: HeartbeatResponse(error_code=code)) as (client, nodes):
        request = HeartbeatRequest(group_id="g")
        assert (await client.request(request)).error_code == 0
        nodes[0] = 1
        assert (await client.request(request)).error_code == code
        assert (await client.request(request)).error_code == 0


async def test_coordinator_that_refuses_a_partition_is_forgotten() -> None:
    def moved(asked: ReceivedRequest) -> Response:
        part = OffsetCommitResponsePartition(partition_index=0, error_code=16)
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=[part])])

    async with coordinated(moved, OffsetCommitRequest) as (client, nodes):
        request = OffsetCommitRequest(group_id="g")
        await client.request(request)
        nodes[0] = 1
        assert (await client.request(request)).topics
        assert not (await client.request(request)).topics


async def test_lost_coordinator_is_found_again() -> None:
    async with coordinated(lambda asked: HANG_UP) as (client, nodes):
        request = HeartbeatRequest(group_id="g")
        await client.request(request)
        nodes[0] = 1
        with pytest.raises(BrokerConnectionError):
            await client.request(request)
        assert (await client.request(request)).error_code == 0


@pytest.mark.parametrize(
    ("response", "moved"),
    [
        (HeartbeatResponse(error_code=16), True),
        (HeartbeatResponse(error_code=25), False),
        (HeartbeatResponse(), False),
        (DescribeGroupsResponse(groups=[DescribedGroup(), DescribedGroup(error_code=15)]), True),
        (DescribeGroupsResponse(groups=[DescribedGroup(error_code=14)]), False),
    ],
    ids=str,
)
def test_error_code_shows_a_moved_coordinator(response: Response, moved: bool) -> None:
    assert is_not_coordinator(response) is moved
