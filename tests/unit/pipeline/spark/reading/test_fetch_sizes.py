"""Tests that the first fetch of a small range is limited by the record sizes of earlier fetches."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.spark.options.option_table import parse_read_options
from kproto_pipeline.spark.planning.offset_ranges import OffsetRange
from kproto_pipeline.spark.reading import range_fetcher
from kproto_pipeline.spark.reading.range_fetcher import (
    fetch_ranges,
    first_fetch_bytes,
    record_fetch_size,
)

from tests.unit.client.scripted_broker import ScriptedBroker
from tests.unit.client.scripted_log import ScriptedLog, batch

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    range_fetcher._bytes_of_offset.clear()


def test_first_fetch_of_an_unknown_topic_has_full_size() -> None:
    assert first_fetch_bytes(OffsetRange("t", 0, 0, 10), MIB) == MIB


def test_first_fetch_is_twice_the_estimated_size() -> None:
    records = batch(0, [b"v" * 936] * 10) + batch(10, [b"more"] * 1_000)
    first = len(batch(0, [b"v" * 936] * 10))
    record_fetch_size("t", records, 10, 10)
    assert first_fetch_bytes(OffsetRange("t", 1, 5, 105), MIB) == (64 << 10) + 2 * first * 10
    assert first_fetch_bytes(OffsetRange("t", 1, 0, 100_000), MIB) == MIB
    assert first_fetch_bytes(OffsetRange("u", 1, 0, 1), MIB) == MIB, "another topic"


@given(records=st.binary(max_size=100), offsets=st.integers(1, 1000), end=st.integers(0, 2**63))
def test_random_bytes_give_a_size(records: bytes, offsets: int, end: int) -> None:
    record_fetch_size("t", records, offsets, end)
    assert 0 <= first_fetch_bytes(OffsetRange("t", 0, 0, 1_000), 100) <= 100


def test_number_of_remembered_topics_is_bounded() -> None:
    for number in range(2_500):
        record_fetch_size(f"t{number}", b"", 1, 1)
    assert len(range_fetcher._bytes_of_offset) <= 1_000


async def test_only_the_first_fetch_of_a_range_is_small() -> None:
    """If the records are larger than before, further fetches read the rest of the range."""
    async with ScriptedBroker({"t": 1}) as broker:
        log = ScriptedLog(broker)
        for offset in range(20):
            log.append(batch(offset, [b"v" * (10 if offset < 10 else 100_000)]))
        options = parse_read_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        )

        async def asked(start: int, end: int) -> list[int]:
            """Returns the `partition_max_bytes` of each fetch of one range."""
            log.fetches.clear()
            ranges = [OffsetRange("t", 0, start, end)]
            await asyncio.to_thread(list, fetch_ranges(options, ranges))
            return [each.topics[0].partitions[0].partition_max_bytes for each in log.fetches]

        assert await asked(0, 5) == [8 * MIB]
        (second,) = await asked(5, 10)
        assert 64 << 10 < second < 66 << 10
        first, *behind = await asked(10, 20)
        assert first < 66 << 10
        assert set(behind) <= {8 * MIB}
