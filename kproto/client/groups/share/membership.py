"""Decides, as a state machine, what a member of a share group does next (KIP-932).

`heartbeat_membership` has what this member has in common with a member of the consumer protocol,
and `phases` has the transition table. Brokers do not check the membership when they return records:
acquisition locks, not sessions, protect the records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from ....wire.errors import BrokerResponseError, KprotoError
from ....wire.uuid import Uuid
from ...core.group_errors import ErrorAction, GroupRequest
from ...metadata.cluster import TopicPartition
from ...settings import ClientSettings
from ..effects import ApplyAssignment, LeaveByHeartbeat, MemberIdentity, PrepareHeartbeat, Revoke
from ..heartbeat_membership import HeartbeatMembership
from ..heartbeat_phases import JOIN_EPOCH, LEAVE_EPOCH, Event, Phase
from ..settings import MIN_HEARTBEATS, GroupSettings
from ..subscription import Subscription
from .heartbeats import ShareHeartbeat, action_for, explained, heartbeat_request
from .phases import HEARTBEATING, TRANSITIONS

__all__ = ["ShareMembership"]

_NEVER: Final = float("inf")

#: A member without partitions sends its second heartbeat after `_FIRST_S` seconds; the time to the
#: next heartbeat doubles, up to `_MOST_S` or to the interval of the coordinator.
_FIRST_S: Final = 0.1
_MOST_S: Final = 1.0


class ShareMembership(HeartbeatMembership[ShareHeartbeat]):
    """Tracks one member. `name_of` returns the name of a topic id; None if the metadata lacks it.

    The member chooses its id, which never changes: the acquired records of a member that was fenced
    and rejoins keep their locks.
    """

    transitions = TRANSITIONS
    group_noun = "share group"

    def __init__(
        self,
        settings: GroupSettings,
        client: ClientSettings,
        name_of: Callable[[Uuid], str | None],
    ) -> None:
        super().__init__(settings, client, name_of)
        self.member_id = str(Uuid.random())
        self._empty_answers = 0  # answers in a row without partitions

    # State

    @property
    def assignment_valid_until(self) -> float:
        return _NEVER if self.epoch > JOIN_EPOCH else -_NEVER

    @property
    def _topics(self) -> frozenset[str]:
        return frozenset() if self.subscription is None else self.subscription.topics

    def topic_id_of(self, tp: TopicPartition) -> Uuid | None:
        """Returns the topic id of a partition that is being added, or that the member has."""
        return self._partitions.topic_id_of(tp)

    def identity(self, now: float) -> MemberIdentity | None:
        """Returns None: a member of a share group commits no offsets."""
        return None

    # Subscription and leave

    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        if self.phase in HEARTBEATING:
            self._log("the subscription is now %s", subscription)
            self._send_heartbeat_soon(now)

    def on_prepared(self, step: PrepareHeartbeat, topics: frozenset[str], now: float) -> None:
        """Continues after the driver has carried out a `PrepareHeartbeat`.

        `topics` are the topics to subscribe to.
        """
        self._step_backoff.succeeded()
        self._is_prepared = True
        self._send_heartbeat_soon(now)

    def request_rejoin(self, reason: str, now: float) -> None:
        self._log("ignores the request to rebalance (%s): the coordinator assigns", reason)

    # Next effect

    def _revoke_deadline(self, now: float) -> float:
        return now

    def _revoke_step(self, now: float, owned: Collection[TopicPartition]) -> Revoke:
        return Revoke(frozenset(owned), False, now)

    def _leave_step(self, now: float) -> LeaveByHeartbeat:
        intent = self._leave_intent
        assert intent is not None
        return LeaveByHeartbeat(
            self.member_id, None, LEAVE_EPOCH, intent.reason, now + intent.leave_s
        )

    def _leave_without_heartbeat(self, now: float) -> None:
        if self.phase is Phase.LEAVING:
            intent = self._leave_intent
            assert intent is not None
            if not self._may_be_known or not intent.leaves:
                self.on_left(now)

    def _deadlines(self) -> list[float]:
        return [self._resolve_backoff.not_before] if self.phase is Phase.STABLE else []

    # Heartbeats

    @property
    def _heartbeat_due(self) -> bool:
        if self.phase is Phase.JOINING:
            return self._is_prepared and bool(self._topics)
        return self.epoch > JOIN_EPOCH and self.phase in HEARTBEATING

    def heartbeat(self, now: float) -> ShareHeartbeat | None:
        """Returns the heartbeat that is due; None if none is due."""
        if not self.heartbeat_due(now):
            return None
        topics = self._topics
        request = heartbeat_request(
            self.settings.group_id,
            (self.member_id, self.epoch),
            self.rack,
            topics,
            self._known_fields,
        )
        self._may_be_known = True
        return ShareHeartbeat(request, topics, self._incarnation, now)

    def _has_changed(self, beat: ShareHeartbeat) -> bool:
        return self._topics != beat.fields

    def _set_heartbeat_interval(self, interval_ms: int) -> None:
        longest_ms = self.settings.max_poll_interval_ms / MIN_HEARTBEATS
        self._interval_s = min(interval_ms, longest_ms) / 1000

    def _next_interval_s(self) -> float:
        """Returns the time to the next heartbeat, in seconds.

        A new group assigns no partitions until the share coordinator has stored its start offsets,
        which takes some 100 ms. A member without partitions sends heartbeats more often, so that
        it need not wait for a whole interval.
        """
        if self._partitions.assigned:
            self._empty_answers = 0
            return self._interval_s
        self._empty_answers += 1
        soon_s = _FIRST_S * 2.0 ** min(self._empty_answers - 1, 10)
        return min(self._interval_s, soon_s, _MOST_S)

    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """Does nothing: a member of a share group commits no offsets."""

    # Results of effects

    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        self._partitions.finish(step.revoked, step.added)
        self._transition(Event.RECONCILED)

    # Errors

    def _action_for(self, request: GroupRequest, error: KprotoError) -> ErrorAction:
        return action_for(request, error)

    def _note_failure(self, error: KprotoError) -> None:
        if self.error is None:
            self.error = explained(error, self.settings.group_id, self._topics)
            self._log("the member has failed: %s", self.error, level=logging.WARNING)
