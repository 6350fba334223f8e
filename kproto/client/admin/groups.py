"""Lists, describes and deletes groups, and removes members: requests and results as plain data.

ListGroups (16), DescribeGroups (15), ConsumerGroupDescribe (69, KIP-848), DeleteGroups (42) and
LeaveGroup (13). The descriptions of share and streams groups are in `share_groups` and
`streams_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from ...messages.base import Request
from ...messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from ...messages.consumer_group_describe_response import (
    Assignment,
)
from ...messages.consumer_group_describe_response import DescribedGroup as ConsumerGroup
from ...messages.consumer_group_describe_response import Member as ConsumerMember
from ...messages.delete_groups_request import DeleteGroupsRequest
from ...messages.delete_groups_response import DeleteGroupsResponse
from ...messages.describe_groups_request import DescribeGroupsRequest
from ...messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
)
from ...messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from ...messages.leave_group_response import LeaveGroupResponse
from ...messages.list_groups_request import ListGroupsRequest
from ...messages.list_groups_response import ListedGroup, ListGroupsResponse
from ...protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from ...protocol.error_codes import code_of, error_of_code
from ...wire.errors import DecodeError, KprotoError
from ..metadata.cluster import TopicPartition
from .acl_types import AclOperation, authorized_operations
from .calls import PartCall, error_in, outcome

__all__ = [
    "ClassicGroupDescription",
    "ClassicMemberDescription",
    "ConsumerGroupDescription",
    "GroupListing",
    "MemberDescription",
    "MemberToRemove",
    "consumer_of_classic",
    "delete_groups_call",
    "describe_classic_groups_call",
    "describe_consumer_groups_call",
    "described_call",
    "is_of_other_kind",
    "list_groups_request",
    "listed_groups",
    "matching_groups",
    "remove_members_call",
]

#: The types of groups, as Kafka's Java client writes them; brokers write them in lower case.
CLASSIC: Final = "Classic"
CONSUMER: Final = "Consumer"

#: The state in which brokers before Kafka 4.0 describe a group that does not exist.
_DEAD: Final = "Dead"

#: DescribeGroups v6 (Kafka 4.0) has an error for such a group (KIP-1043).
_NO_SUCH_GROUP: Final = code_of("GROUP_ID_NOT_FOUND")

#: The errors of a Describe request for a group of another kind, and of brokers without this kind.
_OTHER_KIND: Final = frozenset({"GROUP_ID_NOT_FOUND", "UNSUPPORTED_VERSION"})


class GroupListing(NamedTuple):
    """A group of the cluster.

    `type` is "Classic", "Consumer", "Share" or "Streams", and "" before Kafka 3.8; `state` is "",
    before Kafka 2.6. `protocol_type` is "consumer" for consumers, and "" for a group that only
    commits offsets.
    """

    group_id: str
    type: str
    protocol_type: str
    state: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a consumer group.

    The target assignment, the epoch, the subscription and `is_classic` are None unless the group
    uses the consumer protocol (KIP-848). `is_classic` is True for a member of such a group that
    uses the classic protocol, and None before Kafka 4.0.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] | None = None
    rack: str | None = None
    epoch: int | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    is_classic: bool | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescription:
    """A group of consumers, of the classic or of the consumer protocol (`type`).

    `assignor` is the name of the assignor. The epochs are None for classic groups. `coordinator` is
    a node id. `is_simple` is True for a group that only commits offsets, without members.
    """

    group_id: str
    type: str
    state: str
    assignor: str
    members: tuple[MemberDescription, ...]
    is_simple: bool = False
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    authorized_operations: frozenset[AclOperation] | None = None
    coordinator: int | None = None


@dataclass(frozen=True, slots=True)
class ClassicMemberDescription:
    """A member of a classic group of any protocol type; metadata and assignment are its bytes."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    metadata: bytes = field(repr=False)
    assignment: bytes = field(repr=False)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions; empty if the assignment is not that of a consumer."""
        return _partitions_in(self.assignment)


@dataclass(frozen=True, slots=True)
class ClassicGroupDescription:
    """A classic group, such as a group of Kafka Connect; `coordinator` is a node id."""

    group_id: str
    protocol_type: str
    protocol: str
    state: str
    members: tuple[ClassicMemberDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None
    coordinator: int | None = None


class MemberToRemove(NamedTuple):
    """A member to remove from a group: by its instance id, or else by its member id."""

    instance_id: str | None = None
    member_id: str = ""


# Listing


def list_groups_request(states: Iterable[str], types: Iterable[str]) -> ListGroupsRequest:
    """Returns the request for the groups in one of `states` and of one of `types`; none means all.

    Brokers before Kafka 2.6 have no filter of states, and brokers before 3.8 none of types.
    """
    return ListGroupsRequest(states_filter=states, types_filter=types)


def listed_groups(response: ListGroupsResponse) -> list[GroupListing] | KprotoError:
    """Returns the groups of a broker, or the error of the response."""
    return outcome(
        response.error_code, "listing groups", None, [_listing(each) for each in response.groups]
    )


def _listing(group: ListedGroup) -> GroupListing:
    return GroupListing(
        group.group_id, group.group_type.capitalize(), group.protocol_type, group.group_state
    )


def matching_groups(
    found: Iterable[Iterable[GroupListing]], protocol_types: Collection[str]
) -> list[GroupListing]:
    """Merges the groups of the brokers; keeps those of `protocol_types`, or all if it is empty.

    While a coordinator moves, two brokers may list the same group; the later listing counts.
    """
    by_id = {each.group_id: each for its in found for each in its}
    return [
        by_id[group_id]
        for group_id in sorted(by_id)
        if not protocol_types or by_id[group_id].protocol_type in protocol_types
    ]


# Descriptions


def described_call(
    action: str,
    request: Callable[[Sequence[str]], Request[Any]],
    read_group: Callable[[Any], Any],
    ids: str = "group_ids",
) -> PartCall[str, Any]:
    """Returns a call that describes groups by id.

    `request` returns the request for some ids, `read_group` the description of a group in the
    response, and `ids` is the name of the request's field with the group ids.
    """

    def read(response: Any, group_ids: Sequence[str]) -> dict[str, Any]:
        return {
            each.group_id: outcome(
                each.error_code,
                f"describing group {each.group_id!r}",
                each.error_message,
                None if each.error_code else read_group(each),
            )
            for each in response.groups
        }

    return PartCall(
        action,
        build=lambda group_ids, left_ms: request(group_ids),
        read=read,
        parts_of=lambda sent: getattr(sent, ids),
        with_broker=lambda group, node: replace(group, coordinator=node),
    )


def describe_consumer_groups_call(*, operations: bool) -> PartCall[str, ConsumerGroupDescription]:
    """Returns the call that describes groups of the consumer protocol (Kafka 3.8, KIP-848)."""
    return described_call(
        "describing consumer groups",
        lambda group_ids: ConsumerGroupDescribeRequest(
            group_ids=group_ids, include_authorized_operations=operations
        ),
        _consumer_group,
    )


def _consumer_group(group: ConsumerGroup) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        group.group_id,
        CONSUMER,
        group.group_state,
        group.assignor_name,
        tuple(_member(each) for each in group.members),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        authorized_operations=authorized_operations(group.authorized_operations),
    )


def _member(member: ConsumerMember) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        assigned_partitions(member.assignment),
        assigned_partitions(member.target_assignment),
        member.rack_id,
        member.member_epoch,
        tuple(member.subscribed_topic_names),
        member.subscribed_topic_regex or None,
        None if member.member_type < 0 else member.member_type == 0,
    )


def assigned_partitions(assignment: Assignment | Any | None) -> tuple[TopicPartition, ...]:
    """Returns the partitions of an assignment with topic names; none for None."""
    if assignment is None:
        return ()
    return tuple(
        (topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def describe_classic_groups_call(*, operations: bool) -> PartCall[str, ClassicGroupDescription]:
    """Returns the call that describes classic groups (DescribeGroups)."""
    return described_call(
        "describing classic groups",
        lambda group_ids: DescribeGroupsRequest(
            groups=group_ids, include_authorized_operations=operations
        ),
        _classic_group,
        ids="groups",
    )


def _classic_group(group: DescribedGroup) -> ClassicGroupDescription | KprotoError:
    if group.group_state == _DEAD:
        return error_of_code(_NO_SUCH_GROUP, f"describing group {group.group_id!r}")
    return ClassicGroupDescription(
        group.group_id,
        group.protocol_type,
        group.protocol_data,
        group.group_state,
        tuple(_classic_member(each) for each in group.members),
        authorized_operations(group.authorized_operations),
    )


def _classic_member(member: DescribedGroupMember) -> ClassicMemberDescription:
    return ClassicMemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.member_metadata,
        member.member_assignment,
    )


def is_of_other_kind(error: object) -> bool:
    """Returns True if `error` means that a group may be of another kind than was described."""
    return getattr(error, "name", None) in _OTHER_KIND


def consumer_of_classic(
    group: ClassicGroupDescription,
) -> ConsumerGroupDescription | KprotoError:
    """Returns a classic group as a group of consumers, or an error if it is of another protocol."""
    if group.protocol_type not in ("", PROTOCOL_TYPE):
        return error_of_code(
            code_of("INCONSISTENT_GROUP_PROTOCOL"),
            f"group {group.group_id!r} has the protocol type {group.protocol_type!r}; call "
            "describe_classic_groups",
        )
    return ConsumerGroupDescription(
        group.group_id,
        CLASSIC,
        group.state,
        group.protocol,
        tuple(
            MemberDescription(
                each.member_id, each.instance_id, each.client_id, each.host, each.partitions
            )
            for each in group.members
        ),
        is_simple=not group.protocol_type,
        authorized_operations=group.authorized_operations,
        coordinator=group.coordinator,
    )


def _partitions_in(assignment: bytes) -> tuple[TopicPartition, ...]:
    if not assignment:
        return ()
    try:
        sent = decode_assignment(assignment)
    except DecodeError:  # of another protocol type
        return ()
    return tuple((each.topic, at) for each in sent.assigned_partitions for at in each.partitions)


# Changes


def delete_groups_call() -> PartCall[str, None]:
    """Returns the call that deletes groups of any kind that have no members."""

    def read(response: DeleteGroupsResponse, _: Sequence[str]) -> dict[str, KprotoError | None]:
        return {
            each.group_id: error_in(
                each.error_code, f"deleting group {each.group_id!r}", each.error_message
            )
            for each in response.results
        }

    return PartCall(
        "deleting groups",
        build=lambda group_ids, left_ms: DeleteGroupsRequest(groups_names=group_ids),
        read=read,
        parts_of=lambda request: request.groups_names,
        changes=True,
        done_errors=frozenset({"GROUP_ID_NOT_FOUND"}),
    )


def remove_members_call(group_id: str, reason: str | None) -> PartCall[MemberToRemove, None]:
    """Returns the call that removes members from a group (KIP-345; the reason: KIP-800)."""

    def build(members: Sequence[MemberToRemove], left_ms: int) -> LeaveGroupRequest:
        return LeaveGroupRequest(
            group_id=group_id,
            members=[
                MemberIdentity(
                    member_id=each.member_id,
                    group_instance_id=each.instance_id,
                    reason=reason,
                )
                for each in members
            ],
        )

    def read(
        response: LeaveGroupResponse, members: Sequence[MemberToRemove]
    ) -> dict[MemberToRemove, KprotoError | None]:
        action = f"removing members from group {group_id!r}"
        whole = error_in(response.error_code, action)
        if whole is not None:
            return dict.fromkeys(members, whole)
        found: dict[MemberToRemove, KprotoError | None] = {}
        for each in response.members:
            for member in members:
                its_id = each.group_instance_id or each.member_id
                if its_id == (member.instance_id or member.member_id):
                    found[member] = error_in(each.error_code, f"{action}: {its_id!r}")
        return found

    return PartCall(
        "removing members",
        build,
        read,
        changes=True,
        done_errors=frozenset({"UNKNOWN_MEMBER_ID"}),
    )
