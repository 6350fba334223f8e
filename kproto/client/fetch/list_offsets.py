"""ListOffsets: builds and sends requests for offsets at an end of the log, or by time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from ...messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ...messages.list_offsets_response import ListOffsetsResponse
from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, ConfigurationError, ProtocolError
from ..metadata.cluster import UNKNOWN_EPOCH, TopicPartition
from ..metadata.cluster_view import ClusterView
from .fetch_options import OffsetSpec
from .old_brokers import check_list_offsets

__all__ = [
    "OffsetSpec",
    "existing_partitions",
    "is_unknown_partition",
    "list_offsets",
    "list_offsets_request",
    "offsets_of",
    "offsets_or_errors",
    "send_list_offsets",
]

#: The special timestamps of ListOffsets.
TIMESTAMPS: Final = {"latest": -1, "earliest": -2}


async def list_offsets(
    view: ClusterView,
    partitions: Mapping[TopicPartition, OffsetSpec],
    *,
    read_committed: bool,
) -> dict[TopicPartition, int]:
    """Returns the offsets of all partitions; see `Client.list_offsets`."""

    async def send(leader: int, its: list[TopicPartition]) -> dict[TopicPartition, int]:
        wanted: dict[TopicPartition, OffsetSpec] = {tp: partitions[tp] for tp in its}
        return dict(offsets_of(await send_list_offsets(view, leader, wanted, read_committed)))

    found: dict[TopicPartition, int] = {}
    for offsets in await view.send_to_leaders(partitions, send):
        found |= offsets
    for tp in partitions:
        if tp not in found:
            topic, partition = tp
            raise ProtocolError(f"the response to ListOffsets lacks {topic}[{partition}]")
    return found


def is_unknown_partition(error: BrokerResponseError) -> bool:
    """Returns True for UNKNOWN_TOPIC_OR_PARTITION.

    The error means that the partition does not exist, or did not appear in metadata in time.
    """
    return error.name == "UNKNOWN_TOPIC_OR_PARTITION"


async def existing_partitions(
    view: ClusterView, partitions: Collection[TopicPartition]
) -> list[TopicPartition]:
    """Refreshes metadata; returns those of `partitions` that exist.

    Leaves out all partitions of a topic for which the metadata has an error. Raises KprotoError if
    the refresh fails.
    """
    found = await view.refresh({topic for topic, _ in partitions})
    existing = {info.name: info.partitions for info in found if not info.error_code}
    return [tp for tp in partitions if tp[1] in existing.get(tp[0], ())]


async def send_list_offsets(
    view: ClusterView,
    leader: int,
    partitions: Mapping[TopicPartition, OffsetSpec],
    read_committed: bool,
) -> ListOffsetsResponse:
    """Sends one ListOffsets request to the broker that leads all `partitions`.

    Returns the response. Raises UnsupportedVersionError if the broker is too old for the request.
    """
    epochs = {tp: view.cluster.leader_epoch(*tp) for tp in partitions}
    request = list_offsets_request(partitions, read_committed=read_committed, epochs=epochs)
    connection = await view.connection_to(leader)
    version = connection.version_of(ListOffsetsRequest)
    check_list_offsets(request, version)
    return await connection.request(request, version=version)


def list_offsets_request(
    partitions: Mapping[TopicPartition, OffsetSpec],
    *,
    read_committed: bool,
    epochs: Mapping[TopicPartition, int] | None = None,
) -> ListOffsetsRequest:
    """Returns the ListOffsets request for partitions that one broker leads.

    `epochs` are leader epochs. Raises ConfigurationError for a value of `partitions` that is
    neither a time nor "earliest" nor "latest".
    """
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    epochs = epochs or {}
    for tp, wanted in partitions.items():
        topic, partition = tp
        timestamp = wanted if isinstance(wanted, int) else TIMESTAMPS.get(wanted)
        if timestamp is None:
            raise ConfigurationError(
                f"the offset to list of {topic}[{partition}] is {wanted!r}; it must be 'earliest', "
                "'latest' or a time in ms"
            )
        partition_data = ListOffsetsPartition(
            partition_index=partition,
            timestamp=timestamp,
            current_leader_epoch=epochs.get(tp, UNKNOWN_EPOCH),
        )
        its = by_topic.get(topic)
        if its is None:
            its = by_topic[topic] = []
        its.append(partition_data)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(read_committed),
        topics=[
            ListOffsetsTopic(name=topic, partitions=partition_data)
            for topic, partition_data in by_topic.items()
        ],
    )


def offsets_of(response: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, int]]:
    """Yields each partition of a response with its offset.

    Raises BrokerResponseError for the first partition with an error.
    """
    for tp, found in offsets_or_errors(response):
        if isinstance(found, BrokerResponseError):
            raise found
        yield tp, found


def offsets_or_errors(
    response: ListOffsetsResponse,
) -> Iterator[tuple[TopicPartition, int | BrokerResponseError]]:
    """Yields each partition of a response, with its offset or its error.

    The offset is -1 if the partition has no offset for the requested time.
    """
    for topic in response.topics:
        name = topic.name
        for part in topic.partitions:
            tp = (name, part.partition_index)
            if part.error_code:
                what = f"listing offsets of {topic.name}[{part.partition_index}]"
                yield tp, error_of_code(part.error_code, what)
            else:
                # Only v0 has old-style offsets, and no offset.
                is_new = part.offset >= 0 or not part.old_style_offsets
                yield tp, part.offset if is_new else part.old_style_offsets[0]
