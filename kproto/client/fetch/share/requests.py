"""Builds ShareFetch and ShareAcknowledge, and has the remedies of their errors (KIP-932).

Plain functions and tables on plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from ....messages.share_acknowledge_request import (
    AcknowledgementBatch as ShareAcknowledgementBatch,
)
from ....messages.share_acknowledge_request import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from ....messages.share_acknowledge_response import ShareAcknowledgeResponse
from ....messages.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from ....protocol.error_codes import code_of
from ....wire.errors import KprotoError
from ....wire.uuid import Uuid
from ...metadata.cluster import LeaderHint
from .acquisition import AcknowledgeType, AckRun, Acquisition, ack_runs, acknowledged_ranges
from .session import SessionChange, TopicIdPartition

__all__ = [
    "RENEWS_SINCE",
    "AcknowledgeResult",
    "FetchLimits",
    "SentAcks",
    "ShareFetchOptions",
    "ShareRemedy",
    "acknowledge_codes",
    "acknowledge_hints",
    "acknowledge_remedy",
    "acknowledge_request",
    "by_partition",
    "fetch_remedy",
    "fetch_request",
    "request_remedy",
    "results_of",
    "take_acks",
]

T = TypeVar("T")

#: The first version of ShareFetch and ShareAcknowledge with renewals (KIP-1222) and acquire modes
#: (KIP-1206).
RENEWS_SINCE: Final = 2

#: The acquire mode in which a broker acquires no more records than `max_records` (KIP-1206).
_RECORD_LIMIT: Final = 1

#: The longest wait of a fetch before the lock duration is known, in ms: half of the shortest lock
#: duration that a broker can have. Later fetches wait for at most a quarter of the lock duration.
_FIRST_WAIT_MS: Final = 500
_WAITS_IN_LOCK: Final = 4

_ACCEPTED: Final = frozenset((AcknowledgeType.ACCEPT,))


class ShareRemedy(Enum):
    """The reaction to an error code of ShareFetch or ShareAcknowledge."""

    NEW_SESSION = "open a new session at once"
    BACK_OFF = "open a new session after a backoff"
    REFRESH = "refresh the metadata, and fetch from the new leader"
    RETRY = "send the acknowledgements again after a backoff"
    RESULT = "report the error as the result of the acknowledgements"
    RAISE = "raise the error to the caller of the next poll"


def _by_code(remedies: Mapping[str, ShareRemedy]) -> dict[int, ShareRemedy]:
    return {code_of(name): remedy for name, remedy in remedies.items()}


#: Remedies of the error codes of a whole request.
_REQUEST_REMEDIES: Final = _by_code(
    {
        "SHARE_SESSION_NOT_FOUND": ShareRemedy.NEW_SESSION,
        "INVALID_SHARE_SESSION_EPOCH": ShareRemedy.NEW_SESSION,
        "SHARE_SESSION_LIMIT_REACHED": ShareRemedy.BACK_OFF,
        "UNKNOWN_SERVER_ERROR": ShareRemedy.BACK_OFF,
        "COORDINATOR_NOT_AVAILABLE": ShareRemedy.BACK_OFF,
        "COORDINATOR_LOAD_IN_PROGRESS": ShareRemedy.BACK_OFF,
        "BROKER_NOT_AVAILABLE": ShareRemedy.BACK_OFF,
        "KAFKA_STORAGE_ERROR": ShareRemedy.BACK_OFF,
        "REQUEST_TIMED_OUT": ShareRemedy.BACK_OFF,
        "NOT_LEADER_OR_FOLLOWER": ShareRemedy.REFRESH,
        "UNKNOWN_TOPIC_ID": ShareRemedy.REFRESH,
    }
)

#: Remedies of the fetch error of a partition.
_FETCH_REMEDIES: Final = _by_code(
    {
        "NOT_LEADER_OR_FOLLOWER": ShareRemedy.REFRESH,
        "FENCED_LEADER_EPOCH": ShareRemedy.REFRESH,
        "LEADER_NOT_AVAILABLE": ShareRemedy.REFRESH,
        "FENCED_STATE_EPOCH": ShareRemedy.REFRESH,
        "UNKNOWN_TOPIC_ID": ShareRemedy.REFRESH,
        "UNKNOWN_TOPIC_OR_PARTITION": ShareRemedy.REFRESH,
        "INCONSISTENT_TOPIC_ID": ShareRemedy.REFRESH,
        "KAFKA_STORAGE_ERROR": ShareRemedy.REFRESH,
        "OFFSET_NOT_AVAILABLE": ShareRemedy.REFRESH,
        "UNKNOWN_SERVER_ERROR": ShareRemedy.REFRESH,
        "COORDINATOR_NOT_AVAILABLE": ShareRemedy.REFRESH,
        "COORDINATOR_LOAD_IN_PROGRESS": ShareRemedy.REFRESH,
        "NOT_COORDINATOR": ShareRemedy.REFRESH,
        "REQUEST_TIMED_OUT": ShareRemedy.REFRESH,
        "NETWORK_EXCEPTION": ShareRemedy.REFRESH,
    }
)

#: Remedies of the acknowledgement error of a partition: the broker could not write the state of
#: the records, and restores it. All other errors are results, because the lock has ended.
_ACKNOWLEDGE_REMEDIES: Final = _by_code(
    {
        "COORDINATOR_NOT_AVAILABLE": ShareRemedy.RETRY,
        "COORDINATOR_LOAD_IN_PROGRESS": ShareRemedy.RETRY,
        "NOT_COORDINATOR": ShareRemedy.RETRY,
        "NETWORK_EXCEPTION": ShareRemedy.RETRY,
    }
)


def request_remedy(code: int) -> ShareRemedy:
    """Returns the remedy of the error code of a whole request."""
    return _REQUEST_REMEDIES.get(code, ShareRemedy.RAISE)


def fetch_remedy(code: int) -> ShareRemedy:
    """Returns the remedy of the fetch error of a partition."""
    return _FETCH_REMEDIES.get(code, ShareRemedy.RAISE)


def acknowledge_remedy(code: int) -> ShareRemedy:
    """Returns the remedy of the acknowledgement error of a partition."""
    return _ACKNOWLEDGE_REMEDIES.get(code, ShareRemedy.RESULT)


class FetchLimits(NamedTuple):
    """The limits of a ShareFetch: time in ms, sizes in bytes, numbers of records."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    acquire_mode: int

    def within(self, records: int) -> FetchLimits:
        """Returns limits that acquire at most `records` records, and no rest of a batch."""
        return self._replace(
            max_records=max(1, min(records, self.max_records)), acquire_mode=_RECORD_LIMIT
        )

    def waiting_within(self, lock_ms: int | None) -> FetchLimits:
        """Returns limits that let a broker wait for only a part of the lock duration `lock_ms`.

        A member counts the lock duration from the time when it sends the fetch. `lock_ms` is None
        if it is unknown.
        """
        most_ms = _FIRST_WAIT_MS if lock_ms is None else lock_ms // _WAITS_IN_LOCK
        return self._replace(max_wait_ms=min(self.max_wait_ms, most_ms))


