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
from kproto.records import NewRecord, Record, RecordBatch, encode_batch
from kproto.records.header_block import NO_HEADERS
from tests.support.batches import TIMESTAMP


@given(
    st.lists(st.integers(0, 1000), max_size=3 * _PART_RECORDS + 1),
    st.integers(0, 4 * _PART_RECORDS),
    st.booleans(),
)
def test_the_offsets_follow_each_step(offsets: list[int], steps: int, has_headers: bool) -> None:
    records = [Record(offset) for offset in offsets]
    if not has_headers:
        for record in records:
            record._headers = NO_HEADERS
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
    records: list[NewRecord] = [(None, b"v", [("h", b"1")], TIMESTAMP)] * count
    batches = [UnreadBatch(0, RecordBatch(encode_batch(records)))]
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
