"""DeleteTopics (20), v0 to v6.

v1      throttle time
v3      TOPIC_DELETION_DISABLED
v4      flexible
v5      error messages (KIP-599)
v6      topics by name or by id (KIP-516)

Left out: a setting that forbids deletion; waiting for the time-out, as deletion is immediate.
"""

from __future__ import annotations

from collections import Counter

from ...messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ...messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID
from ..refusal import refusal
from ..registry import handles
from ..state import BrokerState
from ..topics import Topic

_FIRST_VERSION_BY_ID = 6


@handles(DeleteTopicsRequest, versions=range(7))
def delete_topics(
    state: BrokerState, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    """Delete each topic, or say why not."""
    wanted = request.topics
    if version < _FIRST_VERSION_BY_ID:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    times = Counter((entry.name, entry.topic_id) for entry in wanted)
    return DeleteTopicsResponse(
        responses=[
            _delete(state, DeleteTopicState(name=name, topic_id=topic_id), times[name, topic_id])
            for name, topic_id in times
        ]
    )


def _delete(state: BrokerState, wanted: DeleteTopicState, times: int) -> DeletableTopicResult:
    try:
        if times > 1:
            raise refusal("INVALID_REQUEST", "the topic is named more than once")
        topic = _find(state, wanted)
    except BrokerResponseError as error:
        return DeletableTopicResult(
            name=wanted.name,
            topic_id=wanted.topic_id,
            error_code=error.code,
            error_message=error.detail,
        )
    state.topics.remove(topic)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _find(state: BrokerState, wanted: DeleteTopicState) -> Topic:
    by_id = wanted.topic_id != ZERO_UUID
    if by_id == (wanted.name is not None):
        raise refusal("INVALID_REQUEST", "name a topic either by its name or by its id")
    if by_id:
        return state.topics.with_id(wanted.topic_id)
    return state.topics.named(wanted.name or "")
