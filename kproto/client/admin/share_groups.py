"""Describes share groups (KIP-932): requests and results as plain data. ShareGroupDescribe (77)."""

from __future__ import annotations

from dataclasses import dataclass

from ...messages.share_group_describe_request import ShareGroupDescribeRequest
from ...messages.share_group_describe_response import DescribedGroup, Member
from ..metadata.cluster import TopicPartition
from .acl_types import AclOperation, authorized_operations
from .calls import PartCall
from .groups import assigned_partitions, described_call

__all__ = ["ShareGroupDescription", "ShareMemberDescription", "describe_share_groups_call"]


@dataclass(frozen=True, slots=True)
class ShareMemberDescription:
    """A member of a share group."""

    member_id: str
    client_id: str
    host: str
    rack: str | None
    epoch: int
    subscribed_topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ShareGroupDescription:
    """A share group; `coordinator` is a node id."""

    group_id: str
    state: str
    assignor: str
    members: tuple[ShareMemberDescription, ...]
    group_epoch: int
    assignment_epoch: int
    authorized_operations: frozenset[AclOperation] | None = None
    coordinator: int | None = None


def describe_share_groups_call(*, operations: bool) -> PartCall[str, ShareGroupDescription]:
    """Returns the call that describes share groups (Kafka 4.1)."""
    return described_call(
        "describing share groups",
        lambda group_ids: ShareGroupDescribeRequest(
            group_ids=group_ids, include_authorized_operations=operations
        ),
        _group,
    )


def _group(group: DescribedGroup) -> ShareGroupDescription:
    return ShareGroupDescription(
        group.group_id,
        group.group_state,
        group.assignor_name,
        tuple(_member(each) for each in group.members),
        group.group_epoch,
        group.assignment_epoch,
        authorized_operations(group.authorized_operations),
    )


def _member(member: Member) -> ShareMemberDescription:
    return ShareMemberDescription(
        member.member_id,
        member.client_id,
        member.client_host,
        member.rack_id,
        member.member_epoch,
        tuple(member.subscribed_topic_names),
        assigned_partitions(member.assignment),
    )
