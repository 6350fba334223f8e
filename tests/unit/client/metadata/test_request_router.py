"""Tests requests that are split, sent to several brokers concurrently, and merged."""

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
    ConfigurationError,
    EncodeError,
)
from kproto.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    share_fetch_request,
    share_fetch_response,
)
from kproto.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirTopic,
)
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kproto.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsTopicResult,
)
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.describe_configs_response import DescribeConfigsResult
from kproto.messages.describe_groups_response import DescribedGroup
from kproto.messages.describe_log_dirs_response import DescribeLogDirsResult
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.share_fetch_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareFetchableTopicResponse,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.uuid import Uuid
from tests.unit.client.scripted_broker import HANG_UP, Answer, ScriptedBroker, api_versions, quick
from tests.unit.client.scripted_cluster import ScriptedCluster, scripted_cluster

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


@asynccontextmanager
async def three_brokers() -> AsyncIterator[tuple[ScriptedCluster, Client]]:
    """Yields nodes 0, 1 and 2; `t` has a partition on each node, `u` has a partition on node 1."""
    async with scripted_cluster() as cluster:
        cluster.topic("t", [0, 1, 2])
        cluster.topic("u", [1])
        async with Client(cluster.bootstrap, QUICK) as client:
            yield cluster, client


# --- Leaders ---


def delete(*tps: tuple[str, int]) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name, partitions=[DeleteRecordsPartition(partition_index=at, offset=at)]
            )
            for name, at in tps
        ]
    )


def deleted(asked: ReceivedRequest, code: int = 0) -> DeleteRecordsResponse:
    request = asked.message
    assert isinstance(request, DeleteRecordsRequest)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=part.partition_index, error_code=code
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def results(response: DeleteRecordsResponse) -> list[tuple[str, int, int]]:
    return [
        (topic.name, part.partition_index, part.error_code)
        for topic in response.topics
        for part in topic.partitions
    ]


async def test_request_to_several_leaders_is_sent_concurrently_and_merged() -> None:
    async with three_brokers() as (cluster, client):
        together = asyncio.Event()
        in_flight = 0

        async def answer(asked: ReceivedRequest) -> DeleteRecordsResponse:
            nonlocal in_flight
            in_flight += 1
            if in_flight == 3:
                together.set()
            await together.wait()
            return deleted(asked)

        cluster.answer(DeleteRecordsRequest, answer)
        found = await client.request(delete(("t", 2), ("u", 0), ("t", 0), ("t", 1)))
        assert results(found) == [("t", 2, 0), ("t", 0, 0), ("t", 1, 0), ("u", 0, 0)]
        assert cluster.count(DeleteRecordsRequest) == [1, 1, 1]
        assert cluster.asked_for() == [[], ["t", "u"]]


async def test_request_to_one_leader_is_sent_unchanged() -> None:
    async with three_brokers() as (cluster, client):
        cluster.answer(DeleteRecordsRequest, deleted)
        request = delete(("u", 0), ("t", 1))
        ((broker, sent, response, error),) = await client.request_by_broker(request)
        assert (broker, error) == (1, None)
        assert sent is request
        assert response is not None
        assert cluster.count(DeleteRecordsRequest) == [0, 1, 0]


async def test_unknown_topic_is_refused_by_any_broker() -> None:
    async with three_brokers() as (cluster, client):
        cluster.answer(DeleteRecordsRequest, lambda asked: deleted(asked, 3))
        found = await client.request(delete(("nope", 0)))
        assert results(found) == [("nope", 0, 3)]
        for broker in cluster.brokers:
            broker.answers[DeleteRecordsRequest] = deleted
        assert len(results(await client.request(delete(("nope", 0), ("t", 2), ("t", 9))))) == 3


async def test_moved_leader_is_found_by_the_next_call() -> None:
    async with three_brokers() as (cluster, client):
        cluster.answer(DeleteRecordsRequest, deleted)
        cluster.brokers[1].answers[DeleteRecordsRequest] = lambda asked: deleted(asked, 6)
        request = delete(("t", 0), ("u", 0))
        await client.refresh(["t", "u"])
        cluster.move("u", 0, 2)
        assert results(await client.request(request)) == [("t", 0, 0), ("u", 0, 6)]
        before = len(cluster.asked_for())
        assert results(await client.request(request)) == [("t", 0, 0), ("u", 0, 0)]
        assert cluster.asked_for()[before:] == [["u"]]  # `t` is still known


