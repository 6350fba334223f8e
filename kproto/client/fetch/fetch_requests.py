"""Builds fetch requests, and selects the remedies of fetch errors. Has plain functions only."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from ...messages.fetch_response import PartitionData
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError, KprotoError
from ...wire.uuid import ZERO_UUID, Uuid
from ..core.retry import Remedy, by_code, remedy_of, remedy_of_code
from ..metadata.cluster import UNKNOWN_EPOCH
from .fetch_session import FINAL_EPOCH, SessionFetch

__all__ = [
    "OUT_OF_RANGE",
    "OUT_OF_RANGE_REMEDY",
    "FetchedPartition",
    "closing_request",
    "fetch_remedy",
    "fetch_request",
    "is_out_of_range",
    "log_end_of",
    "response_bytes",
]


class FetchedPartition(NamedTuple):
    """The response of one fetch for one partition.

    `records` are encoded batches, which `kproto.records` decodes; the broker may have cut the last
    batch. If the fetch was read_committed, `aborted` has the first offset and the producer id of
    each aborted transaction in `records`; `records` still has the records of these transactions.
    `topic_id` is the topic id in the response, all zeros for a fetch by name.
    """

    records: bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...] = ()
    topic_id: Uuid = ZERO_UUID


#: Remedies of fetch errors that differ from Kafka's table of all errors: no retry repairs bytes
#: that are broken in the log.
_REMEDIES: Final = by_code({"CORRUPT_MESSAGE": Remedy.FAIL})

#: The first version of Fetch with the last fetched epoch and, in the response, the diverging epoch.
FIRST_WITH_LAST_EPOCH: Final = 12

#: The log does not have the offset any more, or does not have it yet: the position is reset.
OUT_OF_RANGE: Final = code_of("OFFSET_OUT_OF_RANGE")
#: A broker that refuses an offset tells neither the start nor the end of its log.
OUT_OF_RANGE_REMEDY: Final = (
    ": the log begins after this offset, or ends before it; start at 'earliest' or 'latest', or at "
    "an offset between them"
)


def fetch_remedy(error: KprotoError) -> Remedy:
    """Returns the remedy of an error of a Fetch, or of a partition in a Fetch response.

    The remedy is what the consumer does about the error, such as a retry.
    """
    if isinstance(error, BrokerResponseError):
        return _REMEDIES.get(error.code) or remedy_of_code(error.code)
    return remedy_of(error)


def is_out_of_range(error: KprotoError) -> bool:
    """Returns True for OFFSET_OUT_OF_RANGE: the reset policy decides if the position is reset."""
    return isinstance(error, BrokerResponseError) and error.code == OUT_OF_RANGE


def log_end_of(data: PartitionData, *, read_committed: bool) -> int:
    """Returns the high watermark, or with `read_committed` the last stable offset.

    Always returns the high watermark for Fetch before v4, which has no last stable offset.
    """
    if read_committed and data.last_stable_offset >= 0:
        return data.last_stable_offset
    return data.high_watermark


def fetch_request(
    fetch: SessionFetch,
    *,
    max_bytes: int,
    min_bytes: int,
    max_wait_ms: int,
    read_committed: bool,
    rack: str | None = None,
    version: int = FIRST_WITH_LAST_EPOCH,
) -> FetchRequest:
    """Returns a fetch request to one broker, with or without a session.

    Leaves out the last fetched epochs if the request is sent in a `version` before 12. `rack` is
    the rack of the consumer (KIP-392).
    """
    has_last_epoch = version >= FIRST_WITH_LAST_EPOCH
    grouped: dict[str, FetchTopic] = {}
    for (topic, partition), requested in fetch.to_send.items():
        its = grouped.get(topic)
        if its is None:
            its = grouped[topic] = FetchTopic(topic=topic, topic_id=requested.topic_id)
        its.partitions.append(
            FetchPartition(
                partition=partition,
                fetch_offset=requested.offset,
                partition_max_bytes=requested.max_bytes,
                current_leader_epoch=requested.leader_epoch,
                last_fetched_epoch=requested.last_epoch if has_last_epoch else UNKNOWN_EPOCH,
            )
        )
    forgotten: dict[tuple[str, Uuid], list[int]] = {}
    for each in fetch.to_forget:
        forgotten.setdefault((each.topic, each.topic_id), []).append(each.partition)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(read_committed),
        session_id=fetch.session_id,
        session_epoch=fetch.epoch,
        rack_id=rack or "",
        topics=list(grouped.values()),
        forgotten_topics_data=[
            ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)
            for (topic, topic_id), partitions in forgotten.items()
        ],
    )


def closing_request(session_id: int) -> FetchRequest:
    """Returns the request that closes a fetch session; the broker answers at once."""
    fetch = SessionFetch(session_id, FINAL_EPOCH, {}, [])
    return fetch_request(fetch, max_bytes=1, min_bytes=0, max_wait_ms=0, read_committed=False)


def response_bytes(partition_bytes: int, partitions: int, max_frame_bytes: int) -> int:
    """Returns the limit of a whole fetch response in bytes: the sum of the partitions' limits.

    The sum is capped at half of the largest frame. The other half is left for a first batch, which
    is sent whole even if it is larger than the limit, and for the fields of the response.
    """
    return min(partition_bytes * partitions, max(max_frame_bytes // 2, 1))
