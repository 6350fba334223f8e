"""Kafka's names of settings as aliases of the short names: `auto_offset_reset` for `start`.

Each table maps Kafka's names to the short names, for the arguments of one method of `Client`. The
dots of Kafka's names are underscores, because the names are keyword arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from ..wire.errors import ConfigurationError
from .settings import ClientSettings

if TYPE_CHECKING:
    from .groups.assignor import Assignor
    from .producer.settings import CompressionName

__all__ = [
    "CONSUMER_NAMES",
    "GROUP_CONSUMER_NAMES",
    "PRODUCER_NAMES",
    "SHARE_CONSUMER_NAMES",
    "ConsumerNames",
    "GroupConsumerNames",
    "ProducerNames",
    "ShareConsumerNames",
    "resolve_aliases",
]


class ProducerNames(TypedDict, total=False):
    """Kafka's names of the arguments of `Client.producer`."""

    compression_type: CompressionName
    batch_size: int
    buffer_memory: int
    max_in_flight_requests_per_connection: int
    enable_idempotence: bool


class ConsumerNames(TypedDict, total=False):
    """Kafka's names of the arguments of `Client.consumer` without a group."""

    auto_offset_reset: str
    fetch_max_wait_ms: int
    isolation_level: Literal["read_committed", "read_uncommitted"]


class GroupConsumerNames(TypedDict, total=False):
    """Kafka's names of the arguments of `Client.consumer` with a group."""

    auto_offset_reset: str
    fetch_max_wait_ms: int
    isolation_level: Literal["read_committed", "read_uncommitted"]
    enable_auto_commit: bool
    group_instance_id: str
    group_remote_assignor: str
    partition_assignment_strategy: Sequence[str | Assignor]


class ShareConsumerNames(TypedDict, total=False):
    """Kafka's names of the arguments of `Client.share_consumer`."""

    fetch_max_wait_ms: int
    share_acknowledgement_mode: Literal["implicit", "explicit"]
    share_acquire_mode: Literal["batch_optimized", "record_limit"]


PRODUCER_NAMES: Final[Mapping[str, str]] = {
    "compression_type": "compression",
    "batch_size": "batch_bytes",
    "buffer_memory": "buffer_bytes",
    "max_in_flight_requests_per_connection": "max_in_flight",
    "enable_idempotence": "idempotent",
}

CONSUMER_NAMES: Final[Mapping[str, str]] = {
    "auto_offset_reset": "start",
    "fetch_max_wait_ms": "max_wait_ms",
    "isolation_level": "read_committed",
}

GROUP_CONSUMER_NAMES: Final[Mapping[str, str]] = {
    **CONSUMER_NAMES,
    "enable_auto_commit": "auto_commit",
    "group_instance_id": "instance_id",
    "group_remote_assignor": "server_assignor",
    "partition_assignment_strategy": "assignors",
}

SHARE_CONSUMER_NAMES: Final[Mapping[str, str]] = {
    "fetch_max_wait_ms": "max_wait_ms",
    "share_acknowledgement_mode": "acknowledgement",
    "share_acquire_mode": "acquire_mode",
}

_OF_CLIENT: Final = frozenset(each.name for each in fields(ClientSettings))

_ISOLATION_LEVELS: Final = {"read_committed": True, "read_uncommitted": False}


def _place_of(name: str) -> str:
    """Returns where a setting belongs that an error has named; "" for an unknown setting."""
    if name not in _OF_CLIENT:
        return ""
    return f"; it is a setting of the client: Client(…, ClientSettings({name}=…))"


def resolve_aliases(
    call: str,
    arguments: Mapping[str, Any],
    kafka_names: Mapping[str, Any],
    names: Mapping[str, str],
) -> dict[str, Any]:
    """Returns the arguments of a call under their short names.

    `arguments` has the arguments under their short names; an argument that the caller left out is
    None. `kafka_names` has the arguments under Kafka's names, which `names` maps to the short
    names.

    Raises:
        ConfigurationError: the caller set both names of a setting, or an unknown isolation level.
        TypeError: the call has no argument with one of the names in `kafka_names`.
    """
    found = {name: value for name, value in arguments.items() if value is not None}
    for kafka_name, value in kafka_names.items():
        name = names.get(kafka_name)
        if name is None:
            raise TypeError(f"{call} has no argument {kafka_name!r}{_place_of(kafka_name)}")
        if name in found:
            raise ConfigurationError(
                f"{name} and {kafka_name} are the same setting: leave out one of them"
            )
        if kafka_name == "isolation_level":
            if value not in _ISOLATION_LEVELS:
                raise ConfigurationError(
                    f"isolation_level is {value!r:.80}; it is 'read_committed' or "
                    "'read_uncommitted'"
                )
            value = _ISOLATION_LEVELS[value]
        if value is not None:
            found[name] = value
    return found
