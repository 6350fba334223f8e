"""Creates and deletes topics for `Client.create_topics` and `Client.delete_topics`."""

from __future__ import annotations

from collections.abc import Sequence

from ...messages.create_topics_request import CreateTopicsRequest
from ...messages.delete_topics_request import DeleteTopicsRequest
from ..metadata.cluster_view import ClusterView
from .topics import (
    NewTopic,
    check_defaults,
    create_topics_request,
    delete_topics_request,
    raise_for_created,
    raise_for_deleted,
)

__all__ = ["create_topics", "delete_topics"]


async def create_topics(
    view: ClusterView, topics: Sequence[str | NewTopic], timeout_ms: int, *, validate_only: bool
) -> None:
    """Creates topics, or with `validate_only` only checks the request.

    The broker waits up to `timeout_ms`. Raises BrokerResponseError for the first topic that was
    refused, and UnsupportedVersionError if a topic needs defaults of a broker before Kafka 2.4.
    """
    request = create_topics_request(topics, timeout_ms, validate_only=validate_only)
    connection = await view.connection_for(request)
    check_defaults(request, connection.version_of(CreateTopicsRequest))
    answer = await view.request(request)
    if not validate_only:
        created = [each.name for each in answer.topics if not each.error_code]
        view.topic_creation.add_existing(created)
    raise_for_created(answer)


async def delete_topics(view: ClusterView, names: Sequence[str], timeout_ms: int) -> None:
    """Deletes topics; the broker waits up to `timeout_ms`.

    Raises BrokerResponseError for the first topic that was not deleted.
    """
    connection = await view.connection_for(DeleteTopicsRequest())
    version = connection.version_of(DeleteTopicsRequest)
    request = delete_topics_request(names, timeout_ms, version)
    answer = await connection.request(request, version=version)
    view.cluster.forget(names)
    view.topic_creation.remove_existing(names)
    raise_for_deleted(answer)
