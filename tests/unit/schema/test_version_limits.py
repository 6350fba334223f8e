"""Tests which versions of a message can encode the values of its fields."""

from __future__ import annotations

import pytest

from kproto.messages import (
    AddPartitionsToTxnRequest,
    DeleteTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kproto.messages.alter_partition_request import AlterPartitionRequest, TopicData
from kproto.messages.base import Message
from kproto.messages.delete_topics_request import DeleteTopicState
from kproto.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.offset_commit_request import OffsetCommitRequestTopic
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kproto.messages.produce_request import TopicProduceData
from kproto.messages.txn_offset_commit_request import TxnOffsetCommitRequestTopic
from kproto.schema.version_limits import (
    highest_version_limit,
    lowest_version_limit,
    versioned_fields,
)
from kproto.wire.uuid import Uuid

ID = Uuid(bytes(15) + b"\x01")


@pytest.mark.parametrize(
    ("message", "path", "last"),
    [
        (DeleteTopicsRequest(topic_names=["t"]), "topic_names", 5),
        (DeleteTopicsRequest(topic_names=["t"], topics=[DeleteTopicState()]), "topic_names", 5),
        (FetchRequest(topics=[FetchTopic(topic="t")]), "topics[0].topic", 12),
        (
            FetchRequest(
                topics=[FetchTopic(topic_id=ID)],
                forgotten_topics_data=[ForgottenTopic(topic_id=ID), ForgottenTopic(topic="t")],
            ),
            "forgotten_topics_data[1].topic",
            12,
        ),
        (ProduceRequest(topic_data=[TopicProduceData(name="t")]), "topic_data[0].name", 12),
        (OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t")]), "topics[0].name", 9),
        (
            OffsetCommitRequest(retention_time_ms=5, topics=[OffsetCommitRequestTopic(name="t")]),
            "retention_time_ms",
            4,
        ),
        (
            TxnOffsetCommitRequest(topics=[TxnOffsetCommitRequestTopic(name="t")]),
            "topics[0].name",
            5,
        ),
        (OffsetFetchRequest(group_id="g"), "group_id", 7),
        (
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id="g", topics=[OffsetFetchRequestTopics(name="t")]
                    )
                ]
            ),
            "groups[0].topics[0].name",
            9,
        ),
        (AlterPartitionRequest(topics=[TopicData(topic_name="t")]), "topics[0].topic_name", 1),
        (FindCoordinatorRequest(key="g"), "key", 3),
        (
            AddPartitionsToTxnRequest(v3_and_below_transactional_id="x"),
            "v3_and_below_transactional_id",
            3,
        ),
        (
            MetadataRequest(include_cluster_authorized_operations=True),
            "include_cluster_authorized_operations",
            10,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else str(value),
)
def test_a_set_field_that_ends_limits_the_highest_version(
    message: Message, path: str, last: int
) -> None:
    found = highest_version_limit(versioned_fields(message._definition()), message)
    assert found is not None
    assert (found.path, found.versions.highest) == (path, last)


@pytest.mark.parametrize(
    "message",
    [
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]),
        FetchRequest(topics=[FetchTopic(topic="t", topic_id=ID)]),
        ProduceRequest(topic_data=[TopicProduceData(name="t", topic_id=ID)]),
        OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", topic_id=ID)]),
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]),
        FindCoordinatorRequest(coordinator_keys=["g"]),
        JoinGroupRequest(group_id="g", reason="begins with version 8, and is ignorable"),
        MetadataRequest(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_fields_do_not_limit_the_highest_version(message: Message) -> None:
    assert highest_version_limit(versioned_fields(message._definition()), message) is None


@pytest.mark.parametrize(
    ("message", "path", "first"),
    [
        (DeleteTopicsRequest(topic_names=["t"], topics=[DeleteTopicState()]), "topics", 6),
        (ProduceRequest(topic_data=[TopicProduceData(topic_id=ID)]), "topic_data[0].topic_id", 13),
        (FetchRequest(topics=[FetchTopic(topic_id=ID)]), "topics[0].topic_id", 13),
        (
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id="g", topics=[OffsetFetchRequestTopics(topic_id=ID)]
                    )
                ]
            ),
            "groups[0].topics[0].topic_id",
            10,
        ),
        (
            OffsetCommitRequest(
                topics=[
                    OffsetCommitRequestTopic(name="t"),
                    OffsetCommitRequestTopic(topic_id=ID),
                ]
            ),
            "topics[1].topic_id",
            10,
        ),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=ID)]), "topics[0].topic_id", 10),
        (JoinGroupRequest(group_instance_id="static"), "group_instance_id", 5),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else str(value),
)
def test_a_set_field_that_begins_later_limits_the_lowest_version(
    message: Message, path: str, first: int
) -> None:
    found = lowest_version_limit(versioned_fields(message._definition()), message)
    assert found is not None
    assert (found.path, found.versions.lowest) == (path, first)


@pytest.mark.parametrize(
    "message",
    [
        FetchRequest(rack_id="r", topics=[FetchTopic(topic="t", topic_id=ID)]),
        FetchRequest(
            topics=[FetchTopic(topic="t", partitions=[FetchPartition(replica_directory_id=ID)])]
        ),
        OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", topic_id=ID)]),
        MetadataRequest(topics=[MetadataRequestTopic(name="t", topic_id=ID)]),
        JoinGroupRequest(group_id="g", reason="begins with version 8, and is ignorable"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ignorable_fields_do_not_limit_the_lowest_version(message: Message) -> None:
    assert lowest_version_limit(versioned_fields(message._definition()), message) is None
