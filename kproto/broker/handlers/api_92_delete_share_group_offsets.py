"""DeleteShareGroupOffsets (92), v0 to v0.

v0      deletes the start offsets of topics in a share group without members (KIP-932)

If the group subscribes to a topic again, share.auto.offset.reset determines its start offsets.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from ...messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID, Uuid
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ShareGroup
from ..registry import handles
from ..share import SharePartitionKey


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
    results = {it.topic_name: _result(context, it.topic_name) for it in request.topics}
    known = group.partitions_with_state()
    found = [it for it in results.values() if not it.error_code]
    deleted = {it.topic_id: known[it.topic_id] for it in found if it.topic_id in known}
    for result in found:
        if result.topic_id not in known:
            result.topic_id, result.error_code = ZERO_UUID, code_of("UNKNOWN_TOPIC_OR_PARTITION")
            result.error_message = "There is no offset information to delete."
    if found and not deleted:
        group.remove_topics((), context.now)  # Kafka stores the unchanged partitions, too
    if deleted:
        errors = delete_states(context, group, deleted)
        for result in results.values():
            if fault := errors.get(result.topic_id):
                result.error_code, result.error_message = fault.code, fault.detail or None
        group.remove_topics(deleted.keys() - errors.keys(), context.now)
    return DeleteShareGroupOffsetsResponse(responses=[*results.values()])


def _result(context: Context, name: str) -> DeleteShareGroupOffsetsResponseTopic:
    """Returns the result of a topic, before its states are deleted."""
    result = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
    topic = context.cluster.topics.get(name)
    if topic is not None:
        result.topic_id = topic.topic_id
    try:
        check(context, Operation.READ, ResourceType.TOPIC, name)
        if topic is None:
            raise api_error(
                "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."
            )
    except BrokerResponseError as error:
        result.error_code, result.error_message = error.code, error.detail or None
    return result


def delete_states(
    context: Context, group: ShareGroup, partitions: Mapping[Uuid, frozenset[int]]
) -> dict[Uuid, BrokerResponseError]:
    """Deletes the share states of partitions, by topic id; their topics remain in `deleting`.

    Returns the last error of each topic with an error.
    """
    group.remove_topics(partitions, context.now, deletes=True)
    errors: dict[Uuid, BrokerResponseError] = {}
    for topic_id, indexes in partitions.items():
        for index in sorted(indexes):
            key = SharePartitionKey(group.group_id, topic_id, index)
            try:
                context.cluster.share_coordinator.delete(key, context.now)
            except BrokerResponseError as error:
                errors[topic_id] = error
    return errors
