"""`TransactionalOffsets`: the offsets of a group consumer that a producer's transaction commits.

From the first such commit on, the consumer commits nothing by itself: an auto-commit could overtake
the transaction, or commit records whose transaction is aborted.
"""

from __future__ import annotations

from typing import Any

from ..commits.committed_offsets import CommittedOffsetFetcher
from ..commits.committer import Committer
from ..commits.errors import CommitFailedError
from ..commits.membership import GroupMembership
from ..commits.transactional_commit import TransactionalCommit
from ..fetch.committed_positions import PositionInitializer
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import format_partitions
from ..metadata.cluster_view import ClusterView
from .group_effects import GroupEffectHandler

__all__ = ["TransactionalOffsets"]


class TransactionalOffsets:
    """Returns the offsets to commit, and moves positions back to the committed offsets."""

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
    ) -> None:
        self._view = view
        self._group_id = group_id
        self._subscriptions = subscriptions
        self._committer = committer
        self._committed = committed
        self._positions = positions
        self._effects = effect_handler
        self._membership = membership

    async def commit(self) -> TransactionalCommit:
        """Returns the offsets after the last returned records, with the member that commits them.

        First waits for commits of the consumer in flight. Raises CommitFailedError if the member is
        in no generation, and once if records were returned of a partition that is not assigned any
        more: the next owner of the partition reads them, too.
        """
        view, subscriptions = self._view, self._subscriptions
        subscriptions.commit_state.is_transactional = True
        await self._committer.end(view.clock.monotonic() + view.settings.api_timeout_ms / 1000)
        if self._committer.has_commits:
            raise CommitFailedError("a commit of the consumer did not end in time", retriable=True)
        member = None
        if self._membership is not None:
            member = self._membership.identity
            if member is None:
                raise CommitFailedError(
                    f"the member of group {self._group_id!r} is in no generation, because of a "
                    "rebalance",
                    retriable=True,
                )
        uncommitted = subscriptions.commit_state.uncommitted
        if uncommitted:
            text = format_partitions(uncommitted)
            uncommitted.clear()
            raise CommitFailedError(
                f"{text}: not assigned to this consumer any more, and their next owner reads the "
                "records again that were returned here"
            )
        offsets = subscriptions.returned_offsets()
        epochs = {tp: subscriptions.assignment_epoch_of(tp) for tp in offsets}

        def on_committed() -> None:
            subscriptions.on_transaction_committed(offsets, epochs, view.clock.monotonic())

        return TransactionalCommit(self._group_id, member, offsets, on_committed)

    async def seek_to_committed(self) -> None:
        """Moves the positions of the assigned partitions back to the committed offsets.

        Raises KprotoError, and moves no position, if the committed offsets cannot be fetched.
        """
        subscriptions = self._subscriptions
        epochs = {tp: subscriptions.assignment_epoch_of(tp) for tp in subscriptions.partitions}
        fetched = await self._committed.fetch(epochs)
        now = self._view.clock.monotonic()
        topics = self._view.cluster.topics
        states, effects = subscriptions.seek_to_committed(fetched, epochs, topics, now)
        self._effects.apply(effects)
        await self._positions.ensure_positions(states)
