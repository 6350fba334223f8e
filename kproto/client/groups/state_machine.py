"""Holds what the membership state machines of both group protocols share. Knows no loop.

A phase and the table that leads from one to the next; what the user wants; lines for the log. What
a phase means and what follows from an answer is that of each kind: `membership` of classic groups,
`consumer_protocol.membership` of those of KIP-848.
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
from .group_errors import Meaning, explained
from .group_protocol import GroupProtocolMismatchError
from .settings import GroupSettings
from .subscription import Subscription

__all__ = ["MembershipStateMachine"]

_Phase = TypeVar("_Phase", bound=Enum)
_Event = TypeVar("_Event", bound=Enum)


class MembershipStateMachine(ABC, Generic[_Phase, _Event]):
    """Where one member is. Times are in seconds, and passed in."""

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
        self._is_late = False  # the user was too slow, and has not asked since

    def _go(self, event: _Event) -> bool:
        """Do what the table says; False where it says nothing."""
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
    def waits_to_be_asked(self) -> bool:
        """Whether it has left as its user was too slow, or is about to."""
        return self._is_late

    def asked(self, now: float) -> None:
        """Somebody asks for records, who was too slow before."""
        if self._is_late:
            self._is_late = False
            self._return(now)

    def subscribe(self, subscription: Subscription | None, now: float) -> None:
        """Want other topics from now on; None for none, which has the member leave."""
        before, self.subscription = self.subscription, subscription
        if subscription is None:
            reason = "the consumer has unsubscribed"
            self.part(reason, now, leaves=not self.settings.is_static, ends=False)
        else:
            self._is_late = False
            if subscription != before:
                self._wants_other(subscription, now)
        self._return(now)

    def late(self, now: float) -> bool:
        """The user was too slow: leave, and come back when he asks. True when that is news."""
        limit_ms = self.settings.max_poll_interval_ms
        if self._is_going:
            return False
        self._is_late = True
        reason = f"a record or batch was in hand for longer than {limit_ms} ms"
        self._say("leaving, as %s (max_poll_interval_ms)", reason, level=logging.WARNING)
        leaves = not self.settings.is_static
        self.part(reason, now, leaves=leaves, ends=False, lost=True)
        return True

    def _has_failed(self, error: KprotoError) -> None:
        """Note why it is over; the first reason is told."""
        if self.error is not None:
            return
        if isinstance(error, GroupProtocolMismatchError):
            self.error = error
            self._say("not by this protocol: %s", error)
        else:
            self.error = explained(error, self.settings, self.subscription)
            self._say("the member is at its end: %s", self.error, level=logging.WARNING)

    # What each kind does

    @property
    @abstractmethod
    def is_out(self) -> bool:
        """Whether it is in no group, and does nothing about it."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether it is at its end."""

    @property
    @abstractmethod
    def is_reading(self) -> bool:
        """Whether it is a member with an assignment, which changes of topics may change."""

    @property
    @abstractmethod
    def _is_going(self) -> bool:
        """Whether it is in no group, or about to leave."""

    @property
    @abstractmethod
    def holds_until(self) -> float:
        """When its session may be over, unless a heartbeat comes through before."""

    def holds(self, place: TopicPartition, topic_id: Uuid) -> bool:
        """Whether a partition is assigned by that id of its topic: not where names are assigned."""
        return False

    @abstractmethod
    def identity(self, now: float) -> MemberIdentity | None:
        """Who can commit; None while a broker would not take it."""

    @abstractmethod
    def rejoin(self, reason: str, now: float) -> None:
        """Have the group agree anew, where its members do."""

    @abstractmethod
    def _wants_other(self, subscription: Subscription, now: float) -> None:
        """The subscription is another one."""

    @abstractmethod
    def _return(self, now: float) -> None:
        """Join, if something is wanted and nothing stands against it."""

    @abstractmethod
    def part(
        self,
        reason: str,
        now: float,
        *,
        leaves: bool,
        ends: bool,
        lost: bool = False,
        until: float | None = None,
    ) -> None:
        """Give up all and leave, for good where it `ends`; the coordinator is told if it `leaves`.

        What is in hands is waited for `until`; not at all where it is `lost`.
        """

    @abstractmethod
    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        """What is to be done now, once nothing else is; `owned` is what is read."""

    @abstractmethod
    def next_at(self, now: float) -> float:
        """When to look again, whatever happens before; what is due `now` has been begun."""

    @abstractmethod
    def tick(self, now: float) -> None:
        """It is that late: the session may be over, without a word from the broker."""

    @abstractmethod
    def given_up(self, now: float) -> None:
        """A `GiveUp` is done."""

    @abstractmethod
    def taken_on(self, step: ApplyAssignment, now: float) -> None:
        """A `ApplyAssignment` is done."""

    @abstractmethod
    def left(self, now: float) -> None:
        """The coordinator knows that the member leaves, or shall not, or had its time."""

    @abstractmethod
    def failed(self, error: KprotoError, now: float) -> Meaning:
        """The step under way has failed; gives what that means."""

    @abstractmethod
    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        """The member cannot go on: its user is told, once it has left."""

    @abstractmethod
    def commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """An OffsetCommit was answered so; that of another generation tells nothing of this one."""
