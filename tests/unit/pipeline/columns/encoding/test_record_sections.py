"""Tests encoding records and key hashes by column: the results equal the client's results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.columns.arrow_records import RECORD_SCHEMA
from kproto_pipeline.columns.encoding import (
    fixed_columns,
    headers_of_lists,
    partition_hashes,
    record_sections,
)
from kproto_pipeline.columns.encoding.varints import varint_sizes, varints

from kproto.client.producer.murmur2 import murmur2
from kproto.records import GrowingBatch
from kproto.records.varints import encode_varint

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]

BYTES = st.none() | st.binary(max_size=300)
ROWS = st.lists(
    st.tuples(
        BYTES,
        BYTES,
        st.none() | st.lists(st.tuples(st.text(max_size=70), BYTES), max_size=3),
    ),
    min_size=1,
    max_size=70,
)


def columns(rows: list[Row]) -> tuple[pa.Array, pa.Array, pa.Array]:
    headers = [
        None if each is None else [{"key": key, "value": value} for key, value in each]
        for _, _, each in rows
    ]
    return (
        pa.array([key for key, _, _ in rows], pa.binary()),
        pa.array([value for _, value, _ in rows], pa.binary()),
        pa.array(headers, RECORD_SCHEMA.field("headers").type),
    )


@given(ROWS, st.integers(1, 3_000))
@pytest.mark.slow
def test_the_bytes_are_those_of_the_client(rows: list[Row], batch_bytes: int) -> None:
    keys, values, headers = columns(rows)
    following = 0
    for section in record_sections(
        keys, values, headers_of_lists(headers), batch_bytes=batch_bytes
    ):
        assert section.first == following
        following += section.count
        expected = GrowingBatch()
        for key, value, found in rows[section.first : following]:
            expected.append(key, value, found or [], 5, 2**31 - 1)
        assert section.data == b"".join(expected.parts)
        assert section.count == 1 or len(section.data) <= batch_bytes
    assert following == len(rows)


@given(ROWS, st.integers(0, 69))
def test_slice_is_encoded_like_its_rows(rows: list[Row], first: int) -> None:
    keys, values, headers = (each.slice(min(first, len(rows))) for each in columns(rows))
    sections = list(record_sections(keys, values, headers_of_lists(headers), batch_bytes=1_000_000))
    expected = GrowingBatch()
    for key, value, found in rows[first:]:
        expected.append(key, value, found or [], 5, 2**31 - 1)
    assert b"".join(each.data for each in sections) == b"".join(expected.parts)


@given(ROWS, st.lists(st.integers(0, 70), max_size=8), st.integers(1, 3_000))
def test_groups_are_encoded_like_separate_rows(
    rows: list[Row], bounds: list[int], batch_bytes: int
) -> None:
    keys, values, headers = columns(rows)
    ends = [*sorted(min(each, len(rows)) for each in bounds), len(rows)]
    found = record_sections(
        keys, values, headers_of_lists(headers), batch_bytes=batch_bytes, ends=ends
    )
    expected = []
    for first, end in pairwise([0, *ends]):
        its = [each.slice(first, end - first) for each in (keys, values, headers)]
        expected += [
            (first + section.first, section.count, section.data)
            for section in record_sections(
                its[0], its[1], headers_of_lists(its[2]), batch_bytes=batch_bytes
            )
        ]
    assert [(each.first, each.count, each.data) for each in found] == expected


@given(ROWS, st.data(), st.integers(1, 3_000))
def test_rows_in_another_order_are_encoded_like_taken_rows(
    rows: list[Row], data: st.DataObject, batch_bytes: int
) -> None:
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    keys, values, headers = columns(rows)
    found = record_sections(
        keys, values, headers_of_lists(headers), batch_bytes=batch_bytes, order=order
    )
    taken = [each.take(pa.array(order)) for each in (keys, values, headers)]
    expected = record_sections(
        taken[0], taken[1], headers_of_lists(taken[2]), batch_bytes=batch_bytes
    )
    assert list(found) == list(expected)


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-70, 9_000), max_size=40))
def test_varints_and_their_sizes_are_those_of_records(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.int64)
    expected = [encode_varint(number) for number in numbers]
    assert varints(array).to_pylist() == expected
    assert varint_sizes(array).tolist() == list(map(len, expected))


NAMES = st.lists(st.text(max_size=12), min_size=1, max_size=6)


@given(
    NAMES,
    st.data(),
    st.integers(64, 200),
    st.sampled_from([(3,), (0,), (1, 5), (0, 100, 7), tuple(range(40)), (0, 2_500)]),
    st.integers(0, 3),
)
def test_headers_with_common_names_are_those_of_the_client(
    names: list[str], data: st.DataObject, count: int, sizes: tuple[int, ...], skipped: int
) -> None:
    """The same names in every record, with one, few or many layouts."""
    chance = data.draw(st.randoms(use_true_random=False))
    rows: list[Row] = [
        (
            None,
            b"",
            [
                (name, chance.choice(b"ab\xff").to_bytes(1, "big") * chance.choice(sizes))
                for name in names
            ],
        )
        for _ in range(count)
    ]
    if data.draw(st.booleans()):  # a record breaks the rule
        at = chance.randrange(count)
        given = rows[at][2] or []
        others: list[list[tuple[str, bytes | None]]] = [
            [],
            [("other", b"v")],
            [(names[0], None), *given[1:]],
            [("x", b""), *given[1:]],
        ]
        rows[at] = (None, b"", chance.choice(others))
    keys, values, headers = (each.slice(skipped) for each in columns(rows))
    expected = GrowingBatch()
    for key, value, found in rows[skipped:]:
        expected.append(key, value, found or [], 5, 2**31 - 1)
    sections = list(record_sections(keys, values, headers_of_lists(headers), batch_bytes=1 << 30))
    assert b"".join(each.data for each in sections) == b"".join(expected.parts)


@pytest.mark.parametrize("has_headers", [False, True])
@pytest.mark.parametrize("groups", [1, 3, 400])
def test_rows_of_one_layout_are_those_of_the_client(
    groups: int, has_headers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows in any order, in several parts, with offset deltas of one, two and three bytes."""
    monkeypatch.setattr(fixed_columns, "_PART_BYTES", 40_000)
    rows: list[Row] = [
        (
            b"%05d" % number,
            b"value %05d" % number,
            [("one", b"%05d" % number), ("none", b""), ("same", b"x")] if has_headers else None,
        )
        for number in range(20_000)
    ]
    groups_of_rows = np.random.default_rng(1).integers(0, groups, len(rows))
    order = np.argsort(groups_of_rows, kind="stable")
    ends = np.cumsum(np.bincount(groups_of_rows)).tolist()
    keys, values, headers = columns(rows)
    found = record_sections(
        keys,
        values,
        headers_of_lists(headers),
        batch_bytes=600_000,
        order=order,
        ends=ends,
    )
    following = 0
    for section in found:
        assert section.first == following
        following += section.count
        expected = GrowingBatch()
        for number in order[section.first : following].tolist():
            key, value, its_headers = rows[number]
            expected.append(key, value, its_headers or [], 5, 2**31 - 1)
        assert section.data == b"".join(expected.parts)
    assert following == len(rows)


