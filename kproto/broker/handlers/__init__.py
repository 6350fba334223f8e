"""One module an API, named by its key and name; importing them fills `registry.APIS`.

Each begins with what it answers: the versions, what each of them added that matters to a broker
in memory, the KIPs, and what is left out.
"""

from . import (
    api_00_produce,
    api_01_fetch,
    api_02_list_offsets,
    api_03_metadata,
    api_18_api_versions,
    api_19_create_topics,
    api_20_delete_topics,
    api_22_init_producer_id,
)

__all__ = [
    "api_00_produce",
    "api_01_fetch",
    "api_02_list_offsets",
    "api_03_metadata",
    "api_18_api_versions",
    "api_19_create_topics",
    "api_20_delete_topics",
    "api_22_init_producer_id",
]
