"""Implements client quotas: selects the quota of a user and client, and measures usage.

`entities` stores the quotas, `rates` measures usage, `client_quota_manager` computes throttle
times. Times are parameters, in ms of the wall clock.
"""

from .client_quota_manager import ClientQuotaManager, ControllerMutationQuota
from .entities import (
    ENTITY_TYPES,
    KEYS,
    Entity,
    EntityFilter,
    QuotaTable,
    entity_error,
    value_error,
)
from .rates import TokenBucket, WindowedRate

__all__ = [
    "ENTITY_TYPES",
    "KEYS",
    "ClientQuotaManager",
    "ControllerMutationQuota",
    "Entity",
    "EntityFilter",
    "QuotaTable",
    "TokenBucket",
    "WindowedRate",
    "entity_error",
    "value_error",
]
