"""Defines the base classes of `Broker` and `Cluster`, with their methods for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from ..clock import Clock
from ..messages.base import Request
from ..records import Record, encode_batch
from ..unclosed import call_in_loop, finalize, warn_unclosed
from .cluster_state import ClusterState
from .context import read_clock
from .faults import Control, ControlFunction, ControlFunctions
from .group_states import GroupState, group_states
from .group_waiting import WAIT_TIMEOUT_S, wait_for_group
from .node import Node
from .registry import Api
from .settings import BrokerSettings
from .storage.log_append import append_records
from .topic_snapshot import topic_snapshot
from .topics import Topic, Topics

__all__ = ["BrokerHandle", "EmbeddedCluster"]

#: A version of Produce whose `records` are one batch.
_PRODUCE_VERSION = 9


class BrokerHandle:
    """Provides tests with the addresses of one node, and with the number of its connections."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def node_id(self) -> int:
        """Returns the node id."""
        return self._node.node_id

    @property
    def rack(self) -> str | None:
        """Returns the rack of the node."""
        return self._node.rack

    @property
    def is_listening(self) -> bool:
        """Returns True if the node listens, so that clients can connect."""
        return self._node.is_listening

    @property
    def bootstrap(self) -> str:
        """Returns the advertised `host:port` of the first listener, also of a stopped node.

        Raises ConfigurationError while the cluster does not listen.
        """
        return self._node.bootstrap

    def bootstrap_of(self, listener: str) -> str:
        """Returns the advertised `host:port` of the listener with the name `listener`.

        Raises ConfigurationError for an unknown listener, and while the cluster does not listen.
        """
        return self._node.bootstrap_of(listener)

    @property
    def listens_at(self) -> str:
        """Returns the `host:port` that the first listener is bound to.

        Pass this address to a proxy or a port forwarding. The address differs from `bootstrap` if
        the listener advertises another host or port. Raises ConfigurationError while the cluster
        does not listen.
        """
        return self._node.listens_at

    @property
    def connections(self) -> int:
        """Returns the number of client connections."""
        return self._node.connections


