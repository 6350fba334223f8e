"""Holds what the membership state machines of both group protocols share. Knows no loop.

A phase and its transition table; the subscription; log lines. Each protocol defines its phases and
what follows from a response: `classic.membership` and `consumer.membership` (KIP-848).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from ...wire.errors import BrokerResponseError, KprotoError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition
from .effects import ApplyAssignment, MemberIdentity, Step
from .group_errors import Meaning, with_explanation
from .group_protocol import GroupProtocolMismatchError
from .settings import GroupSettings
from .subscription import Subscription

__all__ = ["MembershipStateMachine"]

_Phase = TypeVar("_Phase", bound=Enum)
_Event = TypeVar("_Event", bound=Enum)


class MembershipStateMachine(ABC, Generic[_Phase, _Event]):
    """The state of one member. Times are in seconds, and passed in."""

    #: Phase and event -> the next phase. What is not there changes nothing.
    transitions: ClassVar[Mapping[Any, Any]]

    def __init__(self, settings: GroupSettings, phase: _Phase) -> None:
        self.settings = settings
        self.phase: _Phase = phase
        #: Another one with each phase: a step that was begun in an earlier turn is pointless.
        self.turn = 0
        self.member_id = ""
        self.subscription: Subscription | None = None
        self.error: KprotoError | None = None  # why it is over
        #: Lines for the log: level, text and values. Whoever says them takes them out.
        self.news: list[tuple[int, str, tuple[object, ...]]] = []
        self._is_stale = False  # the user was too slow, and has not asked since

    def _transition(self, event: _Event) -> bool:
        """Moves to the next phase of the table; returns False if the table has none."""
        phase = self.transitions.get((self.phase, event))
        if phase is None:
            return False
        self.phase = phase
        self.turn += 1
        return True

    def _say(self, text: str, *values: object, level: int = logging.INFO) -> None:
        self.news.append((level, "group %s: " + text, (self.settings.group_id, *values)))

    # What its user wants

    @property
    def awaits_poll(self) -> bool:
        """True if the member left, or is about to leave, because its consumer was too slow."""
        return self._is_stale

    def on_poll(self, now: float) -> None:
        """Rejoins after a poll, if the consumer was too slow before."""
        if self._is_stale:
            self._is_stale = False
            self._join_if_wanted(now)

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
        self._join_if_wanted(now)

    def on_poll_timeout(self, now: float) -> bool:
        """Leaves because no poll came in time; returns False if it is leaving already."""
        limit_ms = self.settings.max_poll_interval_ms
        if self._is_leaving:
            return False
        self._is_stale = True
        reason = f"a record or batch was in hand for longer than {limit_ms} ms"
        self._say("leaving, as %s (max_poll_interval_ms)", reason, level=logging.WARNING)
        leaves = not self.settings.is_static
        self.begin_leave(reason, now, leaves=leaves, ends=False, lost=True)
        return True

    def _note_failure(self, error: KprotoError) -> None:
        """Stores the error that ended the member; the first one counts."""
        if self.error is not None:
            return
        if isinstance(error, GroupProtocolMismatchError):
            self.error = error
            self._say("not by this protocol: %s", error)
        else:
            self.error = with_explanation(error, self.settings, self.subscription)
            self._say("the member is at its end: %s", self.error, level=logging.WARNING)

    # What each kind does

    @property
    @abstractmethod
    def is_out(self) -> bool:
        """True if the member is in no group, and about to join none."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """True if the member has ended."""

    @property
    @abstractmethod
    def is_reading(self) -> bool:
        """True if the member has an assignment, which changes of topics may affect."""

    @property
    @abstractmethod
    def _is_leaving(self) -> bool:
        """True if the member is in no group, or about to leave."""

    @property
    @abstractmethod
    def assignment_valid_until(self) -> float:
        """Returns when the session may end, unless a heartbeat is answered before."""

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """True if a partition is assigned by that topic id; False for assignments by name."""
        return False

    @abstractmethod
    def identity(self, now: float) -> MemberIdentity | None:
        """Returns the identity for commits; None while a broker would refuse them."""

    @abstractmethod
    def request_rejoin(self, reason: str, now: float) -> None:
        """Requests a rebalance, in the protocol whose members assign."""

    @abstractmethod
    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        """Applies another subscription."""

    @abstractmethod
    def _join_if_wanted(self, now: float) -> None:
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
        """Revokes all and leaves, for good if it `ends`; the coordinator is told if it `leaves`.

        Records in flight are waited for `until` then; not at all if the partitions are `lost`.
        """

    @abstractmethod
    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        """Returns the next effect, when none is running; `owned` are the partitions that
        are read.
        """

    @abstractmethod
    def next_at(self, now: float) -> float:
        """Returns when to look again; work due `now` has been started."""

    @abstractmethod
    def tick(self, now: float) -> None:
        """Notes the time: the session may have ended without a word of the broker."""

    @abstractmethod
    def on_revoked(self, now: float) -> None:
        """Notes that a `Revoke` is done."""

    @abstractmethod
    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        """Notes that an `ApplyAssignment` is done."""

    @abstractmethod
    def left(self, now: float) -> None:
        """Notes that the coordinator was told of the leave, or that its time is over."""

    @abstractmethod
    def failed(self, error: KprotoError, now: float) -> Meaning:
        """Processes the failure of the running effect; returns what it means."""

    @abstractmethod
    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        """Ends the member with an error, after it has left."""

    @abstractmethod
    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """Processes the error of an OffsetCommit; ignores that of an earlier generation."""
