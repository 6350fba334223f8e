"""Tests that a topic id does not reveal the name of a topic that the client may not describe."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker.authorizer import Acl
from kproto.broker.context import Context
from kproto.messages.base import Request
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.wire.uuid import Uuid
from tests.support.batches import batch_bytes
from tests.unit.broker.authorizer.authorization_scenarios import APIS
from tests.unit.broker.authorizer.test_enforcement import context

NAME = "the-hidden-one"


def by_id(topic_id: Uuid) -> list[Request[Any]]:
    """Returns requests with a topic id, for the latest versions of four APIs."""
    data = PartitionProduceData(index=0, records=batch_bytes(1))
    return [
        ProduceRequest(
            acks=1, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
        ),
        FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition()])]),
        MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)]),
        DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)]),
    ]


def answers(where: Context) -> list[str]:
    topic = where.cluster.plan_topic(NAME)
    where.cluster.topics.add(topic)
    texts = []
    for request in by_id(topic.topic_id):
        api = APIS[request.API_KEY]
        response = api.handle(where, request, max(api.versions))
        assert topic in list(where.cluster.topics), "nothing was deleted"
        texts.append(repr(response))
    return texts


@pytest.mark.parametrize("acls", [[], [Acl.parse(f"deny User:alice describe topic {NAME}")]])
def test_topic_id_does_not_reveal_the_name(acls: list[Acl]) -> None:
    assert not [text for text in answers(context(acls)) if NAME in text]


def test_error_names_topic_if_client_may_describe_it() -> None:
    produced, _, described, deleted = answers(
        context([Acl.parse(f"allow User:alice describe topic {NAME}")])
    )
    assert f"may not WRITE TOPIC '{NAME}'" in produced
    assert f"name='{NAME}'" in described
    assert f"may not DELETE TOPIC '{NAME}'" in deleted
