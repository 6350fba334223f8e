"""ShareGroupDescribe (77), v1 to v1.

v1      the epochs and members of share groups (KIP-932)

A missing group and a group of another type get GROUP_ID_NOT_FOUND. A group with a topic that the
client may not describe gets TOPIC_AUTHORIZATION_FAILED. In the response, groups that the client may
not describe come first.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.share_group_describe_request import ShareGroupDescribeRequest
from ...messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from ...wire.errors import BrokerResponseError
from ..context import Context
from ..groups.share import ShareGroupMember
from ..registry import handles
from .group_describe_checks import (
    HIDDEN_TOPICS_CODE,
    HIDDEN_TOPICS_MESSAGE,
    add_authorized_operations,
    check_may_describe,
    may_describe_group,
    may_describe_topics,
)


@handles(ShareGroupDescribeRequest, versions=range(1, 2))
def share_group_describe(
    context: Context, request: ShareGroupDescribeRequest, version: int
) -> ShareGroupDescribeResponse:
    """Returns the state, epochs and members of each group, or an error code."""
    requested = sorted(
        request.group_ids, key=lambda it: bool(it) and may_describe_group(context, it)
    )
    groups = [_described(context, group_id) for group_id in requested]
    if request.include_authorized_operations:
        add_authorized_operations(context, groups)
    return ShareGroupDescribeResponse(groups=[_without_hidden(context, it) for it in groups])


def _described(context: Context, group_id: str) -> DescribedGroup:
    try:
        context.check_share_groups()
        check_may_describe(context, group_id)
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
    if may_describe_topics(context, topics):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=HIDDEN_TOPICS_CODE,
        error_message=HIDDEN_TOPICS_MESSAGE,
    )
