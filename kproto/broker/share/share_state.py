"""Defines the persisted state of a share partition, and combines state batches (KIP-932).

The share coordinator stores a `ShareState` for each share partition. A write has only the batches
that have changed; `combine_batches` combines these batches with the earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, Protocol, TypeVar

from ...wire.uuid import Uuid

__all__ = [
    "NO_COUNT",
    "UNINITIALIZED_OFFSET",
    "SharePartitionKey",
    "ShareState",
    "ShareStateWrite",
    "StateBatch",
    "combine_batches",
    "structs_of_batches",
    "unpacked_batches",
]

S = TypeVar("S")

#: The start offset of a share partition before its first fetch.
UNINITIALIZED_OFFSET: Final = -1

#: The delivery complete count of a share partition before its first write.
NO_COUNT: Final = -1


class SharePartitionKey(NamedTuple):
    """Names a share partition: a partition of a topic, as one group reads it."""

    group_id: str
    topic_id: Uuid
    partition: int

    @property
    def coordinator_key(self) -> str:
        """Returns the key of FindCoordinator, `group:topicId:partition`."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


class StateBatch(NamedTuple):
    """Holds consecutive offsets with the same record state and delivery count.

    `state` is the id of a `RecordState`, `deliveries` the delivery count.
    """

    first: int
    last: int
    state: int
    deliveries: int


class BatchStruct(Protocol):
    """The fields of a batch in the messages and in the stored records of share states."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def unpacked_batches(structs: Iterable[BatchStruct]) -> tuple[StateBatch, ...]:
    """Returns the batches that structs of a message or of a stored record describe."""
    return tuple(
        StateBatch(it.first_offset, it.last_offset, it.delivery_state, it.delivery_count)
        for it in structs
    )


def structs_of_batches(make: Callable[..., S], batches: Iterable[StateBatch]) -> list[S]:
    """Returns batches as structs of a message or of a stored record, whose class is `make`."""
    return [
        make(
            first_offset=it.first,
            last_offset=it.last,
            delivery_state=it.state,
            delivery_count=it.deliveries,
        )
        for it in batches
    ]


class ShareStateWrite(NamedTuple):
    """Holds the change of a share partition's state that its leader writes.

    `complete_count` is the number of records from the start offset on that are acknowledged or
    archived.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True)
class ShareState:
    """Holds the persisted state of a share partition.

    `updates` is the number of ShareUpdate records since the latest ShareSnapshot record.
    `seen_leader_epoch` is the highest leader epoch since the state was created first; a leader with
    a lower epoch is fenced.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int = NO_COUNT
    batches: tuple[StateBatch, ...] = ()
    created_ms: int = 0
    written_ms: int = 0
    updates: int = 0
    seen_leader_epoch: int = 0


def combine_batches(
    batches: Iterable[StateBatch], more: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Returns the batches that describe each offset from `start_offset` on once.

    If batches overlap, the higher delivery count wins; for equal counts, the higher state wins.
    Adjacent batches with the same state and count become one batch.
    """
    pruned = [
        it._replace(first=max(it.first, start_offset))
        for it in (*batches, *more)
        if it.last >= start_offset
    ]
    if len(pruned) <= 1:
        return tuple(pruned)
    edges = sorted({it.first for it in pruned} | {it.last + 1 for it in pruned})
    pruned.sort()
    found: list[StateBatch] = []
    active: list[StateBatch] = []
    at = 0
    for start, end in pairwise(edges):
        while at < len(pruned) and pruned[at].first <= start:
            active.append(pruned[at])
            at += 1
        active = [it for it in active if it.last >= start]
        if not active:
            continue
        best = max(active, key=lambda it: (it.deliveries, it.state))
        last = found[-1] if found else None
        if last is not None and (last.last + 1, *last[2:]) == (start, best.state, best.deliveries):
            found[-1] = last._replace(last=end - 1)
        else:
            found.append(StateBatch(start, end - 1, best.state, best.deliveries))
    return tuple(found)
