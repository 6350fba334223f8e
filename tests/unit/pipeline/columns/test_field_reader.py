"""Tests reading the fields of many records: in lockstep over all batches, and batch by batch."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from kproto_pipeline.columns import field_reader

from kproto.wire.errors import CorruptBatchError
from tests.support.selection import rest_slow
from tests.unit.pipeline.columns.decoded_rows import rows_of
from tests.unit.pipeline.columns.record_bytes import (
    PlainRecord,
    batch_bytes,
    read_records,
    resealed,
)


def test_many_batches_are_read_in_lockstep() -> None:
    """The test has more than `_LEAST_RUNS` batches, of which some are empty."""
    sizes = [(7 * n) % 5 for n in range(100)]
    data = b"".join(
        batch_bytes(
            [PlainRecord(i, i, b"k" * i, b"v" * (n * i), ((b"h", None),) * i) for i in range(size)],
            base_offset=10 * n,
        )
        for n, size in enumerate(sizes)
    )
    found = rows_of(data)
    assert found == read_records(data)
    assert len(found) == sum(sizes)


@pytest.mark.parametrize("place", rest_slow([17, 0, 39], 1))
def test_long_batch_among_short_ones_is_read_one_by_one(place: int) -> None:
    """In lockstep, each record of the long batch would need a NumPy call of its own."""
    sizes = [2 + n % 3 for n in range(40)]
    sizes[place] = 5000
    data = b"".join(
        batch_bytes(
            [PlainRecord(i, 0, None, b"v" * (i % 99)) for i in range(size)],
            base_offset=n * 5000,
        )
        for n, size in enumerate(sizes)
    )
    assert rows_of(data) == read_records(data)
    starts, ends, position = [], [], 0
    while position < len(data):
        starts.append(position + 61)
        position += 12 + int(struct.unpack_from(">i", data, position + 8)[0])
        ends.append(position)
    steps = 0

    class Counting(np.ndarray[Any, Any]):
        def take(self, *args: Any, **kwargs: Any) -> Any:
            nonlocal steps
            steps += 1
            return super().take(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field_reader, "_RECORD_BYTES", field_reader._RECORD_BYTES.view(Counting))
        found = field_reader.record_ends(data, starts, ends, sizes)
    assert steps == 2, "then fewer batches are left than a step is worth"
    assert found[np.cumsum(sizes) - 1].tolist() == ends
    with pytest.raises(CorruptBatchError, match="do not fill"):
        field_reader.record_ends(
            data, starts, [end - (n == place) for n, end in enumerate(ends)], sizes
        )


def test_multi_byte_record_lengths() -> None:
    """The lengths of the records take one to four bytes."""
    long = [PlainRecord(n, 0, None, b"x" * (7**n)) for n in range(8)]
    one = batch_bytes(long)
    assert rows_of(one) == read_records(one)
    many = b"".join(batch_bytes(long[:7], base_offset=7 * n) for n in range(40))
    assert rows_of(many) == read_records(many)


@pytest.mark.usefixtures("both_ways")
def test_a_record_with_very_many_headers_is_read() -> None:
    """One record has very many headers; the other records have few headers or none."""
    rows = [
        PlainRecord(n, 0, b"k", b"v", ((b"h", b"%d" % n),) * (5000 if n == 7 else n % 4))
        for n in range(60)
    ]
    data = batch_bytes(rows)
    assert rows_of(data) == read_records(data)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"\x01\x00", id="a null key"),
        pytest.param(b"\x02a\x7e", id="a value that is too long"),
        pytest.param(b"\xff\xff\xff\xff\xff\x01", id="a length of six bytes"),
        pytest.param(b"\x80", id="a length that does not end"),
    ],
)
def test_corrupt_header_names_its_batch(header: bytes) -> None:
    record = b"\x00\x00\x00\x01\x01\x02" + header
    data = batch_bytes([], base_offset=30)
    whole = bytearray(data + bytes([2 * len(record)]) + record)
    struct.pack_into(">i", whole, 57, 1)
    with pytest.raises(CorruptBatchError, match="batch base offset 30"):
        rows_of(resealed(bytes(whole)))
