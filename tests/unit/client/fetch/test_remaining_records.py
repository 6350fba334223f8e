"""Tests the iteration over a list of records, and which of the records it keeps."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from kproto.client.fetch.completed_fetch import CompletedFetch, UnreadBatch
from kproto.client.fetch.fetch_buffer import FetchBuffer
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.fetch.remaining_records import _PART_RECORDS, RemainingRecords
from kproto.client.settings import ClientSettings
from kproto.records import Record, RecordBatch
from tests.unit.client.scripted_log import batch


@given(
    st.lists(st.integers(0, 1000), max_size=3 * _PART_RECORDS + 1),
    st.integers(0, 4 * _PART_RECORDS),
)
def test_the_offsets_follow_each_step(offsets: list[int], steps: int) -> None:
    records = [Record(offset) for offset in offsets]
    remaining = RemainingRecords(records)
    for index, record in zip(range(steps), remaining.iterator, strict=False):
        assert record is records[index]
        assert remaining.last_offset == offsets[index]
        after = offsets[index + 1 : index + 2]
        assert remaining.next_offset == (after[0] if after else None)
        assert bool(remaining) == bool(after)
    assert list(remaining.iterator) == records[steps:]
    assert not remaining
    assert remaining.next_offset is None


def test_the_buffer_frees_the_returned_records_of_a_list_that_it_still_iterates() -> None:
    count = 4 * _PART_RECORDS
    state = TopicPartitionState(("t", 0), ClientSettings(), position=0)
    batches = [UnreadBatch(0, RecordBatch(batch(0, [b"v"] * count)))]
    buffer = FetchBuffer()
    buffer.add(
        CompletedFetch(
            state, batches, size_in_bytes=0, high_watermark=count, max_decompressed_bytes=1_000_000
        )
    )
    first = buffer.take_record()
    assert first is not None
    kept = sys.getrefcount(first)  # the references of this function, and the one of the buffer
    for _ in range(_PART_RECORDS):
        next(buffer.remaining)
    assert sys.getrefcount(first) == kept - 1
    assert not buffer.is_empty
