"""Tests CreateAcls, DescribeAcls and DeleteAcls, and requests that are partly authorized."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import Client, ConfigurationError, DeliveryError
from kproto.broker import Acl, Broker, BrokerSettings, Operation, ResourceType
from kproto.broker.context import Context
from kproto.messages.base import Request
from kproto.messages.create_acls_request import AclCreation, CreateAclsRequest
from kproto.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kproto.messages.describe_acls_request import DescribeAclsRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.protocol.error_codes import error_code
from tests.support.batches import batch_bytes

from .authorization_scenarios import APIS
from .test_enforcement import context

ADMIN = Acl("User:alice", Operation.ALL, ResourceType.CLUSTER, "kafka-cluster")
READ_T = Acl("User:alice", Operation.READ, ResourceType.TOPIC, "t")


def ask(where: Context, request: Request[Any], version: int) -> Any:
    sent = type(request).decode(request.encode(version), version)
    answer: Any = APIS[request.API_KEY].handle(where, sent, version)
    return type(answer).decode(answer.encode(version), version)


def creation(**fields: Any) -> AclCreation:
    return AclCreation(
        **{
            "resource_type": 2,
            "resource_name": "t",
            "principal": "User:bob",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
            **fields,
        }
    )


def deletion(**fields: Any) -> DeleteAclsFilter:
    return DeleteAclsFilter(**filtering(**fields))


def filtering(**fields: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
        **fields,
    }


def names(results: Any) -> list[str]:
    return [error_code(result.error_code).name for result in results]


@pytest.mark.parametrize("version", range(4))
def test_acls_are_created_found_and_deleted(version: int) -> None:
    where = context([ADMIN])
    request = CreateAclsRequest(creations=[creation(), creation(), creation(resource_name="*")])
    assert names(ask(where, request, version).results) == ["NONE"] * 3
    found = ask(where, DescribeAclsRequest(**filtering(principal_filter="User:bob")), version)
    assert (found.error_code, found.error_message) == (0, "")
    assert sorted(it.resource_name for it in found.resources) == ["*", "t"]
    assert {(it.pattern_type, len(it.acls)) for it in found.resources} == {(3, 1)}
    deleting = DeleteAclsRequest(
        filters=[deletion(resource_name_filter="t"), deletion(principal_filter="User:bob")]
    )
    results = ask(where, deleting, version).filter_results
    assert names(results) == ["NONE"] * 2
    assert [len(result.matching_acls) for result in results] == [1, 2], "each is told what it found"
    assert where.cluster.authorizer is not None
    assert list(where.cluster.authorizer) == [ADMIN]


@pytest.mark.parametrize("version", range(4))
def test_without_an_authorizer_there_are_no_acls(version: int) -> None:
    where = context([])
    where.cluster.authorizer = None
    assert (
        names(ask(where, CreateAclsRequest(creations=[creation()] * 2), version).results)
        == ["SECURITY_DISABLED"] * 2
    )
    deleting = DeleteAclsRequest(filters=[deletion()])
    assert names(ask(where, deleting, version).filter_results) == ["SECURITY_DISABLED"]
    assert names([ask(where, DescribeAclsRequest(**filtering()), version)]) == ["SECURITY_DISABLED"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"resource_pattern_type": 77},
        {"operation": 1},
        {"operation": 77},
        {"permission_type": 1},
        {"permission_type": 9},
        {"resource_name": ""},
        {"resource_type": 4, "resource_name": "mine"},
        {"principal": "alice"},
        {"host": ""},
    ],
    ids=str,
)
def test_invalid_acl_fails_alone(wrong: dict[str, Any]) -> None:
    where = context([ADMIN])
    request = CreateAclsRequest(creations=[creation(**wrong), creation()])
    first, second = ask(where, request, 3).results
    assert names([first, second]) == ["INVALID_REQUEST", "NONE"]
    assert first.error_message


@pytest.mark.parametrize("word", ["operation", "permission_type"])
def test_code_zero_is_invalid_request(word: str) -> None:
    where = context([ADMIN])
    created = ask(where, CreateAclsRequest(creations=[creation(**{word: 0})]), 3)
    described = ask(where, DescribeAclsRequest(**filtering(**{word: 0})), 3)
    deleted = ask(where, DeleteAclsRequest(filters=[deletion(**{word: 0})]), 3)
    results = [*created.results, described, *deleted.filter_results]
    assert names(results) == ["INVALID_REQUEST"] * 3


def test_unknown_code_matches_and_deletes_no_acl() -> None:
    where = context([ADMIN])
    assert ask(where, DescribeAclsRequest(**filtering(operation=88)), 3).resources == []
    deleting = DeleteAclsRequest(filters=[deletion(operation=88)])
    assert names(ask(where, deleting, 3).filter_results) == ["INVALID_REQUEST"]


def test_one_topic_denied_does_not_fail_the_others() -> None:
    write_t = Acl("User:alice", Operation.WRITE, ResourceType.TOPIC, "t")
    where = context([READ_T, write_t])
    where.cluster.topics.add(where.cluster.plan_topic("u"))
    wanted = ("u", "t", "none")
    data = [PartitionProduceData(records=batch_bytes())]
    produced = ask(
        where,
        ProduceRequest(
            acks=1, topic_data=[TopicProduceData(name=n, partition_data=data) for n in wanted]
        ),
        9,
    )
    fetched = ask(
        where,
        FetchRequest(
            topics=[
                FetchTopic(topic=n, partitions=[FetchPartition(partition_max_bytes=1 << 20)])
                for n in wanted
            ]
        ),
        11,
    )
    expected = ["TOPIC_AUTHORIZATION_FAILED", "NONE", "TOPIC_AUTHORIZATION_FAILED"]
    assert [names(topic.partition_responses) for topic in produced.responses] == [
        [error] for error in expected
    ]
    assert [names(topic.partitions) for topic in fetched.responses] == [
        [error] for error in sorted(expected)
    ], "what could be read comes first"
    assert [bool(topic.partitions[0].records) for topic in fetched.responses] == [1, 0, 0]
    assert where.cluster.topics.named("u").partitions[0].log.end_offset == 0


def test_deleted_acl_takes_effect_at_once() -> None:
    where = context([READ_T])
    request = FetchRequest(
        topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition_max_bytes=9)])]
    )
    assert names(ask(where, request, 11).responses[0].partitions) == ["NONE"]
    assert where.cluster.authorizer is not None
    where.cluster.authorizer.remove(READ_T)
    assert names(ask(where, request, 11).responses[0].partitions) == ["TOPIC_AUTHORIZATION_FAILED"]


def test_authorized_operations_are_those_of_the_client() -> None:
    where = context([READ_T, Acl("User:alice", Operation.ALTER_CONFIGS, ResourceType.TOPIC, "*")])
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="t")], include_topic_authorized_operations=True
    )
    (topic,) = ask(where, request, 12).topics
    found = {it for it in Operation if topic.topic_authorized_operations & 1 << it}
    assert found == {
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    }


async def test_client_gets_authorization_error() -> None:
    settings = BrokerSettings(
        authorizer=True,
        acls=(
            "allow User:ANONYMOUS read topic open",
            "allow User:ANONYMOUS write topic open",
            "allow User:* describe topic *",
        ),
    )
    async with Broker(settings) as broker, Client(broker.bootstrap) as client:
        for name in ("open", "closed"):
            broker.create_topic(name)
        async with client.producer() as producer:
            await producer.send("open", b"v")
            with pytest.raises(DeliveryError, match="TOPIC_AUTHORIZATION_FAILED"):
                await producer.send("closed", b"v")
        assert len(broker.records("open")) == 1
        assert broker.records("closed") == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"super_users": ("User:root",)}, "super_users have no effect without authorizer"),
        ({"acls": ("allow User:a read topic t",)}, "acls have no effect without authorizer"),
        ({"authorizer": True, "super_users": ("root",)}, "'root', which is not of the form"),
        ({"authorizer": True, "acls": ("allow User:a read topic",)}, "has 4 words"),
    ],
)
def test_invalid_authorizer_settings_raise(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        BrokerSettings(**wrong)
