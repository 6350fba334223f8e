"""Correct uses of kproto, and the types that checkers must infer; the file is never run."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from kproto import (
    Client,
    CommittedOffset,
    Consumer,
    Failure,
    FetchedRecords,
    GroupConsumer,
    Record,
    Retries,
    RetryTopic,
    RunSummary,
    Stop,
    TopicPattern,
    Uuid,
    failure_of,
    messages,
)
from kproto.client.admin import (
    Admin,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConsumerGroupDescription,
    CreatedTopic,
    ListedOffset,
)
from kproto.messages import (
    ApiVersionsResponse,
    DescribeTopicPartitionsResponse,
    FetchRequest,
    FetchResponse,
    ListClientMetricsResourcesRequest,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.base import Request, Response
from kproto.messages.describe_topic_partitions_response import Cursor
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.messages.produce_request import (
    PartitionProduceData,
    TopicProduceData,
    TopicProduceDataCollection,
)
from kproto.wire.tags import RawTaggedField

TopicPartition = tuple[str, int]


async def requests_have_response_types(client: Client) -> None:
    assert_type(await client.request(MetadataRequest(topics=None)), MetadataResponse)
    assert_type(await client.request(ProduceRequest(), version=9), ProduceResponse)
    assert_type(await client.request(FetchRequest(), broker=1, timeout_ms=500), FetchResponse)
    assert_type(
        await client.request(ShareGroupHeartbeatRequest(group_id="g")), ShareGroupHeartbeatResponse
    )
    # The name of an earlier release refers to the same class.
    assert_type(ListClientMetricsResourcesRequest(), ListConfigResourcesRequest)
    assert_type(
        await client.request(ListClientMetricsResourcesRequest()), ListConfigResourcesResponse
    )


async def handlers(consumer: GroupConsumer) -> None:
    async def handle(record: Record) -> None:
        print(record.offset)

    async def handle_text(text: str) -> int:
        return len(text)

    def decode(record: Record) -> str:
        return (record.value or b"").decode()

    assert_type(await consumer.run(handle), RunSummary)
    await consumer.run(handle, workers=4, order="key", retries=3, dead_letter_topic="dead")
    await consumer.run(handle_text, decode=decode, retries=Retries(5, exceptions=(OSError,)))
    await consumer.run(lambda record: handle(record), retry_topics=["a.5s", RetryTopic("b", 9)])
    await consumer.run(handle, stop_on=(signal.SIGTERM, signal.SIGINT), cancel_lost=False)


def failures_have_types(record: Record) -> None:
    assert_type(failure_of(record), Failure | None)
    raise Stop("enough", done=True)


def codecs_keep_the_class(data: bytes) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    assert_type(request.encode(12), bytes)
    assert_type(request.size(12), int)
    assert_type(request.copy(), MetadataRequest)
    assert_type(request.to_json(12), dict[str, Any])
    assert_type(MetadataResponse.decode(data, 12), MetadataResponse)
    assert_type(MetadataResponse.decode(memoryview(data), version=12), MetadataResponse)
    assert_type(MetadataResponse.decode_from(data, 0, 12), tuple[MetadataResponse, int])
    assert_type(MetadataResponse.from_json({}, 12), MetadataResponse)


def classes_have_version_constants() -> None:
    assert_type(MetadataRequest.API_KEY, int)
    assert_type(MetadataResponse.API_KEY, int)
    assert_type(MetadataRequest.VALID_VERSIONS, range)
    assert_type(MetadataRequest.FLEXIBLE_VERSIONS, range)
    assert_type(MetadataRequest.LATEST_STABLE, int)


def fields_have_the_types_of_the_definition(response: MetadataResponse) -> None:
    assert_type(response.throttle_time_ms, int)
    assert_type(response.cluster_id, str | None)
    for broker in response.brokers:
        assert_type(broker, MetadataResponseBroker)
        assert_type(broker.rack, str | None)
    for topic in response.topics:
        assert_type(topic, MetadataResponseTopic)
        assert_type(topic.topic_id, Uuid)
        assert_type(topic.is_internal, bool)
        for partition in topic.partitions:
            assert_type(partition, MetadataResponsePartition)
            assert_type(partition.replica_nodes, list[int])
    assert_type(response.unknown_tagged_fields, list[RawTaggedField])


def nullable_structs_are_optional(response: DescribeTopicPartitionsResponse) -> None:
    assert_type(response.next_cursor, Cursor | None)
    if response.next_cursor is not None:
        assert_type(response.next_cursor.partition_index, int)


def collections_are_searched_by_key(
    request: ProduceRequest, response: MetadataResponse, versions: ApiVersionsResponse
) -> None:
    assert_type(request.topic_data, TopicProduceDataCollection)
    assert_type(request.topic_data.find(name="a"), TopicProduceData | None)
    assert_type(request.topic_data.find(topic_id=Uuid.random()), TopicProduceData | None)
    assert_type(request.topic_data.find_all(name="a"), list[TopicProduceData])
    assert_type(request.topic_data[0], TopicProduceData)
    assert_type(response.brokers.find(node_id=1), MetadataResponseBroker | None)
    assert_type(response.topics.find(name=None), MetadataResponseTopic | None)
    assert_type(versions.api_keys.find(api_key=18), ApiVersion | None)


def arrays_accept_any_iterable(names: set[str]) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name) for name in names))
    assert_type(request.topics, list[MetadataRequestTopic] | None)
    request.topics = None
    request.topics = []
    data = PartitionProduceData(index=0, records=b"")
    data.records = None
    request.unknown_tagged_fields = [RawTaggedField(99, b"x")]


def code_for_every_request(request: Request[ProduceResponse]) -> type[Response]:
    assert_type(request.API_KEY, int)
    assert_type(request.LISTENERS, tuple[str, ...])
    assert_type(messages.ProduceRequest, type[ProduceRequest])
    return ProduceResponse


async def groups_select_the_group_consumer(client: Client) -> None:
    assert_type(client.consumer("a", start={("a", 0): 5}, stop_at_end=True), Consumer)
    assert_type(client.consumer([("a", 0)], group="g"), GroupConsumer)
    assert_type(client.consumer(re.compile("a.*"), group="g", start="none"), GroupConsumer)
    client.consumer("a", group="g", start=datetime.now(UTC), instance_id="i", leave_timeout_ms=1)
    client.consumer(["a", "b"], group="g", start=timedelta(hours=1), assignors=["sticky"])
    client.consumer("a", start=timedelta(hours=1))
    client.consumer("a", auto_offset_reset="by_duration:PT1H")
    assert_type(client.consumer(TopicPattern("a.*"), group="g"), GroupConsumer)
    client.consumer("a", group="g", group_protocol="consumer", server_assignor="uniform")


async def group_consumers_are_iterated(client: Client) -> None:
    async def on_revoked(tps: list[tuple[str, int]]) -> None:
        await consumer.commit()

    def on_assigned(tps: list[tuple[str, int]]) -> None:
        consumer.seek(tps[0], "earliest")

    async with client.consumer(
        "a", group="g", on_assigned=on_assigned, on_revoked=on_revoked
    ) as consumer:
        assert_type(consumer, GroupConsumer)
        async for record in consumer:
            assert_type(record, Record)
            await consumer.commit(record)
        async for fetched in consumer.record_lists():
            assert_type(fetched, FetchedRecords)
            await consumer.commit(fetched, "m")
        await consumer.commit({("a", 0): 5})
        assert_type(
            await consumer.committed(("a", 0)), dict[TopicPartition, CommittedOffset | None]
        )
        assert_type(await consumer.position(("a", 0)), int)
        assert_type(await consumer.lag(), dict[TopicPartition, int])
        assert_type(
            await consumer.offsets_for_times({("a", 0): 5}), dict[TopicPartition, int | None]
        )
        assert_type(consumer.assignment, frozenset[tuple[str, int]])
        consumer.pause(*consumer.assignment)


async def administer(client: Client) -> None:
    admin = client.admin
    assert_type(admin, Admin)
    assert_type(await admin.create_topics(["a"]), dict[str, CreatedTopic])
    assert_type(await admin.list_offsets({("a", 0): "latest"}), dict[tuple[str, int], ListedOffset])
    assert_type(
        await admin.describe_consumer_groups(["g"], timeout_ms=1),
        dict[str, ConsumerGroupDescription],
    )
    topic = ConfigResource(ConfigResourceType.TOPIC, "a")
    assert_type(await admin.describe_configs([topic]), dict[ConfigResource, dict[str, ConfigEntry]])
    assert_type(await admin.incremental_alter_configs({topic: {"x": None}}), None)
