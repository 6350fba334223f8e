"""Carries out the effects of a member's state machine: sends requests and calls the listener.

The state machine decides the effects; the driver carries them out one after the other, and sends
heartbeats concurrently. `AssignmentListener` is the consumer, which fetches the partitions.
`classic.member`, `consumer.member` and `share.member` send the requests of their protocol.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar

from ...clock import Timer
from ...messages.base import Response
from ...messages.describe_groups_request import DescribeGroupsRequest
from ...protocol.error_codes import error_of_code
from ...tasks import start_task
from ...wire.errors import BrokerResponseError, ConfigurationError, KprotoError
from ...wire.uuid import Uuid
from ..core.group_errors import ErrorAction, GroupRequest
from ..core.tasks import LONGEST_TIMER_S
from ..metadata.cluster import TopicInfo, TopicPartition, format_partitions
from ..metadata.cluster_view import ClusterView
from ..network.connection import BrokerConnection
from ..observing.log_lines import log
from .assignment_listener import (
    CALLBACK_CANCELLED,
    AssignmentListener,
    callback_error,
    wrap_exception,
)
from .coordinator import CoordinatorConnections
from .effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    LeaveRequest,
    MemberIdentity,
    Revoke,
    SendLeaveGroup,
    Step,
)
from .group_protocol import is_live_classic
from .leader import topic_error
from .settings import GroupSettings
from .state_machine import MembershipStateMachine
from .subscription import Subscription
from .topic_watch import MissingTopics, TopicWatch

__all__ = ["HeartbeatSender", "MemberDriver", "OnResult"]

M = TypeVar("M", bound=MembershipStateMachine[Any, Any])
P = ParamSpec("P")
R = TypeVar("R", bound=Response)

#: Reports the result of an effect to the state machine, with the current time in seconds.
OnResult: TypeAlias = Callable[[float], object]
HeartbeatSender: TypeAlias = Callable[[], Coroutine[Any, Any, OnResult]]

#: Returns the action for an error of a request; each protocol has its own table.
ActionFor: TypeAlias = Callable[[GroupRequest, KprotoError], ErrorAction]

_NEVER: Final = float("inf")

#: The timeout of a heartbeat is the session timeout divided by this number, so that the session has
#: time for retries. `_heartbeat_timeout_ms` has further limits.
_HEARTBEATS_IN_SESSION: Final = 3

#: The driver checks the poll interval at least this many times in each `max_poll_interval_ms`.
_CHECKS_IN_POLL_INTERVAL: Final = 10


class MemberDriver(ABC, Generic[M]):
    """Runs a member of a group. After `start` the member joins as soon as it has a subscription.

    If `checks_group_first` is True, the member checks the protocol of the group before it joins,
    and ends with GroupProtocolMismatchError if the group needs the other protocol. `leave` revokes
    the partitions and leaves the group. `close`, which must always be called, ends the tasks and
    connections.
    """

    def __init__(
        self,
        view: ClusterView,
        settings: GroupSettings,
        listener: AssignmentListener,
        membership: M,
        *,
        checks_group_first: bool,
    ) -> None:
        self.settings = settings
        self._view = view
        self._clock = view.clock
        self._listener = listener
        self.checks_group_first = checks_group_first
        self._membership = membership
        self._watch = TopicWatch()
        self._missing = MissingTopics(view.settings.metadata_wait_ms / 1000)
        self._counts = view.observer.group(settings.group_id)
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._timer: Timer | None = None
        self._step: asyncio.Task[OnResult] | None = None
        self._step_transitions = -1
        self._heartbeat: asyncio.Task[OnResult] | None = None
        self._topics_refresh: asyncio.Task[OnResult] | None = None
        self._topics_refresh_at = _NEVER
        self._has_unreported_loss = False  # the last `on_partitions_lost` was interrupted
        self._coordinator = CoordinatorConnections(view, settings, self._on_coordinator_moved)

    # Calls of the consumer

    @property
    def identity(self) -> MemberIdentity | None:
        """Returns the member id and generation for a commit; None if the member may not commit."""
        return self._membership.identity(self._clock.monotonic())

    @property
    def assignment_valid_until(self) -> float:
        """Returns the time until which the member certainly owns its partitions.

        The time is in seconds of the clock, -infinity for a member without a generation or epoch.
        After that time another member may read the partitions. If the event loop was blocked, the
        member notices late that the time is over.
        """
        return self._membership.assignment_valid_until

    def start(self) -> None:
        """Starts the member, which joins the group once it has a subscription.

        Raises ConfigurationError if the member was started already, or if the call is outside of
        the client's event loop.
        """
        self._view.loop_guard.check()
        if self._task is not None:
            raise ConfigurationError("the member was started already")
        self._task = start_task(self._run())

    def subscribe(self, subscription: Subscription) -> None:
        """Replaces the subscription."""
        self._membership.subscribe(subscription, self._clock.monotonic())
        self._changed.set()

    def unsubscribe(self) -> None:
        """Revokes all partitions, and leaves the group unless the member is static (KIP-345)."""
        self._membership.subscribe(None, self._clock.monotonic())
        self._changed.set()

    def request_rejoin(self, reason: str) -> None:
        """Requests a rebalance; the broker logs the reason (KIP-800).

        Has no effect in the consumer protocol.
        """
        self._membership.request_rejoin(reason, self._clock.monotonic())
        self._changed.set()

    def on_topics_changed(self) -> None:
        """Makes the driver compare the watched topics with new metadata."""
        self._changed.set()

    def on_poll(self) -> None:
        """Rejoins the group if the member left because its consumer polled too late."""
        if self._membership.awaits_poll:
            self._membership.on_poll(self._clock.monotonic())
            self._changed.set()

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if the partition `tp` of the topic with the id `topic_id` is assigned.

        Returns False in the classic protocol, which assigns by topic name.
        """
        return self._membership.is_assigned(tp, topic_id)

    def on_commit_refused(self, error: BrokerResponseError, identity: MemberIdentity) -> None:
        """Passes the error of a request that was sent with `identity` to the state machine.

        The request is an OffsetCommit, or in the consumer protocol also an OffsetFetch.
        """
        self._membership.on_commit_refused(error, identity, self._clock.monotonic())
        self._changed.set()

    async def leave(self, leave: bool, reason: str = "the consumer is closed") -> None:
        """Revokes all partitions, sends the leave request if `leave` is True, and ends the member.

        If `leave` is False, a static member of the consumer protocol announces that it will rejoin.
        Does not wait for the processing of records, because the consumer has committed before.
        Waits at most `leave_timeout_ms` for the response. If a call is cancelled and `close` then
        ends the member, a later call of `leave` sends the leave request again. Raises
        ConfigurationError in a callback of the member.
        """
        over = self._membership.has_ended or self._membership.error is not None
        if self._task is None or (self._task.done() and over):
            return
        if self._step is not None and self._step is asyncio.current_task():
            raise ConfigurationError("a consumer cannot be closed from within its own callbacks")
        now = self._clock.monotonic()
        self._membership.begin_leave(reason, now, leaves=leave, ends=True, until=now)
        self._changed.set()
        if self._task.done():
            self._task = start_task(self._run())
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """Ends the member at once, without a request to the coordinator.

        Waits until the member has ended. If a callback of the member calls `close`, the call does
        not wait: the callback is cancelled at its next wait, and then the member ends.
        """
        if self._task is not None:
            self._task.cancel()
            if self._step is not None and self._step is asyncio.current_task():
                return
            await asyncio.wait([self._task])
        await self._coordinator.release()

    # The task

    async def _run(self) -> None:
        try:
            while True:
                self._changed.clear()
                self._collect_results()
                self._check_deadlines(self._clock.monotonic())
                self._write_log_lines()
                if self._membership.has_ended and self._step is None:
                    break
                self._start_due_work(self._clock.monotonic())
                if not self._changed.is_set():
                    self._set_timer(self._next_wakeup())
                    await self._changed.wait()
        except Exception as fault:  # noqa: BLE001 - raised to the callers that wait for the member
            what = f"the member of group {self.settings.group_id!r} failed"
            self._membership.error = wrap_exception(what, fault)
        finally:
            await self._end()
        if self._membership.error is not None:
            self._listener.on_member_failed(self._membership.error)

    async def _end(self) -> None:
        """Ends all tasks, timers and connections."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [
            task for task in (self._step, self._heartbeat, self._topics_refresh) if task is not None
        ]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._step = self._heartbeat = self._topics_refresh = None
            await self._coordinator.release()

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        seconds = min(max(0.0, at - self._clock.monotonic()), LONGEST_TIMER_S)
        self._timer = self._clock.call_later(seconds, self._changed.set)

    def _next_wakeup(self) -> float:
        """Returns the time at which the next work is due, if no event arrives before."""
        now = self._clock.monotonic()
        deadlines = [self._membership.next_at(now)]
        if not self._membership.is_outside_group:
            patience_ms = min(
                self.settings.heartbeat_interval_ms,
                max(1, self.settings.max_poll_interval_ms // _CHECKS_IN_POLL_INTERVAL),
            )
            deadlines.append(now + patience_ms / 1000)
        if self._topics_refresh is None and self._membership.watches_topics:
            deadlines.append(self._topics_refresh_at)
        return min(deadlines)

    def _check_deadlines(self, now: float) -> None:
        """Checks the session, the poll interval and the watched topics."""
        membership = self._membership
        membership.tick(now)
        if membership.is_outside_group:
            return
        if self._listener.poll_interval_exceeded(now) and membership.on_poll_timeout(now):
            self._counts.late += 1
        if membership.watches_topics:
            change = self._watch.rejoin_reason(self._view.cluster.topics)
            if change is not None:
                self._on_topics_differ(change, now)

    def _write_log_lines(self) -> None:
        log_lines, self._membership.log_lines = self._membership.log_lines, []
        for level, text, values in log_lines:
            log(level, text, *values)

    def _log(self, text: str, *values: object, level: int = logging.INFO) -> None:
        log(level, "group %s: " + text, self.settings.group_id, *values)

    # Concurrent tasks

    def _start_due_work(self, now: float) -> None:
        """Starts the effect, the heartbeat and the metadata refresh that are due.

        Starts no effect while another effect runs; cancels the running effect if it is outdated.
        """
        membership = self._membership
        if self._step is not None:
            is_outdated = self._step_transitions != membership.transition_count
            if is_outdated and not self._step.cancelling():
                self._cancel_step()  # only once, so that a callback can clean up
        else:
            step = membership.step(now, self._listener.owned_partitions())
            if step is not None:
                self._step_transitions = membership.transition_count
                self._step = self._spawn(self._carry_out, step)
        if self._heartbeat is None:
            heartbeat = self._heartbeat_to_send(now)
            if heartbeat is not None:
                self._heartbeat = self._spawn(heartbeat)
        if (
            self._topics_refresh is None
            and membership.watches_topics
            and now >= self._topics_refresh_at
        ):
            self._topics_refresh = self._spawn(self._refresh_topics)

    def _spawn(
        self, work: Callable[P, Coroutine[Any, Any, OnResult]], *args: P.args, **named: P.kwargs
    ) -> asyncio.Task[OnResult]:
        async def run() -> OnResult:
            try:
                return await work(*args, **named)
            finally:
                self._changed.set()  # wakes `_run`

        task = start_task(run())
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[OnResult]) -> None:
        if task.cancelled():  # perhaps before it started
            self._changed.set()

    def _cancel_step(self) -> None:
        """Cancels an outdated effect, and closes the connection of its JoinGroup or SyncGroup."""
        assert self._step is not None
        self._step.cancel()
        self._coordinator.abort_pending_join()

    def _collect_results(self) -> None:
        """Passes the results of finished tasks to the state machine."""
        step, heartbeat, refresh = self._step, self._heartbeat, self._topics_refresh
        if heartbeat is not None and heartbeat.done():
            self._heartbeat = None
            heartbeat.result()(self._clock.monotonic())
        if refresh is not None and refresh.done():
            self._topics_refresh = None
            refresh.result()(self._clock.monotonic())
        if step is not None and step.done():
            self._step = None
            if self._step_transitions != self._membership.transition_count:
                if not step.cancelled():
                    step.exception()  # an outdated result is ignored
                return
            self._collect_step(step)

    def _collect_step(self, step: asyncio.Task[OnResult]) -> None:
        now = self._clock.monotonic()
        try:
            on_result = step.result()
        except KprotoError as error:
            self._handle_action(self._membership.failed(error, now))
        except asyncio.CancelledError as cancelled:  # not by the driver
            self._membership.fail(wrap_exception(CALLBACK_CANCELLED, cancelled), now, leaves=True)
        else:
            on_result(now)

    def _handle_action(self, action: ErrorAction | None) -> None:
        if action is ErrorAction.FIND_COORDINATOR:
            self._coordinator.forget()

    def _on_coordinator_moved(self) -> None:
        """Handles a move of the coordinator during a pending JoinGroup or SyncGroup.

        Does nothing by default.
        """

    # Effects of each protocol

    async def _carry_out(self, step: Step) -> OnResult:
        """Carries out an effect; returns the function that reports its result."""
        match step:
            case Revoke():
                return await self._revoke(step)
            case ApplyAssignment():
                return await self._apply_assignment(step)
            case SendLeaveGroup() | LeaveByHeartbeat():
                return await self._send_leave(step)
        return await self._carry_out_protocol_step(step)

    @abstractmethod
    async def _carry_out_protocol_step(self, step: Any) -> OnResult:
        """Carries out an effect that only the member's protocol has; called by `_carry_out`."""

    @abstractmethod
    def _heartbeat_to_send(self, now: float) -> HeartbeatSender | None:
        """Returns the coroutine function that sends a heartbeat; None if no heartbeat is due.

        In the consumer protocol the function may refresh the session timeout instead.
        """

    @abstractmethod
    def _on_topics_differ(self, change: str, now: float) -> None:
        """Handles a change of the watched topics; the text `change` describes it."""

    @abstractmethod
    async def _send_leave_once(self, step: Any) -> None:
        """Sends the leave request once. Raises its error; the caller retries retriable errors."""

    def _check_leave_response(self, codes: Iterable[int], action_for: ActionFor) -> None:
        """Raises the first error among the `codes` of a leave response.

        Ignores errors which show that the member has left already.
        """
        for code in filter(None, codes):
            error = error_of_code(code, f"leaving group {self.settings.group_id!r}")
            action = action_for(GroupRequest.LEAVE, error)
            self._handle_action(action)
            if action is not ErrorAction.HAS_LEFT:
                raise error

    def _heartbeat_timeout_ms(self, interval_ms: int, session_ms: int) -> int:
        """Returns the timeout of a heartbeat in ms.

        It is a third of the session timeout, so that retries fit into the session, or the heartbeat
        interval if that is longer. The timeout is never longer than `request_timeout_ms`.
        """
        in_session_ms = session_ms // _HEARTBEATS_IN_SESSION
        return min(self._view.settings.request_timeout_ms, max(interval_ms, in_session_ms))

    # Effects of both protocols

    async def _has_live_classic_members(self, connection: BrokerConnection) -> bool:
        """Returns True if the coordinator describes the group as a classic group with members."""
        group_id = self.settings.group_id
        answer = await connection.request(DescribeGroupsRequest(groups=[group_id]))
        return is_live_classic(answer, group_id)

    async def _revoke(self, step: Revoke) -> OnResult:
        fault: KprotoError | None = None
        if step.lost and (step.partitions or self._has_unreported_loss):
            if step.partitions:
                self._log("loses %s", format_partitions(step.partitions))
            self._counts.lost_partitions += len(step.partitions)
            self._has_unreported_loss = True
            fault = await callback_error(self._listener.on_partitions_lost(step.partitions))
            self._has_unreported_loss = False
        elif step.partitions:
            self._log("revokes %s", format_partitions(step.partitions))
            fault = await callback_error(self._listener.revoke(step.partitions, step.until))

        def on_result(now: float) -> None:
            if fault is not None:
                self._membership.fail(fault, now, leaves=True)
            if fault is None or step.lost:
                self._membership.on_revoked(now)

        return on_result

    async def _apply_assignment(self, step: ApplyAssignment) -> OnResult:
        fault: KprotoError | None = None
        if step.revoked:
            self._log("revokes %s", format_partitions(step.revoked))
            fault = await callback_error(self._listener.revoke(step.revoked, step.until))
        if fault is None:
            self._log("is assigned %s", format_partitions(step.added) or "no new partitions")
            self._has_unreported_loss = False  # `assign` reports the loss first
            fault = await callback_error(self._listener.assign(step.added))

        def on_result(now: float) -> None:
            if fault is not None:
                self._membership.fail(fault, now, leaves=True)
                return
            self._counts.rebalances += 1
            if self._watch.topics == frozenset() and self._topics_without_metadata:
                self._topics_refresh_at = now  # the leader's ACLs may differ from this member's
            self._membership.on_assignment_applied(step, now)

        return on_result

    async def _topics_to_join(self, subscription: Subscription) -> frozenset[str]:
        """Returns the names of the topics to join with.

        If metadata of a topic is missing or old, requests the metadata in the background. For a
        compiled pattern, first requests the metadata of all topics.
        """
        topics: Iterable[TopicInfo] = ()
        if subscription.pattern is not None:
            topics = await self._view.refresh()
            self._schedule_refresh()
        wanted = subscription.among(topics)
        if self._topics_refresh is None and not all(map(self._view.has_current_metadata, wanted)):
            self._topics_refresh = self._spawn(self._request_topics, wanted)
        return wanted

    async def _request_topics(self, names: Collection[str]) -> OnResult:
        """Requests metadata of topics while the member joins."""
        found: Collection[TopicInfo] = []
        with suppress(KprotoError):
            found = await self._view.refresh(names)

        def on_result(now: float) -> None:
            self._log_missing_topics(found, now)
            self._topics_refresh_at = min(self._topics_refresh_at, self._missing.next_report_at)

        return on_result

    def _log_missing_topics(self, found: Iterable[TopicInfo], now: float) -> None:
        subscription = self._membership.subscription
        wanted = frozenset[str]() if subscription is None else subscription.topics
        for topic in self._missing.to_report(wanted, found, self._view.cluster.topics, now):
            self._log("the subscribed topic %s does not exist yet", topic, level=logging.WARNING)

    async def _send_leave(self, step: LeaveRequest) -> OnResult:
        seconds = max(0.0, step.until - self._clock.monotonic())
        try:
            async with self._clock.timeout(seconds):
                await self._view.retrying(lambda: self._send_leave_once(step))
        except (KprotoError, TimeoutError) as error:
            why = error if str(error) else "the coordinator did not answer"
            self._log("failed to send the leave request: %s", why, level=logging.WARNING)
        else:
            self._log("left: %s", step.reason)
        return self._membership.on_left

    async def _refresh_topics(self) -> OnResult:
        """Requests metadata, and compares the watched topics with it.

        A member with a compiled pattern requests all topics. Any other member requests the watched
        topics that do not exist yet. If all watched topics exist, the member requests all watched
        topics. If the member watches no topic, it requests the subscribed topics that have no
        metadata. If the request fails, the next refresh repeats it. A permanent error of a topic
        that is subscribed to by name ends the member.
        """
        names = self._watch.topics
        missing = self._watch.missing
        requested = missing if missing and names is not None else names
        if requested == frozenset():
            requested = self._topics_without_metadata
        try:
            found = await self._view.refresh(requested) if requested is None or requested else []
        except KprotoError:
            found = []

        def on_result(now: float) -> None:
            self._log_missing_topics(found, now)
            self._schedule_refresh()
            subscription = self._membership.subscription
            if subscription is not None:
                refused = topic_error(found, subscription.topics)
                if refused is not None:
                    self._membership.fail(refused, now, leaves=True)
            if found:
                change = self._watch.rejoin_reason_in_response(found, whole=requested is None)
                if change is not None:
                    self._on_topics_differ(change, now)

        return on_result

    @property
    def _topics_without_metadata(self) -> frozenset[str]:
        """The subscribed topics that the metadata lacks.

        The metadata also lacks a topic if the principal is not authorized to DESCRIBE the topic.
        """
        subscription = self._membership.subscription
        wanted = frozenset[str]() if subscription is None else subscription.topics
        return wanted - self._view.cluster.topics.keys()

    def _schedule_refresh(self) -> None:
        """Schedules the next metadata refresh, in `metadata_max_age_ms` at the latest.

        If a watched topic does not exist yet, the refresh is due in `retry_backoff_max_ms`. If a
        missing topic must be reported, the refresh is due at the time of the report, or in
        `retry_backoff_max_ms` if that is later.
        """
        settings = self._view.settings
        age_ms = settings.retry_backoff_max_ms if self._watch.missing else 0
        seconds = (age_ms or settings.metadata_max_age_ms) / 1000
        now = self._clock.monotonic()
        soon = max(self._missing.next_report_at, now + settings.retry_backoff_max_ms / 1000)
        self._topics_refresh_at = min(now + seconds, soon)
