"""Describes and alters configs of every resource type: requests and results as plain data.

DescribeConfigs (32), IncrementalAlterConfigs (44, KIP-339) and ListConfigResources (74, KIP-1142).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, cast

from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ...messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ...messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from ...messages.list_config_resources_request import ListConfigResourcesRequest
from ...messages.list_config_resources_response import ListConfigResourcesResponse
from ...protocol.config_types import ConfigResourceType, ConfigSource, ConfigType
from ...wire.errors import ConfigurationError, KprotoError
from .calls import PartCall, error_in, outcome

__all__ = [
    "LISTED_TYPES",
    "AlterConfigOp",
    "ConfigEntry",
    "ConfigOpType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "alter_configs_call",
    "broker_of",
    "checked_resources",
    "config_ops",
    "describe_configs_call",
    "list_config_resources_request",
    "listed_config_resources",
]


class ConfigOpType(IntEnum):
    """The changes of a config; APPEND and SUBTRACT are for configs that are lists (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A resource that has configs. The name of a broker, and of its loggers, is its node id.

    The broker with the empty name stands for the defaults of all brokers.
    """

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower()} {self.name!r}"


class ConfigSynonym(NamedTuple):
    """A config that can set the value of a config entry; the first synonym of a list does."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config with its value. A sensitive value is None, because brokers do not send it.

    `synonyms` and `documentation` are empty and None unless they were requested (KIP-226, KIP-569).
    """

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN
    is_read_only: bool = False
    is_sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """True if the value is Kafka's default, so that no config of the cluster sets it."""
        return self.source is ConfigSource.DEFAULT


@dataclass(frozen=True, slots=True)
class AlterConfigOp:
    """A change of one config; `value` is hidden in the repr, because it may be a secret.

    The value of APPEND and SUBTRACT is a list of elements, separated by commas. DELETE has no
    value, and restores the default.
    """

    name: str
    value: str | None = field(default=None, repr=False)
    op: ConfigOpType = ConfigOpType.SET


#: The source in responses before Kafka 1.1 (KIP-226).
_NO_SOURCE: Final = -1

#: The types of resources that belong to one broker.
_OF_BROKERS: Final = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})

#: The types that ListConfigResources can list.
LISTED_TYPES: Final = tuple(each for each in ConfigResourceType if each)


def checked_resources(resources: Iterable[ConfigResource]) -> list[ConfigResource]:
    """Returns the resources as a list. Raises ConfigurationError for other objects."""
    found = []
    for each in resources:
        match each:
            case (int(kind), str(name)):
                found.append(ConfigResource(ConfigResourceType(kind), name))
            case _:
                raise ConfigurationError(
                    f"{each!r:.80} is no config resource; pass a ConfigResource(type, name)"
                )
    return list(dict.fromkeys(found))


def broker_of(resource: ConfigResource) -> int | None:
    """Returns the node id of the broker that answers for a resource; None if any broker can."""
    if resource.type not in _OF_BROKERS or not resource.name.isdecimal():
        return None
    return int(resource.name)


def config_ops(
    changes: Mapping[str, str | None] | Iterable[AlterConfigOp],
) -> list[AlterConfigOp]:
    """Returns the changes of a resource; in a mapping, a str sets a config, and None deletes it.

    Raises ConfigurationError for other objects.
    """
    if isinstance(changes, Mapping):
        values = cast("Mapping[str, str | None]", changes)
        return [
            AlterConfigOp(name, value, ConfigOpType.DELETE if value is None else ConfigOpType.SET)
            for name, value in values.items()
        ]
    found = list(changes)
    for each in found:
        if not isinstance(each, AlterConfigOp):
            raise ConfigurationError(
                f"{each!r:.80} is no change of a config; pass an AlterConfigOp, or a dict with the "
                "new values by name"
            )
    return found


def describe_configs_call(
    names: Sequence[str] | None, *, synonyms: bool, documentation: bool
) -> PartCall[ConfigResource, dict[str, ConfigEntry]]:
    """Returns the call that describes the configs with `names`, by default all, of resources."""

    def build(resources: Sequence[ConfigResource], left_ms: int) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=each.type, resource_name=each.name, configuration_keys=names
                )
                for each in resources
            ],
            include_synonyms=synonyms,
            include_documentation=documentation,
        )

    def read(
        response: DescribeConfigsResponse, resources: Sequence[ConfigResource]
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KprotoError]:
        found: dict[ConfigResource, dict[str, ConfigEntry] | KprotoError] = {}
        for each in response.results:
            resource = ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
            found[resource] = outcome(
                each.error_code,
                f"describing the configs of {resource}",
                each.error_message,
                {config.name: _entry(config) for config in each.configs},
            )
        return found

    return PartCall("describing configs", build, read, parts_of=_resources_of, awaits_topics=True)


def _resources_of(
    request: DescribeConfigsRequest | IncrementalAlterConfigsRequest,
) -> list[ConfigResource]:
    return [
        ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
        for each in request.resources
    ]


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    source = ConfigSource(max(config.config_source, 0))
    if config.config_source == _NO_SOURCE and config.is_default:  # before Kafka 1.1
        source = ConfigSource.DEFAULT
    return ConfigEntry(
        config.name,
        config.value,
        source,
        config.read_only,
        config.is_sensitive,
        tuple(
            ConfigSynonym(each.name, each.value, ConfigSource(each.source))
            for each in config.synonyms
        ),
        ConfigType(config.config_type),
        config.documentation or None,
    )


def alter_configs_call(
    changes: Mapping[ConfigResource, Sequence[AlterConfigOp]], *, validate_only: bool
) -> PartCall[ConfigResource, None]:
    """Returns the call that changes configs, by resource."""

    def build(resources: Sequence[ConfigResource], left_ms: int) -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=each.type,
                    resource_name=each.name,
                    configs=[
                        AlterableConfig(name=op.name, config_operation=op.op, value=op.value)
                        for op in changes[each]
                    ],
                )
                for each in resources
            ],
            validate_only=validate_only,
        )

    def read(
        response: IncrementalAlterConfigsResponse, resources: Sequence[ConfigResource]
    ) -> dict[ConfigResource, KprotoError | None]:
        found: dict[ConfigResource, KprotoError | None] = {}
        for each in response.responses:
            resource = ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
            found[resource] = error_in(
                each.error_code, f"altering the configs of {resource}", each.error_message
            )
        return found

    # Every change has the same effect if it is made twice, also APPEND and SUBTRACT: Kafka appends
    # no element that the list has already.
    return PartCall(
        "altering configs", build, read, parts_of=_resources_of, changes=not validate_only
    )


def list_config_resources_request(
    types: Iterable[ConfigResourceType],
) -> ListConfigResourcesRequest:
    """Returns the request for the resources of these types that have configs; no type means client
    metrics at brokers before Kafka 4.1, and all types at later brokers.
    """
    return ListConfigResourcesRequest(resource_types=[int(each) for each in types])


def listed_config_resources(
    response: ListConfigResourcesResponse,
) -> list[ConfigResource] | KprotoError:
    """Returns the resources of a response, or its error."""
    return outcome(
        response.error_code,
        "listing config resources",
        None,
        [
            ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
            for each in response.config_resources
        ],
    )
