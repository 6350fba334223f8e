"""ShareGroupDescribe (77), v1 to v1.

v1      the epochs and members of share groups (KIP-932)

A missing group and a group of another type get GROUP_ID_NOT_FOUND. A group with a topic that the
client may not describe gets TOPIC_AUTHORIZATION_FAILED. In the response, groups that the client may
not describe come first.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.share_group_describe_request import ShareGroupDescribeRequest
from ...messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows, authorized_operations, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups.share import ShareGroupMember
from ..registry import handles

_HIDDEN_TOPICS: Final = (
    "The described group uses topics that the client is not authorized to describe."
)


@handles(ShareGroupDescribeRequest, versions=range(1, 2))
def share_group_describe(
    context: Context, request: ShareGroupDescribeRequest, version: int
) -> ShareGroupDescribeResponse:
    """Returns the state, epochs and members of each group, or an error code."""
    requested = sorted(request.group_ids, key=lambda it: bool(it) and _may_describe(context, it))
    groups = [_described(context, group_id) for group_id in requested]
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = authorized_operations(
                context, ResourceType.GROUP, group.group_id
            )
    return ShareGroupDescribeResponse(groups=[_without_hidden(context, it) for it in groups])


def _may_describe(context: Context, group_id: str) -> bool:
    return allows(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)


def _described(context: Context, group_id: str) -> DescribedGroup:
    try:
        context.check_share_groups()
        check(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        if not group_id:
            raise api_error("INVALID_GROUP_ID", "the group id is empty")
        group = context.group_coordinator.find_share_group(context.node_id, group_id, context.now)
    except BrokerResponseError as error:
        message = error.detail if error.name == "GROUP_ID_NOT_FOUND" else None
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=message)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.persisted.epoch,
        assignment_epoch=group.persisted.target_epoch,
        assignor_name=group.assignor,
        members=[_member(context, it) for it in group.members.values()],
    )


def _member(context: Context, member: ShareGroupMember) -> Member:
    topics = context.cluster.topics
    return Member(
        member_id=member.member_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(
                    topic_id=topic_id, topic_name=topics.name_of(topic_id), partitions=sorted(its)
                )
                for topic_id, its in member.assigned.items()
                if topics.name_of(topic_id)
            ]
        ),
    )


def _without_hidden(context: Context, group: DescribedGroup) -> DescribedGroup:
    topics = {
        it.topic_name for member in group.members for it in member.assignment.topic_partitions
    }
    if all(allows(context, Operation.DESCRIBE, ResourceType.TOPIC, topic) for topic in topics):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=code_of("TOPIC_AUTHORIZATION_FAILED"),
        error_message=_HIDDEN_TOPICS,
    )