async def test_lost_leader_is_found_by_the_next_call() -> None:
    async with three_brokers() as (cluster, client):
        cluster.answer(DeleteRecordsRequest, deleted)
        cluster.brokers[1].answers[DeleteRecordsRequest] = lambda asked: HANG_UP
        request = delete(("t", 0), ("t", 1), ("t", 2))
        with pytest.raises(BrokerConnectionError) as failed:
            await client.request(request)
        (note,) = failed.value.__notes__
        assert note.startswith("the error is of broker 1; 2 of 3 brokers answered: 0, 2")
        answers = await client.request_by_broker(request)
        assert [(each.broker, type(each.error)) for each in answers] == [
            (0, type(None)),
            (1, BrokerConnectionError),
            (2, type(None)),
        ]
        cluster.move("t", 1, 2)
        assert len(results(await client.request(request))) == 3


async def test_leader_hint_replaces_a_metadata_request() -> None:
    async with three_brokers() as (cluster, client):
        tps = [("t", 0), ("u", 0)]
        await client.refresh(["t", "u"])

        def moved(asked: ReceivedRequest) -> ShareFetchResponse:
            response = shared(asked, 6)
            (part,) = response.responses[0].partitions
            part.current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
            port = cluster.brokers[2].port
            response.node_endpoints.append(NodeEndpoint(node_id=2, host="127.0.0.1", port=port))
            return response

        cluster.answer(ShareFetchRequest, lambda asked: shared(asked, 0))
        cluster.brokers[1].answers[ShareFetchRequest] = moved
        before = len(cluster.asked_for())
        await client.request(share_fetch(cluster, tps))
        await client.request(share_fetch(cluster, tps))
        assert cluster.count(ShareFetchRequest) == [2, 1, 1]
        assert len(cluster.asked_for()) == before


def share_fetch(cluster: ScriptedCluster, tps: list[tuple[str, int]]) -> ShareFetchRequest:
    return ShareFetchRequest(
        group_id="g",
        topics=[
            share_fetch_request.FetchTopic(
                topic_id=cluster.ids[name],
                partitions=[share_fetch_request.FetchPartition(partition_index=at)],
            )
            for name, at in tps
        ],
    )


