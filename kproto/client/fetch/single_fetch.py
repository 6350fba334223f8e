"""A fetch by hand: one request to the leader of its partitions, over a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse
from ...messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from ...messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from ...protocol.error_codes import error_of_code, raise_for_code
from ...wire.errors import KprotoError, ProtocolError
from ...wire.uuid import ZERO_UUID
from ..core.retry import Remedy
from ..metadata.cluster import TopicInfo, TopicPartition
from ..metadata.cluster_view import ClusterView
from .fetch_requests import (
    FetchedPartition,
    fetch_remedy,
    fetch_request,
    fetched_partitions,
    highest_fetch_version,
)
from .fetch_session import FetchSession, SessionFetch, WantedPartition, without_session
from .filtered_batches import aborted_transactions
from .old_brokers import check_fetch, check_first_is_whole
from .partition_state import PartitionState
from .position_validation import FIRST_EPOCHS_VERSION, AskedEpoch, epochs_request

__all__ = ["Fetch", "ask_for_epochs", "fetch_from", "fetch_partition"]

#: Owns the connections of `fetch_partition`.
_FETCHES: Final = "fetches"


@dataclass(slots=True)
class Fetch:
    """A fetch at one node: what is wanted, from which offsets; and when, in seconds.

    What comes is for those who asked, `states`: a topic made anew has others. `asked` is what of it
    the session said, `session`'s response is to be taken note of.
    """

    wanted: dict[TopicPartition, WantedPartition]
    states: dict[TopicPartition, PartitionState]
    topics: dict[str, TopicInfo]
    session: FetchSession
    begun: float
    ends_at: float
    ended: float = float("inf")
    asked: SessionFetch | None = None
    response: FetchResponse | KprotoError | None = None


async def fetch_from(
    view: ClusterView,
    leader: int,
    make: Callable[[int], FetchRequest],
    topics: Iterable[TopicInfo],
    *,
    owner: object,
    ends_at: float,
) -> FetchResponse:
    """Send the fetch that `make` gives for a version to the broker that leads its partitions.

    It goes over `owner`'s own connection, and has until `ends_at`, in seconds of the clock, to
    connect and to answer; how long the broker may hold it, `max_wait_ms`, comes on top.
    """
    connection = await view.by(ends_at, view.connection_to(leader, owner=owner))
    version = connection.version_of(FetchRequest, highest_fetch_version(topics))
    request = make(version)
    check_fetch(request, version)
    left_ms = max(1, round((ends_at - view.clock.monotonic()) * 1000))
    limit = min(view.settings.request_timeout_ms, left_ms) + request.max_wait_ms
    response = await connection.request(request, version=version, timeout_ms=limit)
    check_first_is_whole(request, response, version)
    return response


async def ask_for_epochs(
    view: ClusterView, leader: int, asked: Mapping[TopicPartition, AskedEpoch]
) -> OffsetForLeaderEpochResponse | None:
    """Ask a leader where epochs end; None where it is too old to be asked by a client."""
    connection = await view.connection_to(leader)
    speaks = connection.ranges.get(OffsetForLeaderEpochRequest.API_KEY)
    if speaks is None or speaks.highest < FIRST_EPOCHS_VERSION:
        return None
    version = connection.version_of(OffsetForLeaderEpochRequest)
    return await connection.request(epochs_request(asked), version=version)


async def fetch_partition(
    view: ClusterView,
    topic: str,
    partition: int,
    offset: int,
    *,
    max_bytes: int,
    min_bytes: int,
    max_wait_ms: int,
    read_committed: bool,
) -> FetchedPartition:
    """The batches of one partition from `offset` on; see `Client.fetch`."""
    leader = await view.leader(topic, partition)
    info = await view.topic(topic)
    wanted = {(topic, partition): WantedPartition(info.topic_id, offset, max_bytes)}
    request = fetch_request(
        without_session(wanted),
        max_bytes=max_bytes,
        min_bytes=min_bytes,
        max_wait_ms=max_wait_ms,
        read_committed=read_committed,
    )
    try:
        ends_at = view.clock.monotonic() + view.settings.delivery_timeout_ms / 1000
        answer = await fetch_from(
            view, leader, lambda version: request, [info], owner=_FETCHES, ends_at=ends_at
        )
    except KprotoError as error:
        if fetch_remedy(error) is Remedy.REFRESH:
            view.cluster.forget([topic])
        raise
    raise_for_code(answer.error_code, f"fetching {topic}[{partition}]")
    found = fetched_partitions(answer, {topic: info})
    data = next((part for place, part in found if place in wanted), None)
    if data is None:
        raise ProtocolError(f"the response to a fetch of {topic}[{partition}] lacks it")
    if data.error_code:
        what = f"fetching {topic}[{partition}] from offset {offset}"
        refused = error_of_code(data.error_code, what)
        if fetch_remedy(refused) is Remedy.REFRESH:
            view.cluster.forget([topic])
        raise refused
    return FetchedPartition(
        data.records or b"",
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        tuple(aborted_transactions(data)),
        next((each.topic_id for each in answer.responses), ZERO_UUID),
    )
