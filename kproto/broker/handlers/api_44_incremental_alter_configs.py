"""IncrementalAlterConfigs (44), v0 to v1.

v0      sets and deletes single configs (KIP-339)
v1      flexible

Alters configs of groups of the consumer protocol (KIP-848). Changed configs apply from the members'
next heartbeats on, and are kept as long as the `Broker` or `Cluster` object exists. The request
requires ALTER_CONFIGS on the group. If one config of a group is invalid, none of the group's
configs is changed.

Left out: configs of topics, brokers, loggers and client metrics, which get INVALID_REQUEST; configs
of share groups and streams groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ...messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows
from ..authorizer import AUTHORIZATION_ERRORS, CLUSTER_NAME, Operation, ResourceType
from ..context import Context
from ..registry import handles

_GROUP: Final = 32

#: The authorizer's resource type for each resource type of configs: topics, brokers, loggers,
#: client metrics, groups.
_RIGHT_TO: Final[Mapping[int, ResourceType]] = MappingProxyType(
    {
        2: ResourceType.TOPIC,
        4: ResourceType.CLUSTER,
        8: ResourceType.CLUSTER,
        16: ResourceType.CLUSTER,
        _GROUP: ResourceType.GROUP,
    }
)


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
            _alter(context, resource, validate_only=request.validate_only)
        except BrokerResponseError as error:
            answer.error_code, answer.error_message = error.code, error.detail
        responses.append(answer)
    return IncrementalAlterConfigsResponse(responses=responses)


def _alter(context: Context, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    """Validates and alters the configs of one resource; with `validate_only` only validates them.

    Raises BrokerResponseError if a config is invalid or not allowed; then no config has changed.
    """
    kind = _RIGHT_TO.get(resource.resource_type)
    if kind is None:
        raise api_error("INVALID_REQUEST", f"Unknown resource type {resource.resource_type}")
    group_id = resource.resource_name
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else group_id
    if not allows(context, Operation.ALTER_CONFIGS, kind, name):
        raise api_error(
            AUTHORIZATION_ERRORS[kind], f"{context.principal} may not ALTER_CONFIGS {kind.name}"
        )
    if resource.resource_type != _GROUP:
        raise api_error("INVALID_REQUEST", "this broker alters only configs of groups")
    configs = context.cluster.group_configs
    changes = [(it.name, it.config_operation, it.value) for it in resource.configs]
    altered = configs.altered(group_id, changes)
    if not validate_only:
        configs.replace(group_id, altered)
        context.cluster.groups.on_config_changed(group_id)
