"""Defines the base class of the membership state machines. Does no I/O.

The base class has the phase, the subscription and the log lines. The subclasses define the phases,
the transition table and the effect of responses: `classic.membership` for the classic protocol,
`consumer.membership` for the consumer protocol (KIP-848), and `share.membership` for share groups
(KIP-932).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from ...wire.errors import BrokerResponseError, KprotoError
from ...wire.uuid import Uuid
from ..core.group_errors import ErrorAction
from ..metadata.cluster import TopicPartition
from .effects import ApplyAssignment, MemberIdentity, Step
from .error_explanations import with_explanation
from .group_protocol import GroupProtocolMismatchError
from .settings import GroupSettings
from .subscription import Subscription

__all__ = ["MembershipStateMachine"]

_Phase = TypeVar("_Phase", bound=Enum)
_Event = TypeVar("_Event", bound=Enum)


class MembershipStateMachine(ABC, Generic[_Phase, _Event]):
    """Tracks the phase of one member. Callers pass in the times, in seconds."""

    #: Phase and event -> the next phase. An event without an entry for the phase changes nothing.
    transitions: ClassVar[Mapping[Any, Any]]

    def __init__(self, settings: GroupSettings, phase: _Phase) -> None:
        self.settings = settings
        self.phase: _Phase = phase
        #: Counts the transitions: the result of an effect that started before the last transition
        #: is ignored.
        self.transition_count = 0
        self.member_id = ""
        self.subscription: Subscription | None = None
        self.error: KprotoError | None = None  # the error that ended the member
        #: Log lines as level, text and values. The driver logs and removes them.
        self.log_lines: list[tuple[int, str, tuple[object, ...]]] = []
        self._is_stale = False  # max_poll_interval_ms was exceeded, and no poll came since

    def _transition(self, event: _Event) -> bool:
        """Moves to the phase that `transitions` has for `event`; returns False if there is none."""
        phase = self.transitions.get((self.phase, event))
        if phase is None:
            return False
        self.phase = phase
        self.transition_count += 1
        return True

    def _log(self, text: str, *values: object, level: int = logging.INFO) -> None:
        self.log_lines.append((level, "group %s: " + text, (self.settings.group_id, *values)))

    # Subscription and polls

    @property
    def _may_join(self) -> bool:
        return self.subscription is not None and not self._is_stale

    @property
    def awaits_poll(self) -> bool:
        """Returns True if the member left, or will leave, because its consumer polled too late."""
        return self._is_stale

    def on_poll(self, now: float) -> None:
        """Rejoins after a poll if the member left because its consumer polled too late."""
        if self._is_stale:
            self._is_stale = False
            self._join_if_subscribed(now)

    def subscribe(self, subscription: Subscription | None, now: float) -> None:
        """Replaces the subscription.

        If the subscription has changed, a member outside the group joins it, and a member in the
        group rejoins or sends a heartbeat. With None, the member revokes all partitions, and leaves
        the group unless it is static.
        """
        before, self.subscription = self.subscription, subscription
        if subscription is None:
            reason = "the consumer has unsubscribed"
            self.begin_leave(reason, now, leaves=not self.settings.is_static, ends=False)
        else:
            self._is_stale = False
            if subscription != before:
                self._on_subscription_changed(subscription, now)
        self._join_if_subscribed(now)

    def on_poll_timeout(self, now: float) -> bool:
        """Leaves the group, because no poll came in time.

        Returns False, and does nothing, if the member is in no group or is leaving already.
        """
        limit_ms = self.settings.max_poll_interval_ms
        if self._is_leaving:
            return False
        self._is_stale = True
        reason = f"a record or batch was processed for longer than {limit_ms} ms"
        self._log("leaving, because %s (max_poll_interval_ms)", reason, level=logging.WARNING)
        leaves = not self.settings.is_static
        self.begin_leave(reason, now, leaves=leaves, ends=False, lost=True)
        return True

    def _note_failure(self, error: KprotoError) -> None:
        """Stores the error that ended the member; ignores later errors."""
        if self.error is not None:
            return
        if isinstance(error, GroupProtocolMismatchError):
            self.error = error
            self._log("the member ends, because it must use the other protocol: %s", error)
        else:
            self.error = with_explanation(error, self.settings, self.subscription)
            self._log("the member has failed: %s", self.error, level=logging.WARNING)

    # Defined by each protocol

    @property
    @abstractmethod
    def is_outside_group(self) -> bool:
        """Returns True if the member is in no group, and is not about to join."""

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """Returns True if the member has ended, and will not rejoin."""

    @property
    @abstractmethod
    def watches_topics(self) -> bool:
        """True if the member, in its present phase, acts on changes of its topics."""

    @property
    @abstractmethod
    def _is_leaving(self) -> bool:
        """Returns True if the member is in no group, or about to leave."""

    @property
    @abstractmethod
    def assignment_valid_until(self) -> float:
        """Returns the time until which the member certainly owns its partitions.

        Answered heartbeats extend the time. It is -infinity for a member without a generation or
        epoch.
        """

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if the partition `tp` of the topic with the id `topic_id` is assigned.

        Returns False in the classic protocol, which assigns by topic name.
        """
        return False

    @abstractmethod
    def identity(self, now: float) -> MemberIdentity | None:
        """Returns the member id and generation for a commit; None if the member may not commit."""

    @abstractmethod
    def request_rejoin(self, reason: str, now: float) -> None:
        """Makes the member rejoin, which starts a rebalance.

        A member of the consumer protocol ignores the request, because the broker assigns the
        partitions.
        """

    @abstractmethod
    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        """Reports a changed subscription to the coordinator, by a rejoin or a heartbeat."""

    @abstractmethod
    def _join_if_subscribed(self, now: float) -> None:
        """Starts to join if the member is in no group, is subscribed, and need not await a poll."""

    @abstractmethod
    def begin_leave(
        self,
        reason: str,
        now: float,
        *,
        leaves: bool,
        ends: bool,
        lost: bool = False,
        until: float | None = None,
    ) -> None:
        """Begins a leave: the member revokes all partitions, then leaves.

        `ends` is True if the member will not rejoin. If `leaves` is True, the member sends a leave
        request, unless the coordinator cannot know the member. If `leaves` is False, only a static
        member of the consumer protocol sends a heartbeat, which announces that it will rejoin
        (epoch -2). The member waits for the processing of records until the time `until`, by
        default as long as in a rebalance. The member does not wait if the partitions are `lost`.
        """

    @abstractmethod
    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        """Returns the next effect; None if none is due. Call it only while no effect runs.

        `owned` are the partitions that the member owns.
        """

    @abstractmethod
    def next_at(self, now: float) -> float:
        """Returns the time of the next work after `now`; infinity if no work is scheduled."""

    @abstractmethod
    def tick(self, now: float) -> None:
        """Makes the transitions that are due.

        Drops the membership at `assignment_valid_until`: after a session timeout, or if a rebalance
        may have ended without the member.
        """

    @abstractmethod
    def on_revoked(self, now: float) -> None:
        """Continues after the driver has carried out a `Revoke`."""

    @abstractmethod
    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        """Continues after the driver has carried out an `ApplyAssignment`."""

    @abstractmethod
    def on_left(self, now: float) -> None:
        """Ends the membership.

        The driver calls it after the response to the leave request or its failure, or at once if no
        leave request is necessary.
        """

    @abstractmethod
    def failed(self, error: KprotoError, now: float) -> ErrorAction:
        """Processes the failure of the running effect; returns the action for the error."""

    @abstractmethod
    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        """Ends the member with an error; with `leaves` a dynamic member leaves the group first."""

    @abstractmethod
    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """Processes the error of a request that was sent with `identity`.

        The request is an OffsetCommit, or in the consumer protocol also an OffsetFetch. Ignores the
        error if the member has another member id, generation or epoch now, or sends no heartbeats
        any more.
        """
