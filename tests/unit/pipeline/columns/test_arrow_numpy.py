"""Tests that conversions between Arrow and NumPy equal pyarrow's, and import no pandas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.columns.arrow_numpy import (
    binary_scalar,
    boolean_array,
    boolean_values,
    empty_bytes,
    integer_values,
    lengths,
    null_mask,
    number_array,
    repeated_text,
)

TEXTS = st.lists(st.none() | st.text(max_size=5), max_size=20)
WHOLE = st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=20)
SKIPPED = st.integers(0, 3)


@given(values=WHOLE, skipped=SKIPPED)
def test_numbers(values: list[int | None], skipped: int) -> None:
    missing = np.array([value is None for value in values], dtype=np.bool_)
    for dtype, kind in ((np.int32, pa.int32()), (np.int64, pa.int64())):
        plain = np.array([value or 0 for value in values], dtype=dtype)
        made = number_array(plain, null=missing)
        made.validate(full=True)
        assert made.equals(pa.array(values, kind))
        assert number_array(plain).equals(pa.array(plain))
        assert integer_values(made[skipped:]).tolist() == plain[skipped:].tolist()
        found = null_mask(made[skipped:])
        assert (found is None) == (not missing[skipped:].any())
        assert found is None or found.tolist() == missing[skipped:].tolist()


def test_another_type_over_the_same_memory() -> None:
    kind = pa.timestamp("us", tz="UTC")
    assert number_array(np.array([5, 7]), kind).equals(pa.array([5, 7], kind))


@given(values=st.lists(st.none() | st.booleans(), max_size=20), skipped=SKIPPED)
def test_booleans(values: list[bool | None], skipped: int) -> None:
    array = pa.array(values, pa.bool_())[skipped:]
    for null in (True, False):
        wanted = [null if value is None else value for value in values[skipped:]]
        assert boolean_values(array, null=null).tolist() == wanted
        assert boolean_array(np.array(wanted, dtype=np.bool_)).equals(pa.array(wanted, pa.bool_()))


@given(values=TEXTS, skipped=SKIPPED)
def test_lengths(values: list[str | None], skipped: int) -> None:
    for kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        array = pa.array([v if v is None else v.encode() for v in values]).cast(kind)[skipped:]
        wanted = pc.fill_null(pc.binary_length(array), -1).to_pylist()
        assert lengths(array, null=-1).tolist() == wanted


@given(text=st.text(max_size=5), count=st.integers(0, 5))
def test_repeated_text_and_binary_scalars(text: str, count: int) -> None:
    assert repeated_text(text, count).equals(pa.array([text] * count, pa.string()))
    assert empty_bytes(count).equals(pa.array([b""] * count, pa.binary()))
    assert binary_scalar(text.encode()).equals(pa.scalar(text.encode(), pa.binary()))


PROGRAM = """
import sys
from functools import partial
import kproto_pipeline.spark.data_source
from kproto.records import GrowingBatch
from kproto_pipeline.columns import arrow_batches, events_as_arrow, records_as_arrow
batch = GrowingBatch()
headers = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t")]
headers += [("ce_time", b"2026-01-01T00:00:00Z"), ("ce_a", b"x"), ("content-type", b"text/plain")]
batch.append(b"k", None, headers, 5, 1 << 20)
batch.append(None, b"v", headers[:4], 5, 1 << 20)
for convert in (records_as_arrow, events_as_arrow):
    (found,) = arrow_batches(batch.build(), partial(convert, topic="t", partition=0))
    assert found.num_rows == 2
assert "pandas" not in sys.modules
"""


@pytest.mark.slow
def test_reading_does_not_import_pandas() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
