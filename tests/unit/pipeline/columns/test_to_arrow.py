"""Tests that Arrow columns and the record decoder give equal offsets and name the same fault."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.columns.arrow_events import events_as_arrow
from kproto_pipeline.columns.arrow_records import records_as_arrow
from kproto_pipeline.columns.chunks import column_chunks
from kproto_pipeline.columns.to_arrow import arrow_batches

from kproto.records import RecordBatch, encode_message_set, read_batches
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
    """Returns the offsets before the first corrupt batch, and the base offset of that batch.

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


def by_records(data: bytes, start: int, end: int, *, all_names: bool) -> Iterable[int]:
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
            check_headers(batch, names=all_names)
            yield from (record.offset for record in wanted)
        if batch.next_offset >= end:
            return


def check_headers(batch: RecordBatch, *, names: bool) -> None:
    """Decodes the headers of all records of a batch.

    Unless `names` is set, a header name may be invalid UTF-8.
    """
    try:
        batch.records(eager_headers=True)
    except CorruptBatchError as error:
        if names or "UTF-8" not in error.reason:
            raise


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
    assert outcome(by_records(found, 0, 20, all_names=True)) == ([begin], last)


@given(
    st.one_of(fetches(), stored()), st.integers(0, 20), st.integers(0, 60), st.booleans(), st.data()
)
@pytest.mark.slow
def test_corrupt_fetch_equals_the_record_decoder(
    data: bytes, start: int, end: int, mended: bool, draws: st.DataObject
) -> None:
    """After one changed byte, both decoders return the same offsets and name the same faulty batch.

    The columns decode the header names of requested records only. Another record with a broken
    length may then have two faults, and each decoder may find a different one first.
    """
    first = int.from_bytes(data[:8], "big") if len(data) >= 8 else 0
    start, end = first + start, first + end
    broken = bytearray(data)
    if broken:
        at = draws.draw(st.integers(0, len(data) - 1))
        broken[at] = draws.draw(st.integers(0, 255))
        if mended:
            broken = mend(broken, at)
    found = bytes(broken)
    assert outcome(by_columns(found, start, end)) in [
        outcome(by_records(found, start, end, all_names=all_names)) for all_names in (False, True)
    ]


def mend(data: bytearray, at: int) -> bytearray:
    """Corrects the CRC of the magic 2 batch that contains index `at`, if there is one."""
    with suppress(CorruptBatchError):
        for batch in read_batches(bytes(data), check_crc=False):
            last = batch.position + batch.size_in_bytes
            if batch.magic == 2 and batch.position <= at < last:
                data[batch.position : last] = resealed(batch.raw)
    return data


@pytest.mark.parametrize("start", [0, 11, 21])
@pytest.mark.parametrize("to_arrow", [records_as_arrow, events_as_arrow])
def test_valid_batches_are_yielded_before_a_header_key_that_is_no_utf8(
    to_arrow: Any, start: int
) -> None:
    names = [b"h", b"h", b"\xff", b"h"]
    parts = [
        batch_bytes(
            [PlainRecord(n, 0, b"k", b"v", ((name, b"1"),)) for n in range(2)],
            base_offset=base * 10,
            last_offset_delta=1,
        )
        for base, name in enumerate(names)
    ]
    assert len(list(column_chunks(b"".join(parts), start=start))) == 1
    made = arrow_batches(b"".join(parts), partial(to_arrow, topic="t", partition=0), start=start)
    found: list[int] = []
    words = f"offset {max(start, 20)}: name is not UTF-8"
    with pytest.raises(CorruptBatchError, match=words) as caught:
        found.extend(offset for batch in made for offset in batch["offset"].to_pylist())
    assert found == [offset for offset in (0, 1, 10, 11) if offset >= start]
    assert (caught.value.offset, caught.value.base_offset) == (2 * len(parts[0]), 20)
