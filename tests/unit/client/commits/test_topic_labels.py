"""A commit by the name of a topic is not taken for one of another topic of that name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from kproto import Client, NewTopic, Record, Stop
from kproto.broker import Broker, BrokerSettings
from kproto.client.commits.incomplete_offsets import MOST_BYTES
from kproto.client.commits.topic_labels import Label, labelled, unlabelled
from kproto.messages import OffsetCommitRequest, OffsetFetchRequest
from kproto.messages.offset_commit_request import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kproto.wire.uuid import ZERO_UUID, Uuid

A = Uuid.parse("AAAAAAAAAAAAAAAAAAAACg")
B = Uuid.parse("AAAAAAAAAAAAAAAAAAAACw")
DONE = "kproto.done/1 AAAAAAAAAAAAAAAAAAAACg 3 0 r AQ=="

#: Knows OffsetCommit up to v9.
BY_NAME = BrokerSettings(release="3.9.2")


@pytest.mark.parametrize("text", ["", DONE])
def test_what_is_ours_is_labelled_and_comes_back(text: str) -> None:
    told = labelled(text, "c", A)
    assert told.startswith(f"kproto.topic/1 c {A}")
    assert unlabelled(told) == (Label("c", str(A)), text)


@pytest.mark.parametrize(
    ("text", "cluster_id", "topic_id"),
    [
        ("of the user", "c", A),
        ("", None, A),
        ("", "two words", A),
        ("", "c", ZERO_UUID),
        (DONE.ljust(MOST_BYTES, "A"), "c", A),
    ],
)
def test_what_is_not_labelled(text: str, cluster_id: str | None, topic_id: Uuid) -> None:
    assert labelled(text, cluster_id, topic_id) == text
    assert unlabelled(text) == (None, text)


def test_another_topic_is_one_of_the_same_cluster() -> None:
    label = Label("c", str(A))
    assert label.is_of_another("c", B)
    assert not label.is_of_another("c", A)
    assert not label.is_of_another("c", ZERO_UUID)
    assert not label.is_of_another("d", B), "a copy"
    assert not label.is_of_another(None, B)


@dataclass
class Named:
    """A broker that keeps commits by names, and topic `t`."""

    client: Client

    async def fill(self, what: str, count: int = 10) -> None:
        await self.client.create_topics(NewTopic("t"))
        async with self.client.producer() as producer:
            await producer.send_many("t", [f"{what} {at}".encode() for at in range(count)])

    async def raw(self) -> tuple[int, str]:
        """What the broker keeps: the offset, and the metadata."""
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        group = OffsetFetchRequestGroup(group_id="g", topics=topics)
        answer = await self.client.request(OffsetFetchRequest(groups=[group]), version=8)
        (found,) = answer.groups[0].topics[0].partitions
        return found.committed_offset, found.metadata or ""

    async def commit(self, offset: int, metadata: str) -> None:
        """As one who is late."""
        part = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        topics = [OffsetCommitRequestTopic(name="t", partitions=[part])]
        request = OffsetCommitRequest(group_id="g", topics=topics)
        answer = await self.client.request(request, version=8)
        assert not answer.topics[0].partitions[0].error_code


@asynccontextmanager
async def named(settings: BrokerSettings = BY_NAME) -> AsyncIterator[Named]:
    async with Broker(settings) as broker, Client(broker.bootstrap) as client:
        it = Named(client)
        await it.fill("old")
        yield it


async def read(it: Named, count: int, start: Any = "earliest") -> list[bytes | None]:
    async with it.client.consumer("t", group="g", start=start) as consumer:
        return [(await anext(aiter(consumer))).value for _ in range(count)]


@pytest.mark.parametrize("start", ["earliest", "latest", "none"])
async def test_a_late_commit_of_a_topic_that_was_counts_for_nothing(
    start: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with named() as it:
        await read(it, 5)
        offset, metadata = await it.raw()
        assert (offset, metadata[:15]) == (5, "kproto.topic/1 ")
        await it.client.delete_topics("t")
        await it.fill("new")
        await it.commit(offset, metadata)
        with caplog.at_level(logging.WARNING):
            assert await read(it, 3, start) == [b"new 0", b"new 1", b"new 2"]
        assert "t[0]: the committed offset belongs to a deleted topic" in caplog.text
        assert await read(it, 2, start) == [b"new 3", b"new 4"]


async def test_who_asks_is_told_of_no_commit_and_sees_no_label() -> None:
    async with named() as it:
        await read(it, 5)
        offset, metadata = await it.raw()
        async with it.client.consumer([("t", 0)], group="g") as consumer:
            found = (await consumer.committed(("t", 0)))["t", 0]
            assert found is not None
            assert (found.offset, found.metadata) == (5, "")
            await it.client.delete_topics("t")
            await it.fill("new")
            await it.commit(offset, metadata)
            assert await consumer.committed(("t", 0)) == {("t", 0): None}


async def test_a_copy_in_another_cluster_counts() -> None:
    async with named() as it:
        await it.commit(4, labelled("", "another", A))
        assert await read(it, 1) == [b"old 4"]


async def test_what_is_done_ahead_is_told_too() -> None:
    async with named() as it:
        handled = []
        others = asyncio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 2:
                await others.wait()
                raise Stop
            handled.append(record.offset)
            if len(handled) == 9:
                others.set()

        async with it.client.consumer("t", group="g") as consumer:
            await consumer.run(handle, order="none", workers=4)
        offset, metadata = await it.raw()
        assert offset == 2
        assert unlabelled(metadata)[1].startswith("kproto.done/1 ")
        assert sorted(handled) == [0, 1, *range(3, 10)]
        assert await read(it, 1) == [b"old 2"]
        assert (await it.raw())[0] == 10


async def test_a_broker_without_room_for_a_label_is_given_none() -> None:
    async with named(BrokerSettings(release="3.9.2", offset_metadata_max_bytes=3)) as it:
        await read(it, 5)
        assert await it.raw() == (5, "")


async def test_brokers_that_keep_commits_by_ids_are_given_none() -> None:
    async with named(BrokerSettings()) as it:
        await read(it, 5)
        assert await it.raw() == (5, "")
