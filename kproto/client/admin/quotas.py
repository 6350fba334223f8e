"""Describes and alters client quotas: requests and results as plain data.

DescribeClientQuotas (48) and AlterClientQuotas (49, KIP-546).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from ...messages.alter_client_quotas_request import AlterClientQuotasRequest, EntryData, OpData
from ...messages.alter_client_quotas_request import EntityData as AlteredEntity
from ...messages.alter_client_quotas_response import AlterClientQuotasResponse
from ...messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from ...messages.describe_client_quotas_response import DescribeClientQuotasResponse
from ...wire.errors import KprotoError
from .calls import PartCall, error_in, outcome

__all__ = [
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "QuotaName",
    "alter_quotas_call",
    "describe_quotas_request",
    "described_quotas",
]


class QuotaName(Enum):
    """Names of quota entities with a special meaning."""

    #: The default for all names that have no quota of their own.
    DEFAULT = "default"
    #: Every name, in a filter.
    ANY = "any"


class ClientQuotaEntity(NamedTuple):
    """The clients to which a quota applies: of a user, with a client id, or from an IP address.

    None means that the entity has no such part; `QuotaName.DEFAULT` is the default of a part. A
    quota of an IP address has neither user nor client id.
    """

    user: str | QuotaName | None = None
    client_id: str | QuotaName | None = None
    ip: str | QuotaName | None = None


class ClientQuotaFilter(NamedTuple):
    """A filter of entities; None matches entities with and without the part.

    A part is a name, `QuotaName.DEFAULT` or `QuotaName.ANY`. With `strict`, entities that have
    other parts than the filter are left out.
    """

    user: str | QuotaName | None = None
    client_id: str | QuotaName | None = None
    ip: str | QuotaName | None = None
    strict: bool = False


#: Kafka's types of the parts, by field.
_TYPES: Final = {"user": "user", "client_id": "client-id", "ip": "ip"}
_FIELDS: Final = {kind: name for name, kind in _TYPES.items()}

_EXACT, _DEFAULT, _ANY = 0, 1, 2  # how a component of a filter matches


def describe_quotas_request(found: ClientQuotaFilter) -> DescribeClientQuotasRequest:
    """Returns the request for the quotas of the entities that a filter matches."""
    components = []
    for name, kind in _TYPES.items():
        match getattr(found, name):
            case None:
                continue
            case QuotaName.DEFAULT:
                components.append(ComponentData(entity_type=kind, match_type=_DEFAULT, match=None))
            case QuotaName.ANY:
                components.append(ComponentData(entity_type=kind, match_type=_ANY, match=None))
            case text:
                components.append(ComponentData(entity_type=kind, match_type=_EXACT, match=text))
    return DescribeClientQuotasRequest(components=components, strict=found.strict)


def _entity(parts: Iterable[tuple[str, str | None]]) -> ClientQuotaEntity:
    return ClientQuotaEntity(
        **{
            _FIELDS[kind]: QuotaName.DEFAULT if name is None else name
            for kind, name in parts
            if kind in _FIELDS
        }
    )


def described_quotas(
    response: DescribeClientQuotasResponse,
) -> dict[ClientQuotaEntity, dict[str, float]] | KprotoError:
    """Returns the quotas of a response by entity and name, or its error."""
    return outcome(
        response.error_code,
        "describing quotas",
        response.error_message,
        {
            _entity((it.entity_type, it.entity_name) for it in entry.entity): {
                each.key: each.value for each in entry.values
            }
            for entry in response.entries or ()
        },
    )


def alter_quotas_call(
    changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool
) -> PartCall[ClientQuotaEntity, None]:
    """Returns the call that sets quotas by name; None removes a quota."""

    def build(entities: Sequence[ClientQuotaEntity], left_ms: int) -> AlterClientQuotasRequest:
        return AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[
                        AlteredEntity(
                            entity_type=kind, entity_name=name if isinstance(name, str) else None
                        )
                        for field, kind in _TYPES.items()
                        if (name := getattr(entity, field)) is not None
                    ],
                    ops=[
                        OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in changes[entity].items()
                    ],
                )
                for entity in entities
            ],
            validate_only=validate_only,
        )

    def read(
        response: AlterClientQuotasResponse, entities: Sequence[ClientQuotaEntity]
    ) -> dict[ClientQuotaEntity, KprotoError | None]:
        found: dict[ClientQuotaEntity, KprotoError | None] = {}
        for each in response.entries:
            entity = _entity((it.entity_type, it.entity_name) for it in each.entity)
            found[entity] = error_in(each.error_code, "altering quotas", each.error_message)
        return found

    return PartCall("altering quotas", build, read, changes=not validate_only)
