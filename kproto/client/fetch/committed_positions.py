"""`CommittedPositions`: looks up the start positions of a group consumer.

A partition starts at the committed offset of the group. Without a commit the option `start`
decides: the start or end of the log, or the first record since a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from ..commits.committed_offsets import CommittedOffsets
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .effects import EffectHandler
from .list_offsets import OffsetSpec, list_offsets
from .partition_state import FetchState, TopicPartitionState
from .start_options import start_time_ms
from .subscription_state import SubscriptionState

__all__ = ["CommittedPositions"]


class CommittedPositions:
    """Looks up positions for `subscriptions`; `effect_handler` carries out the effects."""

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        committed: CommittedOffsets,
        effect_handler: EffectHandler,
        *,
        read_committed: bool,
    ) -> None:
        self._view = view
        self._subscriptions = subscriptions
        self._committed = committed
        self._effects = effect_handler
        self._read_committed = read_committed

    async def look_up_all(self) -> None:
        """Looks up the positions of all INITIALIZING partitions."""
        self._subscriptions.starts.begin_lookup()
        await self.look_up()

    async def look_up(self, tps: Collection[TopicPartition] | None = None) -> None:
        """Looks up the positions of INITIALIZING partitions: all of them, or those of `tps`.

        A partition whose position was set meanwhile, by a seek, keeps it. Raises
        NoCommittedOffsetError if the group has no committed offset and `start` is "none".
        """
        starts = self._subscriptions.starts
        states = starts.initializing(tps, has_no_commit=False)
        if states:
            fetched = await self._committed.fetch(states)
            effects = starts.on_committed_offsets(
                states,
                fetched.offsets,
                fetched.of_deleted_topics,
                self._view.cluster.topics,
                self._view.clock.monotonic(),
            )
            self._effects.apply(effects)
        states = starts.without_start_offset(starts.initializing(tps, has_no_commit=True))
        if states:
            found = await self._offsets_for_start(states)
            self._effects.apply(starts.on_start_offsets(states, found))

    async def _offsets_for_start(
        self, states: Mapping[TopicPartition, TopicPartitionState]
    ) -> dict[TopicPartition, int]:
        """Returns the offsets at the time of `start`; empty if `start` is no time."""
        start = self._subscriptions.options.start
        if not isinstance(start, datetime | timedelta):
            return {}
        timestamp_ms = start_time_ms(start, self._view.clock.now_ms())
        return await list_offsets(
            self._view, dict.fromkeys(states, timestamp_ms), read_committed=self._read_committed
        )

    async def ensure_positions(self, states: Mapping[TopicPartition, TopicPartitionState]) -> None:
        """Looks up the missing positions of `states`, while the partitions stay assigned."""
        if any(state.fetch_state is FetchState.INITIALIZING for state in states.values()):
            await self.look_up(states)
        wanted: dict[TopicPartition, OffsetSpec] = {
            tp: state.reset_strategy for tp, state in states.items() if _lacks_position(state)
        }
        if not wanted:
            return
        found = await list_offsets(self._view, wanted, read_committed=self._read_committed)
        for tp, offset in found.items():
            if _lacks_position(states[tp]):
                self._effects.apply(self._subscriptions.on_position_found(states[tp], offset))


def _lacks_position(state: TopicPartitionState) -> bool:
    return state.fetch_state is FetchState.AWAIT_RESET and not state.has_position