class ShareFetchOptions(NamedTuple):
    """The options of a fetcher. With `limits_records` only one broker is fetched from at a time."""

    group_id: str
    limits: FetchLimits
    limits_records: bool
    is_explicit: bool


class AcknowledgeResult(NamedTuple):
    """The result of the acknowledgements of one partition in one request.

    `offsets` has the acknowledged offsets as ranges, ascending; `accepted` has those of them that
    were accepted. The others were released, rejected or renewed; the consumer itself releases
    records that it has not returned, if their topic is not subscribed to any more, and records
    whose handlers have not started when `run` stops. `error` is None if the broker has stored the
    acknowledgements. With an error the broker may deliver the records again.
    """

    topic: str
    partition: int
    offsets: tuple[range, ...]
    error: KprotoError | None
    accepted: tuple[range, ...] = ()


class SentAcks(NamedTuple):
    """The acknowledgements of one acquisition in a request: the states when it was built."""

    acquisition: Acquisition
    states: bytes

    @property
    def tp(self) -> TopicIdPartition:
        """The partition, by topic id."""
        return self.acquisition.topic_id, self.acquisition.partition


def take_acks(acquisitions: Iterable[Acquisition]) -> list[SentAcks]:
    """Returns the acknowledgements of acquisitions, and marks them as sent."""
    found = []
    for each in acquisitions:
        each.is_pending = False
        if each.has_unsent:
            found.append(SentAcks(each, each.take()))
    found.sort(key=lambda sent: sent.acquisition.first)
    return found


