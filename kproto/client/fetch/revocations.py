"""`PendingRevocations`: partitions that are being revoked, with their listener calls. Does no I/O.

A revocation is pending from the end of fetching until the listener has returned and the offsets are
committed. If the member loses its membership during the revocation, the revocation is interrupted:
the partitions are lost, or are revoked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..metadata.cluster import TopicPartition
from .partition_state import TopicPartitionState

__all__ = ["PendingRevocations"]


@dataclass(slots=True)
class _PendingRevocation:
    """A partition whose revocation is not complete."""

    state: TopicPartitionState
    is_interrupted: bool = False  # its offsets are not committed any more
    is_excluded: bool = False  # its returned records belong to an aborted transaction
    was_listener_called: bool = False
    has_listener_returned: bool = False

    @property
    def is_committable(self) -> bool:
        """True if the offsets of the partition can still be committed."""
        return not (self.is_interrupted or self.is_excluded)


class PendingRevocations:
    """Tracks partitions that are being revoked, and losses for which `on_lost` has not returned."""

    __slots__ = ("_pending", "unreported_losses")

    def __init__(self) -> None:
        self._pending: dict[TopicPartition, _PendingRevocation] = {}
        #: Lost partitions for which `on_lost` was not called, or was interrupted: the next loss or
        #: assignment, or `close`, calls it.
        self.unreported_losses: set[TopicPartition] = set()

    @property
    def tps(self) -> list[TopicPartition]:
        """All partitions that are being revoked."""
        return [*self._pending]

    def committable(self) -> dict[TopicPartition, TopicPartitionState]:
        """Returns the partitions whose offsets can still be committed."""
        return {tp: its.state for tp, its in self._pending.items() if its.is_committable}

    def state_of(self, tp: TopicPartition) -> TopicPartitionState | None:
        """Returns the state of a partition that is being revoked, if its offsets can be committed.

        Returns None if the partition is not being revoked, if its revocation was interrupted, or
        after `exclude_from_commits`.
        """
        pending = self._pending.get(tp)
        return pending.state if pending is not None and pending.is_committable else None

    def exclude_from_commits(self) -> None:
        """Excludes from commits the partitions that are being revoked now.

        The transaction for the returned records of these partitions is aborted, and a later
        transaction must not commit their offsets: the next owner of the partitions reads the
        records again.
        """
        for pending in self._pending.values():
            pending.is_excluded = True

    def is_excluded(self, tp: TopicPartition) -> bool:
        """Returns True if the partition is being revoked, and excluded from commits."""
        pending = self._pending.get(tp)
        return pending is not None and pending.is_excluded

    def is_interrupted(self, tp: TopicPartition) -> bool:
        """Returns True if the revocation of the partition was interrupted."""
        pending = self._pending.get(tp)
        return pending is not None and pending.is_interrupted

    def add(self, states: Mapping[TopicPartition, TopicPartitionState]) -> None:
        """Adds partitions whose revocation begins."""
        for tp, state in states.items():
            pending = self._pending.get(tp)
            if pending is None:
                self._pending[tp] = _PendingRevocation(state)
            else:
                pending.state = state
                pending.is_excluded = False

    def resume(
        self,
        states: Mapping[TopicPartition, TopicPartitionState],
        tps: Collection[TopicPartition],
    ) -> dict[TopicPartition, TopicPartitionState]:
        """Continues the interrupted revocations of `tps`.

        Returns a copy of `states` that also has the partitions whose revocation continues.
        """
        resumed = dict(states)
        for tp, pending in self._pending.items():
            if pending.is_interrupted and tp in tps:
                resumed[tp] = pending.state
        for tp in resumed.keys() & self._pending.keys():
            self._pending[tp].is_interrupted = False
        return resumed

    def interrupt(self, tps: Iterable[TopicPartition]) -> None:
        """Marks the revocation of `tps` as interrupted, so that their offsets are not committed."""
        for tp in tps:
            if tp in self._pending:
                self._pending[tp].is_interrupted = True

    def on_listener_called(self, tps: Iterable[TopicPartition]) -> None:
        """Stores that `on_revoked` is called for `tps`."""
        for tp in tps:
            if tp in self._pending:
                self._pending[tp].was_listener_called = True

    def on_listener_returned(self, tps: Iterable[TopicPartition]) -> None:
        """Stores that `on_revoked` has returned for `tps`: it is not called again."""
        for tp in tps:
            if tp in self._pending:
                self._pending[tp].has_listener_returned = True

    def not_returned(self, tps: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Returns those of `tps` for which `on_revoked` has not returned, or was not called."""
        return {
            tp
            for tp in tps
            if tp not in self._pending or not self._pending[tp].has_listener_returned
        }

    def lost(
        self,
        states: Mapping[TopicPartition, TopicPartitionState],
        tps: Collection[TopicPartition],
    ) -> dict[TopicPartition, TopicPartitionState]:
        """Returns all lost partitions: `states`, and those of `tps` that are being revoked.

        Adds the lost partitions to `unreported_losses`, except partitions for which `on_revoked`
        was called.
        """
        gone = dict(states)
        gone |= {tp: its.state for tp, its in self._pending.items() if tp in tps}
        called = {tp for tp, its in self._pending.items() if its.was_listener_called}
        self.unreported_losses.update(gone.keys() - called)
        return gone

    def remove(self, tps: Iterable[TopicPartition]) -> None:
        """Removes partitions whose revocation or loss is complete."""
        for tp in tps:
            self._pending.pop(tp, None)
