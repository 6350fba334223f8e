"""Tests that OFFSET_METADATA_TOO_LARGE shortens the metadata of the retry and of later commits."""

from __future__ import annotations

from kproto.client.commits.processed_bitmap import build_bitmap, encode_bitmap
from tests.unit.client.consumer.grouped import group
from tests.unit.client.consumer.test_group_reading import P0, TEN


async def test_explicit_commits_honour_the_length_that_was_refused() -> None:
    incomplete = build_bitmap(9, [2, 4], -1)
    async with group(TEN) as it:
        it.coordinator.offsets[P0] = (2, -1, encode_bitmap(incomplete, 2))
        async with it.consumer(auto_commit=False) as consumer:
            await it.owner.assign([P0])
            assert await consumer.position(P0) == 2
            it.coordinator.commit_errors = ["OFFSET_METADATA_TOO_LARGE"]
            await consumer.commit({P0: 2})
            await consumer.commit({P0: 4})
        sent = [
            part.committed_metadata
            for commit in it.coordinator.commits
            for topic in commit.topics
            for part in topic.partitions
        ]
        assert sent == [encode_bitmap(incomplete, 2), "", ""]
