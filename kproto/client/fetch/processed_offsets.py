"""`CommitPlanner`: the processed offset of each partition, and the offsets to commit.

Does no I/O: callers pass the time, in seconds of the client's clock.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, TypeAlias

from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.commit_state import CommitState
from ..commits.offset_requests import OffsetAndMetadata
from ..commits.processed_bitmap import MAX_METADATA_BYTES, ProcessedBitmap, encode_bitmap
from ..metadata.cluster import TopicPartition
from .partition_state import TopicPartitionState
from .poll_state import PollState

__all__ = ["CommitPlanner"]

logger = logging.getLogger("kproto.client")

_States: TypeAlias = Mapping[TopicPartition, TopicPartitionState]


#: The commits that a consumer makes by itself.
_OWN_COMMITS: Final = (CommitKind.DUE, CommitKind.START_OFFSETS)


class CommitPlanner:
    """Plans commits: `poll` has the processed offsets, and `commit_state` has committed offsets."""

    __slots__ = ("_commit_state", "_most_metadata", "_poll")

    def __init__(self, poll: PollState, commit_state: CommitState) -> None:
        self._poll = poll
        self._commit_state = commit_state
        self._most_metadata = MAX_METADATA_BYTES

    def due(
        self, request: CommitRequest, states: _States, now: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets of `states` that `request` commits now."""
        if self._commit_state.is_transactional and request.kind in _OWN_COMMITS:
            return {}
        start_offsets = self._commit_state.start_offsets(states)
        if request.kind is CommitKind.START_OFFSETS:
            return start_offsets
        if request.kind is CommitKind.DUE:
            states = {tp: its for tp, its in states.items() if not self._is_settled(its, now)}
        processed = self.of(states)
        if request.kind in (CommitKind.DUE, CommitKind.TRANSACTION):
            due = self._commit_state.due(processed, now, self._unchanged(states, processed))
            return start_offsets | due
        if request.metadata:
            return {tp: its._replace(metadata=request.metadata) for tp, its in processed.items()}
        return self._commit_state.due(processed, now)

    def _is_settled(self, state: TopicPartitionState, now: float) -> bool:
        """Returns True if no records of a partition wait and a commit of it would change nothing.

        Takes a tenth of the time of the commit, because most of many partitions are idle.
        """
        if state.processed_bitmap is not None or self._poll.has_records_of(state):
            return False
        offset = max(state.position, state.user_committed)
        return not state.has_position or self._commit_state.is_committed(
            state.tp, offset, state.topic_id, state.committed_baseline, now
        )

    def of(self, states: _States) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns a commit of the processed offset of each partition that has a position.

        Offsets that the user has committed count as processed.
        """
        found = {}
        for tp, state in states.items():
            if state.has_position:
                offset = max(self._poll.processed_offset(state), state.user_committed)
                found[tp] = self.commit_of(state, offset, self._poll.bitmap_of(state))
        return found

    def returned(self, states: _States) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns commits of the positions after the last returned records.

        Leaves out partitions that have returned no record since their last commit.
        """
        positions = {
            tp: self.commit_of(state, self._poll.position_of(state), self._poll.bitmap_of(state))
            for tp, state in states.items()
            if state.has_position
        }
        unchanged = {
            tp for tp, its in positions.items() if its.offset == states[tp].committed_baseline
        }
        return self._commit_state.due(positions, float("-inf"), unchanged)

    def commit_of(
        self,
        state: TopicPartitionState,
        offset: int,
        bitmap: ProcessedBitmap | None,
        metadata: str = "",
    ) -> OffsetAndMetadata:
        """Returns a commit of `offset`.

        If `metadata` of the user is empty, the commit has `bitmap` as its metadata, shortened to
        the length that the broker accepts.
        """
        text = metadata or encode_bitmap(bitmap, offset, state.topic_id, self._most_metadata)
        return state.to_commit(offset, text)

    def _unchanged(
        self, states: _States, processed: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> set[TopicPartition]:
        """Returns the partitions in which no record was processed since `committed_baseline`.

        The processed offset of such a partition is the baseline, and no later record is processed
        out of order.
        """
        return {
            tp
            for tp, its in processed.items()
            if its.offset == states[tp].committed_baseline
            and self._poll.bitmap_here(states[tp]) is None
        }

    def on_metadata_too_large(self, length: int) -> None:
        """Shortens metadata in later commits, because the broker refused `length` characters."""
        if length <= self._most_metadata:
            self._most_metadata = length // 2
            logger.warning(
                "the broker accepts no metadata of %d bytes (offset.metadata.max.bytes): records "
                "that were processed after an incomplete one may be redelivered",
                length,
            )
