"""DescribeClientQuotas (48), v0 to v1.

v0      the quotas of users, clients and ips that match a filter (KIP-546)
v1      flexible

A component of the filter matches one name, the default entity, or any name of an entity type. With
`strict`, entities with further types do not match. The request requires DESCRIBE_CONFIGS on the
cluster.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from ...messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..quotas import ENTITY_TYPES, EntityFilter
from ..registry import handles

_EXACT = 0
_DEFAULT = 1
_ANY = 2


@handles(DescribeClientQuotasRequest, versions=range(2))
def describe_client_quotas(
    context: Context, request: DescribeClientQuotasRequest, version: int
) -> DescribeClientQuotasResponse:
    """Returns the quotas of the entities that match the filter."""
    try:
        check_cluster(context, Operation.DESCRIBE_CONFIGS)
        requested = _filter(request.components, strict=request.strict)
    except BrokerResponseError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.detail, entries=None
        )
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in context.cluster.quota_manager.table.matching(requested)
        ]
    )


def _filter(components: list[ComponentData], *, strict: bool) -> EntityFilter:
    """Returns the filter of a request.

    Raises INVALID_REQUEST for invalid components, UNSUPPORTED_VERSION for an unknown entity type.
    """
    named: dict[str, str | None] = {}
    typed: set[str] = set()
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise api_error("INVALID_REQUEST", "an entity type is empty")
        if kind in named or kind in typed:
            raise api_error("INVALID_REQUEST", f"entity type {kind!r} is named more than once")
        if kind not in ENTITY_TYPES:
            raise api_error("UNSUPPORTED_VERSION", f"unknown entity type {kind!r}")
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            raise api_error("INVALID_REQUEST", f"unknown match type {component.match_type}")
        if (component.match_type == _EXACT) != (match is not None):
            raise api_error(
                "INVALID_REQUEST",
                f"{kind} has match type {component.match_type} and "
                f"{'no name' if match is None else 'a name'}; only type {_EXACT} has one",
            )
        if component.match_type == _ANY:
            typed.add(kind)
        else:
            named[kind] = match
    kinds = {*named, *typed}
    if "ip" in kinds and len(kinds) > 1:
        raise api_error("INVALID_REQUEST", "an ip cannot be combined with a user or a client-id")
    return EntityFilter(named, frozenset(typed), strict)