class EmbeddedCluster:
    """Runs the nodes of one cluster, each with its own settings, within `async with`."""

    def __init__(
        self, settings: Sequence[BrokerSettings], clock: Clock, apis: Iterable[Api]
    ) -> None:
        apis = tuple(apis)
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cluster = ClusterState(settings[0])
        self._is_started = False
        self._controls = {each.node_id: ControlFunctions() for each in settings}
        self._nodes = {
            each.node_id: Node(each, self._cluster, apis, self._controls[each.node_id], clock)
            for each in settings
        }

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        _finalize(self._warn_if_started)

    def _warn_if_started(self) -> None:
        # Without the attribute, `__init__` has failed.
        if not getattr(self, "_is_started", False):
            return
        loop, nodes = self._loop, list(self._nodes.values())
        assert loop is not None, "it has started"
        text = f"an embedded broker at {', '.join(each.listens_at for each in nodes)}"
        if loop.is_closed():
            for node in nodes:
                node.release_ports()
        else:
            call_in_loop(loop, partial(_abort, nodes))
        warn_unclosed(text, self)

    # Start and close

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
        """Starts all nodes. If a node cannot start, closes the nodes that have started.

        Raises BrokerConnectionError if an address is not available. Raises ConfigurationError if a
        certificate is unreadable, or if a node listens already.
        """
        started: list[Node] = []
        was_started, self._is_started = self._is_started, True
        self._loop = asyncio.get_running_loop()
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
        """Stops listening and closes every connection.

        Topics and groups remain, and are served again after `start`. If `close` is cancelled, it
        still closes all connections, but does not wait until they have ended.
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

    # State for tests

    @property
    def cluster_id(self) -> str:
        """Returns the cluster id that clients see in metadata."""
        return self._cluster.cluster_id

    @property
    def topics(self) -> dict[str, Topic]:
        """Deletes and compacts records by cleanup.policy; returns the topics by name.

        The dict is a copy: adding or removing an entry changes no topic of the cluster.
        """
        return {topic.name: topic for topic in self._topics_after_cleanup()}

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Returns the log end offset of a partition, which is the offset of the next record.

        Raises BrokerResponseError for an unknown partition.
        """
        return self._topics_after_cleanup().named(topic).partition(partition).log.end_offset

    def records(
        self, topic: str, partition: int | None = None, *, read_committed: bool = True
    ) -> list[Record]:
        """Returns all records of a topic, or of one partition, decoded, without control records.

        The records of all partitions are ordered by partition, then by offset. Returns the records
        up to the last stable offset, and omits the records of aborted transactions. With
        `read_committed=False`, also returns the records of aborted and open transactions, and the
        records after the first open one.

        Raises BrokerResponseError for an unknown topic or partition, CorruptBatchError for a batch
        that cannot be decoded, and MissingCodecError for a codec that is not installed.
        """
        found = self._topics_after_cleanup().named(topic)
        return [
            record
            for each in (found.partitions if partition is None else [found.partition(partition)])
            for batch in (each.committed_batches() if read_committed else each.log)
            if not batch.is_control
            for record in batch.records(
                from_offset=each.log.start_offset, topic=topic, partition=each.index
            )
        ]

    def snapshot(self, topic: str, *, read_committed: bool = True) -> str:
        """Returns the records of a topic as JSON, for approval tests (`topic_snapshot`).

        Raises the errors of `records`.
        """
        records = self.records(topic, read_committed=read_committed)
        partitions = len(self._cluster.topics.named(topic).partitions)
        return topic_snapshot(topic, partitions, records)

    @property
    def groups(self) -> dict[str, GroupState]:
        """Returns the groups by group id, with members, committed offsets and lag."""
        return group_states(self._cluster, read_clock(self._clock))

    async def wait_for_group(
        self,
        group_id: str,
        *,
        lag: int | None = None,
        members: int | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> GroupState:
        """Waits until a group has at most `lag`, and is stable with `members` members; returns it.

        A condition that is None is not checked; without conditions, waits until the group exists.
        `lag` counts the records after the committed offsets (`GroupState.lag`). `timeout_s` is in
        seconds of the machine, whatever the clock of the broker is.

        Raises TimeoutError, with the last state of the group, after `timeout_s`.
        """

        async def find() -> GroupState | None:
            return self.groups.get(group_id)

        return await wait_for_group(find, group_id, lag=lag, members=members, timeout_s=timeout_s)

    def _topics_after_cleanup(self) -> Topics:
        """Deletes and compacts records by cleanup.policy, and returns the topics."""
        self._cluster.topics.apply_cleanup(self._clock.now_ms())
        return self._cluster.topics

    # Actions of tests

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str | None] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> Topic:
        """Creates a topic, and returns it.

        If `partitions` is None, `BrokerSettings.num_partitions` applies. If `replication_factor` is
        None, `BrokerSettings.default_replication_factor` applies.

        Raises BrokerResponseError with the error code that CreateTopics would return.
        """
        topic = self._cluster.plan_topic(
            name,
            -1 if partitions is None else partitions,
            -1 if replication_factor is None else replication_factor,
            configs=configs,
        )
        self._cluster.topics.add(topic)
        return topic

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        partition: int = 0,
    ) -> int:
        """Appends one record to a partition, as the leader does, and returns its offset.

        `timestamp` is in ms, by default the time of the broker's clock. Waiting consumers get the
        record at once. The key selects no partition.

        Raises BrokerResponseError with the error code that Produce would return.
        """
        found = self._cluster.topics.named(topic)
        now_ms = self._clock.now_ms()
        created_ms = now_ms if timestamp is None else timestamp
        batch = encode_batch([(key, value, headers, created_ms)])
        appended = append_records(
            found.partition(partition),
            found.config_of(partition),
            batch,
            _PRODUCE_VERSION,
            now_ms,
        )
        return appended.base_offset

    def delete_topic(self, name: str) -> None:
        """Deletes a topic. Raises BrokerResponseError for an unknown topic."""
        now = read_clock(self._clock)
        self._cluster.delete_topic(self._cluster.topics.named(name), now)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Moves the log start offset to `before`, unless the log start offset is higher already.

        Raises BrokerResponseError for an unknown partition, and if `before` is beyond the log end.
        """
        self._cluster.topics.named(topic).partition(partition).log.delete_before(before)

    def truncate(self, topic: str, partition: int, offset: int) -> int:
        """Truncates a log at `offset`, as an unclean leader election does; returns the end offset.

        The batch that contains `offset` is lost as a whole. If a batch is lost, the leader epoch
        rises by one. Raises BrokerResponseError for an unknown partition or an offset outside of
        the log.
        """
        return self._cluster.truncate(topic, partition, offset)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Returns the node id of a partition's leader; -1 if there is none.

        Raises BrokerResponseError for an unknown partition.
        """
        return self._cluster.topics.named(topic).partition(partition).leader_and_isr.leader

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        """Returns the leader epoch of a partition, which starts at 0.

        Raises BrokerResponseError for an unknown partition.
        """
        return self._cluster.topics.named(topic).partition(partition).log.epochs.current

    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Returns the node ids in the ISR of a partition.

        Raises BrokerResponseError for an unknown partition.
        """
        return self._cluster.topics.named(topic).partition(partition).leader_and_isr.in_sync

    def _control(
        self,
        function: ControlFunction,
        request: type[Request[Any]] | None,
        times: int | None,
        nodes: Iterable[int],
    ) -> Control:
        """Adds one control to several nodes.

        The control is removed after `times` outcomes; the outcomes on all nodes count together. If
        `times` is None, there is no limit.
        """
        control: Control | None = None
        for node in nodes:
            if control is None:
                control = self._controls[node].add(function, request, times)
            else:
                self._controls[node].add_shared(control)
        assert control is not None
        return control

    def remove_control(self, control: Control) -> None:
        """Removes a control from all nodes; does nothing if it is removed already."""
        for controls in self._controls.values():
            controls.remove(control)


def _abort(nodes: Iterable[Node]) -> None:
    """Stops the nodes of a cluster that was garbage-collected without `close`."""
    for node in nodes:
        node.abort()
