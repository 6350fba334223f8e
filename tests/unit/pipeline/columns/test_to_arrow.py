"""Tests that Arrow columns and the record decoder have equal offsets and report the same fault."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.columns.arrow_records import records_as_arrow
from kproto_pipeline.columns.to_arrow import arrow_batches

from kproto.records import encode_message_set, read_batches
from kproto.wire.errors import CorruptBatchError
from tests.unit.pipeline.columns.fetch_strategies import (
    fetches,
    stored,
)
from tests.unit.pipeline.columns.record_bytes import (
    PlainRecord,
    batch_bytes,
    resealed,
)

Outcome = tuple[list[int], int | None]


def outcome(offsets: Iterable[int]) -> Outcome:
    """Returns the offsets before the first corrupt batch, and that batch's base offset.

    If no batch is corrupt, returns all offsets, and None.
    """
    found: list[int] = []
    try:
        found.extend(offsets)
    except CorruptBatchError as error:
        return found, error.base_offset
    return found, None


def by_columns(data: bytes, start: int, end: int) -> Iterable[int]:
    to_arrow = partial(records_as_arrow, topic="t", partition=0)
    for batch in arrow_batches(data, to_arrow, start=start, end=end, chunk_bytes=400):
        yield from batch["offset"].to_pylist()


def by_records(data: bytes, start: int, end: int) -> Iterable[int]:
    behind = None
    for batch in read_batches(data, check_crc=False):
        if batch.magic == 2 and batch.base_offset >= end:
            return
        batch.check()
        if behind is not None and batch.base_offset < behind:
            raise CorruptBatchError("goes back", offset=0, base_offset=batch.base_offset)
        behind = batch.next_offset
        if not batch.is_control and batch.last_offset >= start:
            wanted = [record for record in batch.records(from_offset=start) if record.offset < end]
            for record in wanted:
                _ = record.headers
            batch.records(eager_headers=True)
            yield from (record.offset for record in wanted)
        if batch.next_offset >= end:
            return


WRAPPERS = b"".join(
    encode_message_set([(b"k", b"v", (), 0)], magic=1, compression="gzip", base_offset=offset)
    for offset in (8, 9)
)


@pytest.mark.parametrize("first", [WRAPPERS, batch_bytes([PlainRecord(0, 0, b"k", b"v", ())])])
def test_falling_offsets_are_an_error_in_both_formats(first: bytes) -> None:
    """The test changes the first byte of the second batch's base offset.

    No checksum covers this byte.
    """
    data = bytearray(first if first is WRAPPERS else first + first)
    second = list(read_batches(bytes(data)))[1]
    data[second.position] = 0x80
    found = bytes(data)
    begin, last = int.from_bytes(found[:8], "big"), second.base_offset - 2**63
    assert outcome(by_columns(found, 0, 20)) == ([begin], last)
    assert outcome(by_records(found, 0, 20)) == ([begin], last)


@given(
    st.one_of(fetches(), stored()), st.integers(0, 20), st.integers(0, 60), st.booleans(), st.data()
)
@pytest.mark.slow
def test_corrupt_fetch_equals_the_record_decoder(
    data: bytes, start: int, end: int, mended: bool, draws: st.DataObject
) -> None:
    """One byte is changed; both decoders return equal offsets and report the same batch."""
    first = int.from_bytes(data[:8], "big") if len(data) >= 8 else 0
    start, end = first + start, first + end
    broken = bytearray(data)
    if broken:
        at = draws.draw(st.integers(0, len(data) - 1))
        broken[at] = draws.draw(st.integers(0, 255))
        if mended:
            broken = mend(broken, at)
    found = bytes(broken)
    assert outcome(by_columns(found, start, end)) == outcome(by_records(found, start, end))


def mend(data: bytearray, at: int) -> bytearray:
    """Corrects the CRC of the magic 2 batch that contains index `at`, if there is one."""
    with suppress(CorruptBatchError):
        for batch in read_batches(bytes(data), check_crc=False):
            last = batch.position + batch.size_in_bytes
            if batch.magic == 2 and batch.position <= at < last:
                data[batch.position : last] = resealed(batch.raw)
    return data
