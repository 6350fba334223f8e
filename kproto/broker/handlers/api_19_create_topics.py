"""CreateTopics (19), v0 to v7.

v1      validate only, error messages
v2      throttle time
v4      -1 for the broker's default partition count and replication factor (KIP-464)
v5      flexible; partition count, replication factor and configs in the response (KIP-525)
v6      THROTTLING_QUOTA_EXCEEDED (KIP-599)
v7      topic id in the response (KIP-516)

Left out: the timeout of the request, because a topic is created at once; the effect of most configs
(see `topic_configs`).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from ...messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows, allows_cluster, check
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..registry import handles
from ..throttle import mutation_quota, record_mutations
from ..topic_configs import DEFAULTS
from ..topics import METADATA_LOG, Topic

#: The first version that refuses topics above the quota. In older versions they are created, and
#: the client is throttled.
_FIRST_VERSION_OF_STRICT_QUOTA: Final = 6


@handles(CreateTopicsRequest, versions=range(8))
def create_topics(
    context: Context, request: CreateTopicsRequest, version: int
) -> CreateTopicsResponse:
    """Creates topics, and returns an error code for each.

    A client with CREATE on the cluster may create all topics. If the client lacks DESCRIBE_CONFIGS
    on a topic, the response has neither the topic's configs, nor its partition count, nor its
    replication factor.
    """
    quota = mutation_quota(context, strict=version >= _FIRST_VERSION_OF_STRICT_QUOTA)
    may_create_all = allows_cluster(context, Operation.CREATE)
    times = Counter(topic.name for topic in request.topics)
    results = []
    for name, requested in {topic.name: topic for topic in request.topics}.items():
        try:
            if times[name] > 1:
                raise api_error("INVALID_REQUEST", f"topic {name!r} is named more than once")
            # No client may create the log of the controllers: `_plan` raises the error.
            if not may_create_all and name != METADATA_LOG:
                check(context, Operation.CREATE, ResourceType.TOPIC, name)
            topic = _plan(context, requested)
            record_mutations(quota, len(topic.partitions))
        except BrokerResponseError as error:
            results.append(_refused(name, error))
            continue
        if not request.validate_only:
            context.cluster.topics.add(topic)
        may_see = allows(context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name)
        results.append(_created(topic) if may_see else _created_unseen(topic))
    return CreateTopicsResponse(topics=results, throttle_time_ms=quota.throttle_ms)


def _plan(context: Context, requested: CreatableTopic) -> Topic:
    return context.cluster.plan_topic(
        requested.name,
        requested.num_partitions,
        requested.replication_factor,
        {entry.partition_index: entry.broker_ids for entry in requested.assignments},
        {config.name: config.value for config in requested.configs},
    )


def _refused(name: str, error: BrokerResponseError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.detail, configs=[]
    )


def _created_unseen(topic: Topic) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        topic_config_error_code=code_of(AUTHORIZATION_ERRORS[ResourceType.TOPIC]),
        configs=[],
    )


def _created(topic: Topic) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].leader_and_isr.replicas),
        configs=[
            CreatableTopicConfigs(
                name=name,
                value=topic.config[name],
                config_source=topic.config.source(name),
            )
            for name in DEFAULTS
        ],
    )
