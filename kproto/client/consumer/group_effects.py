"""`GroupEffectHandler`: carries out the effects of the subscription state of a group consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from ...wire.errors import KprotoError
from ..commits.committed_offsets import CommittedOffsetFetcher
from ..commits.membership import GroupMembership
from ..fetch.committed_positions import PositionInitializer
from ..fetch.effects import ConnectToLeaders, Effect, FetchEffect
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .poll_status import PollStatus

__all__ = ["GroupEffectHandler"]

#: The names of the tasks in `InFlightFetches`.
_WAKE_UP: Final = "a wake-up"
_POSITION_LOOKUP: Final = "start positions"

#: `until_in_session` sleeps for this many seconds between two checks, so that the member can run.
_SESSION_CHECK_S: Final = 0.001

_NEVER: Final = float("inf")


class GroupEffectHandler:
    """Applies the effects of the subscription state of a group consumer.

    Starts look-ups and connections, wakes the poll and auto-commit, and calls the `member`.
    `member` is None if the partitions are assigned manually.
    """

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        in_flight: InFlightFetches,
        status: PollStatus,
        committed: CommittedOffsetFetcher,
        owner: object,
        *,
        read_committed: bool,
    ) -> None:
        self._view = view
        self._subscriptions = subscriptions
        self._in_flight = in_flight
        self._status = status
        self._owner = owner
        self._wake_event = asyncio.Event()
        self._committed = committed
        self.member: GroupMembership[Any] | None = None
        self.positions = PositionInitializer(
            view, subscriptions, committed, self, read_committed=read_committed
        )
        #: Set when auto-commit must commit before its interval is over.
        self.commit_now = asyncio.Event()

    def set_member(self, member: GroupMembership[Any]) -> None:
        """Sets the member, which is created after this handler."""
        self.member = self._committed.member = member

    def on_metadata(self) -> None:
        """Compares the metadata with the subscription state, and starts look-ups of positions."""
        self.start_position_lookup()
        self.apply_topic_metadata()

    def apply_topic_metadata(self) -> None:
        """Applies the client's metadata to the subscription state, and carries out the effects."""
        cluster = self._view.cluster
        effects = self._subscriptions.on_metadata(cluster.topics, cluster.version, self.member)
        self.apply(effects)

    def apply(self, effects: Iterable[Effect]) -> None:
        """Starts each of the effects; waits for none of them."""
        for effect in effects:
            if isinstance(effect, ConnectToLeaders):
                self._connect_to_leaders(effect.tps)
            elif effect is FetchEffect.WAKE_POLL:
                self._wake_event.set()
            elif effect is FetchEffect.LOOK_UP_POSITIONS:
                self.start_position_lookup()
            elif effect is FetchEffect.CANCEL_LOOKUP:
                self._in_flight.cancel_lookup(_POSITION_LOOKUP)
            elif effect is FetchEffect.COMMIT_NOW:
                self.commit_now.set()
            elif self.member is not None:
                self.member.on_topics_changed()

    def report(self, fault: Exception) -> None:
        """Makes the next poll raise `fault`; only logs `fault` if another error is pending."""
        self._status.report_error(fault)
        self._wake_event.set()

    def fail(self, failure: KprotoError) -> None:
        """Makes each poll raise the error that ended the member."""
        self._status.fatal_error = failure
        self._wake_event.set()

    def close(self) -> None:
        """Marks the consumer as closed, and ends a poll that waits for records."""
        self._status.is_closed = True
        self._wake_event.set()

    @property
    def is_out_of_session(self) -> bool:
        """True if the session may have expired while the event loop or the machine was stopped.

        In this case other members may own the partitions. As soon as the member runs again, it
        treats the partitions as lost.
        """
        if self.member is None or self._status.is_closed or self._status.fatal_error is not None:
            return False
        now = self._view.clock.monotonic()
        has_ended = now >= self.member.assignment_valid_until
        return bool(self._subscriptions.partitions) and has_ended

    async def until_in_session(self, ends_at: float = _NEVER) -> None:
        """Waits until a heartbeat has extended the session, or the partitions are lost.

        Also returns when the consumer is closed or has failed, or at `ends_at`, in seconds of the
        clock. Sleeps once before it checks `ends_at`, so that the member can run.
        """
        while self.is_out_of_session:
            await self._view.clock.sleep(_SESSION_CHECK_S)
            if self._view.clock.monotonic() >= ends_at:
                return

    def start_position_lookup(self) -> None:
        """Starts to look up all missing positions, unless a look-up is running.

        Also starts a wake-up task: a poll that waits for records also waits for this task. `apply`,
        `report`, `fail` and `close` wake the poll by ending the task.
        """
        self._in_flight.start_lookup(_WAKE_UP, self._until_woken())
        if self._subscriptions.starts.needs_lookup:
            self._in_flight.start_lookup(_POSITION_LOOKUP, self.positions.look_up_all())

    async def _until_woken(self) -> None:
        await self._wake_event.wait()
        self._wake_event.clear()

    def _connect_to_leaders(self, tps: Iterable[TopicPartition]) -> None:
        """Opens connections to leaders while positions are looked up."""
        leaders = {self._view.cluster.leader(*tp) for tp in tps}
        for node in leaders & self._view.cluster.brokers.keys():
            self._in_flight.start_lookup(f"a connection to {node}", self._connect(node))

    async def _connect(self, node: int) -> None:
        with suppress(KprotoError):  # the fetch connects again, and reports the error
            await self._view.connection_to(node, owner=self._owner)
