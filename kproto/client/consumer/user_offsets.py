"""What a user gives to be committed: offsets by partition, or what was handed out to him."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ...records import Record
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from ..commits.errors import CommitFailedError
from ..commits.incomplete_offsets import text_of
from ..commits.requests import ToCommit
from ..fetch.assigned_partition import AssignedPartition
from ..fetch.completed_fetch import FetchedBatch, FetchedRecords, FetchedValues
from ..fetch.start_options import LAST_OFFSET
from ..metadata.cluster import TopicPartition, named

__all__ = ["HandedOut", "checked_place", "commits_of", "offsets_of"]

#: What iterations give.
HandedOut: TypeAlias = Record | FetchedRecords | FetchedValues | FetchedBatch


def checked_place(place: object) -> TopicPartition:
    """Raises ConfigurationError for what is no partition."""
    match place:
        case (str(topic), int(partition)):
            return topic, partition
    raise ConfigurationError(f"{place!r} is no partition; it is written as (topic, number)")


def offsets_of(offsets: object) -> dict[TopicPartition, int]:
    """The offsets that are to be committed. Raises ConfigurationError."""
    match offsets:
        case Record():
            return {(offsets.topic, offsets.partition): offsets.offset + 1}
        case FetchedRecords(records=[]):
            raise ConfigurationError(f"{offsets!r:.80} has no records that could be done")
        case FetchedRecords():
            return {(offsets.topic, offsets.partition): offsets.records[-1].offset + 1}
        case FetchedValues():
            return {(offsets.topic, offsets.partition): offsets.next_offset}
        case FetchedBatch():
            return {(offsets.topic, offsets.partition): offsets.batch.next_offset}
        case Mapping():
            found: dict[TopicPartition, int] = {}
            for place, offset in offsets.items():
                check_whole_number(f"the offset of {place!r}", offset, 0, LAST_OFFSET)
                found[checked_place(place)] = offset
            return found
        case _:
            raise ConfigurationError(
                f"{offsets!r:.80} is neither offsets by partition nor what was handed out"
            )


def commits_of(
    given: Mapping[TopicPartition, int] | HandedOut,
    metadata: str,
    state_of: Callable[[TopicPartition], AssignedPartition | None],
    position_of: Callable[[AssignedPartition], int],
) -> dict[TopicPartition, ToCommit]:
    """What is to be committed of that; the partitions hold that it is done, as the user says.

    `position_of` is behind what was handed out of one. Raises ConfigurationError for what is no
    offset, CommitFailedError for what is not this member's. Neither is what was handed out before
    the partition went and came back, as others may have done it, and committed more; nor before its
    topic was made anew, as it is of another log.
    """
    offsets = offsets_of(given)
    states = {place: state for place in offsets if (state := state_of(place)) is not None}
    missing = offsets.keys() - states.keys()
    if missing:
        raise CommitFailedError(
            f"{named(missing)}: not assigned to this consumer, at least not any more; nothing was "
            "committed"
        )
    old = [
        place
        for place, state in states.items()
        if not state.gave(offsets[place], position_of(state))
    ]
    if old and not isinstance(given, Mapping):
        raise CommitFailedError(
            f"{named(old)}: the partition went, and has come back, since that was handed out, or "
            "its topic was made anew; the group may have committed more: nothing was committed"
        )
    for place, state in states.items():
        state.said = max(state.said, offsets[place])
    found = {}
    for place, state in states.items():
        offset = offsets[place]
        told = metadata or text_of(state.ahead, offset, state.topic_id)
        found[place] = state.to_commit(offset, told)
    return found
