"""Builds ConsumerGroupHeartbeat: the first has all fields, later ones have only changes (KIP-848).

Plain functions on plain data. The coordinator knows the fields of the last heartbeat that
succeeded; after a heartbeat that failed or was not answered, the member sends all fields again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ....messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ....wire.errors import UnsupportedVersionError
from ...core.group_errors import GroupRequest
from ..effects import LeaveByHeartbeat
from ..heartbeat_phases import JOIN_EPOCH
from ..reconciliation import TopicIdPartitions, to_request
from ..settings import GroupSettings

__all__ = [
    "CLIENT_MEMBER_ID_VERSION",
    "STATIC_LEAVE_EPOCH",
    "Heartbeat",
    "HeartbeatFields",
    "heartbeat_request",
    "release_heartbeat",
]

#: The member epoch of the last heartbeat of a static member, which will rejoin.
STATIC_LEAVE_EPOCH: Final = -2

_REQUESTS: Final = {JOIN_EPOCH: GroupRequest.JOIN, STATIC_LEAVE_EPOCH: GroupRequest.LEAVE}

#: From this version on the client chooses its member id (KIP-1082), and brokers match patterns.
CLIENT_MEMBER_ID_VERSION: Final = 1


class HeartbeatFields(NamedTuple):
    """The fields of a heartbeat that may change from one heartbeat to the next.

    `regex` is the text of the `TopicPattern` or None, `partitions` are the owned partitions. A
    heartbeat leaves out a field whose value the coordinator already has.
    """

    topics: frozenset[str]
    regex: str | None
    partitions: TopicIdPartitions


class Heartbeat(NamedTuple):
    """A heartbeat, and the member's data at the time of sending.

    Once the heartbeat has succeeded, the coordinator has stored its `fields`. `incarnation` is the
    number of joins, leaves and losses of the member before `sent_at`: if the number has changed,
    the response does not apply any more. `sent_at` is in seconds of the clock.
    """

    request: ConsumerGroupHeartbeatRequest
    fields: HeartbeatFields
    incarnation: int
    sent_at: float

    @property
    def group_request(self) -> GroupRequest:
        """Returns JOIN for member epoch 0, LEAVE for -2, and HEARTBEAT for any other epoch.

        A static member that will rejoin sends -2.
        """
        return _REQUESTS.get(self.request.member_epoch, GroupRequest.HEARTBEAT)

    @property
    def lists_owned(self) -> bool:
        """Returns True if the request lists the owned partitions, changed or not."""
        return self.request.topic_partitions is not None


def release_heartbeat(
    settings: GroupSettings, member_id: str, incarnation: int, now: float
) -> Heartbeat:
    """Returns the heartbeat with which a static member leaves and releases its instance id."""
    leave = LeaveByHeartbeat(member_id, settings.instance_id, STATIC_LEAVE_EPOCH, "", now)
    fields = HeartbeatFields(frozenset(), None, frozenset())
    return Heartbeat(leave.request(settings.group_id), fields, incarnation, now)


def heartbeat_request(
    settings: GroupSettings,
    rack: str | None,
    member: tuple[str, int],
    fields: HeartbeatFields,
    known: HeartbeatFields | None,
    version: int,
    *,
    acknowledges: bool,
) -> ConsumerGroupHeartbeatRequest:
    """Returns the heartbeat of a member; `member` is its id and epoch.

    `known` has the fields of the last heartbeat since the join; it is None if there was no such
    heartbeat, or if that heartbeat failed. The heartbeat has the `fields` that differ from `known`,
    or all fields if `known` is None. If `acknowledges` is True, the heartbeat also lists the owned
    partitions, even if they have not changed. Raises UnsupportedVersionError if the fields have a
    pattern and `version` does not support patterns.
    """
    if fields.regex and version < CLIENT_MEMBER_ID_VERSION:
        raise UnsupportedVersionError(
            f"the coordinator of group {settings.group_id!r} matches no TopicPattern: it supports "
            f"only ConsumerGroupHeartbeat v{version}, like Kafka before 4.0; subscribe to a "
            "pattern of re.compile, which the client matches"
        )
    whole = known is None
    member_id, epoch = member
    request = ConsumerGroupHeartbeatRequest(
        group_id=settings.group_id,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=settings.instance_id,
    )
    if whole:
        request.rack_id = rack or None
        request.rebalance_timeout_ms = settings.max_poll_interval_ms
        request.server_assignor = settings.server_assignor
    if known is None or known.topics != fields.topics:
        request.subscribed_topic_names = sorted(fields.topics)
    regex_before = None if known is None else known.regex
    if regex_before != fields.regex:
        request.subscribed_topic_regex = fields.regex or ""  # empty: removes the pattern
    before = None if known is None else known.partitions
    is_same = before is fields.partitions or before == fields.partitions  # mostly the same object
    if acknowledges or not is_same:
        request.topic_partitions = to_request(fields.partitions)
    return request
