"""Provides the coordinator of one group's offsets, at a scripted broker.

The coordinator answers FindCoordinator, OffsetCommit and OffsetFetch. A test reads and sets
`offsets`, makes commits fail or wait, and makes fetches of offsets fail.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kproto.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.offset_commit_response import (
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of
from kproto.wire.uuid import Uuid
from tests.unit.client.scripted_broker import ScriptedBroker

__all__ = ["ScriptedCoordinator"]


class ScriptedCoordinator:
    """Stores `offsets` by partition: offset, leader epoch and metadata.

    `names` maps topic ids to topic names.
    """

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.offsets: dict[tuple[str, int], tuple[int, int, str]] = {}
        self.names: dict[Uuid, str] = {}
        self.commits: list[OffsetCommitRequest] = []
        #: Errors by name: each fails one commit or fetch; later requests succeed.
        self.commit_errors: list[str] = []
        self.fetch_errors: list[str] = []
        #: Errors by partition, for every commit.
        self.refused: dict[tuple[str, int], str] = {}
        #: Responses to commits wait until this event is set.
        self.answers = asyncio.Event()
        self.answers.set()
        broker.answers[FindCoordinatorRequest] = self.find
        broker.answers[OffsetCommitRequest] = self.commit
        broker.answers[OffsetFetchRequest] = self.fetch

    @property
    def committed(self) -> list[dict[tuple[str, int], int]]:
        """The offsets of each commit, in order."""
        return [
            {
                (topic.name or self.names[topic.topic_id], part.partition_index): (
                    part.committed_offset
                )
                for topic in commit.topics
                for part in topic.partitions
            }
            for commit in self.commits
        ]

    def find(self, asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, FindCoordinatorRequest)
        port = self.broker.port
        if asked.version < 4:
            return FindCoordinatorResponse(node_id=0, host="127.0.0.1", port=port)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=0, host="127.0.0.1", port=port)
                for key in request.coordinator_keys
            ]
        )

    async def commit(self, asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, OffsetCommitRequest)
        self.commits.append(request)
        error = self.commit_errors.pop(0) if self.commit_errors else ""
        await self.answers.wait()
        topics = []
        for topic in request.topics:
            answer = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            name = topic.name or self.names[topic.topic_id]
            for part in topic.partitions:
                place = (name, part.partition_index)
                refused = error or self.refused.get(place, "")
                if not refused:
                    its = (
                        part.committed_offset,
                        part.committed_leader_epoch,
                        part.committed_metadata or "",
                    )
                    self.offsets[place] = its
                answer.partitions.append(
                    OffsetCommitResponsePartition(
                        partition_index=part.partition_index,
                        error_code=code_of(refused) if refused else 0,
                    )
                )
            topics.append(answer)
        return OffsetCommitResponse(topics=topics)

    def fetch(self, asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, OffsetFetchRequest)
        code = code_of(self.fetch_errors.pop(0)) if self.fetch_errors else 0
        if asked.version < 8:
            assert request.topics is not None
            return OffsetFetchResponse(
                topics=[
                    OffsetFetchResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetFetchResponsePartition(
                                **self._of(topic.name, at), error_code=code
                            )
                            for at in topic.partition_indexes
                        ],
                    )
                    for topic in request.topics
                ]
            )
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=[
                        OffsetFetchResponseTopics(
                            name=topic.name,
                            topic_id=topic.topic_id,
                            partitions=[
                                OffsetFetchResponsePartitions(
                                    **self._of(topic.name or self.names[topic.topic_id], at),
                                    error_code=code,
                                )
                                for at in topic.partition_indexes
                            ],
                        )
                        for topic in group.topics or ()
                    ],
                )
                for group in request.groups
            ]
        )

    def _of(self, name: str, partition: int) -> dict[str, Any]:
        offset, epoch, metadata = self.offsets.get((name, partition), (-1, -1, ""))
        return {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_leader_epoch": epoch,
            "metadata": metadata,
        }
