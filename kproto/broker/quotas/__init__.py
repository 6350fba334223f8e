"""How much users and clients may take: which quota counts for whom, and how it is measured.

Plain functions on plain data, with the time handed in. `entities` knows who has which quota,
`measures` what was taken lately, `metering` puts both together.
"""

from .client_quota_manager import Metering, MutationQuota
from .entities import (
    ENTITY_TYPES,
    KEYS,
    Entity,
    EntityFilter,
    QuotaTable,
    fault_of_entity,
    fault_of_value,
)
from .rates import TokenBucket, WindowedRate

__all__ = [
    "ENTITY_TYPES",
    "KEYS",
    "Entity",
    "EntityFilter",
    "Metering",
    "MutationQuota",
    "QuotaTable",
    "TokenBucket",
    "WindowedRate",
    "fault_of_entity",
    "fault_of_value",
]
