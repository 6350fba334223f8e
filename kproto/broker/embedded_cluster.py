"""What `Broker` and `Cluster` have in common: nodes over one state, and what a test does with them.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ..clock import Clock
from ..messages.base import Request
from ..records import Record
from .cluster_state import ClusterState
from .context import read_clock
from .faults import Control, ControlFunction, Controls
from .node import Node
from .registry import Api
from .settings import BrokerSettings
from .topics import Topic, Topics

__all__ = ["EmbeddedCluster", "Member"]


class Member:
    """One node, as a test sees it."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def node_id(self) -> int:
        """The id by which clients know it."""
        return self._node.node_id

    @property
    def rack(self) -> str | None:
        """Where it stands."""
        return self._node.rack

    @property
    def is_listening(self) -> bool:
        """Whether clients can connect now."""
        return self._node.is_listening

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients, as advertised.

        Raises ConfigurationError while the broker does not listen.
        """
        return self._node.bootstrap

    def bootstrap_of(self, listener: str) -> str:
        """`host:port` of a listener for clients, as advertised; `bootstrap` is that of the first.

        Raises ConfigurationError for an unknown one, and while the broker does not listen.
        """
        return self._node.bootstrap_of(listener)

    @property
    def listens_at(self) -> str:
        """`host:port` where the broker itself listens, for a proxy or a forwarded port.

        It is `bootstrap` unless another host or port is advertised; of several listeners it is
        the first. Raises ConfigurationError
        while the broker does not listen.
        """
        return self._node.listens_at

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return self._node.connections


class EmbeddedCluster:
    """Nodes of one cluster, each with settings of its own; for `async with`."""

    def __init__(
        self, settings: Sequence[BrokerSettings], clock: Clock, apis: Iterable[Api]
    ) -> None:
        apis = tuple(apis)
        self._clock = clock
        self._cluster = ClusterState(settings[0])
        self._is_started = False
        self._controls = {each.node_id: Controls() for each in settings}
        self._nodes = {
            each.node_id: Node(each, self._cluster, apis, self._controls[each.node_id], clock)
            for each in settings
        }

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen. Raises BrokerConnectionError when an address cannot be had; then none listens."""
        started: list[Node] = []
        was_started, self._is_started = self._is_started, True
        try:
            for node_id, node in self._nodes.items():
                node.start()
                started.append(node)
                self._cluster.start(node_id)
        except BaseException:
            self._is_started = was_started
            for node in started:
                await node.close()
            raise

    async def close(self) -> None:
        """Stop listening and end every connection; topics stay, and `start` serves them again.

        So do groups, as they are stored. Cancelled, it ends them all the same, and does not wait
        until nothing of them is left.
        """
        self._is_started = False
        self._cluster.group_coordinator.unload()
        left = list(self._nodes.values())
        try:
            while left:
                await left.pop().close()
        finally:
            for node in left:
                node.abort()

    # What a test wants to know

    @property
    def cluster_id(self) -> str:
        """The id that clients see in metadata."""
        return self._cluster.cluster_id

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics by name; a copy."""
        return {topic.name: topic for topic in self._kept()}

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """The offset that the next record will get. Raises BrokerResponseError."""
        return self._kept().named(topic).partition(partition).log.end_offset

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """Every record of a partition, decoded.

        Raises BrokerResponseError for an unknown one, CorruptBatchError, MissingCodecError.
        """
        log = self._kept().named(topic).partition(partition).log
        return [
            record
            for batch in log
            if not batch.is_control
            for record in batch.records(from_offset=log.start_offset)
        ]

    def _kept(self) -> Topics:
        """The topics, without what they no longer keep now."""
        self._cluster.topics.apply_retention(self._clock.now_ms())
        return self._cluster.topics

    # What a test wants to do

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str | None] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> Topic:
        """Create a topic, with the defaults of partitions and replicas unless they are given.

        Raises BrokerResponseError, as a client would get it.
        """
        topic = self._cluster.plan_topic(
            name,
            -1 if partitions is None else partitions,
            -1 if replication_factor is None else replication_factor,
            configs=configs,
        )
        self._cluster.topics.add(topic)
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises BrokerResponseError."""
        now = read_clock(self._clock)
        self._cluster.delete_topic(self._cluster.topics.named(name), now)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a log to offset `before`. Raises BrokerResponseError."""
        self._cluster.topics.named(topic).partition(partition).log.delete_before(before)

    def truncate(self, topic: str, partition: int, offset: int) -> int:
        """Let a log lose its end from `offset` on, as after an unclean election; its new end.

        Batches are lost whole, and the leader epoch rises. Raises BrokerResponseError.
        """
        return self._cluster.truncate(topic, partition, offset)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The id of the node that leads; -1 for none. Raises BrokerResponseError."""
        return self._cluster.topics.named(topic).partition(partition).leader_and_isr.leader

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        """The leader epoch, from 0. Raises BrokerResponseError."""
        return self._cluster.topics.named(topic).partition(partition).log.epochs.current

    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """The ids of the nodes in the ISR. Raises BrokerResponseError."""
        return self._cluster.topics.named(topic).partition(partition).leader_and_isr.in_sync

    def _control(
        self,
        function: ControlFunction,
        request: type[Request[Any]] | None,
        times: int | None,
        nodes: Iterable[int],
    ) -> Control:
        """Add one control to several nodes: what it decides at one of them counts for all."""
        control: Control | None = None
        for node in nodes:
            if control is None:
                control = self._controls[node].add(function, request, times)
            else:
                self._controls[node].take(control)
        assert control is not None
        return control

    def remove_control(self, control: Control) -> None:
        """Take a control function away."""
        for controls in self._controls.values():
            controls.remove(control)
