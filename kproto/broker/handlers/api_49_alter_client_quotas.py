"""AlterClientQuotas (49), v0 to v1.

v0      sets and removes quotas of users, clients and ips (KIP-546, KIP-612)
v1      flexible

The quotas of users and clients are producer_byte_rate, consumer_byte_rate, request_percentage
(KIP-124) and controller_mutation_rate (KIP-599); the quota of an ip is connection_creation_rate. If
one quota of an entity is invalid, none of the entity's quotas is changed. If an entity is named
twice, the first entry is applied, although the response is INVALID_REQUEST, as in Kafka. The
request requires ALTER_CONFIGS on the cluster.

Left out: the look-up of host names; an ip is an address or `localhost`.
"""

from __future__ import annotations

from ...messages.alter_client_quotas_request import AlterClientQuotasRequest
from ...messages.alter_client_quotas_request import EntryData as WantedEntry
from ...messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..quotas import Entity, entity_error, value_error
from ..registry import handles


@handles(AlterClientQuotasRequest, versions=range(2))
def alter_client_quotas(
    context: Context, request: AlterClientQuotasRequest, version: int
) -> AlterClientQuotasResponse:
    """Sets and removes quotas, and returns an error code for each entity."""
    table = context.cluster.quota_manager.table
    planned: dict[Entity, dict[str, float | None]] = {}
    results: dict[Entity, BrokerResponseError | None] = {}
    for requested in request.entries:
        # If an entity has a type twice, the last name is used, as in Kafka's map of types.
        entity = tuple(sorted({it.entity_type: it.entity_name for it in requested.entity}.items()))
        try:
            check_cluster(context, Operation.ALTER_CONFIGS)
            if entity in results:
                raise api_error("INVALID_REQUEST", f"{entity} is named more than once")
            planned[entity] = _values(entity, requested)
            results[entity] = None
        except BrokerResponseError as error:
            results[entity] = error
    if not request.validate_only:
        for entity, values in planned.items():
            for key, value in values.items():
                table.set(entity, key, value)
    return AlterClientQuotasResponse(
        entries=[_response_entry(entity, refused) for entity, refused in results.items()]
    )


def _values(entity: Entity, requested: WantedEntry) -> dict[str, float | None]:
    """Returns the value to set for each quota key; None removes the quota.

    Raises INVALID_REQUEST for an invalid entity, key or value.
    """
    fault = entity_error(entity)
    values: dict[str, float | None] = {}
    for change in requested.ops:
        if fault is None and change.key in values:
            fault = f"{change.key} is named more than once"
        if fault is None and not change.remove:
            fault = value_error(entity, change.key, change.value)
        values[change.key] = None if change.remove else change.value
    if fault is not None:
        raise api_error("INVALID_REQUEST", fault)
    return values


def _response_entry(entity: Entity, refused: BrokerResponseError | None) -> EntryData:
    entity_data = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    if refused is None:
        return EntryData(error_message=None, entity=entity_data)
    return EntryData(error_code=refused.code, error_message=refused.detail, entity=entity_data)
