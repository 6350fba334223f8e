"""Stores quotas by entity, validates them, and selects the quota that applies to a client.

Sources: KIP-55 (users and clients), KIP-546 (altering and describing quotas).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple, TypeAlias

__all__ = [
    "CLIENT_ID",
    "ENTITY_TYPES",
    "IP",
    "KEYS",
    "USER",
    "AppliedQuota",
    "Entity",
    "EntityFilter",
    "QuotaTable",
    "entity_error",
    "value_error",
]

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

#: The entity types of Kafka.
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

#: The quota keys; True if the value must be an integer. Byte rates and controller_mutation_rate are
#: per second. request_percentage is a percentage of one thread's time.
KEYS: Final[Mapping[str, bool]] = {
    "producer_byte_rate": True,
    "consumer_byte_rate": True,
    "request_percentage": False,
    "controller_mutation_rate": False,
}

CONNECTION_RATE: Final = "connection_creation_rate"

#: The quota keys of an ip (KIP-612), as in KEYS.
IP_KEYS: Final[Mapping[str, bool]] = {CONNECTION_RATE: True}

#: The names of hosts that are valid in place of an ip. This broker looks up no other names.
_HOSTS: Final[Mapping[str, str]] = {"localhost": "127.0.0.1"}

#: Pairs of entity type and name, sorted by type; the name is None for the default entity.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]

_FRACTION: Final = 1e-6


class AppliedQuota(NamedTuple):
    """Holds a quota value, with the user and client id whose usage counts against the quota.

    `user` is empty if the entity of the quota has no user. `client_id` is empty if the entity has
    no client id.
    """

    value: float
    user: str
    client_id: str


class EntityFilter(NamedTuple):
    """Matches entities that have all entity types of `exact` and `any_name`.

    `exact` maps an entity type to the name that the entity must have; None is the default entity.
    For an entity type in `any_name`, any name and the default entity match. With `strict`, an
    entity with further types does not match.
    """

    exact: Mapping[str, str | None]
    any_name: frozenset[str]
    strict: bool

    def matches(self, entity: Entity) -> bool:
        """Returns True if the filter matches the entity."""
        parts = dict(entity)
        types = {*self.exact, *self.any_name}
        if self.strict and len(parts) != len(types):
            return False
        if not types:
            return not self.strict
        return types <= set(parts) and all(parts[kind] == name for kind, name in self.exact.items())


class QuotaTable:
    """Holds the quotas of a cluster."""

    def __init__(self) -> None:
        self._values: dict[Entity, dict[str, float]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def set(self, entity: Entity, key: str, value: float | None) -> None:
        """Sets a quota; a `value` of None removes it."""
        values = self._values.setdefault(entity, {})
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
        if not values:
            del self._values[entity]

    def matching(self, entity_filter: EntityFilter) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        """Yields the entities that `entity_filter` matches, each with its quotas by quota key."""
        for entity, values in self._values.items():
            if entity_filter.matches(entity):
                yield entity, values

    def connection_limit(self, ip: str) -> float | None:
        """Returns the connections per second that an ip may create; None for no limit.

        A quota of the ip overrides the quota of the default ip.
        """
        default = None
        for entity, values in self._values.items():
            rate = values.get(CONNECTION_RATE)
            if rate is None:
                continue
            name = dict(entity)[IP]
            if name is None:
                default = rate
            elif _address(name) == _address(ip):
                return rate
        return default

    def limit(self, key: str, user: str, client_id: str) -> AppliedQuota | None:
        """Returns the quota that applies to a user and client; None if none applies.

        The entities are searched column by column, as in Kafka; the first quota found applies:

            user, client-id             default user, client-id             client-id
            user, default client-id     default user, default client-id     default client-id
            user                        default user
        """
        for entity, by_user, by_client in _precedence(user, client_id):
            value = self._values.get(entity, {}).get(key)
            if value is not None:
                return AppliedQuota(value, user if by_user else "", client_id if by_client else "")
        return None


def _precedence(user: str, client_id: str) -> Iterator[tuple[Entity, bool, bool]]:
    for of_user in (user, None):
        for of_client in (client_id, None):
            yield ((CLIENT_ID, of_client), (USER, of_user)), True, True
        yield ((USER, of_user),), True, False
    for of_client in (client_id, None):
        yield ((CLIENT_ID, of_client),), False, True


def entity_error(entity: Entity) -> str | None:
    """Returns why a broker refuses quotas for `entity`, in Kafka's words; None for a valid entity.

    An ip that is not an address must be `localhost`, because the broker looks up no names.
    """
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    kinds = dict(entity)
    if IP in kinds and len(kinds) > 1:
        return (
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    ip = kinds.get(IP)
    if ip is not None and _address(ip) is None:
        return f"{ip} is not a valid IP or resolvable host."
    return None


def _address(name: str) -> str | None:
    """Returns the address of an ip entity in normal form; None if it is not an address."""
    try:
        return str(ip_address(_HOSTS.get(name, name)))
    except ValueError:
        return None


def value_error(entity: Entity, key: str, value: float) -> str | None:
    """Returns why a broker refuses `value` for the quota `key` of a valid entity, in Kafka's words.

    Returns None if it accepts the value.
    """
    whole = (IP_KEYS if IP in dict(entity) else KEYS).get(key)
    if whole is None:
        return f"Invalid configuration key {key}"
    if not math.isfinite(value) or value <= 0:
        return f"Quota {key} must be greater than 0"
    if whole and abs(value - math.floor(value + _FRACTION)) > _FRACTION:
        return f"{key} cannot be a fractional value."
    return None
