"""DeleteShareGroupOffsets (92), v0 to v0.

v0      deletes the start offsets of topics in a share group without members (KIP-932)

If the group subscribes to a topic again, share.auto.offset.reset determines its start offsets.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from ...messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ShareGroup
from ..registry import handles
from ..share import SharePartitionKey
from ..topics import Topic


@handles(DeleteShareGroupOffsetsRequest, versions=range(1))
def delete_share_group_offsets(
    context: Context, request: DeleteShareGroupOffsetsRequest, version: int
) -> DeleteShareGroupOffsetsResponse:
    """Deletes the share states of topics, and returns an error code for each topic."""
    try:
        context.check_share_groups()
        check(context, Operation.DELETE, ResourceType.GROUP, request.group_id)
        if not request.group_id:
            raise api_error("INVALID_GROUP_ID", "")
        group = context.group_coordinator.find_share_group(
            context.node_id, request.group_id, context.now
        )
        if group.members:
            raise api_error("NON_EMPTY_GROUP", "The group is not empty.")
    except BrokerResponseError as error:
        return DeleteShareGroupOffsetsResponse(
            error_code=error.code, error_message=error.detail or None
        )
    response = DeleteShareGroupOffsetsResponse()
    for requested in request.topics:
        name = requested.topic_name
        topic = context.cluster.topics.get(name)
        result = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
        if topic is not None:
            result.topic_id = topic.topic_id
        response.responses.append(result)
        try:
            check(context, Operation.READ, ResourceType.TOPIC, name)
            if topic is None:
                raise api_error(
                    "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."
                )
            delete_states(context, group, topic)
        except BrokerResponseError as error:
            result.error_code, result.error_message = error.code, error.detail or None
    return response


def delete_states(context: Context, group: ShareGroup, topic: Topic) -> None:
    """Deletes the share states of a topic; does nothing if the group has none."""
    state, now = group.persisted, context.now
    known = state.initialized.get(topic.topic_id) or state.initializing.get(topic.topic_id)
    if known is None:
        return
    group.remove_topics([topic.topic_id], now, deletes=True)
    for index in sorted(known.partitions):
        key = SharePartitionKey(group.group_id, topic.topic_id, index)
        context.cluster.share_coordinator.delete(key, now)
    group.remove_topics([topic.topic_id], now)
