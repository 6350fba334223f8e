"""Tests that the buffer releases a fetch with an unreadable record after the last record."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import pytest

from kproto.client.fetch.completed_fetch import CompletedFetch, UnreadBatch
from kproto.client.fetch.fetch_buffer import FetchBuffer
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.settings import ClientSettings
from kproto.records import RecordBatch
from kproto.wire.errors import UnreadableRecordError
from tests.unit.client.scripted_log import batch
from tests.unit.records.batches import batch_bytes, record_bytes


def unreadable(base_offset: int) -> bytes:
    """Returns a batch with a valid checksum whose only record has an invalid header block."""
    return batch_bytes(record_bytes(header_block=b"\x01"), base_offset=base_offset)


def add(buffer: FetchBuffer, data: bytes, partition: int = 0) -> None:
    """Adds a completed fetch of one batch."""
    made = RecordBatch(data)
    state = TopicPartitionState(("t", partition), ClientSettings(), position=made.base_offset)
    unread = [UnreadBatch(made.base_offset, made)]
    buffer.add(
        CompletedFetch(
            state, unread, size_in_bytes=len(data), high_watermark=9, max_decompressed_bytes=1 << 20
        )
    )


@pytest.mark.parametrize(
    "take",
    [
        FetchBuffer.take_record,
        FetchBuffer.take_records,
        FetchBuffer.take_values,
        lambda buffer: buffer.take_polled(5),
    ],
)
def test_unreadable_record_keeps_no_bytes_of_its_fetch(
    take: Callable[[FetchBuffer], object],
) -> None:
    buffer = FetchBuffer()
    data = unreadable(0)
    unreferenced = sys.getrefcount(data)
    add(buffer, data)
    assert sys.getrefcount(data) > unreferenced
    with pytest.raises(UnreadableRecordError):
        take(buffer)
    gc.collect()
    assert sys.getrefcount(data) == unreferenced
    assert buffer.is_empty


def test_record_that_was_put_back_is_released_after_its_error() -> None:
    """A poll that has other records returns only those records; the next poll raises the error."""
    buffer = FetchBuffer()
    data = unreadable(0)
    unreferenced = sys.getrefcount(data)
    add(buffer, batch(0, [b"0", b"1"]), partition=1)
    add(buffer, data)
    polled = buffer.take_polled(5)
    assert polled is not None
    assert [record.value for record in polled["t", 1]] == [b"0", b"1"]
    assert {state.partition for state in buffer.in_flight} == {1}
    with pytest.raises(UnreadableRecordError):
        buffer.take_polled(5)
    assert {state.partition for state in buffer.in_flight} == {0}
    gc.collect()
    assert sys.getrefcount(data) == unreferenced
    assert buffer.take_polled(5) is None
