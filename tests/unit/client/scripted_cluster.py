"""Provides `ScriptedCluster`: scripted brokers that share metadata and lead some partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from kproto.messages import MetadataRequest, MetadataResponse
from kproto.messages.base import Request
from kproto.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.unit.client.scripted_broker import Answer, ScriptedBroker

__all__ = ["ScriptedCluster", "scripted_cluster"]

NOT_THERE = 3
NO_SUCH_ID = 100


class ScriptedCluster:
    """Nodes 0, 1, …; a test changes `leaders`, and removes stopped nodes from `up`."""

    def __init__(self, brokers: list[ScriptedBroker]) -> None:
        self.brokers = brokers
        self.cluster_id = "scripted"
        self.error_code = 0
        self.up = list(range(len(brokers)))
        self.leaders: dict[str, list[int]] = {}  # leader nodes by partition, for each topic
        self.epochs: dict[str, list[int]] = {}
        self.ids: dict[str, Uuid] = {}
        for broker in brokers:
            broker.answers[MetadataRequest] = self.metadata

    @property
    def bootstrap(self) -> str:
        """Returns the address of node 0."""
        return self.brokers[0].bootstrap

    def answer(self, request: type[Request[Any]], answer: Answer) -> None:
        """Sets the answer of every node to `request`."""
        for broker in self.brokers:
            broker.answers[request] = answer

    def topic(self, name: str, leaders: list[int]) -> None:
        """Adds a topic with these leaders of its partitions."""
        self.leaders[name] = leaders
        self.epochs[name] = [0] * len(leaders)
        self.ids[name] = Uuid(name.encode().rjust(16, b"."))

    def move(self, name: str, partition: int, node: int) -> None:
        """Moves the leadership of a partition to `node`."""
        self.leaders[name][partition] = node
        self.epochs[name][partition] += 1

    def asked_for(self) -> list[list[str] | None]:
        """Returns the topic names of each Metadata request; None stands for all topics."""
        asked = [each for broker in self.brokers for each in broker.asked]
        found: list[list[str] | None] = []
        for each in asked:
            if isinstance(each.message, MetadataRequest):
                topics = each.message.topics
                found.append(None if topics is None else [topic.name or "" for topic in topics])
        return found

    def count(self, request: type[Request[Any]]) -> list[int]:
        """Returns how many requests of this class each node has received."""
        return [broker.count(request) for broker in self.brokers]

    def metadata(self, asked: ReceivedRequest) -> MetadataResponse:
        """Returns the nodes in `up` and the requested topics."""
        request = asked.message
        assert isinstance(request, MetadataRequest)
        if request.topics is None:
            topics = [self._described(name) for name in self.leaders]
        else:
            topics = [self._asked(topic.name, topic.topic_id) for topic in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=at, host="127.0.0.1", port=self.brokers[at].port)
                for at in self.up
            ],
            controller_id=self.up[0],
            cluster_id=self.cluster_id,
            topics=topics,
            error_code=self.error_code,
        )

    def _asked(self, name: str | None, topic_id: Uuid) -> MetadataResponseTopic:
        if topic_id != ZERO_UUID:
            for known, its in self.ids.items():
                if its == topic_id:
                    return self._described(known)
            return MetadataResponseTopic(name=None, topic_id=topic_id, error_code=NO_SUCH_ID)
        if name in self.leaders:
            return self._described(name)
        return MetadataResponseTopic(name=name, error_code=NOT_THERE)

    def _described(self, name: str) -> MetadataResponseTopic:
        parts = zip(self.leaders[name], self.epochs[name], strict=True)
        return MetadataResponseTopic(
            name=name,
            topic_id=self.ids[name],
            partitions=[
                MetadataResponsePartition(
                    partition_index=at, leader_id=leader, leader_epoch=epoch, replica_nodes=self.up
                )
                for at, (leader, epoch) in enumerate(parts)
            ],
        )


@asynccontextmanager
async def scripted_cluster(nodes: int = 3) -> AsyncIterator[ScriptedCluster]:
    """Yields a cluster of `nodes` nodes, all running."""
    async with AsyncExitStack() as stack:
        brokers = [await stack.enter_async_context(ScriptedBroker()) for _ in range(nodes)]
        yield ScriptedCluster(brokers)
