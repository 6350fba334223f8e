"""`CommittableOffsets`: the offsets that a consumer may commit, and the effects of their commits.

The offsets of a partition can be committed while it is assigned, and until its revocation is
complete. Does no I/O: callers pass the time, in seconds of the client's clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.commit_state import CommitState
from ..commits.offset_requests import OffsetAndMetadata
from ..metadata.cluster import TopicPartition
from .partition_state import TopicPartitionState
from .processed_offsets import CommitPlanner
from .revocations import PendingRevocations

__all__ = ["CommittableOffsets"]


class CommittableOffsets:
    """Returns the offsets to commit, and stores which offsets are committed.

    `partitions` has the states of the assigned partitions; `SubscriptionState` adds and removes
    these states.
    """

    def __init__(
        self,
        partitions: Mapping[TopicPartition, TopicPartitionState],
        revocations: PendingRevocations,
        commit_state: CommitState,
        processed: CommitPlanner,
    ) -> None:
        self._partitions = partitions
        self._revocations = revocations
        self._commit_state = commit_state
        self._processed = processed

    # The partitions

    def state_to_commit(self, tp: TopicPartition) -> TopicPartitionState | None:
        """Returns the state of a partition; None if its offsets cannot be committed."""
        state = self._partitions.get(tp)
        return state if state is not None else self._revocations.state_of(tp)

    def assignment_epoch_of(self, tp: TopicPartition) -> int | None:
        """Returns the assignment epoch of a partition; None if its offsets cannot be committed."""
        state = self.state_to_commit(tp)
        return None if state is None else state.assignment_epoch

    def committable_epochs(self) -> set[object]:
        """Returns the assignment epochs of all partitions whose offsets can be committed."""
        return {state.assignment_epoch for state in self._committable().values()}

    def _committable(
        self, tps: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, TopicPartitionState]:
        states = {**self._revocations.committable(), **self._partitions}
        return states if tps is None else {tp: states[tp] for tp in tps if tp in states}

    # Commits of the consumer

    def offsets_to_commit(
        self, request: CommitRequest, now: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets that `request` commits now."""
        if request.kind is CommitKind.EXPLICIT:
            return dict(request.offsets)
        states = self._committable() if request.states is None else request.states
        return self._processed.due(request, states, now)

    def on_committed(
        self,
        request: CommitRequest,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        now: float,
    ) -> None:
        """Stores the offsets that the broker has committed."""
        self._commit_state.on_committed(offsets, now)
        for tp in offsets:
            if tp in request.baselines:
                state, offset = request.baselines[tp]
                state.committed_baseline = offset

    def on_metadata_too_large(self, length: int) -> None:
        """Shortens metadata in later commits: metadata of `length` characters was refused."""
        self._processed.on_metadata_too_large(length)

    def baselines(
        self, tps: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[TopicPartitionState, int]]:
        """Returns the state and the present processed offset of each partition in `tps`.

        Call it for an explicit commit: auto-commit then skips a partition while its processed
        offset still equals the returned offset.
        """
        states = self._committable([*tps])
        return {tp: (states[tp], its.offset) for tp, its in self._processed.of(states).items()}

    # Commits of transactions

    def returned_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets after the last returned records, and start offsets.

        Leaves out a partition if no record of the partition was returned since its last commit, or
        if its offsets cannot be committed.
        """
        states = self._committable()
        return self._commit_state.start_offsets(states) | self._processed.returned(states)

    def on_transaction_committed(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        epochs: Mapping[TopicPartition, int | None],
        now: float,
    ) -> None:
        """Stores the `offsets` that a transaction has committed.

        `epochs` has the assignment epochs at the time when the offsets were added to the
        transaction. If a partition still has this epoch, its records before the offset count as
        processed from now on.
        """
        same = {
            tp: its for tp, its in offsets.items() if self.assignment_epoch_of(tp) == epochs[tp]
        }
        for tp, its in same.items():
            state = self.state_to_commit(tp)
            if state is not None:
                state.user_committed = max(state.user_committed, its.offset)
        self._commit_state.on_committed(same, now)
        for tp, its in offsets.items():
            if self._commit_state.uncommitted.get(tp, -1) <= its.offset:
                self._commit_state.uncommitted.pop(tp, None)
