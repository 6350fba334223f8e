"""Builds ConsumerGroupHeartbeat: everything at first, then what has changed.

Plain functions on plain data. The coordinator surely knows what the last answered heartbeat said;
after an unanswered one everything is sent again (KIP-848).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ....messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ....wire.errors import UnsupportedVersionError
from ..settings import GroupSettings
from .reconciliation import Told, in_request

__all__ = [
    "FIRST_OWN_ID",
    "JOINS",
    "LEAVES",
    "LEAVES_FOR_A_TIME",
    "Beat",
    "Said",
    "heartbeat_request",
]

#: Epochs that say what a member wants.
JOINS: Final = 0
LEAVES: Final = -1
LEAVES_FOR_A_TIME: Final = -2  # a static member, who will be back

#: From this version on the member id is the client's own (KIP-1082), and patterns are taken.
FIRST_OWN_ID: Final = 1


class Said(NamedTuple):
    """What a coordinator knows from a heartbeat, once it has answered."""

    topics: frozenset[str]
    regex: str | None
    partitions: Told


class Beat(NamedTuple):
    """A heartbeat: the time of sending, what the coordinator learns by it, and the incarnation of
    the member.
    """

    request: ConsumerGroupHeartbeatRequest
    said: Said
    life: int
    sent_at: float

    @property
    def tells(self) -> bool:
        """True if it lists the owned partitions, even if the coordinator knows them."""
        return self.request.topic_partitions is not None


def heartbeat_request(
    settings: GroupSettings,
    rack: str | None,
    member: tuple[str, int],
    says: Said,
    known: Said | None,
    version: int,
    *,
    acknowledges: bool,
) -> ConsumerGroupHeartbeatRequest:
    """Returns the heartbeat of a `member`, by id and epoch, that `says` what is not `known` yet.

    A heartbeat that `acknowledges` lists the owned partitions, changed or not.

    Raises UnsupportedVersionError for a pattern that the coordinator is too old for.
    """
    if says.regex and version < FIRST_OWN_ID:
        raise UnsupportedVersionError(
            f"the coordinator of group {settings.group_id!r} matches no TopicPattern: it has "
            f"ConsumerGroupHeartbeat v{version}, as before Kafka 4.0; subscribe to a pattern of "
            "re.compile, which is matched here"
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
    if known is None or known.topics != says.topics:
        request.subscribed_topic_names = sorted(says.topics)
    regex_before = None if known is None else known.regex
    if regex_before != says.regex:
        request.subscribed_topic_regex = says.regex or ""  # empty: there is none any more
    if known is None or acknowledges or known.partitions != says.partitions:
        request.topic_partitions = in_request(says.partitions)
    return request
