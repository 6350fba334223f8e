"""ConsumerGroupDescribe (69), v0 to v1.

v0      the epochs and members of groups of the consumer protocol (KIP-848)
v1      the protocol of each member: classic or consumer

A missing group and a classic group get GROUP_ID_NOT_FOUND. A group with a topic that the client may
not describe gets TOPIC_AUTHORIZATION_FAILED. In the response, groups that the client may not
describe come first.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from ...messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ...wire.errors import BrokerResponseError
from ...wire.uuid import Uuid
from ..api_error import api_error
from ..context import Context
from ..groups import ConsumerGroup
from ..groups.consumer.consumer_group_member import ConsumerGroupMember, partitions_of
from ..registry import handles
from .group_describe_checks import (
    HIDDEN_TOPICS_CODE,
    HIDDEN_TOPICS_MESSAGE,
    add_authorized_operations,
    check_may_describe,
    may_describe_group,
    may_describe_topics,
)

_CLASSIC: Final = 0
_CONSUMER: Final = 1


@handles(ConsumerGroupDescribeRequest, versions=range(2))
def consumer_group_describe(
    context: Context, request: ConsumerGroupDescribeRequest, version: int
) -> ConsumerGroupDescribeResponse:
    """Returns the state, epochs and members of each group, or an error code."""
    requested = sorted(request.group_ids, key=lambda it: may_describe_group(context, it))
    groups = [_described(context, group_id) for group_id in requested]
    if request.include_authorized_operations:
        add_authorized_operations(context, groups)
    return ConsumerGroupDescribeResponse(groups=[_without_hidden(context, it) for it in groups])


def _described(context: Context, group_id: str) -> DescribedGroup:
    try:
        context.check_consumer_protocol()
        check_may_describe(context, group_id)
        group = context.group_coordinator.find(context.node_id, group_id, context.now)
        if not isinstance(group, ConsumerGroup):
            what = "not found" if group is None else "not a consumer group"
            raise api_error("GROUP_ID_NOT_FOUND", f"Group {group_id} is {what}.")
    except BrokerResponseError as error:
        message = error.detail if error.name == "GROUP_ID_NOT_FOUND" else None
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=message)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.persisted.epoch,
        assignment_epoch=group.persisted.target_epoch,
        assignor_name=group.assignor,
        members=[_member(context, group, it) for it in group.members.values()],
    )


def _member(context: Context, group: ConsumerGroup, member: ConsumerGroupMember) -> Member:
    target = group.persisted.target_assignment_of(member.member_id)
    assigned: dict[Uuid, set[int]] = {}  # including partitions that the member must revoke
    for topic_id, index in partitions_of(member):
        assigned.setdefault(topic_id, set()).add(index)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=Assignment(topic_partitions=_partitions(context, assigned.items())),
        target_assignment=Assignment(topic_partitions=_partitions(context, target.items())),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _partitions(
    context: Context, assigned: Iterable[tuple[Uuid, Iterable[int]]]
) -> list[TopicPartitions]:
    """Converts topic ids to topic names; leaves out partitions of deleted topics."""
    topics = context.cluster.topics
    return [
        TopicPartitions(
            topic_id=topic_id, topic_name=topics.name_of(topic_id), partitions=sorted(its)
        )
        for topic_id, its in assigned
        if topics.name_of(topic_id)
    ]


def _without_hidden(context: Context, group: DescribedGroup) -> DescribedGroup:
    topics = {
        place.topic_name
        for member in group.members
        for part in (member.assignment, member.target_assignment)
        for place in part.topic_partitions
    }
    topics.update(name for member in group.members for name in member.subscribed_topic_names)
    if may_describe_topics(context, topics):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=HIDDEN_TOPICS_CODE,
        error_message=HIDDEN_TOPICS_MESSAGE,
    )
