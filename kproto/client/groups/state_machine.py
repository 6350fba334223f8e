"""Defines the common part of the membership state machines of both protocols. Sans-IO.

It has the phase, the subscription and the log lines. Each protocol defines its phases, its
transition table and the effect of responses: `classic.membership` and `consumer.membership`
(KIP-848).
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

    #: Phase and event -> the next phase. Any other event changes nothing.
    transitions: ClassVar[Mapping[Any, Any]]

    def __init__(self, settings: GroupSettings, phase: _Phase) -> None:
        self.settings = settings
        self.phase: _Phase = phase
        #: Counts the transitions: the result of an effect that started before the last one is
        #: ignored.
        self.transition_count = 0
        self.member_id = ""
        self.subscription: Subscription | None = None
        self.error: KprotoError | None = None  # the error that ended the member
        #: Log lines as level, text and values. The driver logs and removes them.
        self.log_lines: list[tuple[int, str, tuple[object, ...]]] = []
        self._is_stale = False  # max_poll_interval_ms was exceeded, and no poll came since

    def _transition(self, event: _Event) -> bool:
        """Moves to the next phase of the table; returns False if the table has none."""
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
        """Returns True if the member left, or is about to leave, because its consumer was too
        slow.
        """
        return self._is_stale

    def on_poll(self, now: float) -> None:
        """Rejoins after a poll if the member left because its consumer was too slow."""
        if self._is_stale:
            self._is_stale = False
            self._join_if_subscribed(now)

    def subscribe(self, subscription: Subscription | None, now: float) -> None:
        """Replaces the subscription; None makes the member leave."""
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
        """Leaves because no poll came in time; returns False if it is leaving already."""
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
        """Stores the error that ended the member; ignores later ones."""
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
        """Returns True if the member has ended."""

    @property
    @abstractmethod
    def is_reading(self) -> bool:
        """Returns True if the member has an assignment, which changes of topics may affect."""

    @property
    @abstractmethod
    def _is_leaving(self) -> bool:
        """Returns True if the member is in no group, or about to leave."""

    @property
    @abstractmethod
    def assignment_valid_until(self) -> float:
        """Returns when the session may time out, unless a heartbeat is answered before."""

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if a partition is assigned with that topic id; False if the protocol assigns
        by topic name.
        """
        return False

    @abstractmethod
    def identity(self, now: float) -> MemberIdentity | None:
        """Returns the identity for commits; None while a broker would refuse them."""

    @abstractmethod
    def request_rejoin(self, reason: str, now: float) -> None:
        """Requests a rebalance; the consumer protocol ignores it, because its broker assigns."""

    @abstractmethod
    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        """Applies a changed subscription."""

    @abstractmethod
    def _join_if_subscribed(self, now: float) -> None:
        """Joins, if there is a subscription and nothing prevents it."""

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
        """Revokes all partitions and leaves; `ends` if the member will not rejoin.

        The member sends a leave request if it `leaves`. It waits for records in flight until the
        time `until`, and not at all if the partitions are `lost`.
        """

    @abstractmethod
    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        """Returns the next effect, or None; no other effect runs. `owned` are owned partitions."""

    @abstractmethod
    def next_at(self, now: float) -> float:
        """Returns the time of the next work after `now`; infinity if no work is scheduled."""

    @abstractmethod
    def tick(self, now: float) -> None:
        """Begins work that is due, and drops the membership after a session timeout."""

    @abstractmethod
    def on_revoked(self, now: float) -> None:
        """Processes the end of a `Revoke`."""

    @abstractmethod
    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        """Processes the end of an `ApplyAssignment`."""

    @abstractmethod
    def on_left(self, now: float) -> None:
        """Processes the response to the leave request, or its timeout."""

    @abstractmethod
    def failed(self, error: KprotoError, now: float) -> ErrorAction:
        """Processes the failure of the running effect; returns the action for the error."""

    @abstractmethod
    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        """Ends the member with an error; with `leaves` it leaves the group first."""

    @abstractmethod
    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """Processes the error of an OffsetCommit; ignores one of an earlier generation."""
