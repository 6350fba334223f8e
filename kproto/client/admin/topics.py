"""Builds the requests that create and delete topics, and raises the errors of their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ...messages.create_topics_response import CreateTopicsResponse
from ...messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ...messages.delete_topics_response import DeleteTopicsResponse
from ...protocol.error_codes import raise_for_code
from ...wire.errors import ConfigurationError, UnsupportedVersionError
from ..metadata.checks import checked_topic

__all__ = [
    "DELETE_BY_STRUCT",
    "NewTopic",
    "check_defaults",
    "create_topics_request",
    "delete_topics_request",
    "raise_for_created",
    "raise_for_deleted",
]

#: The first version of DeleteTopics with a list of structs, by name or topic id (KIP-516).
DELETE_BY_STRUCT: Final = 6


#: The first version of CreateTopics with the broker's defaults (KIP-464).
_DEFAULTS_VERSION: Final = 4


class NewTopic(NamedTuple):
    """A topic to create. `partitions` is the number of partitions.

    -1 as `partitions` or `replication_factor` means the default of the broker (KIP-464); brokers
    before Kafka 2.4 need both numbers. `configs`
    are topic configs as text: `{"retention.ms": "1000"}`. `assignments` has the node ids of the
    replicas of each partition, the preferred leader first; with `assignments`, leave both numbers
    at -1.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = {}
    assignments: Mapping[int, Sequence[int]] = {}


def create_topics_request(
    topics: Sequence[str | NewTopic], timeout_ms: int, *, validate_only: bool
) -> CreateTopicsRequest:
    """Returns the request that creates `topics`.

    Raises ConfigurationError if an element is neither a name nor a NewTopic.
    """
    given: Sequence[object] = topics
    for topic in given:
        if not isinstance(topic, str | NewTopic):
            hint = ""
            if isinstance(topic, list | set | frozenset | dict):
                hint = "; pass several topics one after the other"
            raise ConfigurationError(
                f"{topic!r:.80} is neither the name of a topic nor a NewTopic{hint}"
            )
    wanted = [NewTopic(topic) if isinstance(topic, str) else topic for topic in topics]
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=[
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs.items()
                ],
                assignments=[
                    CreatableReplicaAssignment(partition_index=partition, broker_ids=replicas)
                    for partition, replicas in topic.assignments.items()
                ],
            )
            for topic in wanted
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def check_defaults(request: CreateTopicsRequest, version: int) -> None:
    """Raises UnsupportedVersionError if `request` needs defaults that brokers of `version` lack."""
    if version >= _DEFAULTS_VERSION:
        return
    for topic in request.topics:
        missing = [
            name
            for name, number in (
                ("partitions", topic.num_partitions),
                ("replication_factor", topic.replication_factor),
            )
            if number == -1 and not topic.assignments
        ]
        if missing:
            raise UnsupportedVersionError(
                f"topic {topic.name!r} has no {' and no '.join(missing)}, and only CreateTopics "
                f"v{_DEFAULTS_VERSION} (Kafka 2.4) has defaults of the broker; this broker "
                f"supports v{version}: set {' and '.join(missing)} of the NewTopic"
            )


def raise_for_created(response: CreateTopicsResponse) -> None:
    """Raises BrokerResponseError for the first topic that was not created."""
    for topic in response.topics:
        detail = f": {topic.error_message}" if topic.error_message else ""
        raise_for_code(topic.error_code, f"creating topic {topic.name!r}{detail}")


def delete_topics_request(
    names: Sequence[str], timeout_ms: int, version: int
) -> DeleteTopicsRequest:
    """Returns the request that deletes topics by name, with the fields of `version`.

    Raises ConfigurationError if one of `names` is no str.
    """
    for name in names:
        checked_topic(name)
    if version >= DELETE_BY_STRUCT:
        topics = [DeleteTopicState(name=name) for name in names]
        return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


def raise_for_deleted(response: DeleteTopicsResponse) -> None:
    """Raises BrokerResponseError for the first topic that was not deleted."""
    for topic in response.responses:
        detail = f": {topic.error_message}" if topic.error_message else ""
        raise_for_code(topic.error_code, f"deleting topic {topic.name!r}{detail}")
