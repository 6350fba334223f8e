"""DeleteTopics (20), v0 to v6.

v1      throttle time
v3      TOPIC_DELETION_DISABLED
v4      flexible
v5      error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599)
v6      topics by name or by id (KIP-516)

Left out: delete.topic.enable; the timeout of the request, because a topic is deleted at once.
"""

from __future__ import annotations

from ...messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ...messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID, Uuid
from ..api_error import api_error
from ..authorization import allows, allows_cluster, check, check_topic_of_id
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..quotas import ControllerMutationQuota
from ..registry import handles
from ..throttle import mutation_quota, record_mutations
from ..topics import Topic

_FIRST_VERSION_BY_ID = 6
#: The first version that refuses topics above the quota. In older versions they are deleted, and
#: the client is throttled.
_FIRST_VERSION_OF_STRICT_QUOTA = 5


@handles(DeleteTopicsRequest, versions=range(7))
def delete_topics(
    context: Context, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    """Deletes topics, and returns an error code for each."""
    quota = mutation_quota(context, strict=version >= _FIRST_VERSION_OF_STRICT_QUOTA)
    requested = request.topics
    if version < _FIRST_VERSION_BY_ID:
        requested = [DeleteTopicState(name=name) for name in request.topic_names]
    found: dict[Topic, list[DeleteTopicState]] = {}
    refused: dict[tuple[str | None, Uuid], BrokerResponseError] = {}
    for entry in requested:
        try:
            found.setdefault(_find(context, entry), []).append(entry)
        except BrokerResponseError as error:
            refused[_visible_name(context, entry, error), entry.topic_id] = error
    return DeleteTopicsResponse(
        responses=[
            *(_refused(name, topic_id, error) for (name, topic_id), error in refused.items()),
            *(_delete(context, quota, topic, entries) for topic, entries in found.items()),
        ],
        throttle_time_ms=quota.throttle_ms,
    )


def _delete(
    context: Context, quota: ControllerMutationQuota, topic: Topic, entries: list[DeleteTopicState]
) -> DeletableTopicResult:
    if len(entries) > 1:
        error = api_error("INVALID_REQUEST", "the topic is named more than once")
        return _refused(entries[-1].name, entries[-1].topic_id, error)
    try:
        record_mutations(quota, len(topic.partitions))
    except BrokerResponseError as error:
        return _refused(topic.name, topic.topic_id, error)
    context.cluster.delete_topic(topic, context.now)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_message=None)


def _refused(name: str | None, topic_id: Uuid, error: BrokerResponseError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.detail
    )


def _visible_name(
    context: Context, requested: DeleteTopicState, error: BrokerResponseError
) -> str | None:
    """Returns the topic name for the response with `error`; None for no name.

    For a request with a topic id, the name is returned only after an authorization error, and only
    if the client may describe the topic.
    """
    if requested.name is not None or error.name != AUTHORIZATION_ERRORS[ResourceType.TOPIC]:
        return requested.name
    name = context.cluster.topics.with_id(requested.topic_id).name
    return name if allows(context, Operation.DESCRIBE, ResourceType.TOPIC, name) else None


def _find(context: Context, requested: DeleteTopicState) -> Topic:
    by_id = requested.topic_id != ZERO_UUID
    if by_id == (requested.name is not None):
        raise api_error("INVALID_REQUEST", "name a topic either by its name or by its id")
    if by_id:
        found = context.cluster.topics.with_id(requested.topic_id)
        if not allows_cluster(context, Operation.DELETE):
            check_topic_of_id(context, Operation.DELETE, found)
        return found
    # The error for a client that may not describe the topic does not reveal whether it exists.
    name = requested.name or ""
    _check(context, Operation.DESCRIBE, name)
    found = context.cluster.topics.named(name)
    _check(context, Operation.DELETE, name)
    return found


def _check(context: Context, operation: Operation, name: str) -> None:
    """Raises TOPIC_AUTHORIZATION_FAILED if the client may not perform `operation` on the topic.

    A client with DELETE on the cluster needs no permission for the topic.
    """
    if not allows_cluster(context, Operation.DELETE):
        check(context, operation, ResourceType.TOPIC, name)
