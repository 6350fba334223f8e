"""A fetch by hand: one request to the leader of its partitions, over a connection of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse
from ...protocol.error_codes import error_of_code, raise_for_code
from ...wire.errors import KprotoError, ProtocolError
from ..cluster.metadata import TopicInfo, TopicPartition
from ..cluster.view import ClusterView
from ..retry import Remedy
from .fetch_requests import (
    FetchedPartition,
    fetch_remedy,
    fetch_request,
    fetched_partitions,
    highest_fetch_version,
)
from .old_brokers import check_fetch, check_first_is_whole
from .partition import PartitionState

__all__ = ["Fetch", "fetch_from", "fetch_partition"]

#: Owns the connections of `fetch_partition`.
_FETCHES: Final = "fetches"


@dataclass(slots=True)
class Fetch:
    """A fetch at one node: what was asked for, from which offsets; and when, in seconds.

    What comes is for those who asked, `states`: a topic made anew has others.
    """

    asked: dict[TopicPartition, int]
    states: dict[TopicPartition, PartitionState]
    topics: dict[str, TopicInfo]
    begun: float
    ends_at: float
    ended: float = float("inf")
    response: FetchResponse | KprotoError | None = None


async def fetch_from(
    view: ClusterView,
    leader: int,
    request: FetchRequest,
    topics: Iterable[TopicInfo],
    *,
    owner: object,
    ends_at: float,
) -> FetchResponse:
    """Send a fetch to the broker that leads its partitions, over `owner`'s own connection.

    It has until `ends_at`, in seconds of the clock, to connect and to answer; how long the broker
    may hold it, `max_wait_ms`, comes on top.
    """
    connection = await view.by(ends_at, view.connection_to(leader, owner=owner))
    version = connection.version_of(FetchRequest, highest_fetch_version(topics))
    check_fetch(request, version)
    left_ms = max(1, round((ends_at - view.clock.monotonic()) * 1000))
    limit = min(view.settings.request_timeout_ms, left_ms) + request.max_wait_ms
    response = await connection.request(request, version=version, timeout_ms=limit)
    check_first_is_whole(request, response, version)
    return response


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
    request = fetch_request(
        {(topic, partition): offset},
        {topic: info},
        max_bytes=max_bytes,
        partition_bytes=max_bytes,
        min_bytes=min_bytes,
        max_wait_ms=max_wait_ms,
        read_committed=read_committed,
    )
    try:
        ends_at = view.clock.monotonic() + view.settings.delivery_timeout_ms / 1000
        answer = await fetch_from(view, leader, request, [info], owner=_FETCHES, ends_at=ends_at)
    except KprotoError as error:
        if fetch_remedy(error) is Remedy.REFRESH:
            view.cluster.forget([topic])
        raise
    raise_for_code(answer.error_code, f"fetching {topic}[{partition}]")
    wanted = (topic, partition)
    found = fetched_partitions(answer, {topic: info})
    data = next((part for place, part in found if place == wanted), None)
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
    )
