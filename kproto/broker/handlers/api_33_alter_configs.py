"""AlterConfigs (33), v0 to v2.

v0      replaces all configs of a resource (KIP-133)
v2      flexible

Alters configs of topics, brokers, client metrics subscriptions and groups. A config that the
request does not name gets its default again. If one config of a resource is invalid, none of the
resource's configs is changed. Loggers get INVALID_REQUEST. Rights and effects are those of
IncrementalAlterConfigs.

Left out: the effect of the configs that IncrementalAlterConfigs leaves out.
"""

from __future__ import annotations

from collections import Counter

from ...messages.alter_configs_request import AlterConfigsRequest
from ...messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from ...protocol.config_types import ConfigResourceType
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..context import Context
from ..registry import handles
from .config_alteration import alter_configs_of, replacing_changes


@handles(AlterConfigsRequest, versions=range(3))
def alter_configs(
    context: Context, request: AlterConfigsRequest, version: int
) -> AlterConfigsResponse:
    """Replaces the configs of resources, and returns an error code for each."""
    counts = Counter((it.resource_type, it.resource_name) for it in request.resources)
    responses = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        answer = AlterConfigsResourceResponse(
            error_message=None, resource_type=kind, resource_name=name
        )
        try:
            if counts[kind, name] > 1:
                raise api_error("INVALID_REQUEST", "Each resource must appear at most once.")
            if kind == ConfigResourceType.BROKER_LOGGER:
                raise api_error("INVALID_REQUEST", f"Unknown resource type {kind}")
            configs = [(it.name, it.value) for it in resource.configs]
            changes = replacing_changes(context, kind, name, configs)
            alter_configs_of(context, kind, name, changes, validate_only=request.validate_only)
        except BrokerResponseError as error:
            answer.error_code, answer.error_message = error.code, error.detail
        responses.append(answer)
    return AlterConfigsResponse(responses=responses)