def shared(asked: ReceivedRequest, code: int) -> ShareFetchResponse:
    request = asked.message
    assert isinstance(request, ShareFetchRequest)
    return ShareFetchResponse(
        responses=[
            ShareFetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=[
                    share_fetch_response.PartitionData(
                        partition_index=part.partition_index, error_code=code, records=b""
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def fetched(asked: ReceivedRequest) -> FetchResponse:
    request = asked.message
    assert isinstance(request, FetchRequest)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(partition_index=part.partition) for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def test_unknown_topic_ids_are_requested_by_id() -> None:
    async with three_brokers() as (cluster, client):
        cluster.answer(FetchRequest, fetched)
        unknown = Uuid(b"?" * 16)
        tps = [(cluster.ids["t"], 2), (unknown, 0), (cluster.ids["u"], 0)]
        request = FetchRequest(
            topics=[
                FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=at)])
                for topic_id, at in tps
            ]
        )
        found = await client.request(request)
        assert [topic.topic_id for topic in found.responses] == [its for its, _ in tps]
        assert cluster.count(FetchRequest) == [0, 1, 1]
        assert cluster.asked_for() == [[], ["", "", ""]]
        await client.request(request)
        assert cluster.asked_for()[2:] == [[""]]  # only the id that no broker has
        session = FetchRequest(session_id=5, session_epoch=3)
        with pytest.raises(ConfigurationError, match="pass its node id as broker="):
            await client.request(session)
        await client.request(session, broker=2)


async def test_request_about_replicas_goes_to_every_replica() -> None:
    async with three_brokers() as (cluster, client):
        cluster.answer(AlterReplicaLogDirsRequest, lambda asked: AlterReplicaLogDirsResponse())
        topic = AlterReplicaLogDirTopic(name="t", partitions=[0])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/x", topics=[topic])])
        await client.request(request)
        assert cluster.count(AlterReplicaLogDirsRequest) == [1, 1, 1]


async def test_log_dirs_are_requested_from_every_broker() -> None:
    async with three_brokers() as (cluster, client):
        for broker in cluster.brokers:
            broker.answers[DescribeLogDirsRequest] = log_dir_of(broker)
        found = await client.request(DescribeLogDirsRequest())
        assert [each.log_dir for each in found.results] == [f"/{b.port}" for b in cluster.brokers]


def log_dir_of(broker: ScriptedBroker) -> Answer:
    result = DescribeLogDirsResult(log_dir=f"/{broker.port}")
    return lambda asked: DescribeLogDirsResponse(results=[result])


# --- Resources ---


async def test_configs_of_a_broker_are_requested_from_it() -> None:
    async with three_brokers() as (cluster, client):

        def answer(asked: ReceivedRequest) -> DescribeConfigsResponse:
            request = asked.message
            assert isinstance(request, DescribeConfigsRequest)
            return DescribeConfigsResponse(
                results=[
                    DescribeConfigsResult(
                        resource_type=each.resource_type, resource_name=each.resource_name
                    )
                    for each in request.resources
                ]
            )

        cluster.answer(DescribeConfigsRequest, answer)
        kinds = [(2, "t"), (4, "2"), (4, "1"), (8, "2")]
        request = configs(kinds)
        found = await client.request(request)
        assert [(each.resource_type, each.resource_name) for each in found.results] == kinds
        assert cluster.count(DescribeConfigsRequest) == [0, 1, 1]
        await client.request(configs([(2, "t")]))
        assert sum(cluster.count(DescribeConfigsRequest)) == 3
        with pytest.raises(ConfigurationError, match="no broker 9; it has 0, 1, 2"):
            await client.request(configs([(4, "1"), (4, "9")]))


def configs(kinds: list[tuple[int, str]]) -> DescribeConfigsRequest:
    listed = [DescribeConfigsResource(resource_type=t, resource_name=n) for t, n in kinds]
    return DescribeConfigsRequest(resources=listed)


# --- Coordinators ---


class Groups:
    """Coordinators of groups; the last digit of a group id is the coordinator's node id."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.asked: list[list[str]] = []
        self.errors: dict[str, int] = {}
        cluster.answer(FindCoordinatorRequest, self.find)
        cluster.answer(DescribeGroupsRequest, self.describe)

    def find(self, asked: ReceivedRequest) -> FindCoordinatorResponse:
        request = asked.message
        assert isinstance(request, FindCoordinatorRequest)
        keys = request.coordinator_keys or [request.key]
        self.asked.append(keys)
        found = [
            Coordinator(key=key, node_id=int(key[-1]), error_code=self.errors.pop(key, 0))
            for key in keys
        ]
        if asked.version < 4:
            return FindCoordinatorResponse(node_id=found[0].node_id, error_code=found[0].error_code)
        return FindCoordinatorResponse(coordinators=found[::-1])

    def describe(self, asked: ReceivedRequest) -> DescribeGroupsResponse:
        request = asked.message
        assert isinstance(request, DescribeGroupsRequest)
        groups = [DescribedGroup(group_id=name) for name in request.groups]
        return DescribeGroupsResponse(groups=groups)


def names(response: DescribeGroupsResponse) -> list[str]:
    return [group.group_id for group in response.groups]


async def test_coordinators_are_found_in_one_request_and_called_concurrently() -> None:
    async with three_brokers() as (cluster, client):
        groups = Groups(cluster)
        wanted = ["b1", "a2", "c1", "d0"]
        assert names(await client.request(DescribeGroupsRequest(groups=wanted))) == wanted
        assert groups.asked == [wanted]
        assert cluster.count(DescribeGroupsRequest) == [1, 1, 1]
        wanted = ["a2", "e2"]
        assert names(await client.request(DescribeGroupsRequest(groups=wanted))) == wanted
        assert groups.asked[1:] == [["e2"]]


async def test_unavailable_coordinator_is_requested_again() -> None:
    async with three_brokers() as (cluster, client):
        groups = Groups(cluster)
        groups.errors = {"a1": 15}
        assert len(names(await client.request(DescribeGroupsRequest(groups=["a1", "b2"])))) == 2
        assert groups.asked == [["a1", "b2"], ["a1"]]
        groups.errors = {"c1": 30}
        with pytest.raises(BrokerResponseError, match=r"GROUP_AUTHORIZATION_FAILED .* 'c1'"):
            await client.request(DescribeGroupsRequest(groups=["c1", "d2"]))


async def test_coordinator_forgotten_by_another_call_still_gets_the_request() -> None:
    async with three_brokers() as (cluster, client):
        Groups(cluster)
        cluster.up = [0, 1]
        await client.refresh([])

        def metadata(asked: ReceivedRequest) -> MetadataResponse:
            cluster.up = [0, 1, 2]  # the coordinator is node 2
            client._view._requests.coordinators.forget_all()
            return cluster.metadata(asked)

        cluster.answer(MetadataRequest, metadata)
        for group in ("a2", "b2"):
            assert names(await client.request(DescribeGroupsRequest(groups=[group]))) == [group]
            cluster.up = [0, 1]
            await client.refresh([])
        assert cluster.count(DescribeGroupsRequest)[2] == 2


async def test_only_the_moved_coordinator_is_forgotten() -> None:
    async with three_brokers() as (cluster, client):
        groups = Groups(cluster)
        moved = DescribeGroupsResponse(groups=[DescribedGroup(group_id="a1", error_code=16)])
        cluster.brokers[1].answers[DescribeGroupsRequest] = lambda asked: moved
        request = DescribeGroupsRequest(groups=["a1", "b2"])
        found = await client.request(request)
        assert [group.error_code for group in found.groups] == [16, 0]
        await client.request(request)
        assert groups.asked == [["a1", "b2"], ["a1"]]


async def test_old_brokers_get_one_coordinator_key_per_request() -> None:
    def ranges(asked: ReceivedRequest) -> ApiVersionsResponse:
        found = api_versions()
        for key in found.api_keys.find_all(api_key=FindCoordinatorRequest.API_KEY):
            key.max_version = 3
        return found

    async with scripted_cluster() as cluster:
        groups = Groups(cluster)
        cluster.answer(ApiVersionsRequest, ranges)
        async with Client(cluster.bootstrap, QUICK) as client:
            wanted = ["b1", "a2"]
            assert names(await client.request(DescribeGroupsRequest(groups=wanted))) == wanted
        assert sorted(groups.asked) == [["a2"], ["b1"]]


# --- Metadata ---


async def test_topics_that_wait_for_a_metadata_request_share_the_next() -> None:
    async with three_brokers() as (cluster, client):
        gate = asyncio.Event()

        async def slow(asked: ReceivedRequest) -> Any:
            await gate.wait()
            return cluster.metadata(asked)

        before = len(cluster.asked_for())
        cluster.answer(MetadataRequest, slow)
        first = asyncio.create_task(client.refresh(["t"]))
        await cluster.brokers[0].until(lambda: len(cluster.asked_for()) > before)
        others = [
            asyncio.create_task(client.refresh(wanted))
            for wanted in (["u"], ["t", "u"], ["nope"], ["t"], [])
        ]
        gate.set()
        found_names = [
            [topic.name for topic in found] for found in await asyncio.gather(first, *others)
        ]
        assert found_names == [["t"], ["u"], ["t", "u"], ["nope"], ["t"], []]
        assert cluster.asked_for()[before:] == [["t"], ["nope", "t", "u"]]


async def test_invalid_topic_name_does_not_fail_other_requests() -> None:
    async with three_brokers() as (_, client):
        good, bad = client.refresh(["t"]), client.refresh(["\udc00"])
        found, error = await asyncio.gather(good, bad, return_exceptions=True)
        assert isinstance(found, list)
        assert isinstance(error, EncodeError)
