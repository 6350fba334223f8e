"""Tests the offsets of open transactions: when they take effect, and when they are dropped.

Source: KIP-98 and KIP-447; the rules are those of Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.coordinator_log import coordinator_batch
from kproto.broker.groups.committed_offsets import (
    CommittedOffset,
    CommittedOffsets,
    expired_offsets,
)
from kproto.broker.groups.coordinator_records import (
    TransactionalRecord,
    TransactionEnd,
    group_record,
    group_tombstone,
    load,
    offset_record,
    offset_tombstone,
)
from kproto.broker.groups.group_metadata import GroupMetadata
from kproto.records import Record, RecordBatch
from kproto.stored.coordinator_records import CoordinatorRecord
from kproto.wire.uuid import Uuid

#: An entry of a partition of `__consumer_offsets`.
Entry: TypeAlias = Record | TransactionalRecord | TransactionEnd

MINE, OTHER = Uuid(b"m" * 16), Uuid(b"o" * 16)


def committed(offsets: CommittedOffsets) -> dict[tuple[str, int], int]:
    return {tuple(tp): committed.offset for tp, committed in offsets}  # type: ignore[misc]


def pending(
    offset: int, *, producer: int = 7, topic: str = "t", partition: int = 0
) -> CommittedOffsets:
    offsets = CommittedOffsets()
    offsets.put_pending(producer, topic, partition, CommittedOffset(offset))
    return offsets


def test_pending_offset_takes_effect_at_the_commit() -> None:
    offsets = pending(5)
    assert (committed(offsets), offsets.has_pending) == ({}, True)
    assert offsets.is_pending("t", 0)
    assert not offsets.is_pending("t", 1)
    assert not offsets.is_pending("u", 0)
    offsets.end_transaction(7, is_commit=True)
    assert (committed(offsets), offsets.has_pending) == ({("t", 0): 5}, False)
    assert not offsets.is_pending("t", 0)


def test_pending_offset_is_dropped_at_the_abort() -> None:
    offsets = pending(5)
    offsets.put("t", 1, CommittedOffset(9))
    offsets.end_transaction(7, is_commit=False)
    assert (committed(offsets), offsets.has_pending) == ({("t", 1): 9}, False)


def test_end_of_another_transaction_changes_nothing() -> None:
    offsets = pending(5)
    offsets.end_transaction(8, is_commit=True)
    assert (committed(offsets), offsets.has_pending) == ({}, True)
    offsets.end_transaction(7, is_commit=True)
    offsets.end_transaction(7, is_commit=False)
    assert committed(offsets) == {("t", 0): 5}, "a repeated marker ends nothing"


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 6), (False, 3)])
def test_last_pending_offset_of_a_transaction_counts(*, is_commit: bool, expected: int) -> None:
    offsets = CommittedOffsets()
    offsets.put("t", 0, CommittedOffset(3))
    for offset in (5, 6):
        offsets.put_pending(7, "t", 0, CommittedOffset(offset))
    offsets.end_transaction(7, is_commit=is_commit)
    assert committed(offsets) == {("t", 0): expected}


def test_later_commit_wins_over_a_pending_offset() -> None:
    offsets = pending(5)
    offsets.put("t", 0, CommittedOffset(3))
    offsets.end_transaction(7, is_commit=True)
    assert committed(offsets) == {("t", 0): 3}
    offsets.put_pending(7, "t", 0, CommittedOffset(4))
    offsets.end_transaction(7, is_commit=True)
    assert committed(offsets) == {("t", 0): 4}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([(7, True), (8, True)], 6),
        ([(8, True), (7, True)], 6),
        ([(7, True), (8, False)], 5),
        ([(8, False), (7, True)], 5),
        ([(7, False), (8, True)], 6),
        ([(8, True), (7, False)], 6),
    ],
)
def test_later_of_two_producers_wins(ends: list[tuple[int, bool]], expected: int) -> None:
    offsets = pending(5)
    offsets.put_pending(8, "t", 0, CommittedOffset(6))
    for producer, is_commit in ends:
        assert offsets.is_pending("t", 0)
        offsets.end_transaction(producer, is_commit=is_commit)
    assert not offsets.is_pending("t", 0)
    assert committed(offsets) == {("t", 0): expected}


def test_removal_drops_pending_offsets_of_the_partition() -> None:
    offsets = pending(5)
    offsets.put_pending(7, "t", 1, CommittedOffset(6))
    offsets.put_pending(8, "t", 0, CommittedOffset(7))
    assert not offsets.remove("t", 0), "nothing was committed yet"
    assert not offsets.is_pending("t", 0)
    for producer in (7, 8):
        offsets.end_transaction(producer, is_commit=True)
    assert committed(offsets) == {("t", 1): 6}


def test_partitions_include_pending_ones() -> None:
    offsets = pending(5)
    offsets.put("t", 1, CommittedOffset(1))
    offsets.put_pending(8, "t", 1, CommittedOffset(6))
    assert offsets.partitions == [("t", 1), ("t", 0)]
    assert len(offsets) == 1


def test_pending_offsets_of_a_deleted_topic_are_found() -> None:
    offsets = CommittedOffsets()
    offsets.put("t", 0, CommittedOffset(1, topic_id=MINE))
    offsets.put_pending(7, "t", 0, CommittedOffset(2, topic_id=MINE))
    offsets.put_pending(7, "t", 1, CommittedOffset(2, topic_id=MINE))
    offsets.put_pending(7, "t", 2, CommittedOffset(2, topic_id=OTHER))
    offsets.put_pending(7, "u", 3, CommittedOffset(2, topic_id=MINE))
    assert offsets.of_deleted_topic("t", MINE) == [("t", 0), ("t", 1)]


class SimpleGroup:
    """A group without members, whose offsets expire after their commit."""

    type = "classic"
    protocol_type = None
    state = "Empty"
    last_empty_at = None

    def __init__(self) -> None:
        self.offsets = CommittedOffsets()

    def is_subscribed_to(self, topic: str) -> bool:
        return False


def test_offset_with_a_pending_change_does_not_expire() -> None:
    group = SimpleGroup()
    for partition in (0, 1):
        group.offsets.put("t", partition, CommittedOffset(1, commit_ms=0))
    group.offsets.put_pending(7, "t", 0, CommittedOffset(2, commit_ms=0))
    assert expired_offsets(group, 1000, 1000) == [("t", 1)]
    group.offsets.end_transaction(7, is_commit=False)
    assert expired_offsets(group, 1000, 1000) == [("t", 0), ("t", 1)]


# Loading


def record(*written: CoordinatorRecord) -> list[Record]:
    return list(RecordBatch(coordinator_batch(written, 5)).records())


def of_transaction(producer: int, *written: CoordinatorRecord) -> Iterator[TransactionalRecord]:
    return (TransactionalRecord(each, producer) for each in record(*written))


def commit_record(offset: int, partition: int = 0, group: str = "g") -> CoordinatorRecord:
    return offset_record(group, "t", partition, CommittedOffset(offset))


def test_open_transaction_is_loaded_as_pending() -> None:
    (group,) = load(of_transaction(7, commit_record(5))).values()
    assert (committed(group.offsets), group.offsets.is_pending("t", 0)) == ({}, True)
    group.offsets.end_transaction(7, is_commit=True)
    assert committed(group.offsets) == {("t", 0): 5}


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 5), (False, 3)])
def test_end_of_a_transaction_is_loaded_for_all_groups(*, is_commit: bool, expected: int) -> None:
    log: list[Entry] = [
        *record(commit_record(3), commit_record(3, group="h")),
        *of_transaction(7, commit_record(5), commit_record(5, group="h")),
        TransactionEnd(7, is_commit),
    ]
    groups = load(log)
    assert [committed(groups[name].offsets) for name in "gh"] == [{("t", 0): expected}] * 2
    assert not groups["g"].offsets.has_pending


def test_tombstone_drops_pending_offsets_when_loaded() -> None:
    log: list[Entry] = [
        *of_transaction(7, commit_record(5)),
        *record(offset_tombstone("g", "t", 0)),
        TransactionEnd(7, is_commit=True),
    ]
    assert committed(load(log)["g"].offsets) == {}


def test_group_tombstone_keeps_a_group_with_pending_offsets() -> None:
    """A migration to the consumer protocol writes a group tombstone, and keeps the offsets."""
    metadata = GroupMetadata("consumer", 1, "range", None, None, ())
    log: list[Entry] = [
        *record(group_record("g", metadata)),
        *of_transaction(7, commit_record(5)),
        *record(group_tombstone("g")),
        TransactionEnd(7, is_commit=True),
    ]
    assert committed(load(log)["g"].offsets) == {("t", 0): 5}


def test_other_records_of_a_transaction_are_ignored() -> None:
    metadata = GroupMetadata("consumer", 1, "range", None, None, ())
    assert load(of_transaction(7, group_record("g", metadata), offset_tombstone("g", "t", 0))) == {}


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 1), st.just(False)),
        st.tuples(st.sampled_from(["7", "8"]), st.integers(0, 1), st.just(False)),
        st.tuples(st.just("remove"), st.integers(0, 1), st.just(False)),
        st.tuples(st.just("end"), st.integers(7, 8), st.booleans()),
    ),
    max_size=30,
)


@given(CHANGES)
def test_offsets_are_the_latest_of_committed_transactions(
    changes: list[tuple[str, int, bool]],
) -> None:
    """Compares the offsets with a model that applies a transaction's offsets at its commit.

    If the log has a later offset commit for the partition, the model keeps the later offset.
    """
    offsets = CommittedOffsets()
    log: list[Entry] = []
    expected: dict[tuple[str, int], int] = {}
    latest: dict[int, int] = {}
    waiting: list[tuple[int, int, int]] = []
    for at, (kind, number, is_commit) in enumerate(changes):
        if kind == "put":
            offsets.put("t", number, CommittedOffset(at))
            log += record(commit_record(at, number))
            expected["t", number], latest[number] = at, at
        elif kind == "remove":
            offsets.remove("t", number)
            log += record(offset_tombstone("g", "t", number))
            expected.pop(("t", number), None)
            latest.pop(number, None)
            waiting = [each for each in waiting if each[1] != number]
        elif kind == "end":
            offsets.end_transaction(number, is_commit=is_commit)
            log.append(TransactionEnd(number, is_commit))
            for producer, partition, position in waiting:
                if producer == number and is_commit and position > latest.get(partition, -1):
                    expected["t", partition], latest[partition] = position, position
            waiting = [each for each in waiting if each[0] != number]
        else:
            offsets.put_pending(int(kind), "t", number, CommittedOffset(at))
            log += of_transaction(int(kind), commit_record(at, number))
            waiting.append((int(kind), number, at))
        assert committed(offsets) == expected
        for partition in (0, 1):
            is_waiting = any(each[1] == partition for each in waiting)
            assert offsets.is_pending("t", partition) is is_waiting
    loaded = load(log)
    assert (committed(loaded["g"].offsets) if loaded else {}) == expected
