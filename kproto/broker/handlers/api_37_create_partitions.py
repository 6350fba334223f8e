"""CreatePartitions (37), v0 to v3.

v0      adds partitions to topics (KIP-195)
v1      a throttled response is sent at once (KIP-219)
v2      flexible
v3      THROTTLING_QUOTA_EXCEEDED (KIP-599)

The request names the number of partitions that a topic has afterwards, and may assign the replicas
of the new partitions. The request requires ALTER on the topic.

Left out: the timeout of the request, because partitions are created at once.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ...messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..quotas import ControllerMutationQuota
from ..registry import handles
from ..throttle import mutation_quota, record_mutations

#: The first version that refuses partitions above the quota. In older versions they are created,
#: and the client is throttled.
_FIRST_VERSION_OF_STRICT_QUOTA: Final = 3


@handles(CreatePartitionsRequest, versions=range(4))
def create_partitions(
    context: Context, request: CreatePartitionsRequest, version: int
) -> CreatePartitionsResponse:
    """Adds partitions to topics, and returns an error code for each topic."""
    quota = mutation_quota(context, strict=version >= _FIRST_VERSION_OF_STRICT_QUOTA)
    counts = Counter(topic.name for topic in request.topics)
    results = []
    for name, topic in {topic.name: topic for topic in request.topics}.items():
        result = CreatePartitionsTopicResult(name=name, error_message=None)
        try:
            if counts[name] > 1:
                raise api_error("INVALID_REQUEST", "Duplicate topic name.")
            _create(context, topic, quota, validate_only=request.validate_only)
        except BrokerResponseError as error:
            result.error_code = error.code
            # As in Kafka, the response does not name an unknown topic.
            if error.name != "UNKNOWN_TOPIC_OR_PARTITION":
                result.error_message = error.detail
        results.append(result)
    return CreatePartitionsResponse(results=results, throttle_time_ms=quota.throttle_ms)


def _create(
    context: Context,
    requested: CreatePartitionsTopic,
    quota: ControllerMutationQuota,
    *,
    validate_only: bool,
) -> None:
    check(context, Operation.ALTER, ResourceType.TOPIC, requested.name)
    topic = context.cluster.topics.named(requested.name)
    assignments = requested.assignments
    replicas = context.cluster.plan_partitions(
        topic,
        requested.count,
        None if assignments is None else [it.broker_ids for it in assignments],
    )
    record_mutations(quota, len(replicas))
    if not validate_only:
        context.cluster.add_partitions(topic, replicas)
