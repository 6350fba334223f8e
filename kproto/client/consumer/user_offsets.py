"""Creates explicit commits, from offsets by partition or from records that a poll has returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ...records import Record
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.errors import CommitFailedError
from ..commits.offset_requests import OffsetAndMetadata
from ..fetch.completed_fetch import FetchedBatch, FetchedRecords, FetchedValues
from ..fetch.start_options import LAST_OFFSET
from ..fetch.subscription_state import SubscriptionState
from ..metadata.checks import checked_mapping, checked_tp
from ..metadata.cluster import TopicPartition, format_partitions

__all__ = [
    "ReturnedRecords",
    "checked_offsets",
    "explicit_commit",
    "next_offsets_of",
]

#: The items that iterations yield, and the records that `poll` returns.
ReturnedRecords: TypeAlias = (
    Record[Any, Any]
    | FetchedRecords[Any, Any, Any]
    | FetchedValues[Any, Any]
    | FetchedBatch
    | Mapping[TopicPartition, list[Any]]
)


def checked_offsets(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Returns a copy of `offsets`. Raises ConfigurationError for invalid partitions and offsets."""
    found: dict[TopicPartition, int] = {}
    for tp, offset in checked_mapping("offsets", offsets).items():
        check_whole_number(f"the offset of {tp!r}", offset, 0, LAST_OFFSET)
        found[checked_tp(tp)] = offset
    return found


def next_offsets_of(offsets: object) -> dict[TopicPartition, int]:
    """Returns the offsets to commit, by partition.

    `offsets` is a mapping with these offsets, or a record, a list, a batch or the result of a poll.
    For records, the offset to commit is the offset after the last record of each partition. Raises
    ConfigurationError for other objects, invalid partitions and offsets, and an empty list.
    """
    match offsets:
        case Record():
            return {(offsets.topic, offsets.partition): offsets.offset + 1}
        case FetchedRecords(records=[]):
            raise ConfigurationError(f"{offsets!r:.80} has no records to commit")
        case FetchedRecords():
            return {(offsets.topic, offsets.partition): offsets.records[-1].offset + 1}
        case FetchedValues():
            return {(offsets.topic, offsets.partition): offsets.next_offset}
        case FetchedBatch():
            return {(offsets.topic, offsets.partition): offsets.batch.next_offset}
        case Mapping() if _is_polled(offsets):
            return {
                checked_tp(tp): records[-1].offset + 1 for tp, records in offsets.items() if records
            }
        case Mapping():
            return checked_offsets(offsets)
        case _:
            raise ConfigurationError(
                f"{offsets!r:.80} is neither a mapping from partitions to offsets nor a record, a "
                "list, a batch or the result of a poll of this consumer"
            )


def _is_polled(offsets: Mapping[Any, Any]) -> bool:
    """Returns True if the values of the mapping are lists of records, as `poll` returns them."""
    return bool(offsets) and all(
        isinstance(each, list) and all(isinstance(one, Record) for one in each[-1:])
        for each in offsets.values()
    )


def explicit_commit(
    offsets_or_records: Mapping[TopicPartition, int] | ReturnedRecords,
    metadata: str,
    subscriptions: SubscriptionState,
) -> CommitRequest:
    """Returns an explicit commit of offsets, or of the offsets after records.

    The records before these offsets count as processed from now on. The commit has the present
    assignment epochs: it fails if a partition is reassigned before the commit is sent, because
    other members may have committed later offsets. Raises the errors of `commits_of`.
    """
    offsets = commits_of(offsets_or_records, metadata, subscriptions)
    return CommitRequest(
        CommitKind.EXPLICIT,
        offsets=offsets,
        assignment_epochs={tp: subscriptions.committable.assignment_epoch_of(tp) for tp in offsets},
        baselines=subscriptions.committable.baselines(offsets),
    )


def commits_of(
    offsets_or_records: Mapping[TopicPartition, int] | ReturnedRecords,
    metadata: str,
    subscriptions: SubscriptionState,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Returns the offsets to commit, with metadata, and marks the offsets as processed.

    Raises ConfigurationError for an invalid offset, and CommitFailedError for partitions that are
    not assigned. Also raises CommitFailedError for stale records, which are recognized by their
    offsets (see `TopicPartitionState.may_commit`). A record is stale in two cases: it was returned
    during an earlier assignment, so the group may have committed later offsets; or its topic was
    recreated after the record was returned, so the record belongs to another log.
    """
    offsets = next_offsets_of(offsets_or_records)
    states = {
        tp: state
        for tp in offsets
        if (state := subscriptions.committable.state_to_commit(tp)) is not None
    }
    missing = offsets.keys() - states.keys()
    if missing:
        raise CommitFailedError(
            f"{format_partitions(missing)}: not assigned to this consumer, at least not any more; "
            "nothing was committed"
        )
    stale = [
        tp
        for tp, state in states.items()
        if not state.may_commit(offsets[tp], subscriptions.poll.position_of(state))
    ]
    is_mapping = isinstance(offsets_or_records, Mapping) and not _is_polled(offsets_or_records)
    if stale and not is_mapping:
        raise CommitFailedError(
            f"{format_partitions(stale)}: the partition was revoked and assigned again, or its "
            "topic was recreated, since the record was returned; the group may have committed "
            "more: no offset was committed"
        )
    for tp, state in states.items():
        state.user_committed = max(state.user_committed, offsets[tp])
    return {
        tp: subscriptions.processed.commit_of(state, offsets[tp], state.processed_bitmap, metadata)
        for tp, state in states.items()
    }
