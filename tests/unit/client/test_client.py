"""Tests the client as a whole: connections, metadata, leaders, coordinators and close."""

from __future__ import annotations

import asyncio

import pytest

from kproto import (
    BrokerConnectionError,
    BrokerResponseError,
    Client,
    ClientSettings,
    ConfigurationError,
    ProtocolError,
    RequestTimeoutError,
)
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FetchRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
)
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.metadata_response import MetadataResponseBroker, MetadataResponsePartition
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.support.leaders import leader_of
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, api_versions, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=50, delivery_timeout_ms=300)


# --- The first connection ---


async def test_any_answering_bootstrap_server_is_used() -> None:
    async with ScriptedBroker() as broker, ScriptedBroker() as gone:
        await gone.stop()
        async with Client([gone.bootstrap, broker.bootstrap]) as client:
            assert client.cluster.cluster_id == "scripted"
            assert client.cluster.controller == 0


async def test_error_lists_all_unreachable_bootstrap_servers() -> None:
    async with ScriptedBroker() as one, ScriptedBroker() as two:
        pass
    with pytest.raises(BrokerConnectionError) as raised:
        async with Client(f"{one.bootstrap},{two.bootstrap}"):
            raise AssertionError("no broker listens")
    for broker in (one, two):
        assert f"{broker.bootstrap}: cannot connect" in str(raised.value)


async def test_client_works_without_a_context_manager() -> None:
    async with ScriptedBroker() as broker:
        client = Client(broker.bootstrap)
        assert (await client.request(MetadataRequest(topics=[]))).cluster_id == "scripted"
        await client.close()


async def test_failed_first_request_leaves_no_connection_open() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[MetadataRequest] = lambda asked: HANG_UP
        with pytest.raises(BrokerConnectionError):
            async with Client(broker.bootstrap):
                raise AssertionError("the client cannot start")


# --- Requests ---


async def test_connection_is_shared_and_opened_once() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        requests = (client.request(MetadataRequest(topics=[])) for _ in range(50))
        await asyncio.gather(*requests)
        # The bootstrap address is the address of the broker.
        assert broker.connections == 1


async def test_lost_connection_is_reopened() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        connection = await client.connection()
        broker.hang_up()
        await broker.until(lambda: not connection.usable)
        await client.request(MetadataRequest(topics=[]))
        assert broker.connections == 2


async def test_unknown_broker_id_is_refused() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        assert (await client.request(MetadataRequest(topics=[]), broker=0)).controller_id == 0
        with pytest.raises(ConfigurationError, match="the cluster has no broker 7; it has 0"):
            await client.request(MetadataRequest(), broker=7)


async def test_request_for_a_chosen_broker_needs_the_broker_argument() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        broker.answers[BrokerHeartbeatRequest] = lambda asked: BrokerHeartbeatResponse()
        await client.request(BrokerHeartbeatRequest(broker_id=0))
        client.cluster.brokers[1] = client.cluster.brokers[0]
        with pytest.raises(
            ConfigurationError, match=r"caller must name: pass its node id as broker="
        ):
            await client.request(BrokerHeartbeatRequest(broker_id=0))


async def test_callers_version_is_used() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        await client.request(MetadataRequest(topics=[]), version=4)
        assert broker.asked[-1].version == 4


async def test_request_has_its_own_timeout() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        broker.answers[MetadataRequest] = lambda asked: None
        with pytest.raises(RequestTimeoutError, match="in 50 ms"):
            await client.request(MetadataRequest(), timeout_ms=50)


# --- Coordinators ---


async def test_group_request_goes_to_its_coordinator() -> None:
    def find(asked: ReceivedRequest) -> FindCoordinatorResponse:
        assert isinstance(asked.message, FindCoordinatorRequest)
        (key,) = asked.message.coordinator_keys
        assert asked.message.key_type == 0
        answers.append(key)
        if len(answers) == 1:
            return FindCoordinatorResponse(coordinators=[Coordinator(key=key, error_code=15)])
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key=key, node_id=0, host="127.0.0.1", port=broker.port)]
        )

    answers: list[str] = []
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[FindCoordinatorRequest] = find
        broker.answers[HeartbeatRequest] = lambda asked: HeartbeatResponse(error_code=25)
        for _ in range(3):
            assert (await client.request(HeartbeatRequest(group_id="g"))).error_code == 25
        assert answers == ["g", "g"], "requested again while unavailable, then cached"


async def test_old_broker_gets_a_request_for_one_coordinator() -> None:
    def ranges(asked: ReceivedRequest) -> ApiVersionsResponse:
        found = api_versions()
        for key in found.api_keys.find_all(api_key=FindCoordinatorRequest.API_KEY):
            key.max_version = 3
        return found

    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = ranges
        broker.answers[FindCoordinatorRequest] = lambda asked: FindCoordinatorResponse(node_id=0)
        broker.answers[DescribeGroupsRequest] = lambda asked: DescribeGroupsResponse()
        async with Client(broker.bootstrap) as client:
            await client.request(DescribeGroupsRequest(groups=["g"]))
        (asked,) = [got for got in broker.asked if isinstance(got.message, FindCoordinatorRequest)]
        assert isinstance(asked.message, FindCoordinatorRequest)
        assert (asked.version, asked.message.key) == (3, "g")


