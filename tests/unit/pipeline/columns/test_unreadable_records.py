"""Tests that an unreadable record becomes a row with its bytes, in the order of the offsets."""

from __future__ import annotations

import gzip
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from kproto_pipeline.columns import EVENT_SCHEMA, events_as_arrow
from kproto_pipeline.columns.arrow_records import RECORD_SCHEMA, records_as_arrow
from kproto_pipeline.columns.to_arrow import arrow_batches

from kproto.records import encode_batch
from kproto.records.varints import encode_varint
from kproto.wire.errors import CorruptBatchError
from tests.unit.records.batches import T, batch_bytes, record_bytes

CORRUPT = "_corrupt_record"
HEADER = b"\x02\x04\xff\xfe\x02x"


def numbered(at: int, **parts: Any) -> bytes:
    return record_bytes(offset_delta=encode_varint(at), **parts)


def batch(*records: bytes, base_offset: int, codec: int = 1) -> bytes:
    payload = b"".join(records)
    return batch_bytes(
        gzip.compress(payload) if codec else payload,
        attributes=codec,
        record_count=len(records),
        last_offset_delta=len(records) - 1,
        base_offset=base_offset,
    )


def good(base_offset: int, count: int) -> bytes:
    return encode_batch([(b"k", b"v", [("h", b"1")], T)] * count, base_offset=base_offset)


BROKEN = numbered(1, length=2)
NOISE = batch_bytes(b"noise", attributes=1, base_offset=5, record_count=2, last_offset_delta=1)


def rows(data: bytes, to_arrow: Any = records_as_arrow, schema: Any = RECORD_SCHEMA) -> list[Any]:
    with_column = schema.append(pa.field(CORRUPT, pa.binary()))
    convert = partial(to_arrow, topic="t", partition=3, schema=with_column, corrupt_column=CORRUPT)
    found = []
    for each in arrow_batches(data, convert, start=1, end=9, keep_unreadable=True):
        each.validate(full=True)
        found += each.to_pylist()
    return found


@pytest.mark.parametrize("codec", [0, 1])
def test_unreadable_record_is_a_row_with_its_bytes(codec: int) -> None:
    middle = batch(
        numbered(0),
        numbered(1, header_block=b"\x01"),
        numbered(2, header_block=HEADER),
        base_offset=2,
        codec=codec,
    )
    found = rows(good(0, 2) + middle + NOISE + good(7, 3))
    assert [row["offset"] for row in found] == [1, 2, 3, 4, 5, 7, 8]
    for row in found:
        assert (row["topic"], row["partition"]) == ("t", 3)
        raw = {3: numbered(1, header_block=b"\x01"), 5: NOISE}.get(row["offset"])
        assert row[CORRUPT] == raw
        others = [row[name] for name in ("key", "value", "timestamp", "timestampType", "headers")]
        assert (others == [None] * 5) == (raw is not None)
    assert found[3]["headers"] == [{"key": "\ufffd\ufffd", "value": b"x"}]
    assert (found[3]["key"], found[3]["value"], found[3]["timestampType"]) == (b"k", b"v", 0)


def test_records_without_faults_have_a_null_column() -> None:
    found = rows(good(1, 3))
    assert [row[CORRUPT] for row in found] == [None] * 3
    assert rows(batch(numbered(0), base_offset=100)) == []


def test_unreadable_event_has_the_reason_as_its_error() -> None:
    found = rows(batch(numbered(0), BROKEN, base_offset=1), events_as_arrow, EVENT_SCHEMA)
    assert [row[CORRUPT] for row in found] == [None, BROKEN]
    assert found[0]["value"] == b"v"
    assert found[1]["error"].startswith("record 1, key: ")
    assert found[1]["value"] is None
    assert found[1]["offset"] == 2


def test_unreadable_record_is_an_error_by_default() -> None:
    data = good(0, 2) + batch(numbered(0), BROKEN, base_offset=2)
    made = arrow_batches(data, partial(records_as_arrow, topic="t", partition=0))
    assert next(made)["offset"].to_pylist() == [0, 1]
    with pytest.raises(CorruptBatchError):
        next(made)


def test_wrong_checksum_is_an_error_also_with_unreadable_rows() -> None:
    """A wrong checksum is no unreadable record: another replica or fetch may have right bytes."""
    data = bytearray(good(1, 2))
    data[-1] ^= 1
    with pytest.raises(CorruptBatchError, match="CRC"):
        rows(bytes(data))
