"""Tests commits for a group without members, against the embedded broker."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker import Broker
from kproto.client import Client, ClientSettings
from kproto.client.commits.topic_labels import split_label
from kproto.messages import OffsetFetchRequest
from kproto.messages.offset_fetch_request import OffsetFetchRequestGroup
from kproto.wire.uuid import Uuid

TP, OTHER = ("t", 0), ("t", 1)


async def committed(client: Client, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    """Returns the committed offset and metadata of each partition, by topic name."""
    groups = [OffsetFetchRequestGroup(group_id=group, topics=None)]
    (found,) = (await client.request(OffsetFetchRequest(groups=groups))).groups
    names = {(await client.topic("t")).topic_id: "t"}
    return {
        (topic.name or names[topic.topic_id], each.partition_index): (
            each.committed_offset,
            each.metadata or "",
        )
        for topic in found.topics
        for each in topic.partitions
    }


async def test_offsets_are_committed_for_a_group_without_members() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=2)
        await client.commit_offsets("g", {TP: 3, OTHER: 7})
        await client.commit_offsets("g", {TP: 4})
        assert await committed(client, "g") == {TP: (4, ""), OTHER: (7, "")}


async def test_commit_without_offsets_sends_nothing() -> None:
    client = Client("127.0.0.1:1")  # never connected
    await client.commit_offsets("g", {})


async def test_commit_by_name_has_the_topic_id_in_its_metadata() -> None:
    settings = ClientSettings(broker_version="3.9")
    async with Broker() as broker, Client(broker.bootstrap, settings) as client:
        broker.create_topic("t")
        await client.commit_offsets("g", {TP: 3})
        topic_id = (await client.topic("t")).topic_id
        ((offset, metadata),) = (await committed(client, "g")).values()
        label, stop_interval = split_label(metadata)
        assert offset == 3
        assert label is not None
        assert (label.topic_id, stop_interval) == (str(topic_id), "")


async def test_commit_of_a_deleted_topic_is_refused_by_its_id() -> None:
    settings = ClientSettings(api_timeout_ms=200, delivery_timeout_ms=200)
    async with Broker() as broker, Client(broker.bootstrap, settings) as client:
        broker.create_topic("t")
        with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_ID"):
            await client.commit_offsets("g", {TP: 3}, topic_ids={TP: Uuid.random()})
        assert await committed(client, "g") == {}


async def test_group_with_members_refuses_the_commit() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            await producer.send("t", b"v")
        async with client.consumer("t", group="g") as consumer:
            await anext(aiter(consumer))
            with pytest.raises(BrokerResponseError, match="UNKNOWN_MEMBER_ID"):
                await client.commit_offsets("g", {TP: 0})
