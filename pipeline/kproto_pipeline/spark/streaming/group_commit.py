"""Commits a query's offsets for a consumer group, so that lag tools see its progress.

Sends one request, OffsetCommit. No query depends on it: an error is logged as a warning.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.protocol.error_codes import error_of_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.client import Client, TopicPartition
    from kproto.messages.offset_commit_response import OffsetCommitResponse
    from kproto.wire.uuid import Uuid

__all__ = ["commit_offsets"]

logger = logging.getLogger("kproto.pipeline")


async def commit_offsets(
    client: Client,
    group: str,
    offsets: Mapping[TopicPartition, int],
    topic_ids: Mapping[TopicPartition, Uuid],
) -> None:
    """Commits offsets for a group without members (KIP-211), as Kafka's admin client does.

    Raises:
        KprotoError: the group has members; or any other error of the coordinator or the client.
    """
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, partition), offset in sorted(offsets.items()):
        if (name, partition) not in topic_ids:
            continue  # the topic or partition was deleted
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = OffsetCommitRequestTopic(
                name=name, topic_id=topic_ids[name, partition]
            )
        topic.partitions.append(
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        )
    request = OffsetCommitRequest(group_id=group, topics=list(topics.values()))

    async def commit() -> OffsetCommitResponse:
        answer = await client.request(request)
        for found in answer.topics:
            for each in found.partitions:
                if each.error_code:
                    raise error_of_code(each.error_code, f"OffsetCommit of group {group!r}")
        return answer

    await client.retrying(commit)
