"""`OffsetFetcher`: resets and validates positions, and finds leaders.

`reset_positions` and `validate_positions` send one request to a broker for several partitions. If
the response has an error for one partition, only that partition backs off.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from ...messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from ...messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from ...wire.errors import BrokerResponseError, KprotoError, ProtocolError
from ..metadata.cluster import TopicPartition, no_leader_error
from ..metadata.cluster_view import ClusterView
from ..observing.log_lines import format_target, log
from .effects import EffectHandler
from .fetch_options import FetchOptions, ResetPolicy
from .fetch_requests import is_out_of_range
from .list_offsets import OffsetSpec, list_offsets, offsets_or_errors, send_list_offsets
from .partition_state import NO_POSITION, TopicPartitionState
from .position_validation import (
    FIRST_EPOCHS_VERSION,
    EpochEnd,
    LogTruncatedError,
    RequestedEpoch,
    epoch_ends,
    epochs_request,
)
from .start_options import GroupStart, Start, strategy_after_end
from .subscription_state import SubscriptionState

__all__ = ["OffsetFetcher"]

logger = logging.getLogger("kproto.client")


class OffsetFetcher:
    """Requests offsets and epochs of partitions from leaders, and updates `subscriptions`."""

    def __init__(
        self,
        view: ClusterView,
        options: FetchOptions,
        subscriptions: SubscriptionState,
        effect_handler: EffectHandler,
    ) -> None:
        self._view = view
        self._options = options
        self._subscriptions = subscriptions
        self._effects = effect_handler

    async def reset_positions(self, node: int, states: Sequence[TopicPartitionState]) -> None:
        """Resets positions by ListOffsets at the leader: to an end of the log, or to a time."""
        view = self._view
        start = self._subscriptions.options.start
        after_end = strategy_after_end(start, view.clock.now_ms())
        left = {state.tp: state for state in states}
        wanted: dict[TopicPartition, OffsetSpec]
        wanted = {tp: state.reset_strategy for tp, state in left.items()}
        started_at = view.clock.monotonic()
        ends_at = self.begin_attempt(states, started_at)
        try:
            answer = await view.with_deadline(
                ends_at, send_list_offsets(view, node, wanted, self._options.read_committed)
            )
        except KprotoError as error:
            self.back_off(left, error, started_at)
            return
        for tp, found in offsets_or_errors(answer):
            state = left.pop(tp, None)
            if state is None or not self._subscriptions.is_current(state):
                continue
            if isinstance(found, BrokerResponseError):
                self.back_off({tp: state}, found, view.clock.monotonic())
            else:
                before = state.position
                is_set, effects = self._subscriptions.on_offset_reset(
                    state, found, after_end=after_end
                )
                self._effects.apply(effects)
                if is_set and before != NO_POSITION:
                    is_overtaken = wanted[tp] == "earliest" and found > before
                    _log_reset(state, before, is_overtaken=is_overtaken, start=start)
        for topic, partition in left:
            raise ProtocolError(f"the response to ListOffsets lacks {topic}[{partition}]")

    async def update_end(self, state: TopicPartitionState) -> None:
        """Requests the end of the log again; if the log now ends before `end`, lowers `end`.

        Raises a retriable error if a new leader does not know its high watermark yet.
        """
        tp = state.tp
        offsets = await list_offsets(
            self._view, {tp: "latest"}, read_committed=self._options.read_committed
        )
        if state.end is not None and offsets[tp] < state.end:
            logger.warning(
                "%s[%d]: the log ends at offset %d, and no longer at %d",
                *tp,
                offsets[tp],
                state.end,
            )
            state.lower_end(offsets[tp])

    async def validate_positions(self, node: int, states: Sequence[TopicPartitionState]) -> None:
        """Validates positions at a new leader, by OffsetForLeaderEpoch (KIP-320).

        Positions count as valid if the leader supports no version of that request for clients.
        """
        view = self._view
        left = {state.tp: state for state in states}
        requested = {
            tp: RequestedEpoch(state.last_epoch, view.cluster.leader_epoch(*tp))
            for tp, state in left.items()
        }
        positions = {tp: state.position for tp, state in left.items()}
        started_at = view.clock.monotonic()
        ends_at = self.begin_attempt(states, started_at)
        try:
            answer = await view.with_deadline(ends_at, send_epochs_request(view, node, requested))
        except KprotoError as error:
            self.back_off(left, error, started_at)
            return
        if answer is None:
            for tp, state in left.items():
                state.skip_validation(requested[tp].current)
            return
        faults: list[KprotoError] = []
        for tp, found in epoch_ends(answer):
            known = left.pop(tp, None)
            if known is None or not self._subscriptions.is_current(known):
                continue
            if known.position != positions[tp]:
                continue  # a fetch has moved the position meanwhile: it is validated again
            try:
                if isinstance(found, BrokerResponseError):
                    self.back_off({tp: known}, found, view.clock.monotonic())
                else:
                    self.on_epoch_end(known, found)
                    known.on_validated(requested[tp].current)
                    self.on_success(known)
            except KprotoError as fault:
                faults.append(fault)
        for topic, partition in left:
            what = "the response to OffsetForLeaderEpoch"
            faults.append(ProtocolError(f"{what} lacks {topic}[{partition}]"))
        if faults:
            raise faults[0]

    def on_epoch_end(self, state: TopicPartitionState, end: EpochEnd) -> None:
        """Validates the position: in the leader's log, the last fetched epoch ends at `end`.

        If `end` is before the position, drops buffered records and moves the position back
        (KIP-320). If the leader does not know where the epoch ends, requests a reset: to the log
        start if the log start is after the position, otherwise as the reset policy says. If the log
        may have lost returned records and the reset policy is NONE, raises LogTruncatedError
        instead.
        """
        if end.is_known and end.offset >= state.position:
            state.lower_last_epoch(end.epoch)
            return
        returned = self._subscriptions.poll.drop_truncated(state)
        tp = f"{state.topic}[{state.partition}]"
        if end.is_known and returned <= end.offset:
            self._truncate(state, returned, end)
            text = "%s: the log was truncated to offset %d; only unread records are gone"
            logger.info(text, tp, end.offset)
            return
        if self._options.reset_policy is ResetPolicy.NONE:
            state.position = returned
            state.mark_changed()
            diverging = end.offset if end.is_known else None
            raise LogTruncatedError(state.topic, state.partition, returned, diverging)
        if end.is_known:
            self._truncate(state, end.offset, end)
            logger.warning(
                "%s: the log was truncated: offsets %d to %d, which were returned, are gone; "
                "the consumer continues at %d",
                tp,
                end.offset,
                returned - 1,
                end.offset,
            )
        else:
            state.position = returned
            state.await_reset("earliest")
            logger.warning(
                "%s: the log was truncated, and its leader does not know the offset; records that "
                "were returned, up to offset %d, may be gone",
                tp,
                returned - 1,
            )

    def _truncate(self, state: TopicPartitionState, position: int, end: EpochEnd) -> None:
        effects = self._subscriptions.on_truncated(state, position, end.epoch, end.offset)
        self._effects.apply(effects)

    async def find_leaders(self, states: Sequence[TopicPartitionState]) -> None:
        """Refreshes metadata; a partition that still has no leader backs off.

        If the refresh fails, all partitions of `states` back off.
        """
        view = self._view
        requested = {state.tp: state for state in states}
        started_at = view.clock.monotonic()
        ends_at = self.begin_attempt(states, started_at)
        try:
            found = await view.with_deadline(
                ends_at, view.refresh({topic for topic, _ in requested})
            )
        except KprotoError as lost:
            self.back_off(requested, lost, started_at)
            return
        now = view.clock.monotonic()
        for state in self.current(requested).values():
            if view.leader_since(state.topic, state.partition, state.metadata_since) is None:
                error = no_leader_error(found, state.topic, state.partition)
                state.on_failure(error, now)
                tp = state.tp
                self._view.observer.retried("fetch", error, state.attempts, *tp)
            else:
                state.make_due(now)

    # Attempts

    def begin_attempt(self, states: Iterable[TopicPartitionState], now: float) -> float:
        """Begins an attempt at `now` for all of `states`; returns the deadline of the attempt.

        The returned deadline is the earliest of the partitions' deadlines, and at most
        `api_timeout_ms` after `now`. Times are in seconds of the clock.
        """
        ends_at = now + self._view.settings.api_timeout_ms / 1000
        for state in states:
            state.on_attempt_started(now)
            ends_at = min(ends_at, state.attempt_ends_at(now))
        return ends_at

    def current(
        self, states: Mapping[TopicPartition, TopicPartitionState]
    ) -> dict[TopicPartition, TopicPartitionState]:
        """Returns those of `states` that are still the states of their partitions.

        A revocation, a seek or the recreation of the topic replaces a state.
        """
        return {tp: its for tp, its in states.items() if self._subscriptions.is_current(its)}

    def back_off(
        self,
        states: Mapping[TopicPartition, TopicPartitionState],
        error: KprotoError,
        started_at: float,
        ended: float | None = None,
    ) -> None:
        """Backs off after a failed attempt, which began at `started_at` and ended at `ended`.

        `started_at` and `ended` are in seconds of the clock; `ended` is by default now. If the
        position is out of range and the reset policy is not NONE, requests a reset. Otherwise
        raises `error` if no retry helps, or if failures have lasted for `api_timeout_ms`; see
        `TopicPartitionState.on_failure`.
        """
        now = self._view.clock.monotonic() if ended is None else ended
        for tp, state in self.current(states).items():
            state.attempts.begin(started_at)
            if is_out_of_range(error) and self._options.reset_policy is not ResetPolicy.NONE:
                state.request_offset_reset(error, now)
            else:
                state.on_failure(error, now)
            self._view.observer.retried("fetch", error, state.attempts, *tp)

    def on_success(self, state: TopicPartitionState) -> None:
        if state.failure_count:
            self._view.observer.recovered("fetch", state.topic, state.partition)
        state.on_success()


def _log_reset(
    state: TopicPartitionState, before: int, *, is_overtaken: bool, start: Start | GroupStart
) -> None:
    """Logs that the position was reset from the offset `before`.

    `is_overtaken` is True if the log start had overtaken the position.
    """
    now = state.position
    is_committed = state.is_committed_offset(before)
    if is_overtaken:
        text = f"the log no longer has offsets {before} to {now - 1}; they are skipped"
        if is_committed:
            text += f", although the group has committed offset {before}"
    elif now == before:
        return
    else:
        which = f"offset {before}"
        if is_committed:
            which += ", which the group has committed,"
        text = f"{which} is not in the log; the consumer continues at offset {now}, by start="
        text += f"{start!r}"
    log(logging.WARNING, "%s: %s", format_target(*state.tp), text)


async def send_epochs_request(
    view: ClusterView, leader: int, requested: Mapping[TopicPartition, RequestedEpoch]
) -> OffsetForLeaderEpochResponse | None:
    """Sends OffsetForLeaderEpoch to a leader, and returns the response.

    Returns None if the leader does not support v3 or later: earlier versions are for brokers.
    """
    connection = await view.connection_to(leader)
    supported = connection.ranges.get(OffsetForLeaderEpochRequest.API_KEY)
    if supported is None or supported.highest < FIRST_EPOCHS_VERSION:
        return None
    version = connection.version_of(OffsetForLeaderEpochRequest)
    return await connection.request(epochs_request(requested), version=version)
