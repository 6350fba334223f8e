"""Selects the group protocol of a member, and changes it if the group uses the other protocol.

With "auto", the member checks its group before it joins, unless the user names assignors. If the
group needs the other protocol, the member ends, and a member of the other protocol starts. For the
`AssignmentListener`, the change has one effect: the partitions of the ended member are lost. The
module `group_protocol` has the rules.
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
from ..observing.log_lines import log
from .assignment_listener import AssignmentListener
from .backoff import Backoff
from .classic.member import ClassicMember
from .consumer.member import ConsumerMember
from .effects import MemberIdentity
from .group_protocol import (
    GroupProtocol,
    GroupProtocolMismatchError,
    check_pattern,
    has_consumer_groups,
    initial_protocol,
    may_change_protocol,
)
from .ignored_settings import IN_CLASSIC, IN_CONSUMER, ignored_settings_in
from .settings import GroupSettings
from .subscription import Subscription

__all__ = ["GroupMember"]

#: After more changes of protocol in a row than this, the new member joins without a check of the
#: group. Such a group accepts neither protocol, and the broker's error is reported.
_MAX_CHANGES: Final = 2


class GroupMember:
    """A member of the group that `settings` names; `protocol` is the protocol that it uses now.

    With group_protocol="auto" the member uses the protocol of its group.
    """

    def __init__(
        self, view: ClusterView, settings: GroupSettings, listener: AssignmentListener
    ) -> None:
        self.settings = settings
        self._view = view
        self._listener = listener
        self._subscription: Subscription | None = None
        self._changes = Backoff(view.settings)
        self._timer: Timer | None = None
        self._is_ending = False
        self._has_logged_ignored = False  # settings that the group's protocol ignores
        self.protocol = initial_protocol(settings)
        self._member = self._create_member(checks_group_first=may_change_protocol(settings))

    def _create_member(self, *, checks_group_first: bool) -> ClassicMember | ConsumerMember:
        made = ClassicMember if self.protocol is GroupProtocol.CLASSIC else ConsumerMember
        return made(
            self._view,
            self.settings,
            _ReplaceableMemberListener(self, self._listener),
            checks_group_first=checks_group_first,
        )

    # Calls of the consumer

    @property
    def identity(self) -> MemberIdentity | None:
        """Returns the member id and generation for a commit; None if the member may not commit."""
        return self._member.identity

    @property
    def assignment_valid_until(self) -> float:
        """Returns the time until which the member certainly owns its partitions.

        The time is in seconds of the clock, -infinity for a member without a generation or epoch.
        """
        return self._member.assignment_valid_until

    def start(self) -> None:
        """Starts the member, which joins the group once it has a subscription.

        If all connected brokers support only classic groups, starts a classic member.
        """
        if (
            self._member.checks_group_first
            and self.protocol is GroupProtocol.CONSUMER
            and self._has_only_old_brokers()
        ):
            self.protocol = GroupProtocol.CLASSIC  # saves a later change of protocol
            self._member = self._create_member(checks_group_first=True)
            if self._subscription is not None:
                self._member.subscribe(self._subscription)
        self._member.start()

    def _has_only_old_brokers(self) -> bool:
        """Returns True if there are connected brokers, and all support classic groups only.

        Returns False for a subscription to a `TopicPattern`, which classic groups do not support.
        """
        view, wanted = self._view, self._subscription
        if wanted is not None and wanted.broker_pattern is not None:
            return False
        brokers = map(view.open_connection, view.cluster.brokers)
        known = [has_consumer_groups(each.ranges) for each in brokers if each is not None]
        return bool(known) and not any(known)

    def subscribe(self, subscription: Subscription) -> None:
        """Replaces the subscription.

        Raises ConfigurationError for a `TopicPattern` while the member uses the classic protocol.
        """
        if self.protocol is GroupProtocol.CLASSIC:
            why = f"by group_protocol={self.settings.group_protocol!r}"
            if self.settings.names_assignors:
                why = "because assignors are named"
            elif self.settings.group_protocol == "auto":
                why = "with members"
            check_pattern(subscription, self.settings.group_id, why)
        self._subscription = subscription
        self._member.subscribe(subscription)

    def unsubscribe(self) -> None:
        """Revokes all partitions, and leaves the group unless the member is static."""
        self._subscription = None
        self._member.unsubscribe()

    def request_rejoin(self, reason: str) -> None:
        """Requests a rebalance; no effect in the consumer protocol, because the broker assigns."""
        self._member.request_rejoin(reason)

    def on_topics_changed(self) -> None:
        """Makes the member compare its topics with new metadata."""
        self._member.on_topics_changed()

    def on_poll(self) -> None:
        """Rejoins the group if the member left because its consumer polled too late."""
        self._member.on_poll()

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if the partition `tp` of the topic with the id `topic_id` is assigned.

        Returns False in the classic protocol, which assigns by topic name.
        """
        return self._member.is_assigned(tp, topic_id)

    def on_commit_refused(self, error: BrokerResponseError, identity: MemberIdentity) -> None:
        """Passes the error of a request to the member, which has sent the request with `identity`.

        The request is an OffsetCommit, or in the consumer protocol also an OffsetFetch.
        """
        self._member.on_commit_refused(error, identity)

    async def leave(self, leave: bool, reason: str = "the consumer is closed") -> None:
        """Revokes all partitions, sends the leave request if `leave` is True, and ends the member.

        See `MemberDriver.leave`.
        """
        self._end()
        await self._member.leave(leave, reason)

    async def close(self) -> None:
        """Ends the member at once, without a request to the coordinator."""
        self._end()
        await self._member.close()

    def _end(self) -> None:
        self._is_ending = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Changing the protocol

    def on_joined(self) -> None:
        """Resets the count of protocol changes, because the group uses the member's protocol.

        The first call logs the settings that this protocol ignores.
        """
        self._changes.succeeded()
        if not self._has_logged_ignored:
            self._has_logged_ignored = True
            table = IN_CONSUMER if self.protocol is GroupProtocol.CONSUMER else IN_CLASSIC
            for sentence in ignored_settings_in(
                self.settings.explicit_settings, table, f"in a {self.protocol.value} group"
            ):
                log(logging.WARNING, "group %s: %s", self.settings.group_id, sentence)

    def on_member_ended(self, error: KprotoError) -> None:
        """Reports `error` to the listener, or starts a member of the other protocol.

        A member of the other protocol starts after GroupProtocolMismatchError, unless this member
        is leaving or closed. The first change of protocol happens at once; each further change in a
        row happens after a backoff.
        """
        if not isinstance(error, GroupProtocolMismatchError):
            self._listener.on_member_failed(error)
        elif not self._is_ending:
            now = self._view.clock.monotonic()
            self._changes.failed(now, at_once=True)
            seconds = max(0.0, self._changes.not_before - now)
            self._timer = self._view.clock.call_later(
                seconds, partial(self._change_protocol, error)
            )

    def _change_protocol(self, why: GroupProtocolMismatchError) -> None:
        """Starts a member of the other protocol.

        Before the new member joins, it checks which protocol the group uses. The member omits this
        check after more than `_MAX_CHANGES` changes in a row, and if `why.is_certain` is True.
        """
        self._timer = None
        self.protocol = (
            GroupProtocol.CONSUMER
            if self.protocol is GroupProtocol.CLASSIC
            else GroupProtocol.CLASSIC
        )
        text = "group %s: changing to the %s protocol: %s"
        log(logging.INFO, text, self.settings.group_id, self.protocol.value, why)
        checks_group_first = not why.is_certain and self._changes.count <= _MAX_CHANGES
        self._member = self._create_member(checks_group_first=checks_group_first)
        if self._subscription is not None:
            self._member.subscribe(self._subscription)
        self._member.start()


class _ReplaceableMemberListener:
    """Forwards the calls of the driver to the listener, except for the end of the member.

    Reports to `member` that the group uses the driver's protocol, or that the driver has failed.
    After a failure, `member` may start a driver of the other protocol.
    """

    def __init__(self, member: GroupMember, listener: AssignmentListener) -> None:
        self._member = member
        self._listener = listener
        self.owned_partitions = listener.owned_partitions
        self.revoke = listener.revoke
        self.on_partitions_lost = listener.on_partitions_lost
        self.poll_interval_exceeded = listener.poll_interval_exceeded

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        self._member.on_joined()
        await self._listener.assign(tps)

    def on_member_failed(self, error: KprotoError) -> None:
        self._member.on_member_ended(error)
