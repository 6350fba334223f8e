"""Tests that the memory of decompressed batches is reused, except while views of it exist."""

from __future__ import annotations

import pytest
from kproto_pipeline.columns.arena import MAX_SPARE_ARENAS
from kproto_pipeline.columns.chunks import column_chunks

from tests.unit.pipeline.columns.fetch_strategies import (
    CODEC_NAMES,
    compressed,
)


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_memory_of_live_columns_is_not_reused(codec: str) -> None:
    """Decoding later chunks and fetch responses must not change the memory of earlier columns."""
    kept = []
    for number in range(4):
        value = b"%d" % number * 500
        data = b"".join(compressed(codec, value, 3 * n) for n in range(6))
        kept += [(value, chunk) for chunk in column_chunks(data, chunk_bytes=8000)]
    assert len(kept) > 8
    for value, chunk in kept:
        for row in range(len(chunk)):
            assert chunk.value(row) == value
            assert chunk.headers(row) == [("h", value)]


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_memory_without_views_is_reused(codec: str) -> None:
    """All chunks must share a few buffers, because no view of an earlier chunk exists."""
    data = b"".join(compressed(codec, b"v" * 500, 3 * n) for n in range(40))
    memory = set()
    for chunk in column_chunks(data, chunk_bytes=8000):
        assert isinstance(chunk.buffer, memoryview)
        memory.add(id(chunk.buffer.obj))
    assert len(memory) <= MAX_SPARE_ARENAS + 1
