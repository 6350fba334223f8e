"""Tests that a growing batch has the same bytes as a batch that is built at once.

Also tests reading the records of a growing batch.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import ENCODE_FAILURES, GrowingBatch, NewRecord, encode_batch
from kproto.records.magic2 import growing_batch, run_encoding
from kproto.wire.compiled import __compiled__
from kproto.wire.errors import CorruptBatchError

from ..batches import T, contents, new_records

NO_BOUND = 1 << 30


def grown(records: list[NewRecord]) -> GrowingBatch:
    batch = GrowingBatch()
    for record in records:
        before = batch.size_in_bytes
        assert batch.append(*record, NO_BOUND) == batch.size_in_bytes - before
    return batch


@given(new_records, st.sampled_from(["none", "gzip", "zstd"]))
def test_a_growing_batch_has_the_bytes_of_a_batch_made_at_once(
    records: list[NewRecord], compression: str
) -> None:
    batch = grown(records)
    expected = encode_batch(
        records, compression=compression, producer_id=7, producer_epoch=1, base_sequence=9
    )
    for _ in range(2):  # a retry builds the batch again
        made = batch.build(
            compression=compression, producer_id=7, producer_epoch=1, base_sequence=9
        )
        assert made == expected
    assert batch.size_in_bytes == len(encode_batch(records))
    assert batch.count == len(records)


@given(new_records)
def test_appended_records_can_be_read_again(records: list[NewRecord]) -> None:
    batch = grown(records)
    assert contents(batch.records()) == records
    timestamps = [timestamp for *_, timestamp in records]
    assert [batch.timestamp_of(at) for at in range(len(records))] == timestamps
    batch.forget()
    assert [batch.timestamp_of(at) for at in range(len(records))] == timestamps
    assert (batch.count, batch.parts) == (len(records), [])


@given(new_records)
def test_each_appended_record_can_be_read_alone(records: list[NewRecord]) -> None:
    batch = GrowingBatch()
    for at, record in enumerate(records):
        batch.append(*record, NO_BOUND)
        assert contents([batch.record_at(at)]) == [record]
    assert [batch.record_at(at) for at in range(batch.count)] == batch.records()
    with pytest.raises(IndexError):
        batch.record_at(batch.count)


@pytest.mark.parametrize("data", [b"\x0e\x00\x00\x00\x01\x02", b"\x0e", b"", b"\x0f" + bytes(20)])
def test_reading_a_record_of_invalid_bytes_raises(data: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        GrowingBatch.of_encoded(data, 1, 0).record_at(0)


@given(new_records)
def test_record_sizes_are_those_of_the_appended_records(records: list[NewRecord]) -> None:
    batch = GrowingBatch()
    added = [batch.append(*record, NO_BOUND) for record in records]
    empty = GrowingBatch().size_in_bytes
    assert batch.record_sizes() == added
    assert batch.size_in_bytes == empty + sum(added)


@given(new_records, new_records)
@pytest.mark.slow
def test_a_batch_grows_after_its_records_are_read(
    records: list[NewRecord], more: list[NewRecord]
) -> None:
    batch = grown(records)
    assert contents(batch.records()) == records
    for record in more:
        batch.append(*record, NO_BOUND)
    assert batch.build() == encode_batch(records + more)


@given(new_records, st.integers(1, 30_000))
def test_a_batch_never_exceeds_its_limit(records: list[NewRecord], limit: int) -> None:
    batch = GrowingBatch()
    accepted: list[NewRecord] = []
    for record in records:
        before = batch.build() if accepted else b""
        if batch.append(*record, limit):
            accepted.append(record)
            assert batch.size_in_bytes <= limit or len(accepted) == 1
        else:
            assert batch.build() == before, "a record that does not fit changes the batch"
            assert len(encode_batch([*accepted, record])) > limit
    assert accepted[0] == records[0], "the first record is refused"
    assert batch.build() == encode_batch(accepted)


sizes = st.integers(0, 150) | st.sampled_from([8_180, 8_190, 8_191, 8_192, 20_000])
header_values = st.none() | st.binary(max_size=30) | st.sampled_from([bytes(127), bytes(9_000)])


@st.composite
def headers_of_runs(draw: st.DrawFn, records: int) -> list[list[tuple[str, bytes | None]]] | None:
    """Returns the headers of each record: often with the same names; None for no headers."""
    if draw(st.booleans()):
        return None
    names = draw(st.lists(st.text(max_size=5), max_size=3))
    may_differ = draw(st.booleans())
    of_name = header_values if draw(st.booleans()) else st.binary(max_size=127)
    return [
        [
            (name, draw(of_name))
            for name in (draw(st.permutations(names)) if may_differ else names)
            if not may_differ or draw(st.booleans())
        ]
        for _ in range(records)
    ]


@given(
    st.integers(0, 200) | st.sampled_from([8_100, 8_192, 65_530]),
    st.lists(sizes, min_size=1, max_size=150),
    st.none() | st.tuples(st.integers(0, 100), st.integers(1, 90)),
    st.integers(0, 5_000),
    st.booleans() | st.integers(100, 60_000),
    st.data(),
)
def test_a_run_of_records_has_the_bytes_of_records_appended_alone(
    before: int,
    sizes: list[int],
    key_sizes: tuple[int, int] | None,
    delta: int,
    limit: int,
    data: st.DataObject,
) -> None:
    limit = limit if limit > 1 else NO_BOUND
    run, alone = filled(before), filled(before)
    values = [bytes([at % 256]) * size for at, size in enumerate(sizes)]
    keys = None
    if key_sizes is not None:
        least, different = key_sizes
        keys = [bytes([at]) * (least + at % different) for at in range(len(values))]
    headers = data.draw(headers_of_runs(len(values)))
    taken, grown_by = run.append_run(keys, values, T + delta, limit, headers)
    assert run.count == before + taken
    for at, value in enumerate(values[:taken]):
        key = None if keys is None else keys[at]
        its = () if headers is None else headers[at]
        grown_by -= alone.append(key, value, its, T + delta, NO_BOUND)
    assert grown_by == 0
    if taken:
        assert b"".join(run.parts) == b"".join(alone.parts)
        assert run.size_in_bytes == alone.size_in_bytes <= limit
        assert run.build() == alone.build()
    if limit == NO_BOUND:
        assert run.count == min(before + len(values), 65_536), "a record is left out"


def filled(count: int) -> GrowingBatch:
    """Returns a batch of `count` empty records."""
    batch = GrowingBatch()
    while batch.count < count:
        batch.append_run(None, [b""] * (count - batch.count), T, NO_BOUND)
    return batch


@pytest.mark.skipif(__compiled__, reason="compiled code calls its own encode_run")
def test_a_run_encodes_few_more_records_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []

    def counting(
        head: bytes, deltas: list[bytes], keys: list[bytes], values: list[bytes], headers: Any
    ) -> list[bytes]:
        encoded.append(len(values))
        return run_encoding.encode_run(head, deltas, keys, values, headers)

    monkeypatch.setattr(growing_batch, "encode_run", counting)
    values, keys = [b"v"] * 1_000, [b"k"] * 1_000
    taken, _ = GrowingBatch().append_run(keys, values, T, 5_000, [[("h", bytes(100))]] * 1_000)
    assert taken > 40
    assert encoded in ([taken], [taken + 1])


@pytest.mark.parametrize("bad", [[("h",)], [("h", 7)], [(b"h", b"v")], [("\ud800", b"v")], ["h"]])
def test_a_run_with_bad_headers_is_refused_whole(bad: Any) -> None:
    batch = filled(3)
    before = batch.build()
    with pytest.raises(ENCODE_FAILURES):
        batch.append_run([b"k"] * 2, [b"v"] * 2, T, NO_BOUND, [[("h", b"v")], bad])
    with pytest.raises(ENCODE_FAILURES):
        batch.append_run([b"k"] * 2, [b"v"] * 2, T, NO_BOUND, [bad, bad])
    assert batch.build() == before


BAD: list[tuple[Any, Any, Any, Any]] = [
    ("text", b"v", (), T),
    (b"k", 3, (), T),
    (b"k", b"v", [("h", "text")], T),
    (b"k", b"v", [(b"h", b"v")], T),
    (b"k", b"v", [("h",)], T),
    (b"k", b"v", [("\ud800", b"v")], T),
    (b"k", b"v", 7, T),
    (b"k", b"v", (), 1 << 63),
    (b"k", b"v", (), -2),
    (b"k", b"v", (), None),
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("good", [[], [(b"k", b"v", [], T)]], ids=["first", "second"])
def test_a_refused_record_does_not_change_the_batch(good: list[NewRecord], bad: Any) -> None:
    batch = grown(good)
    with pytest.raises(ENCODE_FAILURES):
        batch.append(bad[0], bad[1], bad[2], bad[3], NO_BOUND)
    assert batch.count == len(good)
    later: NewRecord = (None, b"later", [], T - 5)
    assert batch.append(*later, NO_BOUND)
    assert batch.build() == encode_batch([*good, later])
    assert contents(batch.records()) == [*good, later]


def test_timestamp_above_the_maximum_is_refused_after_the_maximum() -> None:
    batch = GrowingBatch()
    most = (1 << 63) - 1
    assert batch.append(None, b"v", (), most, NO_BOUND)
    with pytest.raises(ENCODE_FAILURES):
        batch.append(None, b"v", (), most + 1, NO_BOUND)
    assert [record.timestamp for record in batch.records()] == [most]


@pytest.mark.slow
def test_record_sizes_include_long_lengths() -> None:
    batch = GrowingBatch()
    added = [
        batch.append(None, bytes(size), (), 0, NO_BOUND) for size in (0, 56, 57, 9_000, 70_000)
    ]
    assert batch.record_sizes() == added


def test_many_small_and_large_records_are_appended() -> None:
    """Some offset deltas and lengths take three bytes or more, so the varint table lacks them."""
    records: list[NewRecord] = [(None, b"", [], T + at // 7) for at in range(20_000)]
    records += [(b"k" * 9_000, b"v" * 100_000, [], T), (b"k" * 9_000, None, [], T)]
    assert grown(records).build() == encode_batch(records)
    assert contents(grown(records).records()) == records


def test_a_batch_of_more_records_than_encoded_deltas_has_the_bytes_of_one_made_at_once() -> None:
    records: list[NewRecord] = [(None, b"v", (), T)] * 70_000
    assert grown(records).build() == encode_batch(records)


def test_a_refused_timestamp_keeps_the_last_one() -> None:
    batch = grown([(None, b"first", [], T)])
    batch.stamp(T + 1_000)  # no record has this timestamp yet
    with pytest.raises(ENCODE_FAILURES):
        batch.append(None, b"v", (), 1 << 63, NO_BOUND)
    batch.append(None, b"second", (), T + 1_000, NO_BOUND)
    assert batch.timestamp_of(1) == batch.max_timestamp == T + 1_000
    assert [record.timestamp for record in batch.records()] == [T, T + 1_000]
