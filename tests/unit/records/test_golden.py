"""Tests batches that Kafka's Java classes wrote: kproto reads them, and writes equal bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kproto.records import (
    Header,
    NewRecord,
    RecordBatch,
    encode_batch,
    read_batches,
    read_records,
)

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
CASES = {case["name"]: case for case in GOLDEN["cases"]}
T = 1_767_225_600_000

FEW: list[NewRecord] = [
    (b"k1", b"v1", (), T),
    (
        None,
        b"value of a null key",
        [("a", b"1"), ("a", b"2"), ("null", None), ("empty", b""), ("é√", b"\x00x")],
        T + 5,
    ),
    (b"", None, [("", b"")], T - 7),
    (None, None, (), T + 100_000),
    (b"k", b"", (), T + 1),
]


def many_records() -> list[NewRecord]:
    """Returns 90 small records and a large one, as the compressed golden batches have."""
    records: list[NewRecord] = []
    for i in range(90):
        headers: list[Header] = [("n", f"{i}".encode())]
        value = "value " * (1 + i % 5) + f"{i}"
        records.append((f"key-{i}".encode(), value.encode(), headers, T + i * 3))
    return [*records, (b"large", b"x" * 70_000, (), T + 1000)]


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_java_is_read_as_java_reads_it(name: str) -> None:
    data = bytes.fromhex(CASES[name]["hex"])
    batches = list(read_batches(data, allow_partial=False))
    described = CASES[name]["batches"]
    assert len(batches) == len(described)
    for batch, expected in zip(batches, described, strict=True):
        for field, value in expected.items():
            if field != "records":
                assert getattr(batch, field) == value, field
        if "records" in expected:
            records: list[Any] = [
                (offset, at, unhex(key), unhex(value), [(n, unhex(v)) for n, v in headers])
                for offset, at, key, value, headers in expected["records"]
            ]
        else:
            records = [
                (1000 + i, at, key, value, list(headers))
                for i, (key, value, headers, at) in enumerate(many_records())
            ]
        read = batch.records()
        assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in read] == records
        assert {r.timestamp_type for r in read} <= {expected["timestamp_type"]}
    assert b"".join(batch.raw for batch in batches) == data


PRODUCED: dict[str, dict[str, Any]] = {
    "plain": {},
    "idempotent": {"producer_id": 4711, "producer_epoch": 3, "base_sequence": 2147483646},
    "transactional": {
        "producer_id": 4711,
        "producer_epoch": 3,
        "base_sequence": 10,
        "is_transactional": True,
    },
}


@pytest.mark.parametrize("name", PRODUCED)
def test_a_batch_is_written_byte_for_byte_as_java_writes_it(name: str) -> None:
    assert encode_batch(FEW, **PRODUCED[name]).hex() == CASES[name]["hex"]


def test_a_control_batch_is_written_as_java_writes_it() -> None:
    stored = bytes.fromhex(CASES["end of transaction"]["hex"])
    [record] = RecordBatch(stored).records()
    written = encode_batch(
        [(record.key, record.value, (), record.timestamp)],
        producer_id=4711,
        producer_epoch=3,
        is_transactional=True,
        is_control=True,
        base_offset=60,
        partition_leader_epoch=2,
    )
    assert written == stored


def test_control_batches_are_not_given_out_as_records() -> None:
    assert list(read_records(bytes.fromhex(CASES["end of transaction"]["hex"]))) == []


def test_next_offset_counts_what_compaction_removed() -> None:
    batch = RecordBatch(bytes.fromhex(CASES["compacted, with gaps"]["hex"]))
    assert [record.offset for record in batch.records()] == [503, 504, 900]
    assert batch.next_offset == 901
    empty = RecordBatch(bytes.fromhex(CASES["empty"]["hex"]))
    assert empty.records() == []
    assert empty.next_offset == 30
