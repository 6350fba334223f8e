"""Tests that state batches are combined offset by offset, and that records keep share states."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.share import SharePartitionKey, ShareState, StateBatch, combine_batches
from kproto.broker.share.share_state_records import (
    SHARE_STATE_TOPIC,
    load,
    snapshot_record,
    state_tombstone,
    update_record,
)
from kproto.records import Record
from kproto.stored.coordinator_records import CoordinatorRecord, encode_coordinator_record
from kproto.wire.uuid import Uuid

KEY = SharePartitionKey("g", Uuid.parse("AAAAAAAAAAAAAAAAAAAABQ"), 3)


@st.composite
def state_batches(draw: st.DrawFn) -> StateBatch:
    first = draw(st.integers(0, 30))
    return StateBatch(
        first,
        first + draw(st.integers(0, 8)),
        draw(st.sampled_from((0, 2, 4))),
        draw(st.integers(0, 3)),
    )


def stored(record: CoordinatorRecord) -> Record:
    key, value = encode_coordinator_record(record)
    return Record(0, key=key, value=value)


def by_offset(batches: tuple[StateBatch, ...], start: int) -> dict[int, tuple[int, int]]:
    """The reference: the highest delivery count and then the highest state of each offset."""
    found: dict[int, tuple[int, int]] = {}
    for it in batches:
        for offset in range(max(it.first, start), it.last + 1):
            found[offset] = max(found.get(offset, (-1, -1)), (it.deliveries, it.state))
    return found


@given(st.lists(state_batches()), st.lists(state_batches()), st.integers(0, 20))
def test_combined_batches_describe_each_offset_once(
    former: list[StateBatch], more: list[StateBatch], start: int
) -> None:
    found = combine_batches(former, more, start)
    assert by_offset(found, start) == by_offset((*former, *more), start)
    for before, after in pairwise(found):
        assert before.last < after.first
        assert before.last + 1 < after.first or before[2:] != after[2:]


def test_updates_and_tombstones_are_replayed() -> None:
    snapshot = ShareState(0, 2, 0, -1, created_ms=5, written_ms=6)
    update = ShareState(0, 2, 4, 10, 3, (StateBatch(10, 12, 2, 1), StateBatch(13, 14, 0, 1)))
    written = [stored(snapshot_record(KEY, snapshot)), stored(update_record(KEY, update))]
    (state,) = load(written).values()
    assert state == ShareState(0, 2, 4, 10, 3, update.batches, 5, 6, updates=1, seen_leader_epoch=4)
    assert load([*written, stored(state_tombstone(KEY))]) == {}
    assert SHARE_STATE_TOPIC == "__share_group_state"
