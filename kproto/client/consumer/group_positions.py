"""`PositionAndLagLookup`: positions, lag and offsets by time of a group consumer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from ...wire.checks import check_whole_number
from ...wire.errors import BrokerResponseError, ConfigurationError
from ..fetch.committed_positions import PositionInitializer
from ..fetch.effects import Effect
from ..fetch.list_offsets import OffsetSpec, existing_partitions, is_unknown_partition, list_offsets
from ..fetch.partition_state import NO_POSITION, TopicPartitionState
from ..fetch.start_options import LAST_OFFSET
from ..fetch.subscription_state import SubscriptionState
from ..metadata.checks import checked_mapping, checked_tp
from ..metadata.cluster import TopicPartition, format_partitions
from ..metadata.cluster_view import ClusterView

__all__ = ["PositionAndLagLookup"]


class PositionAndLagLookup:
    """Returns positions and lag of the assigned partitions; looks up unknown positions first."""

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        positions: PositionInitializer,
        *,
        read_committed: bool,
    ) -> None:
        self._view = view
        self._subscriptions = subscriptions
        self._positions = positions
        self._read_committed = read_committed

    def state_of(self, tp: TopicPartition) -> TopicPartitionState:
        """Returns the state of `tp`; raises ConfigurationError if the partition is not assigned."""
        state = self._subscriptions.partitions.get(tp)
        if state is None:
            assigned = format_partitions(self._subscriptions.partitions) or "nothing"
            raise ConfigurationError(
                f"{tp!r} is not assigned to this consumer, whose assignment is now {assigned}"
            )
        return state

    def check_assigned(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Returns the partitions as a list.

        Raises ConfigurationError if a partition is not assigned.
        """
        tps = [checked_tp(tp) for tp in partitions]
        for tp in tps:
            self.state_of(tp)
        return tps

    async def position(self, tp: TopicPartition) -> int:
        """Returns the position of a partition; see `GroupConsumer.position`."""
        while True:
            state = self.state_of(tp)
            await self._positions.ensure_positions({tp: state})
            if self.state_of(tp) is not state:
                continue
            if not state.has_position:
                raise ConfigurationError(
                    f"{tp!r} is of a topic that was recreated; the group has not assigned the new "
                    "topic yet, so the partition has no position"
                )
            return self._subscriptions.poll.position_of(state)

    def seek(self, tp: TopicPartition, where: int | Literal["earliest", "latest"]) -> list[Effect]:
        """Sets the position of a partition, and returns the effects; see `GroupConsumer.seek`."""
        if isinstance(where, str) and where not in ("earliest", "latest"):
            raise ConfigurationError(f"cannot seek to {where!r:.80}; it is earliest or latest")
        if not isinstance(where, str):
            check_whole_number("the offset to seek", where, 0, LAST_OFFSET)
        tp = checked_tp(tp)
        self.state_of(tp)
        state, effects = self._subscriptions.seek(tp)
        if isinstance(where, int):
            state.set_position(where)
        else:
            state.await_reset(where)
        return effects

    async def lag(self) -> dict[TopicPartition, int]:
        """Returns the lag of each assigned partition; see `GroupConsumer.lag`."""
        tps = list(self._subscriptions.partitions)
        try:
            return await self._lag_of(tps)
        except BrokerResponseError as error:
            existing = (
                await existing_partitions(self._view, tps) if is_unknown_partition(error) else tps
            )
            if len(existing) == len(tps):
                raise
        return await self._lag_of([tp for tp in existing if tp in self._subscriptions.partitions])

    async def _lag_of(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if not tps:
            return {}
        await self._positions.ensure_positions({tp: self.state_of(tp) for tp in tps})
        ends = await self._list_offsets(dict.fromkeys(tps, "latest"))
        found = {}
        for tp, state in self._subscriptions.partitions.items():
            if tp in ends and state.has_position:
                found[tp] = max(0, ends[tp] - self._subscriptions.poll.position_of(state))
        return found

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """Returns the first offset at or after each time; see `GroupConsumer.offsets_for_times`."""
        for tp, time_ms in checked_mapping("times", times).items():
            check_whole_number(f"the time of {tp!r}", time_ms, 0, LAST_OFFSET)
        times = {checked_tp(tp): time_ms for tp, time_ms in times.items()}
        found = await self._list_offsets(times) if times else {}
        return {tp: None if offset == NO_POSITION else offset for tp, offset in found.items()}

    async def _list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetSpec]
    ) -> dict[TopicPartition, int]:
        return await list_offsets(self._view, wanted, read_committed=self._read_committed)
