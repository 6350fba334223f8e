"""Tables about Kafka's own messages: the data path, and the structs that are mostly uniform.

Contains tables only.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DATA_PATH", "UNIFORM_STRUCTS"]

#: Messages on the data path: every layout of a struct gets its own straight-line code.
DATA_PATH: Final = frozenset(
    {
        "ApiVersionsResponse",
        "FetchRequest",
        "FetchResponse",
        "HeartbeatRequest",
        "HeartbeatResponse",
        "JoinGroupResponse",
        "ListOffsetsRequest",
        "ListOffsetsResponse",
        "MetadataResponse",
        "OffsetCommitRequest",
        "OffsetCommitResponse",
        "OffsetFetchResponse",
        "ProduceRequest",
        "ProduceResponse",
    }
)

#: Structs on the data path, as (message, struct), whose arrays of numbers mostly have equal counts:
#: the replicas of the partitions of a topic.
UNIFORM_STRUCTS: Final = frozenset({("MetadataResponse", "MetadataResponsePartition")})