async def test_refused_or_missing_coordinator_is_an_error() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[FindCoordinatorRequest] = lambda asked: FindCoordinatorResponse(
            coordinators=[Coordinator(key="g", error_code=30, error_message="not yours")]
        )
        words = "GROUP_AUTHORIZATION_FAILED .* coordinator of group 'g': not yours"
        with pytest.raises(BrokerResponseError, match=words):
            await client.request(HeartbeatRequest(group_id="g"))
        broker.answers[FindCoordinatorRequest] = lambda asked: FindCoordinatorResponse()
        with pytest.raises(ProtocolError, match="does not name the coordinator of group 'g'"):
            await client.request(HeartbeatRequest(group_id="g"))


async def test_request_without_a_group_is_refused() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        with pytest.raises(ConfigurationError, match="HeartbeatRequest names no group"):
            await client.request(HeartbeatRequest())


# --- Metadata ---


async def test_topic_is_requested_once_and_cached() -> None:
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap) as client:
        found = await asyncio.gather(*(client.topic("t") for _ in range(20)))
        assert {id(info) for info in found} == {id(found[0])}
        assert list(found[0].partitions) == [0, 1, 2]
        assert broker.count(MetadataRequest) == 2  # the first request asks only for brokers
        assert await leader_of(client, "t", 2) == 0
        assert broker.count(MetadataRequest) == 2


async def test_metadata_expires_at_its_maximum_age() -> None:
    settings = ClientSettings(metadata_max_age_ms=20)
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        await client.topic("t")
        await clock.advance(19)
        await client.topic("t")
        assert broker.count(MetadataRequest) == 2
        await clock.advance(1)
        await client.topic("t")
        assert broker.count(MetadataRequest) == 3


async def test_metadata_request_creates_no_topic() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        await client.topic("t")
        for received in broker.asked:
            if isinstance(received.message, MetadataRequest):
                assert received.message.allow_auto_topic_creation is False


async def test_refresh_returns_every_topic() -> None:
    async with ScriptedBroker({"t": 1, "u": 2}) as broker, Client(broker.bootstrap) as client:
        assert [info.name for info in await client.refresh()] == ["t", "u"]
        assert set(client.cluster.topics) == {"t", "u"}


@pytest.mark.parametrize("highest", [0, 1, 3, 8])
async def test_metadata_of_old_brokers_is_read(highest: int) -> None:
    def ranges(asked: ReceivedRequest) -> ApiVersionsResponse:
        found = api_versions()
        for key in found.api_keys.find_all(api_key=MetadataRequest.API_KEY):
            key.max_version = highest
        return found

    async with ScriptedBroker({"t": 1}) as broker:
        broker.answers[ApiVersionsRequest] = ranges
        async with Client(broker.bootstrap) as client:
            assert (await client.topic("t")).name == "t"
            await client.refresh()
        assert {asked.version for asked in broker.asked[1:]} == {highest}


async def test_topic_created_during_the_call_is_found() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        requests = broker.count(MetadataRequest)
        call = asyncio.create_task(client.topic("t"))
        await broker.until(lambda: broker.count(MetadataRequest) > requests)
        broker.topics["t"] = 1
        assert (await call).name == "t"


async def test_missing_topic_is_an_error_after_its_timeout() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        words = r"UNKNOWN_TOPIC_OR_PARTITION \(3\): topic 'nope'; it was requested for 50 ms"
        with pytest.raises(BrokerResponseError, match=words):
            await client.topic("nope")
        assert broker.count(MetadataRequest) > 2


async def test_invalid_topic_name_is_refused_at_once() -> None:
    def metadata(asked: ReceivedRequest) -> MetadataResponse:
        response = broker.metadata(asked)
        for topic in response.topics:
            topic.error_code = 17
        return response

    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[MetadataRequest] = metadata
        with pytest.raises(
            BrokerResponseError, match=r"INVALID_TOPIC_EXCEPTION \(17\): topic 'a b'$"
        ):
            await client.topic("a b")
        assert broker.count(MetadataRequest) == 2


async def test_response_without_the_topic_is_an_error() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        broker.answers[MetadataRequest] = lambda asked: MetadataResponse()
        with pytest.raises(ProtocolError, match="for topic 't' lacks it"):
            await client.topic("t")


async def test_unknown_partition_triggers_one_more_refresh() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        await client.topic("t")
        broker.topics["t"] = 4
        assert await leader_of(client, "t", 3) == 0
        words = "UNKNOWN_TOPIC_OR_PARTITION .* topic 't' has 4 partitions, and none is 4"
        with pytest.raises(BrokerResponseError, match=words):
            await leader_of(client, "t", 4)


