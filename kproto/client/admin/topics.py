"""Creates and deletes topics, and adds partitions: requests and results as plain data.

CreateTopics (19), DeleteTopics (20) and CreatePartitions (37).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from ...messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ...messages.create_partitions_response import CreatePartitionsResponse
from ...messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ...messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from ...messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ...messages.delete_topics_response import DeleteTopicsResponse
from ...protocol.error_codes import raise_for_code
from ...wire.errors import ConfigurationError, KprotoError, UnsupportedVersionError
from ...wire.uuid import Uuid
from .calls import PartCall, error_in, outcome
from .configs import ConfigEntry, ConfigSource

__all__ = [
    "CreatedTopic",
    "NewPartitions",
    "NewTopic",
    "TopicKey",
    "check_defaults",
    "checked_topic",
    "create_partitions_call",
    "create_topics_call",
    "create_topics_request",
    "delete_topics_call",
    "delete_topics_request",
    "raise_for_created",
    "raise_for_deleted",
]

#: A topic by its name or its id.
TopicKey: TypeAlias = str | Uuid

#: The first version of DeleteTopics with a list of structs, by name or topic id (KIP-516).
_DELETE_BY_STRUCT: Final = 6


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


def checked_topic(name: object) -> str:
    """Returns `name`. Raises ConfigurationError if it is no str."""
    if isinstance(name, str):
        return name
    hint = ""
    if isinstance(name, list | tuple | set | frozenset | dict):
        hint = "; pass several names one after the other"
    raise ConfigurationError(f"{name!r:.80} is no name of a topic, which is a str{hint}")


def delete_topics_request(
    names: Sequence[str], timeout_ms: int, version: int
) -> DeleteTopicsRequest:
    """Returns the request that deletes topics by name, with the fields of `version`.

    Raises ConfigurationError if one of `names` is no str.
    """
    for name in names:
        checked_topic(name)
    if version >= _DELETE_BY_STRUCT:
        topics = [DeleteTopicState(name=name) for name in names]
        return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


def raise_for_deleted(response: DeleteTopicsResponse) -> None:
    """Raises BrokerResponseError for the first topic that was not deleted."""
    for topic in response.responses:
        detail = f": {topic.error_message}" if topic.error_message else ""
        raise_for_code(topic.error_code, f"deleting topic {topic.name!r}{detail}")


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
        request = delete_topics_request(names, left_ms, _DELETE_BY_STRUCT)
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
