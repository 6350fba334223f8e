"""How much users and clients may take: which quota counts for whom, and how it is measured.

Plain functions on plain data, with the time handed in. `entities` knows who has which quota,
`measures` what was taken lately, `quota_manager` puts both together.
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
