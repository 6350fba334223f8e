"""Tests `max_bytes` of builders: records may fill these bytes exactly, but not exceed them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    BatchBuilder,
    Header,
    MessageSetBuilder,
    encode_batch,
    encode_batches,
    encode_message_set,
)

from .batches import T, new_records


@given(new_records)
def test_a_batch_is_filled_to_the_last_byte(
    records: list[tuple[bytes | None, bytes | None, list[Header], int]],
) -> None:
    size = len(encode_batch(records))
    builder = BatchBuilder(max_bytes=size)
    assert builder.extend(records) is None
    assert builder.size_in_bytes == len(builder.build()) == size
    if size > 70:  # the smallest batch has 69 bytes; a lower bound is refused
        builder = BatchBuilder(max_bytes=size - 1)
        assert builder.extend(records) == records[-1]
        assert len(builder) == len(records) - 1
        assert builder.size_in_bytes < size
    assert [count for _, count in encode_batches(records, max_bytes=size)] == [len(records)]


@pytest.mark.parametrize("magic", [0, 1])
@given(values=st.lists(st.binary(max_size=300), min_size=1, max_size=10))
def test_a_message_set_is_filled_to_the_last_byte(magic: int, values: list[bytes]) -> None:
    records = [(b"key", value, (), T) for value in values]
    size = len(encode_message_set(records, magic=magic))
    builder = MessageSetBuilder(magic=magic, max_bytes=size)
    assert builder.extend(records) is None
    assert builder.size_in_bytes == len(builder.build()) == size
    builder = MessageSetBuilder(magic=magic, max_bytes=size - 1)
    assert builder.extend(records) == records[-1]
    assert len(builder) == len(records) - 1
    assert builder.size_in_bytes < size


def test_a_refused_record_can_be_the_first_of_the_next_batch() -> None:
    """If a record does not fit, `append` returns False and leaves the batch unchanged."""
    size = len(encode_batch([(None, bytes(100), (), T)]))
    builder = BatchBuilder(max_bytes=size)
    assert builder.append(None, bytes(100), timestamp=T)
    assert not builder.append(None, b"", timestamp=T)
    assert (len(builder), builder.size_in_bytes) == (1, size)
    builder.clear()
    assert not builder.append(None, bytes(101), timestamp=T)
    assert builder.append(None, bytes(100), timestamp=T)
