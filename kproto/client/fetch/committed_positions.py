"""`PositionInitializer`: looks up the start positions of a group consumer.

A partition starts at the committed offset of the group. If the group has committed no offset, the
option `start` decides: the start or end of the log, the first record at or after a time, or an
error. `StartOffsetResolver` has the rules, and their exceptions for new and recreated topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..commits.committed_offsets import CommittedOffsetFetcher
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .effects import EffectHandler
from .list_offsets import OffsetSpec, list_offsets
from .partition_state import FetchState, TopicPartitionState
from .start_options import is_time, start_time_ms
from .subscription_state import SubscriptionState

__all__ = ["PositionInitializer"]


class PositionInitializer:
    """Looks up the committed offsets of INITIALIZING partitions, and sets their positions.

    `effect_handler` carries out the effects of new positions.
    """

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        committed: CommittedOffsetFetcher,
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
        """Looks up the positions of all partitions in `StartOffsetResolver.initializing`."""
        self._subscriptions.starts.begin_lookup()
        await self.look_up()

    async def look_up(self, tps: Collection[TopicPartition] | None = None) -> None:
        """Looks up the positions of INITIALIZING partitions: of all partitions, or only of `tps`.

        If a seek sets the position of a partition during the look-up, the partition keeps that
        position. If `start` is "none", raises NoCommittedOffsetError for partitions to which
        `start` applies (see `without_start_offset`). Also raises the errors of the requests.
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
        """Returns, by partition, the first offset with a timestamp at or after the time `start`.

        The offset is -1 if the partition has no such record. Returns an empty dict if the option
        `start` is not a time.
        """
        start = self._subscriptions.options.start
        if not is_time(start):
            return {}
        timestamp_ms = start_time_ms(start, self._view.clock.now_ms())
        return await list_offsets(
            self._view, dict.fromkeys(states, timestamp_ms), read_committed=self._read_committed
        )

    async def ensure_positions(self, states: Mapping[TopicPartition, TopicPartitionState]) -> None:
        """Looks up the position of each state in `states` that has no position.

        A state stays without a position in three cases: its partition is revoked before the
        committed offset or start offset arrives; a seek replaces the state before that offset
        arrives; or its partition is in `StartOffsetResolver.awaiting_assignment`.
        """
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