@pytest.mark.parametrize("leader", [-1, 9])
async def test_call_waits_for_a_leader(leader: int) -> None:
    """Metadata has no leader for the partition, or a leader without an address."""
    leaders = [leader]

    def metadata(asked: ReceivedRequest) -> MetadataResponse:
        response = broker.metadata(asked)
        for topic in response.topics:
            topic.partitions[1] = MetadataResponsePartition(
                partition_index=1, leader_id=leaders[-1]
            )
        return response

    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[MetadataRequest] = metadata
        assert await leader_of(client, "t", 0) == 0, "the leader of another partition is known"
        with pytest.raises(BrokerResponseError, match=r"LEADER_NOT_AVAILABLE .* 50 ms"):
            await leader_of(client, "t", 1)
        requests = broker.count(MetadataRequest)
        call = asyncio.create_task(leader_of(client, "t", 1))
        await broker.until(lambda: broker.count(MetadataRequest) > requests)
        leaders.append(0)
        assert await call == 0


async def test_cancelled_call_does_not_cancel_a_shared_refresh() -> None:
    release = asyncio.Event()

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:

        async def metadata(asked: ReceivedRequest) -> MetadataResponse:
            await release.wait()
            return broker.metadata(asked)

        broker.answers[MetadataRequest] = metadata
        first = asyncio.create_task(client.topic("t"))
        second = asyncio.create_task(client.topic("t"))
        await broker.until(lambda: broker.count(MetadataRequest) == 2)
        first.cancel()
        release.set()
        assert (await second).name == "t", "the cancelled call does not cancel the other"
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_each_broker_has_its_own_connection() -> None:
    """Each node has a connection to the address in the metadata."""

    def metadata(asked: ReceivedRequest) -> MetadataResponse:
        response = one.metadata(asked)
        response.brokers.append(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=two.port))
        for topic in response.topics:
            topic.partitions[1].leader_id = 1
        return response

    async with ScriptedBroker({"t": 2}) as one, ScriptedBroker({"t": 2}) as two:
        one.answers[MetadataRequest] = two.answers[MetadataRequest] = metadata
        logs = [ScriptedLog(one), ScriptedLog(two)]
        logs[0].append(batch(0, [b"of one"]), partition=0)
        logs[1].append(batch(0, [b"of two", b"too"]), partition=1)
        async with Client(one.bootstrap) as client:
            ends = await client.list_offsets({("t", 0): "latest", ("t", 1): "latest"})
            assert ends == {("t", 0): 1, ("t", 1): 2}
            found = [record.value async for record in client.consumer("t", stop_at_end=True)]
            assert sorted(filter(None, found)) == [b"of one", b"of two", b"too"]


# --- Closing ---


async def test_closed_client_refuses_calls() -> None:
    async with ScriptedBroker({"t": 1}) as broker:
        async with Client(broker.bootstrap) as client:
            pass
        for use in (
            client.request(MetadataRequest()),
            client.topic("t"),
            client.list_offsets({("t", 0): "latest"}),
            client.fetch("t", 0, 0),
        ):
            with pytest.raises(ConfigurationError, match="the client is closed"):
                await use
        await client.close()
        await broker.until(lambda: not broker.writers)


async def test_close_fails_requests_in_flight() -> None:
    async with ScriptedBroker({"t": 1}) as broker:
        client = Client(broker.bootstrap, QUICK)
        await client.refresh([])
        for request in (MetadataRequest, ListOffsetsRequest, FetchRequest, FindCoordinatorRequest):
            broker.answers[request] = lambda asked: None
        uses = [
            asyncio.create_task(use)
            for use in (
                client.request(MetadataRequest()),
                client.topic("t"),
                client.topic("t"),
                client.list_offsets({("t", 0): "latest"}),
                client.request(HeartbeatRequest(group_id="g")),
            )
        ]
        await broker.until(lambda: broker.count(MetadataRequest) >= 2)
        await client.close()
        outcomes = await asyncio.gather(*uses, return_exceptions=True)
        assert [type(error) for error in outcomes] == [
            BrokerConnectionError,
            ConfigurationError,
            ConfigurationError,
            ConfigurationError,
            ConfigurationError,
        ], outcomes


async def test_close_fails_calls_that_wait_for_a_connection() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = lambda asked: None
        client = Client(broker.bootstrap, ClientSettings(connect_timeout_ms=60_000))
        first = asyncio.create_task(client.request(MetadataRequest()))
        second = asyncio.create_task(client.topic("t"))
        await broker.until(lambda: broker.count(ApiVersionsRequest) == 1)
        await client.close()
        for use in (first, second):
            with pytest.raises(ConfigurationError, match="the client is closed"):
                await use


async def test_cancelled_call_does_not_cancel_a_shared_connection() -> None:
    async with ScriptedBroker() as broker:
        release = asyncio.Event()

        async def ranges(asked: ReceivedRequest) -> ApiVersionsResponse:
            await release.wait()
            return api_versions()

        broker.answers[ApiVersionsRequest] = ranges
        client = Client(broker.bootstrap)
        first = asyncio.create_task(client.request(MetadataRequest(topics=[])))
        second = asyncio.create_task(client.request(MetadataRequest(topics=[])))
        await broker.until(lambda: broker.count(ApiVersionsRequest) == 1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        release.set()
        assert (await second).cluster_id == "scripted"
        await client.close()
