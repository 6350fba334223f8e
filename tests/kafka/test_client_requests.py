"""Tests requests in every version that a broker supports, on each broker."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

import kproto
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
)
from kproto.messages.base import Request, Response
from kproto.messages.create_topics_request import CreatableTopic
from kproto.messages.delete_topics_request import DeleteTopicState
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.protocol.headers import response_class
from kproto.records import encode_batch, read_records
from kproto.wire.uuid import Uuid
from tests.support.leaders import leader_of
from tests.support.middleman import Middleman

R = TypeVar("R", bound=Response)

#: Versions that 4.4.0 lists in ApiVersions for old clients, but refuses.
ONLY_FOR_SHOW: dict[type[Request[Any]], range] = {ProduceRequest: range(3)}


async def at_every_version(
    client: kproto.Client, request: type[Request[R]]
) -> tuple[Any, list[int]]:
    """Returns a connection, and the versions of `request` that both client and broker support.

    Skips the test if the broker does not support the API.
    """
    connection = await client.connection()
    offered = connection.ranges.get(request.API_KEY)
    if offered is None:
        pytest.skip(f"this broker has no {request.__name__}")
    versions = range(
        max(offered.lowest, request.VALID_VERSIONS.start),
        min(offered.highest, request.LATEST_STABLE) + 1,
    )
    assert versions
    return connection, [at for at in versions if at not in ONLY_FOR_SHOW.get(request, ())]


async def test_the_agreement_on_versions(bootstrap: str, broker_version: str) -> None:
    """The client sends ApiVersions v5, which Kafka 3.9.2 refuses, and then v4 (KIP-511)."""
    async with Middleman(bootstrap) as middleman, kproto.Client(middleman.bootstrap):
        asked = middleman.versions("ApiVersionsRequest")
    assert asked == ([5, 4] if broker_version == "3.9.2" else [5]) or broker_version == "external"


async def test_api_versions(client: kproto.Client) -> None:
    connection, versions = await at_every_version(client, ApiVersionsRequest)
    for version in versions:
        request = ApiVersionsRequest(
            client_software_name="kproto" if version >= 3 else "",
            client_software_version="1" if version >= 3 else "",
        )
        answer = await client.request(request, version=version)
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code == 0
        found = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        assert found[3] == tuple(connection.ranges[3])


async def test_metadata(client: kproto.Client, topic: str) -> None:
    _, versions = await at_every_version(client, MetadataRequest)
    topic_id = (await client.topic(topic)).topic_id
    for version in versions:
        named = MetadataRequestTopic(name=topic)
        answer = await client.request(MetadataRequest(topics=[named]), version=version)
        (found,) = answer.topics
        assert (found.error_code, found.name, len(found.partitions)) == (0, topic, 3)
        assert {part.leader_id for part in found.partitions} <= set(client.cluster.brokers)
        if version >= 10:
            assert found.topic_id == topic_id


async def test_create_topics(client: kproto.Client) -> None:
    _, versions = await at_every_version(client, CreateTopicsRequest)
    for version in versions:
        if version == 0:
            continue  # v0 has no validate_only
        wanted = CreatableTopic(
            name=f"only-asked-{version}", num_partitions=2, replication_factor=1
        )
        request = CreateTopicsRequest(topics=[wanted], validate_only=True)
        answer = await client.request(request, version=version)
        (made,) = answer.topics
        assert (made.error_code, made.name) == (0, wanted.name)
        if version >= 5:
            assert made.num_partitions == 2
    names = {info.name for info in await client.refresh()}
    assert not any(name.startswith("only-asked-") for name in names)


async def test_delete_topics(client: kproto.Client) -> None:
    _, versions = await at_every_version(client, DeleteTopicsRequest)
    for version in versions:
        gone = "never-was"
        request = DeleteTopicsRequest(topic_names=[gone], timeout_ms=30_000)
        if version >= 6:
            topics = [DeleteTopicState(name=gone)]
            request = DeleteTopicsRequest(topics=topics, timeout_ms=30_000)
        answer = await client.request(request, version=version)
        assert [(told.name, told.error_code) for told in answer.responses] == [(gone, 3)]


async def test_init_producer_id(client: kproto.Client, topic: str) -> None:
    _, versions = await at_every_version(client, InitProducerIdRequest)
    async with client.producer() as producer:
        await producer.send(topic, b"")  # waits until the broker has producer ids
    ids = set()
    for version in versions:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        answer = await client.request(request, version=version)
        assert answer.error_code == 0
        ids.add(answer.producer_id)
    assert len(ids) == len(versions)


async def test_produce_list_offsets_and_fetch(client: kproto.Client, topic: str) -> None:
    """Writes a record by each Produce version from v3 on; reads the records by each Fetch version.

    Fetch before v4 returns message sets, which 4.4.0 does not support.
    """
    connection, versions = await at_every_version(client, ProduceRequest)
    topic_id = (await client.topic(topic)).topic_id
    node = await leader_of(client, topic, 0)
    values = [b"by a producer"]
    async with client.producer() as producer:
        await producer.send(topic, values[0], partition=0)
    for version in (at for at in versions if at >= 3):  # older versions have message sets
        values.append(b"by v%d" % version)
        answer = await produce(client, node, topic, topic_id, values[-1], version)
        ((part,),) = [told.partition_responses for told in answer.responses]
        assert (part.error_code, part.base_offset) == (0, len(values) - 1)
    _, versions = await at_every_version(client, ListOffsetsRequest)
    for version in versions:
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
        listed = await client.request(
            ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
            ),
            broker=node,
            version=version,
        )
        ((found,),) = [told.partitions for told in listed.topics]
        assert found.error_code == 0
        end = found.old_style_offsets[0] if version == 0 else found.offset
        assert end == len(values)
    _, versions = await at_every_version(client, FetchRequest)
    for version in versions:
        wanted = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1_000_000)
        fetched = await client.request(
            FetchRequest(
                max_wait_ms=10,
                min_bytes=1,
                max_bytes=1_000_000 if version >= 3 else 0x7FFFFFFF,
                topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
            ),
            broker=node,
            version=version,
        )
        ((data,),) = [told.partitions for told in fetched.responses]
        assert (data.error_code, data.high_watermark) == (0, len(values))
        assert data.records is not None
        found_values = [record.value for record in read_records(data.records, from_offset=1)]
        assert found_values == values[1:]
    assert connection.usable


async def produce(
    client: kproto.Client, node: int, topic: str, topic_id: Uuid, value: bytes, version: int
) -> ProduceResponse:
    part = PartitionProduceData(index=0, records=encode_batch([(None, value, (), 1)]))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[part])],
    )
    return await client.request(request, broker=node, version=version)


async def test_a_produce_without_acks_is_stored(client: kproto.Client, topic: str) -> None:
    info = await client.topic(topic)
    async with client.producer() as producer:
        await producer.send(topic, b"first", partition=0)
    connection = await client.connection(await leader_of(client, topic, 0))
    part = PartitionProduceData(index=0, records=encode_batch([(None, b"silent", (), 1)]))
    data = TopicProduceData(name=topic, topic_id=info.topic_id, partition_data=[part])
    await connection.send_only(ProduceRequest(acks=0, timeout_ms=5000, topic_data=[data]))
    await connection.request(MetadataRequest(topics=[]))  # the broker handles it after the Produce
    found = [record.value async for record in client.consumer(topic, stop_at_end=True)]
    assert found == [b"first", b"silent"]


@pytest.mark.parametrize(
    "request_",
    [
        FindCoordinatorRequest(key="g"),
        DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=2)]),
        DescribeClusterRequest(),
        ListGroupsRequest(),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_other_requests(client: kproto.Client, topic: str, request_: Request[Any]) -> None:
    _, versions = await at_every_version(client, type(request_))
    if isinstance(request_, DescribeConfigsRequest):
        request_.resources[0].resource_name = topic
    for version in versions:
        if isinstance(request_, FindCoordinatorRequest):
            request_.key = "g" if version < 4 else ""
            request_.coordinator_keys = [] if version < 4 else ["g"]
        answer = await client.request(request_, version=version)
        assert type(answer) is response_class(request_.API_KEY)
        assert answer.encode(version), "it can be written again"
