"""Creates and deletes topics, and adds partitions: requests and results as plain data.

CreateTopics (19), DeleteTopics (20) and CreatePartitions (37).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ...messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ...messages.create_partitions_response import CreatePartitionsResponse
from ...messages.create_topics_request import CreateTopicsRequest
from ...messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from ...messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ...messages.delete_topics_response import DeleteTopicsResponse
from ...wire.errors import KprotoError
from ...wire.uuid import Uuid
from .calls import PartCall, error_in, outcome
from .configs import ConfigEntry, ConfigSource
from .topics import (
    DELETE_BY_STRUCT,
    NewTopic,
    check_defaults,
    create_topics_request,
    delete_topics_request,
)

__all__ = [
    "CreatedTopic",
    "NewPartitions",
    "TopicKey",
    "create_partitions_call",
    "create_topics_call",
    "delete_topics_call",
]

#: A topic by its name or its id.
TopicKey: TypeAlias = str | Uuid


class NewPartitions(NamedTuple):
    """The new number of partitions of a topic.

    `assignments` has, for each added partition, the node ids of its replicas; None leaves the
    choice to the controller.
    """

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


class CreatedTopic(NamedTuple):
    """A created topic.

    The id is all zeros, the numbers are -1 and `configs` is None if the broker does not send them
    (before Kafka 2.8 and 2.4), or if the principal lacks the right to describe the topic's configs.
    """

    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int
    configs: dict[str, ConfigEntry] | None


def create_topics_call(
    topics: Mapping[str, NewTopic], *, validate_only: bool
) -> PartCall[str, CreatedTopic]:
    """Returns the call that creates `topics`, by name."""

    def build(names: Sequence[str], left_ms: int) -> CreateTopicsRequest:
        wanted = [topics[name] for name in names]
        return create_topics_request(wanted, left_ms, validate_only=validate_only)

    def read(
        response: CreateTopicsResponse, names: Sequence[str]
    ) -> dict[str, CreatedTopic | KprotoError]:
        return {
            each.name: outcome(
                each.error_code, f"creating topic {each.name!r}", each.error_message, _created(each)
            )
            for each in response.topics
        }

    return PartCall(
        "creating topics",
        build,
        read,
        check=check_defaults,
        changes=not validate_only,
        done_errors=frozenset({"TOPIC_ALREADY_EXISTS"}),
    )


def _created(each: CreatableTopicResult) -> CreatedTopic:
    configs = None
    if each.configs is not None and not each.topic_config_error_code:
        configs = {
            config.name: ConfigEntry(
                config.name,
                config.value,
                ConfigSource(config.config_source),
                is_read_only=config.read_only,
                is_sensitive=config.is_sensitive,
            )
            for config in each.configs
        }
    return CreatedTopic(
        each.name, each.topic_id, each.num_partitions, each.replication_factor, configs
    )


def delete_topics_call() -> PartCall[TopicKey, None]:
    """Returns the call that deletes topics, each by name or by id (KIP-516)."""

    def build(topics: Sequence[TopicKey], left_ms: int) -> DeleteTopicsRequest:
        names = [each for each in topics if isinstance(each, str)]
        request = delete_topics_request(names, left_ms, DELETE_BY_STRUCT)
        ids = [each for each in topics if isinstance(each, Uuid)]
        request.topics += [DeleteTopicState(name=None, topic_id=each) for each in ids]
        return request

    def build_older(topics: Sequence[TopicKey], left_ms: int) -> DeleteTopicsRequest:
        if any(isinstance(each, Uuid) for each in topics):
            return build(topics, left_ms)
        return delete_topics_request([str(each) for each in topics], left_ms, 0)

    def read(
        response: DeleteTopicsResponse, topics: Sequence[TopicKey]
    ) -> dict[TopicKey, KprotoError | None]:
        found: dict[TopicKey, KprotoError | None] = {}
        for each in response.responses:
            key = each.topic_id if each.topic_id in topics else (each.name or "")
            found[key] = error_in(
                each.error_code, f"deleting topic {str(key)!r}", each.error_message
            )
        return found

    return PartCall(
        "deleting topics",
        build,
        read,
        build_older=build_older,
        changes=True,
        done_errors=frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"}),
    )


def create_partitions_call(
    partitions: Mapping[str, NewPartitions], *, validate_only: bool
) -> PartCall[str, None]:
    """Returns the call that adds partitions to topics, by the topic's name."""

    def build(names: Sequence[str], left_ms: int) -> CreatePartitionsRequest:
        return CreatePartitionsRequest(
            topics=[_more_partitions(name, partitions[name]) for name in names],
            timeout_ms=left_ms,
            validate_only=validate_only,
        )

    def read(
        response: CreatePartitionsResponse, names: Sequence[str]
    ) -> dict[str, KprotoError | None]:
        return {
            each.name: error_in(
                each.error_code, f"adding partitions to topic {each.name!r}", each.error_message
            )
            for each in response.results
        }

    return PartCall(
        "adding partitions",
        build,
        read,
        changes=not validate_only,
        done_errors=frozenset({"INVALID_PARTITIONS"}),
    )


def _more_partitions(name: str, new: NewPartitions) -> CreatePartitionsTopic:
    assignments = None
    if new.assignments is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=each) for each in new.assignments]
    return CreatePartitionsTopic(name=name, count=new.total_count, assignments=assignments)