def test_joined_headers_are_those_of_single_rows() -> None:
    lists = [
        [{"key": "a", "value": b"%03d" % each}, {"key": "b", "value": b""}] for each in range(80)
    ]
    kind = RECORD_SCHEMA.field("headers").type
    together = headers_of_lists(pa.array(lists, kind))
    assert together.fixed is not None
    assert together.data.to_pylist() == [
        headers_of_lists(pa.array([each], kind)).data[0].as_py() for each in lists
    ]


def test_multi_byte_lengths() -> None:
    rows: list[Row] = [(b"k" * 70, b"v" * 9_000, None), (None, b"v" * 1_200_000, None)]
    keys, values, headers = columns(rows)
    (section,) = record_sections(keys, values, headers_of_lists(headers), batch_bytes=2_000_000)
    expected = GrowingBatch()
    for key, value, _ in rows:
        expected.append(key, value, [], 5, 2**31 - 1)
    assert section.data == b"".join(expected.parts)


def test_null_header_key_names_its_row() -> None:
    lists = pa.array(
        [[], [{"key": "a", "value": b""}], [{"key": None, "value": b""}]],
        RECORD_SCHEMA.field("headers").type,
    )
    with pytest.raises(ValueError, match="the key of a header is null") as caught:
        headers_of_lists(lists)
    assert caught.value.args[1] == 2


@given(
    st.lists(st.binary(max_size=40), max_size=50)
    | st.integers(0, 17).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size))),
    st.integers(0, 5),
)
def test_hashes_are_those_of_kafka(keys: list[bytes], skipped: int) -> None:
    array = pa.array(keys, pa.binary()).slice(min(skipped, len(keys)))
    expected = [murmur2(key) & 0x7FFFFFFF for key in keys[skipped:]]
    assert partition_hashes(array).tolist() == expected
