"""Lists Kafka's messages and structs for which faster code is generated."""

from __future__ import annotations

from typing import Final

__all__ = ["DATA_PATH", "UNIFORM_STRUCTS"]

#: Messages on the data path; their code has Style.STRAIGHT, which is faster and longer.
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

#: Structs of these messages, as (message, struct), that are mostly uniform: their arrays of
#: numbers, such as the replicas of the partitions of a topic, have equal counts.
UNIFORM_STRUCTS: Final = frozenset({("MetadataResponse", "MetadataResponsePartition")})