def results_of(sent: Iterable[SentAcks], error: KprotoError | None) -> list[AcknowledgeResult]:
    """Returns the results of acknowledgements that have all the same `error`, by partition."""
    ranges: dict[tuple[str, int], tuple[list[range], list[range]]] = {}
    for each in sent:
        tp = each.acquisition.topic, each.acquisition.partition
        offsets, accepted = ranges.setdefault(tp, ([], []))
        offsets += acknowledged_ranges(each.acquisition.first, each.states)
        accepted += acknowledged_ranges(each.acquisition.first, each.states, _ACCEPTED)
    return [
        AcknowledgeResult(*tp, _ascending(offsets), error, _ascending(accepted))
        for tp, (offsets, accepted) in ranges.items()
        if offsets
    ]


def _ascending(ranges: list[range]) -> tuple[range, ...]:
    return tuple(sorted(ranges, key=lambda each: each.start))


def fetch_request(
    group_id: str,
    member_id: str,
    change: SessionChange,
    limits: FetchLimits,
    sent: Iterable[SentAcks],
) -> ShareFetchRequest:
    """Returns a ShareFetch with acknowledgements; a request with epoch 0 may have none."""
    acks = _batches(sent, AcknowledgementBatch)
    for each in change.added:
        acks.setdefault(each, [])
    topics: dict[Any, FetchTopic] = {}
    for (topic_id, partition), batches in acks.items():
        its = topics.get(topic_id)
        if its is None:
            its = topics[topic_id] = FetchTopic(topic_id=topic_id)
        its.partitions.append(
            FetchPartition(partition_index=partition, acknowledgement_batches=batches)
        )
    forgotten: dict[Any, list[int]] = {}
    for topic_id, partition in change.removed:
        forgotten.setdefault(topic_id, []).append(partition)
    return ShareFetchRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=change.epoch,
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        max_records=limits.max_records,
        batch_size=limits.max_records,
        share_acquire_mode=limits.acquire_mode,
        topics=list(topics.values()),
        forgotten_topics_data=[
            ForgottenTopic(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in forgotten.items()
        ],
    )


def acknowledge_request(
    group_id: str, member_id: str, epoch: int, sent: Iterable[SentAcks]
) -> ShareAcknowledgeRequest:
    """Returns a ShareAcknowledge with the acknowledgements `sent`."""
    sent = list(sent)
    topics: dict[Any, AcknowledgeTopic] = {}
    for (topic_id, partition), batches in _batches(sent, ShareAcknowledgementBatch).items():
        its = topics.get(topic_id)
        if its is None:
            its = topics[topic_id] = AcknowledgeTopic(topic_id=topic_id)
        its.partitions.append(
            AcknowledgePartition(partition_index=partition, acknowledgement_batches=batches)
        )
    return ShareAcknowledgeRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        is_renew_ack=any(AcknowledgeType.RENEW in each.states for each in sent),
        topics=list(topics.values()),
    )


def _batches(sent: Iterable[SentAcks], batch: Callable[..., T]) -> dict[TopicIdPartition, list[T]]:
    """Returns the batches of a request by partition, ascending by offset.

    A broker refuses batches in another order. The acknowledgements of two acquisitions interleave
    if a record between others was released, and acquired again.
    """
    found: dict[TopicIdPartition, list[AckRun]] = {}
    for each in sent:
        found.setdefault(each.tp, []).extend(ack_runs(each.acquisition.first, each.states))
    return {
        tp: [
            batch(first_offset=run.first, last_offset=run.last, acknowledge_types=list(run.types))
            for run in sorted(runs)
        ]
        for tp, runs in found.items()
    }


def acknowledge_codes(
    response: ShareAcknowledgeResponse,
) -> dict[TopicIdPartition, tuple[int, str | None]]:
    """Returns the error code and message of each partition in a response."""
    return {
        (topic.topic_id, data.partition_index): (data.error_code, data.error_message)
        for topic in response.responses
        for data in topic.partitions
    }


def acknowledge_hints(
    response: ShareAcknowledgeResponse, name_of: Callable[[Uuid], str | None]
) -> list[LeaderHint]:
    """Returns the new leaders that a response names for partitions with an error."""
    found = []
    for topic in response.responses:
        name = name_of(topic.topic_id)
        for data in topic.partitions:
            leader = data.current_leader
            if name is not None and data.error_code and leader.leader_id >= 0:
                its = data.partition_index, leader.leader_id, leader.leader_epoch
                found.append(LeaderHint(name, *its))
    return found


def by_partition(sent: Iterable[SentAcks]) -> Mapping[TopicIdPartition, list[SentAcks]]:
    """Returns acknowledgements by partition."""
    found: dict[TopicIdPartition, list[SentAcks]] = {}
    for each in sent:
        found.setdefault(each.tp, []).append(each)
    return found
