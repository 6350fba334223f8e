"""`StartOffsetResolver`: the start positions of a group consumer. Does no I/O.

Callers pass the time, in seconds of the client's clock. A partition starts at the committed offset
of the group. If the group has committed no offset for it, the option `start` decides: the start or
end of the log, the first record at or after a time, or an error.

A partition starts at the log start in three other cases:
- It has no committed offset, and its topic is a retry topic.
- It has no committed offset, was added after the client's first metadata of the topic, and would
  otherwise start at the log end.
- Its commit belongs to a deleted topic of the same name.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, MutableSet
from typing import TypeAlias

from ..commits.commit_state import CommitState
from ..commits.errors import NoCommittedOffsetError
from ..commits.offset_requests import CommittedOffset
from ..commits.processed_bitmap import decode_bitmap
from ..metadata.cluster import TopicInfo, TopicPartition
from .effects import Effect, FetchEffect
from .partition_state import NO_POSITION, FetchState, TopicPartitionState
from .start_options import GroupStart, Start, is_duration
from .topic_history import TopicHistory

__all__ = ["StartOffsetResolver"]

_States: TypeAlias = Mapping[TopicPartition, TopicPartitionState]


class StartOffsetResolver:
    """Sets the first positions of `partitions`: from commits of the group, or by option `start`."""

    def __init__(
        self,
        partitions: _States,
        topics: TopicHistory,
        commit_state: CommitState,
        start: Start | GroupStart,
        group_id: str,
        awaiting_assignment: MutableSet[TopicPartition],
    ) -> None:
        self._partitions = partitions
        self._topics = topics
        self._commit_state = commit_state
        self._start = start
        self._group_id = group_id
        self._lookup_states: list[TopicPartitionState] = []  # the partitions of the present look-up
        #: Topics that start at their log start if the group has no committed offset.
        self.from_start: frozenset[str] = frozenset()
        #: Partitions of recreated topics that wait until their new topic id is assigned.
        self.awaiting_assignment = awaiting_assignment
        self._initializing: list[TopicPartitionState] = []

    def add_initializing(self, state: TopicPartitionState) -> None:
        """Adds a partition that is INITIALIZING: its position must be looked up."""
        self._initializing.append(state)

    def begin_lookup(self) -> None:
        """Begins a look-up of the positions of all INITIALIZING partitions."""
        self._lookup_states = [
            state
            for state in self._partitions.values()
            if state.fetch_state is FetchState.INITIALIZING
        ]

    @property
    def needs_lookup(self) -> bool:
        """True if a partition is INITIALIZING: its committed or start offset is unknown."""
        added = self._initializing
        while added:
            state = added[-1]
            is_current = self._partitions.get(state.tp) is state
            if is_current and state.fetch_state is FetchState.INITIALIZING:
                return True
            added.pop()  # it has a position, or was replaced or removed
        return False

    def cancel_lookup(self) -> list[Effect]:
        """Returns a list with the effect that cancels the look-up.

        The list is empty if a partition still needs the result. A partition needs the result if it
        still has the state with which the look-up began. A revocation removes this state; a seek or
        a recreated topic replaces it. A look-up is cancelled so that the next look-up can start
        with its full timeout.
        """
        if not self._lookup_states or any(
            self._partitions.get(state.tp) is state for state in self._lookup_states
        ):
            return []
        self._lookup_states = []
        return [FetchEffect.CANCEL_LOOKUP]

    def initializing(
        self, tps: Container[TopicPartition] | None = None, *, has_no_commit: bool
    ) -> dict[TopicPartition, TopicPartitionState]:
        """Returns the INITIALIZING partitions of `tps`, by default of all partitions.

        If `has_no_commit` is True, returns only partitions for which the group has no committed
        offset; otherwise only partitions whose committed offset is unknown. Partitions in
        `awaiting_assignment` are left out.
        """
        return {
            tp: state
            for tp, state in self._partitions.items()
            if state.fetch_state is FetchState.INITIALIZING
            and state.has_no_commit is has_no_commit
            and (tps is None or tp in tps)
            and tp not in self.awaiting_assignment
        }

    def _still_initializing(
        self, states: _States, *, has_no_commit: bool
    ) -> dict[TopicPartition, TopicPartitionState]:
        """Returns those of `states` that were not replaced, and are still INITIALIZING.

        During a look-up, a seek, another look-up or a revocation may have replaced a state or given
        it a position. `has_no_commit` selects partitions, as in `initializing`.
        """
        now = self.initializing(states, has_no_commit=has_no_commit)
        return {tp: state for tp, state in states.items() if now.get(tp) is state}

    def on_committed_offsets(
        self,
        states: _States,
        committed: Mapping[TopicPartition, CommittedOffset | None],
        of_deleted_topics: Container[TopicPartition],
        topics: Mapping[str, TopicInfo],
        now: float,
    ) -> list[Effect]:
        """Starts partitions at their committed offsets, or sets `has_no_commit` if there is none.

        `of_deleted_topics` are partitions whose commits belong to a deleted topic of the same name.
        These partitions have no offset in `committed`, and start at the log start.
        """
        effects: list[Effect] = []
        known = {}
        for tp, state in self._still_initializing(states, has_no_commit=False).items():
            offset = committed[tp]
            if offset is None and tp in of_deleted_topics:
                self.start_recreated(state)
            elif offset is None:
                state.has_no_commit = True
            else:
                state.set_position(offset.offset, offset.leader_epoch)
                state.initial_offset = state.group_committed = offset.offset
                info = topics.get(tp[0])
                topic_id = state.topic_id if info is None else info.topic_id
                state.processed_bitmap = decode_bitmap(offset.metadata, offset.offset, topic_id)
                known[tp] = state.to_commit(offset.offset, offset.metadata)
                effects += self.on_position(state)
        self._commit_state.add_known(known, now)
        return effects

    def without_start_offset(self, states: _States) -> dict[TopicPartition, TopicPartitionState]:
        """Returns the partitions of `states` without a committed offset; `start` applies to them.

        Partitions of `from_start` topics are not returned; they start at the log start. Raises
        NoCommittedOffsetError if `start` is "none" and applies to a partition.
        """
        for tp, state in states.items():
            if tp[0] in self.from_start:
                state.await_reset("earliest")
        left = self._still_initializing(states, has_no_commit=True)
        if left and self._start == "none":
            for state in left.values():
                state.has_no_commit = False  # the next look-up may find a committed offset
            raise NoCommittedOffsetError(self._group_id, left)
        return left

    def on_start_offsets(
        self,
        states: _States,
        found: Mapping[TopicPartition, int],
    ) -> list[Effect]:
        """Starts partitions that have no committed offset.

        They start at their offsets in `found`, which were looked up for the option `start`. If
        `found` has no offset of a partition, its position is reset: to the log start if `start` is
        "earliest" or the partition is new, otherwise to the log end.
        """
        start = self._start
        effects: list[Effect] = []
        for tp, state in self._still_initializing(states, has_no_commit=True).items():
            offset = found.get(tp, NO_POSITION)
            if start != "earliest" and (offset == NO_POSITION or is_duration(start)):
                state.commits_start = True
            if offset != NO_POSITION:
                state.set_position(offset)
                effects += self.on_position(state)
            elif start == "earliest" or self._topics.is_new(tp):
                state.await_reset("earliest")
            else:
                state.await_reset("latest")
        return effects

    def start_recreated(self, state: TopicPartitionState) -> None:
        """Starts a partition of a recreated topic at its log start."""
        state.is_recreated = True
        state.commits_start = self._start not in ("earliest", "none")
        state.await_reset("earliest")

    def on_position(self, state: TopicPartitionState) -> list[Effect]:
        """Marks the position of a partition as a start offset that auto-commit must commit.

        Does so only if `commits_start` is True, and the position is set and validated. Returns the
        effect that commits the start offset at once, or an empty list if the position is not
        marked.
        """
        if not state.commits_start or not state.has_position:
            return []
        if state.fetch_state is not FetchState.FETCHING:
            return []
        state.commits_start = False
        if self._partitions.get(state.tp) is not state:
            return []
        self._commit_state.add_start_offset(state.tp, state.to_commit(state.position))
        return [FetchEffect.COMMIT_NOW]
