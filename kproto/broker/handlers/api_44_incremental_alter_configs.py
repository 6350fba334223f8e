"""IncrementalAlterConfigs (44), v0 to v1.

v0      sets and deletes single configs (KIP-339)
v1      flexible

Alters configs of topics, brokers, loggers, client metrics subscriptions (KIP-714) and groups
(KIP-848). All nodes see the changed configs at once, and the configs are kept as long as the
`Broker` or `Cluster` object exists. If one config of a resource is invalid, none of the resource's
configs is changed. The request requires ALTER_CONFIGS on the topic, the cluster or the group.

Left out: the effect of configs that `effective_configs` does not name; the effect of logger levels
other than `kproto.broker`.
"""

from __future__ import annotations

from collections import Counter

from ...messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from ...messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..context import Context
from ..registry import handles
from .config_alteration import alter_configs_of


@handles(IncrementalAlterConfigsRequest, versions=range(2))
def incremental_alter_configs(
    context: Context, request: IncrementalAlterConfigsRequest, version: int
) -> IncrementalAlterConfigsResponse:
    """Alters the configs of resources, and returns an error code for each."""
    counts = Counter((it.resource_type, it.resource_name) for it in request.resources)
    responses = []
    for resource in request.resources:
        answer = AlterConfigsResourceResponse(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise api_error("INVALID_REQUEST", "Each resource must appear at most once.")
            alter_configs_of(
                context,
                resource.resource_type,
                resource.resource_name,
                [(it.name, it.config_operation, it.value) for it in resource.configs],
                validate_only=request.validate_only,
            )
        except BrokerResponseError as error:
            answer.error_code, answer.error_message = error.code, error.detail
        responses.append(answer)
    return IncrementalAlterConfigsResponse(responses=responses)
