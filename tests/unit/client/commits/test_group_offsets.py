"""Tests commits for a group without members, against the embedded broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import BrokerResponseError, ConfigurationError, NewTopic
from kproto.broker import Broker, BrokerSettings
from kproto.client import Client, ClientSettings
from kproto.client.commits.topic_labels import split_label
from kproto.messages import OffsetFetchRequest
from kproto.messages.offset_fetch_request import OffsetFetchRequestGroup
from kproto.wire.uuid import Uuid

TP, OTHER = ("t", 0), ("t", 1)

#: Kafka 3.9.2 has OffsetCommit up to v9, by topic name; the newest release has v10, by topic id.
RELEASES = pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])


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


@asynccontextmanager
async def recreated_topic(release: str) -> AsyncIterator[tuple[Client, Client, str]]:
    """Yields (outdated client, current client, bootstrap address) after topic `t` was recreated.

    The outdated client has metadata of the deleted topic; the current client recreated the topic.
    """
    settings = ClientSettings(api_timeout_ms=2_000, delivery_timeout_ms=2_000)
    async with (
        Broker(BrokerSettings(release=release)) as broker,
        Client(broker.bootstrap, settings) as outdated,
        Client(broker.bootstrap, settings) as current,
    ):
        await current.create_topics(NewTopic("t"))
        await outdated.topic("t")
        await current.delete_topics("t")
        await current.create_topics(NewTopic("t"))
        async with current.producer() as producer:
            await producer.send_many("t", [b"%d" % number for number in range(9)])
        yield outdated, current, broker.bootstrap


async def first_value(client: Client) -> bytes | None:
    """Returns the value of the first record that a member of group `g` reads."""
    async with client.consumer("t", group="g", start="earliest", auto_commit=False) as consumer:
        return (await anext(aiter(consumer))).value


@RELEASES
async def test_commit_is_for_the_topic_that_exists_at_the_call(release: str) -> None:
    async with recreated_topic(release) as (outdated, current, _):
        await outdated.commit_offsets("g", {TP: 3})
        assert await first_value(current) == b"3"


@RELEASES
async def test_manual_assignment_commits_for_the_topic_that_exists_at_its_start(
    release: str,
) -> None:
    async with recreated_topic(release) as (outdated, current, _):
        async with outdated.consumer([TP], group="g", auto_commit=False) as consumer:
            await consumer.commit({TP: 4})
        assert await first_value(current) == b"4"


@pytest.mark.parametrize("knows_topic", [False, True])
async def test_committed_leaves_out_the_commit_of_a_deleted_topic(knows_topic: bool) -> None:
    async with (
        recreated_topic("3.9.2") as (outdated, current, bootstrap),
        Client(bootstrap) as newcomer,
    ):
        old_id = (await outdated.topic("t")).topic_id
        await current.commit_offsets("g", {TP: 5}, topic_ids={TP: old_id})
        client = outdated if knows_topic else newcomer
        async with client.consumer([TP], group="g", auto_commit=False) as consumer:
            assert await consumer.committed(TP) == {TP: None}


@pytest.mark.parametrize(
    "offsets",
    [{TP: -1}, {TP: True}, {TP: "3"}, {TP: 3.5}, {TP: 2**63}, {"t": 3}, {("t", "0"): 3}],
)
async def test_invalid_offsets_are_refused_before_any_request(offsets: Any) -> None:
    client = Client("127.0.0.1:1")  # never connected
    with pytest.raises(ConfigurationError):
        await client.commit_offsets("g", offsets)
