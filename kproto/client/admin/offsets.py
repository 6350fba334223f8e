"""Looks up offsets of partitions by time and kind: requests and results as plain data.

ListOffsets (2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from ...messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ...messages.list_offsets_response import ListOffsetsResponse
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, KprotoError, UnsupportedVersionError
from ..fetch.old_brokers import check_list_offsets
from ..metadata.cluster import TopicPartition
from .calls import by_topic, outcome

__all__ = [
    "ListedOffset",
    "OffsetSpec",
    "check_offsets_version",
    "checked_specs",
    "list_offsets_request",
    "listed_offsets",
]

#: An offset to look up: a kind, or a time in ms since 1970.
OffsetSpec: TypeAlias = (
    int
    | Literal[
        "earliest",
        "latest",
        "max_timestamp",
        "earliest_local",
        "latest_tiered",
        "earliest_pending_upload",
    ]
)


class _Kind(NamedTuple):
    """A kind of offset: its timestamp in requests, and its first version with the release."""

    timestamp: int
    version: int = 0
    release: str = ""


#: The kinds of offsets (KIP-734, KIP-405, KIP-1005, KIP-1023).
_KINDS: Final[dict[str, _Kind]] = {
    "latest": _Kind(-1),
    "earliest": _Kind(-2),
    "max_timestamp": _Kind(-3, 7, "3.0"),
    "earliest_local": _Kind(-4, 8, "3.5"),
    "latest_tiered": _Kind(-5, 9, "3.9"),
    "earliest_pending_upload": _Kind(-6, 11, "4.2"),
}

_BY_TIMESTAMP: Final = {kind.timestamp: (name, kind) for name, kind in _KINDS.items()}

_LAST_TIMESTAMP: Final = 2**63 - 1


class ListedOffset(NamedTuple):
    """An offset of a partition, with the timestamp of its record in ms and its leader epoch.

    The offset is -1 if no record has the requested time. The timestamp is -1 for "earliest" and
    "latest"; the leader epoch is -1 if it is unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


def checked_specs(specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
    """Returns the timestamps in the request. Raises ConfigurationError for an unknown kind."""
    found = {}
    for tp, spec in specs.items():
        if isinstance(spec, str):
            kind = _KINDS.get(spec)
            if kind is None:
                known = ", ".join(map(repr, _KINDS))
                raise ConfigurationError(
                    f"the offset to list of {tp!r} is {spec!r}; it must be a time in ms, or one of "
                    f"{known}"
                )
            found[tp] = kind.timestamp
        else:
            check_whole_number(f"the time of {tp!r}", spec, 0, _LAST_TIMESTAMP)
            found[tp] = spec
    return found


def list_offsets_request(
    timestamps: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int],
    timeout_ms: int,
    *,
    read_committed: bool,
) -> ListOffsetsRequest:
    """Returns the request for partitions that one broker leads; `epochs` are leader epochs."""
    topics = by_topic(timestamps)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(read_committed),
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=partition,
                        timestamp=timestamps[topic, partition],
                        current_leader_epoch=epochs.get((topic, partition), -1),
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in topics.items()
        ],
        timeout_ms=timeout_ms,
    )


def check_offsets_version(request: ListOffsetsRequest, version: int) -> None:
    """Raises UnsupportedVersionError if `version` lacks a kind of offset in `request`.

    A broker would take the timestamp of an unknown kind for a time.
    """
    check_list_offsets(request, version)
    for topic in request.topics:
        for each in topic.partitions:
            name, kind = _BY_TIMESTAMP.get(each.timestamp, ("", _Kind(0)))
            if version < kind.version:
                raise UnsupportedVersionError(
                    f"the offset {name!r} needs ListOffsets v{kind.version}, which is supported "
                    f"since Kafka {kind.release}; this broker supports v{version}"
                )


def listed_offsets(
    response: ListOffsetsResponse, tps: Sequence[TopicPartition]
) -> dict[TopicPartition, ListedOffset | KprotoError]:
    """Returns the offset or the error of each partition in a response."""
    return {
        (topic.name, each.partition_index): outcome(
            each.error_code,
            f"listing offsets of {topic.name}[{each.partition_index}]",
            None,
            ListedOffset(
                each.old_style_offsets[0] if each.old_style_offsets else each.offset,
                each.timestamp,
                each.leader_epoch,
            ),
        )
        for topic in response.topics
        for each in topic.partitions
    }
