"""Tests the requests and results of admin calls for topics, configs and offsets of partitions."""

from __future__ import annotations

import pytest

from kproto import NewTopic, UnsupportedVersionError, Uuid
from kproto.client.admin import (
    AclOperation,
    AlterConfigOp,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
    NewPartitions,
    TopicDescription,
)
from kproto.client.admin.acl_types import authorized_operations
from kproto.client.admin.configs import alter_configs_call, config_ops, describe_configs_call
from kproto.client.admin.offsets import (
    check_offsets_version,
    checked_specs,
    list_offsets_request,
    listed_offsets,
)
from kproto.client.admin.records import delete_records_call
from kproto.client.admin.topic_changes import (
    create_partitions_call,
    create_topics_call,
    delete_topics_call,
)
from kproto.client.admin.topic_descriptions import TopicPages
from kproto.messages import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsResponse,
    DescribeTopicPartitionsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kproto.messages.create_partitions_response import CreatePartitionsTopicResult
from kproto.messages.create_topics_response import CreatableTopicConfigs, CreatableTopicResult
from kproto.messages.delete_topics_response import DeletableTopicResult
from kproto.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kproto.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kproto.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)
from kproto.schema import release_table
from kproto.wire.errors import BrokerResponseError, KprotoError

TOPIC_ID = Uuid.random()


def test_a_topic_with_assignments_is_created_without_numbers() -> None:
    topic = NewTopic("a", configs={"x": "1"}, assignments={0: [1, 2]})
    call = create_topics_call({"a": topic}, validate_only=False)
    request = call.build(["a"], 1_000)
    (sent,) = request.topics  # type: ignore[attr-defined]
    assert (sent.num_partitions, sent.replication_factor) == (-1, -1)
    assert [(each.partition_index, each.broker_ids) for each in sent.assignments] == [(0, [1, 2])]
    assert call.changes


def test_configs_of_a_created_topic_are_none_without_the_right_to_describe_them() -> None:
    response = CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name="a", topic_id=TOPIC_ID, topic_config_error_code=29),
            CreatableTopicResult(
                name="b",
                configs=[CreatableTopicConfigs(name="x", value="1", config_source=1)],
            ),
        ]
    )
    call = create_topics_call({}, validate_only=True)
    found = call.read(CreateTopicsResponse.decode(response.encode(7), 7), ["a", "b"])
    one, two = found["a"], found["b"]
    assert not isinstance(one, KprotoError)
    assert not isinstance(two, KprotoError)
    assert (one.topic_id, one.configs) == (TOPIC_ID, None)
    assert two.configs is not None
    assert two.configs["x"].source is ConfigSource.TOPIC
    assert not call.changes


def test_topics_are_deleted_by_name_and_by_id() -> None:
    call = delete_topics_call()
    request = call.build(["a", TOPIC_ID], 1_000)
    assert isinstance(request, DeleteTopicsRequest)
    assert [(each.name, each.topic_id) for each in request.topics][1] == (None, TOPIC_ID)
    assert call.build_older is not None
    older = call.build_older(["a"], 1_000)
    assert isinstance(older, DeleteTopicsRequest)
    assert (older.topic_names, list(older.topics)) == (["a"], [])
    response = DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name="a", error_code=3, error_message="gone"),
            DeletableTopicResult(name="b", topic_id=TOPIC_ID),
        ]
    )
    found = call.read(response, ["a", TOPIC_ID])
    assert found[TOPIC_ID] is None
    assert str(found["a"]).endswith("deleting topic 'a': gone")


def test_partitions_are_added_with_and_without_assignments() -> None:
    call = create_partitions_call(
        {"a": NewPartitions(3), "b": NewPartitions(2, [[1, 2]])}, validate_only=False
    )
    one, two = call.build(["a", "b"], 1_000).topics  # type: ignore[attr-defined]
    assert (one.count, one.assignments) == (3, None)
    assert [each.broker_ids for each in two.assignments] == [[1, 2]]
    response = CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name="a", error_code=37)]
    )
    (error,) = call.read(response, ["a"]).values()
    assert isinstance(error, BrokerResponseError)
    assert error.name in call.done_errors


def test_pages_of_partitions_continue_at_the_cursor() -> None:
    pages = TopicPages(["b", "a", "c"], 2, operations=True)

    def page(topics: dict[str, list[int]], cursor: tuple[str, int] | None) -> None:
        pages.add(
            DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(
                        name=name,
                        topic_authorized_operations=1 << 3 | 1 << 99 if name == "a" else 1 << 3,
                        partitions=[
                            DescribeTopicPartitionsResponsePartition(
                                partition_index=at, eligible_leader_replicas=[1]
                            )
                            for at in its
                        ],
                    )
                    for name, its in topics.items()
                ],
                next_cursor=None
                if cursor is None
                else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
            )
        )

    sent = []
    for topics, cursor in (({"a": [0, 1]}, ("a", 2)), ({"a": [2], "b": [0]}, ("c", 0)), ({}, None)):
        request = pages.next_request
        assert request is not None
        at = request.cursor and (request.cursor.topic_name, request.cursor.partition_index)
        sent.append(([each.name for each in request.topics], at))
        page(topics, cursor)
    assert sent == [(["a", "b", "c"], None), (["a", "b", "c"], ("a", 2)), (["c"], ("c", 0))]
    assert pages.next_request is None
    found = pages.topics["a"]
    assert isinstance(found, TopicDescription)
    assert sorted(found.partitions) == [0, 1, 2]
    assert found.partitions[0].eligible_leaders == (1,)
    assert found.authorized_operations == frozenset({AclOperation.READ})


