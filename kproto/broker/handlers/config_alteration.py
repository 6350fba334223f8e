"""Alters the configs of one resource, for AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ...protocol.config_types import ConfigResourceType
from ..api_error import api_error
from ..authorization import allows
from ..authorizer import AUTHORIZATION_ERRORS, CLUSTER_NAME, Operation, ResourceType
from ..config_changes import AlterOp, ConfigChange
from ..context import Context
from ..dynamic_configs import ALL_BROKERS
from ..topics import check_topic_name

__all__ = [
    "RESOURCE_TYPES",
    "alter_configs_of",
    "replacing_changes",
]

#: The authorizer's resource type for each resource type of configs.
RESOURCE_TYPES: Final[Mapping[int, ResourceType]] = MappingProxyType(
    {
        ConfigResourceType.TOPIC: ResourceType.TOPIC,
        ConfigResourceType.BROKER: ResourceType.CLUSTER,
        ConfigResourceType.BROKER_LOGGER: ResourceType.CLUSTER,
        ConfigResourceType.CLIENT_METRICS: ResourceType.CLUSTER,
        ConfigResourceType.GROUP: ResourceType.GROUP,
    }
)


def alter_configs_of(
    context: Context,
    resource_type: int,
    name: str,
    changes: Sequence[ConfigChange],
    *,
    validate_only: bool,
) -> None:
    """Validates and alters the configs of one resource; with `validate_only` only validates them.

    Raises BrokerResponseError if a config is invalid or not allowed; then no config has changed.
    """
    right_to = RESOURCE_TYPES.get(resource_type)
    if right_to is None:
        raise api_error("INVALID_REQUEST", f"Unknown resource type {resource_type}")
    resource = CLUSTER_NAME if right_to is ResourceType.CLUSTER else name
    if not allows(context, Operation.ALTER_CONFIGS, right_to, resource):
        raise api_error(
            AUTHORIZATION_ERRORS[right_to],
            f"{context.principal} may not ALTER_CONFIGS {right_to.name}",
        )
    _ALTER[resource_type](context, name, changes, validate_only)


def replacing_changes(
    context: Context, resource_type: int, name: str, configs: Sequence[tuple[str, str | None]]
) -> list[ConfigChange]:
    """Returns the changes that replace all configs of a resource by `configs` (AlterConfigs)."""
    given = {config for config, _ in configs}
    read = _CURRENT.get(resource_type)
    current = () if read is None else read(context, name)
    return [
        *((config, AlterOp.DELETE, None) for config in current if config not in given),
        *((config, AlterOp.SET, value) for config, value in configs),
    ]


def _topic(
    context: Context, name: str, changes: Sequence[ConfigChange], validate_only: bool
) -> None:
    if not name:
        raise api_error("INVALID_REQUEST", "Default topic resources are not allowed.")
    check_topic_name(name)
    topic = context.cluster.topics.named(name)
    context.cluster.alter_topic_configs(topic, changes, validate_only=validate_only)


def _broker(
    context: Context, name: str, changes: Sequence[ConfigChange], validate_only: bool
) -> None:
    if name != ALL_BROKERS:
        _check_node(context, name, "Unexpected broker id, expected {}, but received {}")
    context.cluster.alter_broker_configs(name, changes, validate_only=validate_only)


def _logger(
    context: Context, name: str, changes: Sequence[ConfigChange], validate_only: bool
) -> None:
    _check_node(context, name, "Unexpected node id. Expected {}, but received {}")
    levels = context.cluster.logger_levels_of(context.node_id)
    levels.alter(changes, validate_only=validate_only)


def _client_metrics(
    context: Context, name: str, changes: Sequence[ConfigChange], validate_only: bool
) -> None:
    configs = context.cluster.client_metrics_configs
    altered = configs.altered(name, changes)
    if not validate_only:
        configs.replace(name, altered)


def _group(
    context: Context, name: str, changes: Sequence[ConfigChange], validate_only: bool
) -> None:
    configs = context.cluster.group_configs
    altered = configs.altered(name, changes)
    if not validate_only:
        configs.replace(name, altered)
        context.cluster.groups.on_config_changed(name)


def _check_node(context: Context, name: str, message: str) -> None:
    """Raises INVALID_REQUEST unless `name` is the id of this node."""
    if not name.lstrip("+-").isdecimal():
        raise api_error("INVALID_REQUEST", f"Node id must be an integer, but it is: {name}")
    if int(name) != context.node_id:
        raise api_error("INVALID_REQUEST", message.format(context.node_id, name))


_Alter = Callable[[Context, str, Sequence[ConfigChange], bool], None]

_ALTER: Final[Mapping[int, _Alter]] = MappingProxyType(
    {
        ConfigResourceType.TOPIC: _topic,
        ConfigResourceType.BROKER: _broker,
        ConfigResourceType.BROKER_LOGGER: _logger,
        ConfigResourceType.CLIENT_METRICS: _client_metrics,
        ConfigResourceType.GROUP: _group,
    }
)


def _topic_overrides(context: Context, name: str) -> Mapping[str, str]:
    topic = context.cluster.topics.get(name)
    return {} if topic is None else topic.config.overrides


#: The configs that are set for a resource.
_CURRENT: Final[Mapping[int, Callable[[Context, str], Mapping[str, str]]]] = MappingProxyType(
    {
        ConfigResourceType.TOPIC: _topic_overrides,
        ConfigResourceType.BROKER: lambda context, name: context.cluster.broker_configs.configs_of(
            name
        ),
        ConfigResourceType.CLIENT_METRICS: lambda context, name: (
            context.cluster.client_metrics_configs.configs_of(name)
        ),
        ConfigResourceType.GROUP: lambda context, name: context.cluster.group_configs.configs_of(
            name
        ),
    }
)
