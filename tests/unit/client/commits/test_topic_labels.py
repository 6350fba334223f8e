"""Tests topic labels in commit metadata: a consumer ignores a commit for a deleted topic."""

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
from kproto.client.commits.processed_bitmap import MAX_METADATA_BYTES
from kproto.client.commits.topic_labels import CommittedTopicId, add_label, split_label
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

#: Kafka 3.9.2 has OffsetCommit up to v9, which names topics and has no topic ids.
BY_NAME = BrokerSettings(release="3.9.2")


@pytest.mark.parametrize("text", ["", DONE])
def test_metadata_of_kproto_is_labelled_and_restored(text: str) -> None:
    metadata = add_label(text, "c", A)
    assert metadata.startswith(f"kproto.topic/1 c {A}")
    assert split_label(metadata) == (CommittedTopicId("c", str(A)), text)


@pytest.mark.parametrize(
    ("text", "cluster_id", "topic_id"),
    [
        ("of the user", "c", A),
        ("", None, A),
        ("", "two words", A),
        ("", "c", ZERO_UUID),
        (DONE.ljust(MAX_METADATA_BYTES, "A"), "c", A),
    ],
)
def test_metadata_without_a_label_stays_unchanged(
    text: str, cluster_id: str | None, topic_id: Uuid
) -> None:
    assert add_label(text, cluster_id, topic_id) == text
    assert split_label(text) == (None, text)


def test_label_of_another_cluster_is_no_other_topic() -> None:
    label = CommittedTopicId("c", str(A))
    assert label.is_of_another("c", B)
    assert not label.is_of_another("c", A)
    assert not label.is_of_another("c", ZERO_UUID)
    assert not label.is_of_another("d", B), "a copy of the topic"
    assert not label.is_of_another(None, B)


@dataclass
class BrokerByName:
    """A client of a broker that stores committed offsets by topic name, not by topic id.

    `fill` creates topic `t`.
    """

    client: Client

    async def fill(self, prefix: str, count: int = 10) -> None:
        await self.client.create_topics(NewTopic("t"))
        async with self.client.producer() as producer:
            await producer.send_many("t", [f"{prefix} {at}".encode() for at in range(count)])

    async def raw(self) -> tuple[int, str]:
        """Returns the committed offset and the commit metadata, as the broker stores them."""
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        group = OffsetFetchRequestGroup(group_id="g", topics=topics)
        answer = await self.client.request(OffsetFetchRequest(groups=[group]), version=8)
        (found,) = answer.groups[0].topics[0].partitions
        return found.committed_offset, found.metadata or ""

    async def commit(self, offset: int, metadata: str) -> None:
        """Commits with OffsetCommit v8, as a member with outdated topic metadata does."""
        part = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        topics = [OffsetCommitRequestTopic(name="t", partitions=[part])]
        request = OffsetCommitRequest(group_id="g", topics=topics)
        answer = await self.client.request(request, version=8)
        assert not answer.topics[0].partitions[0].error_code


@asynccontextmanager
async def named(settings: BrokerSettings = BY_NAME) -> AsyncIterator[BrokerByName]:
    async with Broker(settings) as broker, Client(broker.bootstrap) as client:
        it = BrokerByName(client)
        await it.fill("old")
        yield it


async def read(it: BrokerByName, count: int, start: Any = "earliest") -> list[bytes | None]:
    async with it.client.consumer("t", group="g", start=start) as consumer:
        return [(await anext(aiter(consumer))).value for _ in range(count)]


@pytest.mark.parametrize("start", ["earliest", "latest", "none"])
async def test_late_commit_of_a_deleted_topic_is_ignored(
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


async def test_committed_hides_labels_and_commits_of_a_deleted_topic() -> None:
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


async def test_commit_copied_from_another_cluster_is_used() -> None:
    async with named() as it:
        await it.commit(4, add_label("", "another", A))
        assert await read(it, 1) == [b"old 4"]


async def test_offsets_processed_ahead_are_committed_with_the_label() -> None:
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
        assert split_label(metadata)[1].startswith("kproto.done/1 ")
        assert sorted(handled) == [0, 1, *range(3, 10)]
        assert await read(it, 1) == [b"old 2"]
        assert (await it.raw())[0] == 10


async def test_label_beyond_the_metadata_limit_is_left_out() -> None:
    async with named(BrokerSettings(release="3.9.2", offset_metadata_max_bytes=3)) as it:
        await read(it, 5)
        assert await it.raw() == (5, "")


async def test_commit_by_topic_id_has_no_label() -> None:
    async with named(BrokerSettings()) as it:
        await read(it, 5)
        assert await it.raw() == (5, "")
