"""Computes the assignment of a group, as its leader, from subscriptions and metadata.

Plain functions on plain data; the driver requests the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...messages.join_group_response import JoinGroupResponseMember
from ...protocol.error_codes import code_of, error_of_code
from ...wire.errors import BrokerResponseError, ConfigurationError, DecodeError
from ..metadata.cluster import Cluster, TopicInfo, TopicPartition
from .assignor import ASSIGNORS, Assignor
from .assignors.subscriptions import Assignment, Subscription, TopicRacks
from .protocol_data import read_subscription
from .topic_watch import partition_count

__all__ = [
    "MemberSubscriptions",
    "compute_assignment",
    "subscriptions_in",
    "topic_error",
    "topic_racks",
]

#: Permanent errors of a topic: a member that subscribes to the topic by name fails with this error.
_REFUSED: Final = frozenset(map(code_of, ("TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION")))


class MemberSubscriptions(NamedTuple):
    """The subscription of each member, by member id, in `members`.

    `unreadable` has the error for each member whose subscription could not be decoded; `members`
    has an empty subscription for such a member.
    """

    members: dict[str, Subscription]
    unreadable: dict[str, DecodeError]

    @property
    def topics(self) -> frozenset[str]:
        """Returns the topics to which at least one member subscribes."""
        return frozenset(topic for each in self.members.values() for topic in each.topics)


def subscriptions_in(members: Iterable[JoinGroupResponseMember]) -> MemberSubscriptions:
    """Returns the subscriptions in a JoinGroup response.

    A member with a malformed subscription gets no partitions. If the leader failed instead, every
    later leader would fail, too, and one faulty member would stop the group.
    """
    found = MemberSubscriptions({}, {})
    for each in members:
        try:
            found.members[each.member_id] = read_subscription(each.metadata, each.group_instance_id)
        except DecodeError as error:
            found.unreadable[each.member_id] = error
            found.members[each.member_id] = Subscription((), instance_id=each.group_instance_id)
    return found


def topic_racks(topics: Iterable[TopicInfo], cluster: Cluster) -> TopicRacks:
    """Returns the existing topics, with the racks of the replicas of each partition."""
    racks = cluster.racks
    return {
        info.name: [
            frozenset(racks[node] for node in info.partitions[at].replicas if node in racks)
            for at in range(count)
        ]
        for info in topics
        if (count := partition_count(info))
    }


def topic_error(topics: Iterable[TopicInfo], own: Iterable[str]) -> BrokerResponseError | None:
    """Returns the first permanent error of a topic that the member subscribes to by name, or None.

    `own` are the topics that the member subscribes to by name.
    """
    names = frozenset(own)
    for info in topics:
        if info.error_code in _REFUSED and info.name in names:
            return error_of_code(info.error_code, f"subscribing to topic {info.name!r}")
    return None


def compute_assignment(
    assignor: Assignor, topics: TopicRacks, members: Mapping[str, Subscription]
) -> Assignment:
    """Returns the partitions that `assignor` assigns to each member, by member id.

    Raises ConfigurationError if the user's own assignor raises an exception, or if its assignment
    is invalid.
    """
    wanted = {topic for member in members.values() for topic in member.topics}
    existing = {topic: racks for topic, racks in topics.items() if topic in wanted}
    if assignor is ASSIGNORS.get(assignor.name):
        found = assignor.assign(existing, members)
        return {member_id: list(tps) for member_id, tps in found.items()}
    try:
        found = assignor.assign(existing, dict(members))
        ours = {member_id: list(tps) for member_id, tps in found.items()}
    except Exception as error:
        raise ConfigurationError(f"the assignor {assignor.name!r} raised {error!r}") from error
    _check(assignor, existing, members, ours)
    return {member_id: ours.get(member_id, []) for member_id in members}


def _check(
    assignor: Assignor,
    topics: TopicRacks,
    members: Mapping[str, Subscription],
    found: Mapping[str, list[TopicPartition]],
) -> None:
    """Raises ConfigurationError if an assignment is invalid.

    It is invalid if it has an unknown member, an entry that is no (str, int), a partition that does
    not exist, or a partition of a topic that its member does not subscribe to; if it assigns a
    partition twice; or if a cooperative assignor assigns a partition that another member still
    owns.
    """
    readers: dict[TopicPartition, str] = {}
    owners = (
        {tp: each for each, member in members.items() for tp in member.owned}
        if assignor.cooperative
        else {}
    )

    def refuse(what: str) -> ConfigurationError:
        return ConfigurationError(f"the assignor {assignor.name!r} {what}")

    for member_id, tps in found.items():
        member = members.get(member_id)
        if member is None:
            raise refuse(f"assigns partitions to {member_id!r}, which is no member of the group")
        for tp in tps:
            if not isinstance(tp, tuple) or tuple(map(type, tp)) != (str, int):
                raise refuse(f"assigns {tp!r}, which is no partition as (topic, number)")
            topic, partition = tp
            name = f"{topic}[{partition}]"
            if topic not in topics or not 0 <= partition < len(topics[topic]):
                raise refuse(f"assigns {name}, which does not exist")
            if topic not in member.topics:
                raise refuse(
                    f"assigns {name} to {member_id!r}, which does not subscribe to {topic!r}"
                )
            if tp in readers:
                raise refuse(f"assigns {name} to {readers[tp]!r} and to {member_id!r}")
            readers[tp] = member_id
            if owners.get(tp, member_id) != member_id and tp in members[owners[tp]].owned:
                raise refuse(
                    f"is cooperative and assigns {name} to {member_id!r} while {owners[tp]!r} owns "
                    "it: leave it out once, its owner then revokes it for the next rebalance"
                )
