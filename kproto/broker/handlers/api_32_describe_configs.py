"""DescribeConfigs (32), v0 to v4.

v1      the source of each value, and its synonyms (KIP-226)
v2      a throttled response is sent at once (KIP-219)
v3      types and documentation (KIP-569)
v4      flexible

For a topic, a broker, a group and a client metrics subscription, the response has all configs of
Kafka 4.4.0; for a logger, its level. For the broker "" the response has the dynamic configs of all
brokers. If the request names configs, the response has only the named configs. A broker describes
only itself. Configs without a setting in `BrokerSettings` have Kafka's defaults.

Left out: documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ...protocol.config_types import ConfigResourceType
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows
from ..authorizer import AUTHORIZATION_ERRORS, CLUSTER_NAME, Operation, ResourceType
from ..config_entries import (
    ConfigEntry,
    ConfigSource,
    all_brokers_entries,
    broker_entries,
    client_metrics_entries,
    group_entries,
    logger_entries,
    topic_entries,
)
from ..context import Context
from ..dynamic_configs import ALL_BROKERS
from ..registry import handles
from ..topics import check_topic_name
from .config_alteration import (
    RESOURCE_TYPES,
)

_FIRST_VERSION_OF_TYPES: Final = 3


@handles(DescribeConfigsRequest, versions=range(5))
def describe_configs(
    context: Context, request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResponse:
    """Returns the configs of each resource, or an error code.

    As in Kafka, resources that the client may not describe come last.
    """
    unknown = [it for it in request.resources if it.resource_type not in RESOURCE_TYPES]
    if unknown:
        why = api_error("INVALID_REQUEST", f"resource type {unknown[0].resource_type} is not known")
        return DescribeConfigsResponse(results=[_failed(it, why) for it in request.resources])
    described, denied = [], []
    for resource in request.resources:
        kind = RESOURCE_TYPES[resource.resource_type]
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name
        if not allows(context, Operation.DESCRIBE_CONFIGS, kind, name):
            why = api_error(
                AUTHORIZATION_ERRORS[kind],
                f"{context.principal} may not DESCRIBE_CONFIGS {kind.name}",
            )
            denied.append(_failed(resource, why))
            continue
        try:
            entries = _DESCRIBE[resource.resource_type](context, resource.resource_name)
        except BrokerResponseError as error:
            described.append(_failed(resource, error))
        else:
            described.append(_described(request, resource, entries, version))
    return DescribeConfigsResponse(results=[*described, *denied])


def _topic(context: Context, name: str) -> list[ConfigEntry]:
    check_topic_name(name)
    cluster = context.cluster
    config = cluster.topics.named(name).config
    return topic_entries(config, context.settings, cluster.broker_configs)


def _broker(context: Context, name: str) -> list[ConfigEntry]:
    if name == ALL_BROKERS:
        return all_brokers_entries(context.cluster.broker_configs)
    _check_broker(context, name)
    return broker_entries(context.settings, context.cluster.broker_configs)


def _loggers(context: Context, name: str) -> list[ConfigEntry]:
    if not name:
        raise api_error("INVALID_REQUEST", "Broker id must not be empty")
    _check_broker(context, name)
    return logger_entries(context.cluster.logger_levels_of(context.node_id).levels())


def _group(context: Context, name: str) -> list[ConfigEntry]:
    if not name:
        raise api_error("INVALID_REQUEST", "Group name must not be empty")
    cluster = context.cluster
    configs = cluster.group_configs.configs_of(name)
    return group_entries(configs, context.settings, cluster.broker_configs)


def _client_metrics(context: Context, name: str) -> list[ConfigEntry]:
    if not name:
        raise api_error("INVALID_REQUEST", "Client metrics subscription name must not be empty")
    return client_metrics_entries(context.cluster.client_metrics_configs.configs_of(name))


_DESCRIBE: Final[Mapping[int, Callable[[Context, str], list[ConfigEntry]]]] = MappingProxyType(
    {
        ConfigResourceType.TOPIC: _topic,
        ConfigResourceType.BROKER: _broker,
        ConfigResourceType.BROKER_LOGGER: _loggers,
        ConfigResourceType.CLIENT_METRICS: _client_metrics,
        ConfigResourceType.GROUP: _group,
    }
)


def _check_broker(context: Context, name: str) -> None:
    """Raises INVALID_REQUEST unless `name` is the node id of this broker."""
    if name != str(context.node_id):
        raise api_error(
            "INVALID_REQUEST",
            f"Unexpected broker id, expected {context.node_id} but received {name}",
        )


def _described(
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    entries: list[ConfigEntry],
    version: int,
) -> DescribeConfigsResult:
    keys = resource.configuration_keys
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            _config(entry, version, synonyms=request.include_synonyms)
            for entry in entries
            if not keys or entry.name in keys
        ],
    )


def _config(entry: ConfigEntry, version: int, *, synonyms: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=version == 0 and entry.source is ConfigSource.DEFAULT,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.type if version >= _FIRST_VERSION_OF_TYPES else 0,
        documentation=None,
        synonyms=[
            DescribeConfigsSynonym(name=it.name, value=it.value, source=it.source)
            for it in (entry.synonyms if synonyms else ())
        ],
    )


def _failed(resource: DescribeConfigsResource, error: BrokerResponseError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message="" if error.name == "UNKNOWN_TOPIC_OR_PARTITION" else error.detail,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
