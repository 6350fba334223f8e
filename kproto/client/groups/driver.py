"""Carries out the effects of a member's state machine: sends requests and calls the listener.

The state machine decides the effects; the driver runs them one after the other, and heartbeats
concurrently. The `AssignmentListener`, in a consumer, reads the partitions. `classic.member` and
`consumer.member` send the requests of their protocol. A share group would be a third protocol on
the same driver.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from ...clock import Timer
from ...messages.base import Response
from ...messages.describe_groups_request import DescribeGroupsRequest
from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, ConfigurationError, KprotoError
from ...wire.uuid import Uuid
from ..core.group_errors import ErrorAction, GroupRequest
from ..metadata.cluster import TopicInfo, TopicPartition, format_partitions
from ..metadata.cluster_view import ClusterView
from ..network.connection import BrokerConnection
from ..observing.log_lines import log
from .coordinator import Coordinator
from .effects import (
    ApplyAssignment,
    Leave,
    LeaveByHeartbeat,
    LeaveRequest,
    MemberIdentity,
    Revoke,
    Step,
)
from .group_protocol import is_live_classic
from .leader import topic_error
from .settings import GroupSettings
from .state_machine import MembershipStateMachine
from .subscription import Subscription
from .topic_watch import MissingTopics, TopicWatch

__all__ = ["AssignmentListener", "HeartbeatSender", "MemberDriver", "OnResult", "wrap_exception"]

M = TypeVar("M", bound=MembershipStateMachine[Any, Any])
P = ParamSpec("P")
R = TypeVar("R", bound=Response)

#: Reports the result of an effect to the membership, with the current time.
OnResult: TypeAlias = Callable[[float], object]
HeartbeatSender: TypeAlias = Callable[[], Coroutine[Any, Any, OnResult]]

#: Returns the action for an error of a request; each protocol has its own table.
ActionFor: TypeAlias = Callable[[GroupRequest, KprotoError], ErrorAction]

_NEVER: Final = float("inf")

#: The timeout of a heartbeat is the session timeout divided by this, so that retries fit in.
_HEARTBEATS_IN_SESSION: Final = 3

#: How often the driver checks the poll interval of the consumer, within `max_poll_interval_ms`.
_CHECKS_IN_POLL_INTERVAL: Final = 10

_CANCELLED: Final = "a callback of the consumer cancelled itself"


class AssignmentListener(Protocol):
    """Reads the assigned partitions. The driver awaits one of its calls at a time."""

    def owned_partitions(self) -> Collection[TopicPartition]:
        """Returns the owned partitions."""
        ...

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        """Revokes partitions while the member can still commit their offsets.

        The listener returns no more records of them, waits for records in flight until the time
        `until`, in seconds of the clock, commits, and forgets the partitions. If the generation is
        lost during the call, the driver cancels it and calls `on_partitions_lost`. If the member
        must leave during the call, the driver calls `revoke` for all owned partitions.
        """
        ...

    async def on_partitions_lost(self, tps: Collection[TopicPartition]) -> None:
        """Forgets lost partitions: returns no more records of them, and commits nothing.

        If the driver cancels the call, it next calls it for the partitions owned then, or calls
        `assign`. In that call the listener repeats an interrupted `on_lost` callback.
        """
        ...

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        """Adds partitions and starts to read them; `tps` is empty if a rebalance added none."""
        ...

    def on_member_failed(self, error: KprotoError) -> None:
        """Handles the permanent failure of the member, which has left the group if it could."""
        ...

    def poll_interval_exceeded(self, now: float) -> bool:
        """Returns True if a poll or the processing of a record exceeds max_poll_interval_ms."""
        ...


class MemberDriver(ABC, Generic[M]):
    """Runs a member of a group. After `start` it joins as soon as it has a subscription.

    A member that `checks_group_first` fails before it joins if the group uses the other protocol.
    `leave` revokes its partitions and leaves the group; `close`, which must always be called, ends
    its tasks and connections.
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
        self._coordinator = Coordinator(view, settings, self._on_coordinator_moved)

    # Calls of the consumer

    @property
    def identity(self) -> MemberIdentity | None:
        """Returns the identity for commits now; None while the broker would refuse a commit."""
        return self._membership.identity(self._clock.monotonic())

    @property
    def assignment_valid_until(self) -> float:
        """Returns until when the member certainly owns its partitions, in seconds of the clock.

        After that time, if the event loop was blocked, another member may read the partitions.
        """
        return self._membership.assignment_valid_until

    def start(self) -> None:
        """Starts the member, which joins the group once it has a subscription."""
        self._view.loop_guard.check()
        if self._task is not None:
            raise ConfigurationError("the member was started already")
        self._task = asyncio.create_task(self._run())

    def subscribe(self, subscription: Subscription) -> None:
        """Replaces the subscription."""
        self._membership.subscribe(subscription, self._clock.monotonic())
        self._changed.set()

    def unsubscribe(self) -> None:
        """Revokes all partitions, and leaves the group unless the member is static (KIP-345)."""
        self._membership.subscribe(None, self._clock.monotonic())
        self._changed.set()

    def request_rejoin(self, reason: str) -> None:
        """Requests a rebalance; the broker logs the reason (KIP-800)."""
        self._membership.request_rejoin(reason, self._clock.monotonic())
        self._changed.set()

    def on_topics_changed(self) -> None:
        """Makes the driver compare the watched topics with new metadata."""
        self._changed.set()

    def on_poll(self) -> None:
        """Makes a member join again that left because its consumer was too slow to poll."""
        if self._membership.awaits_poll:
            self._membership.on_poll(self._clock.monotonic())
            self._changed.set()

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if a partition is assigned with that topic id."""
        return self._membership.is_assigned(tp, topic_id)

    def on_commit_refused(self, error: BrokerResponseError, identity: MemberIdentity) -> None:
        """Passes the error of an OffsetCommit of `identity` to the state machine."""
        self._membership.on_commit_refused(error, identity, self._clock.monotonic())
        self._changed.set()

    async def leave(self, leave: bool, reason: str = "the consumer is closed") -> None:
        """Revokes all partitions, sends the leave request if `leave`, and ends the member.

        Does not wait for records in flight, because the consumer has committed before. Waits
        `leave_timeout_ms` for the response. If the call was cancelled, a second one sends the leave
        request again.
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
            self._task = asyncio.create_task(self._run())
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """Ends the member at once, without a request to the coordinator.

        Waits for the end, except inside a callback of the member, which ends after the callback.
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
        if at != _NEVER:
            seconds = max(0.0, at - self._clock.monotonic())
            self._timer = self._clock.call_later(seconds, self._changed.set)

    def _next_wakeup(self) -> float:
        """Returns when the next work is due if no event comes before."""
        now = self._clock.monotonic()
        deadlines = [self._membership.next_at(now)]
        if not self._membership.is_outside_group:
            patience_ms = min(
                self.settings.heartbeat_interval_ms,
                max(1, self.settings.max_poll_interval_ms // _CHECKS_IN_POLL_INTERVAL),
            )
            deadlines.append(now + patience_ms / 1000)
        if self._topics_refresh is None and self._membership.is_reading:
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
        if membership.is_reading:
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
        """Starts effects and heartbeats that are due, and cancels an outdated effect."""
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
            and membership.is_reading
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

        task = asyncio.create_task(run())
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[OnResult]) -> None:
        if task.cancelled():  # perhaps before it started
            self._changed.set()

    def _cancel_step(self) -> None:
        """Cancels an outdated effect; closes the connection on which the broker holds a request."""
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
        except asyncio.CancelledError as cancelled:  # not by the driver: same phase
            self._membership.fail(wrap_exception(_CANCELLED, cancelled), now, leaves=True)
        else:
            on_result(now)

    def _handle_action(self, action: ErrorAction | None) -> None:
        if action is ErrorAction.FIND_COORDINATOR:
            self._coordinator.forget()

    def _on_coordinator_moved(self) -> None:
        """Handles a move of the coordinator during a pending request; by default does nothing."""

    # Effects of each protocol

    async def _carry_out(self, step: Step) -> OnResult:
        """Carries out an effect."""
        match step:
            case Revoke():
                return await self._revoke(step)
            case ApplyAssignment():
                return await self._apply_assignment(step)
            case Leave() | LeaveByHeartbeat():
                return await self._send_leave(step)
        return await self._carry_out_protocol_step(step)

    @abstractmethod
    async def _carry_out_protocol_step(self, step: Any) -> OnResult:
        """Carries out an effect that only this protocol has."""

    @abstractmethod
    def _heartbeat_to_send(self, now: float) -> HeartbeatSender | None:
        """Returns the call that sends the heartbeat, if one is due."""

    @abstractmethod
    def _on_topics_differ(self, change: str, now: float) -> None:
        """Handles a change of the watched topics."""

    @abstractmethod
    async def _send_leave_once(self, step: Any) -> None:
        """Sends the leave request once. Raises errors that a retry may solve."""

    def _check_leave_response(self, codes: Iterable[int], action_for: ActionFor) -> None:
        """Raises errors of a leave response that a retry may solve, or GROUP_AUTHORIZATION_FAILED.

        Ignores other errors: the coordinator does not know the member, so it has left.
        """
        for code in filter(None, codes):
            error = error_of_code(code, f"leaving group {self.settings.group_id!r}")
            action = action_for(GroupRequest.LEAVE, error)
            self._handle_action(action)
            may_not = error.name == "GROUP_AUTHORIZATION_FAILED"
            if may_not or action in (ErrorAction.RETRY, ErrorAction.FIND_COORDINATOR):
                raise error

    def _heartbeat_timeout_ms(self, interval_ms: int, session_ms: int) -> int:
        """Returns the timeout of a heartbeat, which leaves time for retries in the session."""
        in_session_ms = session_ms // _HEARTBEATS_IN_SESSION
        return min(self._view.settings.request_timeout_ms, max(interval_ms, in_session_ms))

    # Effects of both protocols

    async def _has_live_classic_members(self, connection: BrokerConnection) -> bool:
        """Returns True if the coordinator describes the group as a classic one with members."""
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
            fault = await self._callback_error(self._listener.on_partitions_lost(step.partitions))
            self._has_unreported_loss = False
        elif step.partitions:
            self._log("revokes %s", format_partitions(step.partitions))
            fault = await self._callback_error(self._listener.revoke(step.partitions, step.until))

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
            fault = await self._callback_error(self._listener.revoke(step.revoked, step.until))
        if fault is None:
            self._log("is assigned %s", format_partitions(step.added) or "no new partitions")
            self._has_unreported_loss = False  # `assign` reports the loss first
            fault = await self._callback_error(self._listener.assign(step.added))

        def on_result(now: float) -> None:
            if fault is not None:
                self._membership.fail(fault, now, leaves=True)
                return
            self._counts.rebalances += 1
            if self._watch.topics == frozenset() and self._topics_without_metadata:
                self._topics_refresh_at = now  # the leader's ACLs may differ from this member's
            self._membership.on_assignment_applied(step, now)

        return on_result

    async def _callback_error(self, call: Awaitable[None]) -> KprotoError | None:
        """Returns the error of a call of the listener, or None; an error ends the member."""
        try:
            await call
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return wrap_exception(_CANCELLED, cancelled)
        except KprotoError as error:
            return error
        except Exception as fault:  # noqa: BLE001 - a user's callback may raise any exception
            return wrap_exception("a callback of the consumer failed", fault)
        return None

    async def _topics_to_join(self, subscription: Subscription) -> frozenset[str]:
        """Returns the topics to join with; starts to request the metadata of unknown ones."""
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
            self._log("failed to send that it leaves: %s", why, level=logging.WARNING)
        else:
            self._log("left: %s", step.reason)
        return self._membership.on_left

    async def _refresh_topics(self) -> OnResult:
        """Requests metadata of the watched topics; an error leaves that to the next refresh."""
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
        """Returns subscribed topics without metadata: the principal may lack an ACL."""
        subscription = self._membership.subscription
        wanted = frozenset[str]() if subscription is None else subscription.topics
        return wanted - self._view.cluster.topics.keys()

    def _schedule_refresh(self) -> None:
        """Schedules the next metadata refresh, soon if a topic is missing."""
        settings = self._view.settings
        age_ms = settings.retry_backoff_max_ms if self._watch.missing else 0
        seconds = (age_ms or settings.metadata_max_age_ms) / 1000
        now = self._clock.monotonic()
        soon = max(self._missing.next_report_at, now + settings.retry_backoff_max_ms / 1000)
        self._topics_refresh_at = min(now + seconds, soon)


def wrap_exception(what: str, fault: BaseException) -> KprotoError:
    """Returns the error that wraps an exception of the user's code or of the client."""
    error = KprotoError(f"{what}: {fault!r}")
    error.__cause__ = fault
    return error
