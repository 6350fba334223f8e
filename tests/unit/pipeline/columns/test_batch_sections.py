"""Tests how batches of a response are selected by offset, checked, decompressed and grouped."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from kproto_pipeline.columns import batch_sections
from kproto_pipeline.columns.batch_sections import BatchSection
from kproto_pipeline.columns.chunks import column_chunks

from kproto.records import encode_batch
from kproto.wire.errors import CorruptBatchError
from tests.support.message_sets import message, message_set
from tests.unit.pipeline.columns.decoded_rows import rows_of
from tests.unit.pipeline.columns.fetch_strategies import (
    CODEC_NAMES,
    compressed,
)
from tests.unit.pipeline.columns.record_bytes import (
    PlainRecord,
    batch_bytes,
    resealed,
)
from tests.unit.pipeline.columns.two_records import GOOD, HEADERS_OF_NONE, one_record


def test_last_offset_is_used_after_the_crc_check() -> None:
    for value in (b"\x80", b"\x00"):  # last offset before 0, or between base offset and start
        wrong = bytearray(encode_batch([(None, b"v", (), 0)] * 5, base_offset=3))
        wrong[23:27] = value + bytes(3)
        chunks = column_chunks(one_record(2) + bytes(wrong) + one_record(8), start=5)
        with pytest.raises(CorruptBatchError, match=r"CRC.*batch base offset 3"):
            next(chunks)
        reseal = column_chunks(one_record(2) + resealed(bytes(wrong)) + one_record(8), start=5)
        if value == b"\x00":  # with a correct CRC, this batch ends before the start
            assert next(reseal).offsets.tolist() == [8]
        else:
            with pytest.raises(CorruptBatchError, match=r"negative last offset delta.* 3"):
                next(reseal)


@pytest.mark.parametrize("kind", HEADERS_OF_NONE)
@pytest.mark.parametrize("kind_of_good", GOOD)
def test_bytes_after_the_end_are_ignored(kind: str, kind_of_good: str) -> None:
    good = GOOD[kind_of_good]
    data = good + HEADERS_OF_NONE[kind]
    offsets = [record for chunk in column_chunks(good) for record in chunk.offsets.tolist()]
    found = [row for chunk in column_chunks(data, end=2) for row in chunk.offsets.tolist()]
    assert found == offsets
    with pytest.raises(CorruptBatchError):
        list(column_chunks(data, end=3))


def test_batches_outside_of_the_requested_offsets_are_not_decompressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = b"".join(
        encode_batch([(None, b"v" * 99, (), 0)], base_offset=n, compression="gzip")
        for n in range(5)
    )
    read: list[int] = []
    decompress = batch_sections._decompress

    def counting(section: BatchSection, *others: Any) -> None:
        read.append(section.batch.base_offset)
        decompress(section, *others)

    monkeypatch.setattr(batch_sections, "_decompress", counting)
    (chunk,) = column_chunks(data, start=2, end=4)
    assert chunk.offsets.tolist() == read == [2, 3]


def test_only_requested_offsets_of_a_wrapper_are_read() -> None:
    """A wrapper's offset is that of its last message, and can lie beyond the requested end."""
    data = message_set(10, compression="gzip", base_offset=100)
    (chunk,) = column_chunks(data, start=103, end=106)
    assert chunk.offsets.tolist() == [103, 104, 105]
    assert list(column_chunks(data, start=110)) == []


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_batch_larger_than_a_chunk_is_a_chunk(codec: str) -> None:
    sizes = [10, 5000, 10, 10, 5000, 5000]
    parts = [compressed(codec, b"x" * size, 3 * n) for n, size in enumerate(sizes)]
    parts.append(compressed("none", b"x" * 7, 18))
    found = [
        (offset, value)
        for chunk in column_chunks(b"".join(parts), chunk_bytes=9000)
        for offset, value in zip(
            chunk.offsets.tolist(), map(chunk.value, range(len(chunk))), strict=True
        )
    ]
    expected = [b"x" * size for size in [*sizes, 7] for _ in range(3)]
    assert found == list(enumerate(expected))


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_batch_beyond_max_decompressed_bytes_is_refused(codec: str) -> None:
    """`max_decompressed_bytes` applies even if the batch would fit into a free buffer."""
    data = compressed(codec, b"v" * 500, 0)
    (chunk,) = column_chunks(data)
    size = len(chunk.buffer)
    assert len(next(column_chunks(data, max_decompressed_bytes=size))) == 3
    with pytest.raises(CorruptBatchError, match=f"bound of {size - 1} bytes"):
        next(column_chunks(data, max_decompressed_bytes=size - 1))


def test_impossible_record_count_is_refused_before_decoding() -> None:
    data = bytearray(batch_bytes([PlainRecord(0, 0, b"k", b"v")]))
    struct.pack_into(">i", data, 57, 2**31 - 1)
    with pytest.raises(CorruptBatchError, match="2147483647 records do not fit"):
        rows_of(resealed(bytes(data)))


def test_valid_messages_are_yielded_before_a_corrupt_one() -> None:
    wrong_crc = message(offset=2, crc=7)
    chunks = column_chunks(message_set(2) + wrong_crc + message(offset=3))
    assert next(chunks).offsets.tolist() == [0, 1]
    with pytest.raises(CorruptBatchError, match="CRC"):
        next(chunks)


def test_message_sets_are_split_into_chunks() -> None:
    """`chunk_bytes` limits the uncompressed bytes of a chunk; an empty message counts, too."""
    chunks = list(column_chunks(message_set(10, value=b"v" * 99), chunk_bytes=410))
    assert [chunk.offsets.tolist() for chunk in chunks] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    wrappers = [
        message_set(10, value=b"", compression="gzip", base_offset=10 * n) for n in range(5)
    ]
    chunks = list(column_chunks(b"".join(wrappers), chunk_bytes=800))
    assert [len(chunk) for chunk in chunks] == [20, 20, 10]