def test_authorized_operations_that_were_not_requested_are_none() -> None:
    assert authorized_operations(-(2**31)) is None
    assert authorized_operations(0) == frozenset()
    assert authorized_operations(1 << 8 | 1 << 3) == frozenset(
        {AclOperation.DESCRIBE, AclOperation.READ}
    )


def test_codes_of_later_releases_become_unknown() -> None:
    assert ConfigSource(99) is ConfigSource.UNKNOWN
    with pytest.raises(ValueError, match="'x' is not a valid"):
        ConfigSource("x")  # type: ignore[arg-type]


def test_configs_are_described_with_synonyms_and_type() -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, "a")
    call = describe_configs_call(["x"], synonyms=True, documentation=True)
    request = call.build([resource], 1_000)
    assert call.parts_of is not None
    assert list(call.parts_of(request)) == [resource]
    synonym = DescribeConfigsSynonym(name="log.x", value="2", source=5)
    config = DescribeConfigsResourceResult(
        name="x", value=None, config_source=1, is_sensitive=True, config_type=9, synonyms=[synonym]
    )
    response = DescribeConfigsResponse(
        results=[DescribeConfigsResult(resource_type=2, resource_name="a", configs=[config])]
    )
    found = call.read(response, [resource])[resource]
    assert not isinstance(found, KprotoError)
    entry = found["x"]
    assert (entry.value, entry.is_sensitive, entry.type) == (None, True, ConfigType.PASSWORD)
    assert entry.synonyms == (("log.x", "2", ConfigSource.DEFAULT),)
    assert not entry.is_default


def test_a_default_of_brokers_before_sources_is_told() -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, "a")
    configs = [
        DescribeConfigsResourceResult(name="x", is_default=True),
        DescribeConfigsResourceResult(name="y"),
    ]
    response = DescribeConfigsResponse(
        results=[DescribeConfigsResult(resource_type=2, resource_name="a", configs=configs)]
    )
    call = describe_configs_call(None, synonyms=False, documentation=False)
    found = call.read(DescribeConfigsResponse.decode(response.encode(0), 0), [resource])[resource]
    assert not isinstance(found, KprotoError)
    assert {name: each.is_default for name, each in found.items()} == {"x": True, "y": False}


def test_none_in_a_dict_of_changes_deletes_the_config() -> None:
    assert config_ops({"x": "1", "y": None}) == [
        AlterConfigOp("x", "1"),
        AlterConfigOp("y", None, ConfigOpType.DELETE),
    ]
    resource = ConfigResource(ConfigResourceType.GROUP, "g")
    call = alter_configs_call({resource: config_ops({"x": "secret"})}, validate_only=True)
    request = call.build([resource], 1_000)
    assert "secret" not in repr(request)
    assert "secret" not in repr(config_ops({"x": "secret"}))


def test_records_are_deleted_before_the_offset_of_each_partition() -> None:
    call = delete_records_call({("a", 0): 3, ("a", 1): -1, ("b", 0): 0})
    request = call.build([("a", 1), ("b", 0), ("a", 0)], 500)
    assert call.parts_of is not None
    assert list(call.parts_of(request)) == [("a", 1), ("a", 0), ("b", 0)]
    assert request.timeout_ms == 500  # type: ignore[attr-defined]


# Offsets


def test_kinds_of_offsets_are_sent_as_their_timestamps() -> None:
    specs = checked_specs({("a", 0): "max_timestamp", ("a", 1): 5, ("b", 0): "latest"})
    request = list_offsets_request(specs, {("a", 1): 7}, 900, read_committed=True)
    decoded = ListOffsetsRequest.decode(request.encode(11), 11)
    assert [
        (topic.name, each.partition_index, each.timestamp, each.current_leader_epoch)
        for topic in decoded.topics
        for each in topic.partitions
    ] == [("a", 0, -3, -1), ("a", 1, 5, 7), ("b", 0, -1, -1)]
    assert (decoded.isolation_level, decoded.timeout_ms) == (1, 900)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("max_timestamp", 7),
        ("earliest_local", 8),
        ("latest_tiered", 9),
        ("earliest_pending_upload", 11),
    ],
)
def test_a_kind_of_offset_needs_its_version(kind: str, version: int) -> None:
    specs = checked_specs({("a", 0): kind})  # type: ignore[dict-item]
    request = list_offsets_request(specs, {}, 900, read_committed=False)
    check_offsets_version(request, version)
    release = release_table.added_in("ListOffsets", version)
    assert release is not None
    line = ".".join(release.split(".")[:2])
    with pytest.raises(UnsupportedVersionError, match=f"since Kafka {line}; this broker") as failed:
        check_offsets_version(request, version - 1)
    assert kind in str(failed.value)


def test_offsets_of_old_brokers_are_read() -> None:
    part = ListOffsetsPartitionResponse(old_style_offsets=[5])
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[part])])
    assert listed_offsets(response, [("a", 0)]) == {("a", 0): (5, -1, -1)}
