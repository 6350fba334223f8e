"""Client quotas: which quota applies to a user and client, and how usage is measured.

Plain functions on plain data; times are parameters. `entities` has the quotas, `rates` measures
usage, `client_quota_manager` combines them.
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
