"""`TransactionalOffsets`: the offsets of a group consumer that a producer's transaction commits.

From the first such commit on, the consumer commits nothing by itself: an auto-commit could overtake
the transaction, or commit records whose transaction is aborted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ...wire.errors import BrokerResponseError, KprotoError
from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.committed_offsets import CommittedOffsetFetcher
from ..commits.committer import Committer
from ..commits.errors import CommitFailedError
from ..commits.membership import GroupMembership
from ..commits.offset_requests import Identity, OffsetAndMetadata
from ..commits.transactional_commit import TransactionalCommit
from ..fetch.committed_positions import PositionInitializer
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition, format_partitions
from ..metadata.cluster_view import ClusterView
from .group_effects import GroupEffectHandler
from .poll_status import PollStatus

__all__ = ["TransactionalOffsets"]

_METADATA_TOO_LARGE: Final = "OFFSET_METADATA_TOO_LARGE"

_PROCESSED: Final = CommitRequest(CommitKind.TRANSACTION)


class TransactionalOffsets:
    """Returns the offsets to commit, and moves positions back to the committed offsets.

    `must_seek` is True if the next poll must move the positions back first, because the last
    transaction of `run` was not committed.
    """

    def __init__(
        self,
        view: ClusterView,
        group_id: str,
        subscriptions: SubscriptionState,
        committer: Committer,
        committed: CommittedOffsetFetcher,
        positions: PositionInitializer,
        effect_handler: GroupEffectHandler,
        membership: GroupMembership[Any] | None,
        status: PollStatus,
    ) -> None:
        self._view = view
        self._group_id = group_id
        self._subscriptions = subscriptions
        self._committer = committer
        self._committed = committed
        self._positions = positions
        self._effects = effect_handler
        self._membership = membership
        self._status = status
        self.must_seek = False

    async def commit(self) -> TransactionalCommit:
        """Returns the offsets after the last returned records, with the member that commits them.

        First waits for commits of the consumer in flight. Raises CommitFailedError if the member is
        in no generation. Also raises it, once, if a partition with returned records is not assigned
        any more: the next owner of the partition reads these records, too.
        """
        await self.stop_commits()
        subscriptions = self._subscriptions
        member = self._identity()
        uncommitted = subscriptions.commit_state.uncommitted
        if uncommitted:
            text = format_partitions(uncommitted)
            uncommitted.clear()
            raise CommitFailedError(
                f"{text}: not assigned to this consumer any more, and their next owner reads the "
                "records again that were returned here"
            )
        return self._commit_of(member, subscriptions.committable.returned_offsets())

    async def stop_commits(self) -> None:
        """Stops commits of the consumer, and waits for commits in flight.

        Raises CommitFailedError if a commit does not end in time.
        """
        view = self._view
        self._subscriptions.commit_state.is_transactional = True
        await self._committer.end(view.clock.monotonic() + view.settings.api_timeout_ms / 1000)
        if self._committer.has_commits:
            raise CommitFailedError("a commit of the consumer did not end in time", retriable=True)

    def _identity(self) -> Identity | None:
        """Returns the member that commits, None for manually assigned partitions.

        Raises CommitFailedError if the member is in no generation.
        """
        if self._membership is None:
            return None
        member = self._membership.identity
        if member is None:
            raise CommitFailedError(
                f"the member of group {self._group_id!r} is in no generation, because of a "
                "rebalance",
                retriable=True,
            )
        return member

    def _commit_of(
        self, member: Identity | None, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> TransactionalCommit:
        subscriptions, clock = self._subscriptions, self._view.clock
        epochs = {tp: subscriptions.committable.assignment_epoch_of(tp) for tp in offsets}

        def on_committed() -> None:
            subscriptions.committable.on_transaction_committed(offsets, epochs, clock.monotonic())

        def on_refused(error: KprotoError) -> None:
            if isinstance(error, BrokerResponseError) and error.name == _METADATA_TOO_LARGE:
                longest = max(len(its.metadata) for its in offsets.values())
                subscriptions.committable.on_metadata_too_large(longest)

        return TransactionalCommit(self._group_id, member, offsets, on_committed, on_refused)

    # For `run`

    @property
    def can_commit(self) -> bool:
        """True if the coordinator accepts offsets: the member is in a generation."""
        return self._membership is None or self._membership.identity is not None

    @property
    def has_failed(self) -> bool:
        """True if the member has failed, so that no offset can be committed any more."""
        return self._status.fatal_error is not None

    def seek_later(self) -> None:
        """Makes the next poll move the positions back to the committed offsets."""
        self.must_seek = True

    def processed_commit(self) -> TransactionalCommit:
        """Returns the offsets of processed records that are not committed.

        Raises CommitFailedError if the member is in no generation.
        """
        now = self._view.clock.monotonic()
        offsets = self._subscriptions.committable.offsets_to_commit(_PROCESSED, now)
        return self._commit_of(self._identity(), offsets)

    def owns(self, epochs: Collection[object]) -> bool:
        """Returns True if the offsets of all these assignment epochs can still be committed."""
        return self._subscriptions.committable.committable_epochs().issuperset(epochs)

    async def seek_to_committed(self) -> None:
        """Moves the positions of the assigned partitions back to the committed offsets.

        Raises KprotoError, and moves no position, if the committed offsets cannot be fetched.
        """
        subscriptions = self._subscriptions
        epochs = {
            tp: subscriptions.committable.assignment_epoch_of(tp) for tp in subscriptions.partitions
        }
        fetched = await self._committed.fetch(epochs)
        now = self._view.clock.monotonic()
        topics = self._view.cluster.topics
        states, effects = subscriptions.seek_to_committed(fetched, epochs, topics, now)
        self.must_seek = False
        self._effects.apply(effects)
        await self._positions.ensure_positions(states)
