"""What of a fetch is read: from where, up to where, and where the next one begins."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline import batches
from kproto_pipeline.arrow_columns import good_batches, record_batch
from kproto_pipeline.batches import BatchSection, next_offset
from kproto_pipeline.columnar import decode_records

from kproto.records import RecordBatch, encode_batch, read_batches
from kproto.wire.errors import CorruptBatchError
from tests.support.message_sets import message, message_set
from tests.unit.pipeline.fetch_strategies import fetches, stored
from tests.unit.pipeline.record_bytes import PlainRecord, batch_bytes, resealed

Outcome = tuple[list[int], int | None]


def outcome(offsets: Iterable[int]) -> Outcome:
    """The offsets up to the end or to a fault, and the base offset of the batch it is in."""
    found: list[int] = []
    try:
        found.extend(offsets)
    except CorruptBatchError as error:
        return found, error.base_offset
    return found, None


def by_columns(data: bytes, start: int, end: int) -> Iterable[int]:
    for chunk in decode_records(data, start=start, end=end, chunk_bytes=400):
        for batch in good_batches(chunk, partial(record_batch, topic="t", partition=0)):
            yield from batch["offset"].to_pylist()


def by_records(data: bytes, start: int, end: int, *, all_names: bool) -> Iterable[int]:
    for batch in read_batches(data, check_crc=False):
        if batch.magic == 2 and batch.base_offset >= end:
            return
        batch.check()
        if not batch.is_control and batch.last_offset >= start:
            wanted = [record for record in batch.records(from_offset=start) if record.offset < end]
            for record in wanted:
                _ = record.headers
            check_headers(batch, names=all_names)
            yield from (record.offset for record in wanted)
        if batch.next_offset >= end:
            return


def check_headers(batch: RecordBatch, *, names: bool) -> None:
    """Those of all records of a batch; that a name is not UTF-8 may be no fault."""
    try:
        batch.records(eager_headers=True)
    except CorruptBatchError as error:
        if names or "UTF-8" not in error.reason:
            raise


def one(offset: int) -> bytes:
    """A batch of one record."""
    return batch_bytes([PlainRecord(0, 0, b"k", b"v")], base_offset=offset, last_offset_delta=0)


@given(
    st.one_of(fetches(), stored()), st.integers(0, 20), st.integers(0, 60), st.booleans(), st.data()
)
def test_a_broken_fetch_gives_what_the_record_decoder_gives(
    data: bytes, start: int, end: int, mended: bool, draws: st.DataObject
) -> None:
    """One byte is changed: the same offsets, and a fault in the same batch if there is one.

    Names of headers are decoded for wanted records alone; a broken length among the others may
    show in both ways, and each decoder may find the one first.
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
    """The batch of magic 2 around `at`, if there is one, with the CRC that its bytes have."""
    with suppress(CorruptBatchError):
        for batch in read_batches(bytes(data), check_crc=False):
            last = batch.position + batch.size_in_bytes
            if batch.magic == 2 and batch.position <= at < last:
                data[batch.position : last] = resealed(batch.raw)
    return data


def test_what_a_batch_says_of_its_last_offset_is_checked_before_it_is_believed() -> None:
    for value in (b"\x80", b"\x00"):  # far before, and a little
        wrong = bytearray(encode_batch([(None, b"v", (), 0)] * 5, base_offset=3))
        wrong[23:27] = value + bytes(3)
        chunks = decode_records(one(2) + bytes(wrong) + one(8), start=5)
        with pytest.raises(CorruptBatchError, match=r"CRC.*batch base offset 3"):
            next(chunks)
        reseal = decode_records(one(2) + resealed(bytes(wrong)) + one(8), start=5)
        if value == b"\x00":  # then it is true: the batch ends before
            assert next(reseal).offsets.tolist() == [8]
        else:
            with pytest.raises(CorruptBatchError, match=r"negative last offset delta.* 3"):
                next(reseal)


GOOD = {
    "batches": one(0) + one(1),
    "messages": message(offset=0) + message(offset=1),
    "an empty batch": batch_bytes([], last_offset_delta=1),
}
HEADERS_OF_NONE = {
    "an unknown magic": bytes(16) + b"\x09" + bytes(50),
    "a length below zero": bytes(8) + b"\xff" * 4 + bytes(50),
}


@pytest.mark.parametrize("kind", HEADERS_OF_NONE)
@pytest.mark.parametrize("kind_of_good", GOOD)
def test_what_stands_behind_the_end_is_not_looked_at(kind: str, kind_of_good: str) -> None:
    good = GOOD[kind_of_good]
    data = good + HEADERS_OF_NONE[kind]
    offsets = [record for chunk in decode_records(good) for record in chunk.offsets.tolist()]
    found = [row for chunk in decode_records(data, end=2) for row in chunk.offsets.tolist()]
    assert found == offsets
    assert next_offset(data, 0, 2) == 2
    with pytest.raises(CorruptBatchError):
        list(decode_records(data, end=3))
    with pytest.raises(CorruptBatchError):
        next_offset(data, 0, 3)


def test_batches_outside_the_wanted_offsets_are_not_decompressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = b"".join(
        encode_batch([(None, b"v" * 99, (), 0)], base_offset=n, compression="gzip")
        for n in range(5)
    )
    read: list[int] = []
    decompress = batches._decompress

    def counting(section: BatchSection, *others: Any) -> None:
        read.append(section.batch.base_offset)
        decompress(section, *others)

    monkeypatch.setattr(batches, "_decompress", counting)
    (chunk,) = decode_records(data, start=2, end=4)
    assert chunk.offsets.tolist() == read == [2, 3]


def test_a_wrapper_gives_the_wanted_offsets_alone() -> None:
    """The offset that it carries is its last message's, which may lie beyond the end."""
    data = message_set(10, compression="gzip", base_offset=100)
    (chunk,) = decode_records(data, start=103, end=106)
    assert chunk.offsets.tolist() == [103, 104, 105]
    assert list(decode_records(data, start=110)) == []


@given(fetches())
def test_the_next_offset_is_behind_the_last_whole_batch(data: bytes) -> None:
    expected, position = 3, 0
    while position + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, position)
        if position + 12 + length > len(data):
            break
        expected = max(expected, base + struct.unpack_from(">i", data, position + 23)[0] + 1)
        position += 12 + length
    if data and not position:
        with pytest.raises(CorruptBatchError, match="at byte 0: the data ends inside a batch"):
            next_offset(data, 3)
    else:
        assert next_offset(data, 3) == expected


@given(st.binary(max_size=200))
def test_noise_has_a_next_offset_or_is_a_corrupt_batch(data: bytes) -> None:
    with suppress(CorruptBatchError):
        assert next_offset(data, 7) >= 7
