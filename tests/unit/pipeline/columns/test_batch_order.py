"""Tests that offsets must increase from batch to batch; an error names the first wrong batch."""

from __future__ import annotations

import pytest
from kproto_pipeline.columns.chunks import column_chunks
from kproto_pipeline.spark.reading.range_fetcher import next_offset

from kproto import CorruptBatchError
from kproto.records import encode_batch, encode_message_set
from tests.unit.pipeline.columns.record_bytes import CONTROL, PlainRecord, batch_bytes

BATCHES = {
    "none": lambda first, count: encode_batch([(b"k", b"v", (), 5)] * count, base_offset=first),
    "gzip": lambda first, count: encode_batch(
        [(b"k", b"v", (), 5)] * count, base_offset=first, compression="gzip"
    ),
    "control": lambda first, count: batch_bytes(
        [PlainRecord(0, 0, b"\0\0\0\1", b"\0\0\0\0\0\0")],
        base_offset=first,
        last_offset_delta=count - 1,
        attributes=CONTROL,
    ),
    "magic 1": lambda first, count: encode_message_set(
        [(b"k", b"v", (), 5)] * count, magic=1, base_offset=first
    ),
    "magic 0, gzip": lambda first, count: encode_message_set(
        [(b"k", b"v", (), -1)] * count, magic=0, base_offset=first, compression="gzip"
    ),
}


@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("before", BATCHES)
@pytest.mark.parametrize("again", [5, 0, 7])
def test_batch_with_falling_offsets_is_an_error(before: str, kind: str, again: int) -> None:
    """The offsets of the second batch repeat, precede or overlap the offsets of the first batch."""
    good = BATCHES[before](5, 3)
    back = BATCHES[kind](again, 1)
    chunks = column_chunks(good + back)
    if before != "control":
        assert next(chunks).offsets.tolist() == [5, 6, 7]
    with pytest.raises(CorruptBatchError, match="offsets do not rise") as caught:
        next(chunks)
    assert (caught.value.offset, caught.value.base_offset) == (len(good), again)
    with pytest.raises(CorruptBatchError, match="offsets do not rise"):
        next_offset(good + back, 5)
    if before == "magic 0, gzip":  # A wrapper does not show whether offsets are missing inside.
        with pytest.raises(CorruptBatchError, match="offsets do not rise"):
            next_offset(good + back, 5, 8)
    else:
        assert next_offset(good + back, 5, 8) == 8, (
            "no offset is missing, so bytes after the end are ignored"
        )
    assert [c.offsets.tolist() for c in column_chunks(good + back, end=8)] in ([[5, 6, 7]], [])


@pytest.mark.parametrize("kind", BATCHES)
def test_gaps_in_offsets_are_no_error(kind: str) -> None:
    data = BATCHES[kind](5, 3) + BATCHES[kind](8, 2) + BATCHES[kind](100, 1)
    offsets = [offset for chunk in column_chunks(data) for offset in chunk.offsets.tolist()]
    assert offsets == ([] if kind == "control" else [5, 6, 7, 8, 9, 100])
    assert next_offset(data, 6) == 101


@pytest.mark.parametrize("kind", BATCHES)
def test_missing_offsets_after_the_end_are_an_error(kind: str) -> None:
    """The batches are in reverse order: the first batch has the last offsets of the range."""
    reversed_order = b"".join(BATCHES[kind](first, 5) for first in range(25, -1, -5))
    with pytest.raises(CorruptBatchError, match="offsets do not rise") as caught:
        next_offset(reversed_order, 0, 30)
    assert caught.value.offset == len(BATCHES[kind](25, 5))


@pytest.mark.parametrize("kind", BATCHES)
def test_compacted_offsets_are_no_error(kind: str) -> None:
    data = BATCHES[kind](25, 5) + BATCHES[kind](40, 5)
    assert next_offset(data, 0, 30) == 30
    assert next_offset(data + BATCHES[kind](45, 5)[:30], 0, 30) == 30
    assert next_offset(data + bytes(8) + b"\xff" * 50, 0, 30) == 30, "other faults are ignored"


def test_order_is_checked_before_the_requested_offsets() -> None:
    data = BATCHES["none"](5, 3) + BATCHES["none"](5, 3) + BATCHES["none"](8, 1)
    with pytest.raises(CorruptBatchError, match="offsets do not rise"):
        list(column_chunks(data, start=8))
