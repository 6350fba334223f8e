"""`GroupMember`: a member of a group of either kind, which changes over where the group is another.

It is a member of one kind at a time, which looks at its group before it joins. Where that shows
that the other kind is needed, the member ends, and one of the other kind begins; who reads hears
nothing of it. What is of which kind says `group_kinds`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import Final

from ...clock import Timer
from ...wire.errors import BrokerResponseError, KprotoError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..observing.lines import say
from .backoff import Backoff
from .classic.member import ClassicMember
from .consumer.member import ConsumerMember
from .driver import AssignmentListener
from .effects import MemberIdentity
from .group_protocol import (
    GroupProtocol,
    GroupProtocolMismatchError,
    check_pattern,
    first_kind,
    has_consumer_groups,
    may_change,
)
from .ignored_settings import IN_CLASSIC, IN_CONSUMER, unused
from .settings import GroupSettings
from .subscription import Subscription

__all__ = ["GroupMember"]

#: So often in a row a group may turn out to be of the other kind. Behind that it is of neither, and
#: the classic member that is next says what the broker has against it.
_MOST_CHANGES: Final = 2


class GroupMember:
    """The member that `settings` ask for, of the kind that its group is of."""

    def __init__(
        self, view: ClusterView, settings: GroupSettings, owner: AssignmentListener
    ) -> None:
        self.settings = settings
        self._view = view
        self._owner = owner
        self._subscription: Subscription | None = None
        self._changes = Backoff(view.settings)
        self._timer: Timer | None = None
        self._is_ending = False
        self._has_told = False  # of settings that count for nothing in its kind of group
        self.kind = first_kind(settings)
        self._member = self._made(looks=may_change(settings))

    def _made(self, *, looks: bool) -> ClassicMember | ConsumerMember:
        made = ClassicMember if self.kind is GroupProtocol.CLASSIC else ConsumerMember
        return made(self._view, self.settings, _Behind(self, self._owner), looks=looks)

    # What others ask and say

    @property
    def identity(self) -> MemberIdentity | None:
        """Who commits offsets now; None while no commit would be taken."""
        return self._member.identity

    @property
    def assignment_valid_until(self) -> float:
        """Until when what is read is surely this member's, in seconds of the clock."""
        return self._member.holds_until

    def start(self) -> None:
        """Join, if something is subscribed to."""
        if self._member.looks and self.kind is GroupProtocol.CONSUMER and self._is_of_old_brokers():
            self.kind = GroupProtocol.CLASSIC  # the member would find that out later
            self._member = self._made(looks=True)
            if self._subscription is not None:
                self._member.subscribe(self._subscription)
        self._member.start()

    def _is_of_old_brokers(self) -> bool:
        """Whether the brokers that are known have classic groups alone."""
        view, wanted = self._view, self._subscription
        if wanted is not None and wanted.remote is not None:
            return False
        brokers = map(view.connection_at_hand, view.cluster.brokers)
        known = [has_consumer_groups(each.ranges) for each in brokers if each is not None]
        return bool(known) and not any(known)

    def subscribe(self, subscription: Subscription) -> None:
        """Want other topics from now on. Raises ConfigurationError."""
        if self.kind is GroupProtocol.CLASSIC:
            why = f"by group_protocol={self.settings.group_protocol!r}"
            if self.settings.names_assignors:
                why = "as assignors are named"
            elif self.settings.group_protocol == "auto":
                why = "with members"
            check_pattern(subscription, self.settings.group_id, why)
        self._subscription = subscription
        self._member.subscribe(subscription)

    def unsubscribe(self) -> None:
        """Want none: give up what is read, and leave unless the member is static."""
        self._subscription = None
        self._member.unsubscribe()

    def request_rejoin(self, reason: str) -> None:
        """Have the group agree anew; where its broker says who reads what, nothing happens."""
        self._member.rejoin(reason)

    def on_topics_changed(self) -> None:
        """Metadata has come that may tell of other topics or partitions."""
        self._member.topics_changed()

    def on_poll(self) -> None:
        """Somebody asks for records: a member that leaves as its user was too slow comes back."""
        self._member.asked()

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Whether a partition is assigned by that id of its topic."""
        return self._member.holds(tp, topic_id)

    def on_commit_refused(self, error: BrokerResponseError, identity: MemberIdentity) -> None:
        """An OffsetCommit of `identity` was answered so."""
        self._member.commit_refused(error, identity)

    async def leave(self, leave: bool, reason: str = "the consumer is closed") -> None:
        """Give up what is read, and tell the coordinator if it is to `leave`; ends the member."""
        self._end()
        await self._member.leave(leave, reason)

    async def close(self) -> None:
        """End at once, whatever is under way; the coordinator is told nothing."""
        self._end()
        await self._member.close()

    def _end(self) -> None:
        self._is_ending = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Changing over

    def is_in(self) -> None:
        """The group is of the kind that the member is of."""
        self._changes.succeeded()
        if not self._has_told:
            self._has_told = True
            table = IN_CONSUMER if self.kind is GroupProtocol.CONSUMER else IN_CLASSIC
            for sentence in unused(self.settings.given, table, f"in a {self.kind.value} group"):
                say(logging.WARNING, "group %s: %s", self.settings.group_id, sentence)

    def ended(self, error: KprotoError) -> None:
        """The member is at its end, for good or to be followed by one of the other kind."""
        if not isinstance(error, GroupProtocolMismatchError):
            self._owner.on_member_failed(error)
        elif not self._is_ending:
            now = self._view.clock.monotonic()
            self._changes.failed(now, at_once=True)
            seconds = max(0.0, self._changes.not_before - now)
            self._timer = self._view.clock.call_later(seconds, partial(self._change, error))

    def _change(self, why: GroupProtocolMismatchError) -> None:
        """Go on as a member of the other kind, which looks at the group once more."""
        self._timer = None
        self.kind = (
            GroupProtocol.CONSUMER if self.kind is GroupProtocol.CLASSIC else GroupProtocol.CLASSIC
        )
        text = "group %s: a member of the %s protocol, as %s"
        say(logging.INFO, text, self.settings.group_id, self.kind.value, why)
        looks = not why.is_certain and self._changes.count <= _MOST_CHANGES
        self._member = self._made(looks=looks)
        if self._subscription is not None:
            self._member.subscribe(self._subscription)
        self._member.start()


class _Behind:
    """The owner, of whom a member of one kind knows that it may not be the last."""

    def __init__(self, member: GroupMember, owner: AssignmentListener) -> None:
        self._member = member
        self._owner = owner
        self.owned_partitions = owner.owned_partitions
        self.revoke = owner.revoke
        self.on_partitions_lost = owner.on_partitions_lost
        self.poll_interval_exceeded = owner.poll_interval_exceeded

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        self._member.is_in()
        await self._owner.assign(tps)

    def on_member_failed(self, error: KprotoError) -> None:
        self._member.ended(error)
