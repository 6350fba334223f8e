"""`FetchPlanner`: decides which partitions are fetched, reset and validated, and at which broker.

Does no I/O. A plan looks only at the partitions that have changed since the last plan, at the
partitions whose backoff has ended, and at the partitions that wait for a leader, a reset or a
validation: thousands of partitions without new records cost nothing. After a change of the
metadata, a plan looks at all partitions. A backoff delays only the partition that failed, not the
other partitions of its topic or of its broker.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, MutableSet
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple

from ..metadata.cluster import TopicPartition
from .partition_state import FetchState, TopicPartitionState

__all__ = ["FetchPlan", "FetchPlanner", "NodeFetches", "PartitionSet"]

_NEVER: Final = float("inf")


class PartitionSet(MutableSet[TopicPartition]):
    """A set of partitions that are not fetched; marks added and removed ones as changed."""

    __slots__ = ("_changed", "_tps")

    def __init__(self, changed: dict[TopicPartition, None]) -> None:
        self._changed = changed
        self._tps: set[TopicPartition] = set()

    def __contains__(self, tp: object) -> bool:
        return tp in self._tps

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._tps)

    def __len__(self) -> int:
        return len(self._tps)

    def add(self, value: TopicPartition) -> None:
        """Adds a partition, and marks it as changed."""
        self._tps.add(value)
        self._changed[value] = None

    def discard(self, value: TopicPartition) -> None:
        """Removes a partition, and marks it as changed; does nothing if the set lacks it."""
        if value in self._tps:
            self._tps.discard(value)
            self._changed[value] = None

    def update(self, tps: Iterable[TopicPartition]) -> None:
        """Adds several partitions."""
        for tp in tps:
            self.add(tp)

    def difference_update(self, tps: Iterable[TopicPartition]) -> None:
        """Removes several partitions."""
        for tp in tps:
            self.discard(tp)


@dataclass(slots=True)
class NodeFetches:
    """The partitions to fetch from one broker.

    `states` has these partitions in the order of a fetch; `retrying` has the partitions whose last
    fetch has failed. `changed` has the partitions that were added, removed or changed since the
    last fetch from the broker; the fetcher clears `changed`. Until `leader_until`, in seconds of
    the clock, a partition is fetched from its leader only, without a rack.
    """

    states: dict[TopicPartition, TopicPartitionState] = field(default_factory=dict)
    changed: dict[TopicPartition, None] = field(default_factory=dict)
    retrying: dict[TopicPartition, TopicPartitionState] = field(default_factory=dict)
    leader_until: float = float("-inf")


class FetchPlan(NamedTuple):
    """The partitions to fetch, to reset and to validate, each by node id.

    `unknown_leaders` are partitions whose leader is unknown, because metadata names none or is too
    old. `next_at` is the time at which the next plan is due even if nothing else changes, in
    seconds of the clock: a backoff ends, or a preferred replica expires at that time. It is
    infinity if there is no such time.
    """

    fetches: dict[int, NodeFetches]
    resets: dict[int, list[TopicPartitionState]]
    validations: dict[int, list[TopicPartitionState]]
    unknown_leaders: list[TopicPartitionState]
    next_at: float


class FetchPlanner:
    """Plans the fetches of `partitions`, which the subscription state owns.

    `changed` has the partitions that the next plan looks at. The partition states and the sets
    below add partitions to `changed`.
    """

    def __init__(self, partitions: Mapping[TopicPartition, TopicPartitionState]) -> None:
        self._partitions = partitions
        self.changed: dict[TopicPartition, None] = {}
        self.paused = PartitionSet(self.changed)
        self.under_backpressure = PartitionSet(self.changed)
        #: Newly assigned partitions for which the callback `on_assigned` has not returned.
        self.awaiting_callback = PartitionSet(self.changed)
        #: Partitions of recreated topics that wait until their new topic id is assigned.
        self.awaiting_assignment = PartitionSet(self.changed)
        #: Topics that were recreated before their first fetch: their start is looked up again.
        self.to_restart: set[str] = set()
        #: The number of fetched partitions by topic. The version changes with each added topic.
        self.topics: dict[str, int] = {}
        self.topics_version = 0
        self._nodes: dict[int, NodeFetches] = {}
        self._node_of: dict[TopicPartition, int] = {}
        self._metadata_version = -1
        self._due: list[tuple[float, TopicPartition]] = []  # a heap
        self._due_at: dict[TopicPartition, float] = {}
        self._unfinished: dict[TopicPartition, None] = {}

    def node_of(self, tp: TopicPartition) -> int | None:
        """Returns the node id of the broker from which the last plan fetches a partition."""
        return self._node_of.get(tp)

    def is_excluded(self, tp: TopicPartition) -> bool:
        """Returns True if a partition is neither fetched nor reset nor validated."""
        return (
            tp in self.paused
            or tp in self.under_backpressure
            or tp in self.awaiting_callback
            or tp in self.awaiting_assignment
            or tp[0] in self.to_restart
        )

    @property
    def _has_excluded(self) -> bool:
        return bool(
            self.paused
            or self.under_backpressure
            or self.awaiting_callback
            or self.awaiting_assignment
            or self.to_restart
        )

    @property
    def is_finished(self) -> bool:
        """True if everything before the ends of all partitions was fetched."""
        unfinished = self._unfinished
        unfinished.update(self.changed)
        while unfinished:
            tp, _ = unfinished.popitem()
            state = self._partitions.get(tp)
            if state is not None and not state.is_at_end:
                unfinished[tp] = None
                return False
        return True

    def plan(
        self,
        now: float,
        metadata_version: int,
        leader_since: Callable[[str, int, float], int | None],
        epoch_of: Callable[[str, int], int],
        brokers: Container[int],
    ) -> FetchPlan:
        """Returns the requests that are due at `now`, in seconds of the clock.

        `metadata_version` changes whenever leaders, leader epochs or brokers change.
        `leader_since(topic, partition, time)` returns the leader from metadata newer than `time`,
        or None; `epoch_of(topic, partition)` returns the leader epoch. `brokers` are the known node
        ids. Compares leader epochs: if the leader epoch of a partition has increased, its fetch
        state becomes AWAIT_VALIDATION; if not, its fetch state becomes FETCHING again.
        """
        changed = self.changed
        if metadata_version != self._metadata_version:
            self._metadata_version = metadata_version
            changed.update(dict.fromkeys(self._partitions))
        self._mark_due(now)
        plan = FetchPlan({}, {}, {}, [], _NEVER)
        has_excluded = self._has_excluded
        self._unfinished.update(changed)
        for tp in list(changed):
            state = self._partitions.get(tp)
            node = None
            is_planned = True
            is_excluded = has_excluded and self.is_excluded(tp)
            if state is None or is_excluded or not self._may_request(state, now):
                pass
            elif (node := leader_since(*tp, state.metadata_since)) is None:
                plan.unknown_leaders.append(state)
                is_planned = False
            elif state.fetch_state is FetchState.AWAIT_RESET:
                plan.resets.setdefault(node, []).append(state)
                node, is_planned = None, False
            elif not state.may_fetch_from(epoch_of(*tp)):
                plan.validations.setdefault(node, []).append(state)
                node, is_planned = None, False
            else:
                node = state.select_node(node, now, brokers)
                if state.preferred_replica is not None:
                    self._mark_at(state.replica_until, tp)
            self._place(tp, state, node)
            if is_planned:
                changed.pop(tp, None)
            else:
                changed[tp] = None
        plan.fetches.update((node, its) for node, its in self._nodes.items() if its.states)
        return plan._replace(next_at=self._next_due())

    def _may_request(self, state: TopicPartitionState, now: float) -> bool:
        if state.fetch_state is FetchState.INITIALIZING or state.is_at_end:
            return False
        if state.retry_at > now:
            self._mark_at(state.retry_at, state.tp)
            return False
        return True

    def _place(
        self, tp: TopicPartition, state: TopicPartitionState | None, node: int | None
    ) -> None:
        """Adds a partition to the next fetch from `node`, or removes it if `node` is None."""
        before = self._node_of.pop(tp, None)
        if before is not None:
            fetches = self._nodes[before]
            del fetches.states[tp]
            fetches.retrying.pop(tp, None)
            fetches.changed[tp] = None
            if node is None:
                self._forget_topic(tp[0])
        elif node is not None:
            self._count_topic(tp[0])
        if state is None or node is None:
            return
        self._node_of[tp] = node
        fetches = self._nodes.get(node) or self._nodes.setdefault(node, NodeFetches())
        fetches.states[tp] = state
        fetches.changed[tp] = None
        if state.leader_until > fetches.leader_until:
            fetches.leader_until = state.leader_until
        if state.failure_count:
            fetches.retrying[tp] = state

    def _count_topic(self, topic: str) -> None:
        if topic not in self.topics:
            self.topics_version += 1
        self.topics[topic] = self.topics.get(topic, 0) + 1

    def _forget_topic(self, topic: str) -> None:
        self.topics[topic] -= 1
        if not self.topics[topic]:
            del self.topics[topic]

    # Partitions that become due

    def _mark_at(self, at: float, tp: TopicPartition) -> None:
        if self._due_at.get(tp) != at:
            self._due_at[tp] = at
            heappush(self._due, (at, tp))

    def _next_due(self) -> float:
        due = self._due
        while due and self._due_at.get(due[0][1]) != due[0][0]:
            heappop(due)  # the partition is due at another time now
        return due[0][0] if due else _NEVER

    def _mark_due(self, now: float) -> None:
        while self._next_due() <= now:
            _, tp = heappop(self._due)
            del self._due_at[tp]
            self.changed[tp] = None
