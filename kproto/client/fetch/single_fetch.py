"""`fetch_partition`: one fetch of one partition, for `Client.fetch`, over its own connection."""

from __future__ import annotations

from typing import Final

from ...protocol.error_codes import error_of_code, raise_for_code
from ...wire.errors import KprotoError, ProtocolError
from ...wire.uuid import ZERO_UUID
from ..core.retry import Remedy
from ..metadata.cluster_view import ClusterView
from .completed_fetch import aborted_transactions
from .fetch_requests import FetchedPartition, fetch_remedy, fetch_request
from .fetch_session import FetchSession, RequestedPartition, without_session
from .fetcher import fetch_from, fetched_partitions

__all__ = ["fetch_partition"]

#: The owner of the connections of `fetch_partition`, in the connection pool.
_FETCHES: Final = "fetches"


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
    """Returns the batches of one partition from `offset` on; see `Client.fetch`."""
    leader = await view.leader(topic, partition)
    info = await view.topic(topic)
    tp = (topic, partition)
    session = FetchSession(is_used=False)
    session.update(tp, RequestedPartition(info.topic_id, offset, max_bytes))
    request = fetch_request(
        without_session(session.partitions),
        max_bytes=max_bytes,
        min_bytes=min_bytes,
        max_wait_ms=max_wait_ms,
        read_committed=read_committed,
    )
    try:
        ends_at = view.clock.monotonic() + view.settings.api_timeout_ms / 1000
        answer = await fetch_from(
            view,
            leader,
            lambda version: request,
            session.highest_version,
            owner=_FETCHES,
            ends_at=ends_at,
        )
    except KprotoError as error:
        if fetch_remedy(error) is Remedy.REFRESH:
            view.cluster.forget([topic])
        raise
    raise_for_code(answer.error_code, f"fetching {topic}[{partition}]")
    found = fetched_partitions(answer, session.topic_names)
    data = next((part for each, part in found if each == tp), None)
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
