"""Tests fetching ranges: concurrency, next offsets, corrupt batches, a failing event loop.

A range is a part of a partition, from a start offset to an end offset.
"""

from __future__ import annotations

import asyncio
import errno
import struct
from contextlib import suppress
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.columns.chunks import column_chunks
from kproto_pipeline.spark.client_pool import close_clients
from kproto_pipeline.spark.options.option_table import parse_read_options
from kproto_pipeline.spark.planning.offset_ranges import DataLossError, OffsetRange
from kproto_pipeline.spark.reading.range_fetcher import FetchedBytes, fetch_ranges, next_offset

from kproto import CorruptBatchError
from tests.unit.client.scripted_broker import ScriptedBroker
from tests.unit.client.scripted_log import ScriptedLog, batch
from tests.unit.pipeline.columns.fetch_strategies import fetches
from tests.unit.pipeline.columns.two_records import GOOD, HEADERS_OF_NONE


def test_failing_event_loop_is_raised_by_the_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If no file descriptor is free, no event loop starts; the reader must raise, and not wait."""

    def no_descriptor() -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    close_clients()  # closes the event loop of earlier tests
    monkeypatch.setattr(asyncio, "new_event_loop", no_descriptor)
    options = parse_read_options({"kafka.bootstrap.servers": "localhost:1", "subscribe": "flights"})
    with pytest.raises(OSError, match="Too many open files"):
        next(fetch_ranges(options, [OffsetRange("flights", 0, 0, 1)]))


DAMAGE = {
    "magic": (16, b"\x09", "unknown magic 9"),
    "length": (8, (2**31 - 13).to_bytes(4, "big"), "the data ends inside a batch"),
}


@pytest.mark.parametrize("kind", DAMAGE)
async def test_valid_batches_are_read_before_a_corrupt_one(kind: str) -> None:
    at, damage, reason = DAMAGE[kind]
    async with ScriptedBroker({"t": 1}) as broker:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"good"]))
        log.append(batch(1, [b"bad"]))
        log.damage(at, damage)
        options = parse_read_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        )
        arrived: list[FetchedBytes] = []

        def read() -> None:
            for _, fetched in fetch_ranges(options, [OffsetRange("t", 0, 0, 2)]):
                arrived.append(fetched)

        with pytest.raises(CorruptBatchError, match=reason) as caught:
            await asyncio.to_thread(read)
        assert caught.value.base_offset == 1
        first = next(column_chunks(arrived[0].records))
        assert first.offsets.tolist() == [0]


async def test_corrupt_last_offset_is_a_corrupt_batch() -> None:
    """The error must report the wrong checksum, not a fetch that makes no progress."""
    async with ScriptedBroker({"t": 1}) as broker:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"v"] * 5))
        log.damage(23, (-7).to_bytes(4, "big", signed=True))
        options = parse_read_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        )
        with pytest.raises(CorruptBatchError, match="CRC"):
            await asyncio.to_thread(list, fetch_ranges(options, [OffsetRange("t", 0, 0, 5)]))


@given(fetches())
@pytest.mark.slow
def test_next_offset_follows_the_last_complete_batch(data: bytes) -> None:
    expected, position = 3, 0
    while position + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, position)
        if position + 12 + length > len(data):
            break
        expected = max(expected, base + struct.unpack_from(">i", data, position + 23)[0] + 1)
        position += 12 + length
    if data and not position:
        with pytest.raises(CorruptBatchError, match="at byte 0: the data ends inside a batch"):
            next_offset(data, 3)
    else:
        assert next_offset(data, 3) == expected


@given(st.binary(max_size=200))
def test_random_bytes_have_a_next_offset_or_are_corrupt(data: bytes) -> None:
    with suppress(CorruptBatchError):
        assert next_offset(data, 7) >= 7


@pytest.mark.parametrize("kind", HEADERS_OF_NONE)
@pytest.mark.parametrize("kind_of_good", GOOD)
def test_next_offset_ignores_bytes_after_the_end(kind: str, kind_of_good: str) -> None:
    data = GOOD[kind_of_good] + HEADERS_OF_NONE[kind]
    assert next_offset(data, 0, 2) == 2
    with pytest.raises(CorruptBatchError):
        next_offset(data, 0, 3)


@pytest.mark.slow
async def test_ranges_are_fetched_concurrently_and_read_in_order() -> None:
    """The test has more ranges than the reader fetches at once.

    The last range begins beyond the end of the log, so reading this range raises.
    """
    async with ScriptedBroker({"t": 1}) as broker:
        log = ScriptedLog(broker)
        for offset in range(30):
            log.append(batch(offset, [b"value %d" % offset]))
        options = parse_read_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        )
        ranges = [OffsetRange("t", 0, offset, offset + 1) for offset in (*range(20, 30), 5, 31)]
        arrived: list[tuple[OffsetRange, list[int]]] = []

        def read() -> None:
            for wanted, fetched in fetch_ranges(options, ranges):
                chunks = column_chunks(fetched.records, start=wanted.start, end=wanted.end)
                arrived.append((wanted, [o for chunk in chunks for o in chunk.offsets.tolist()]))

        with pytest.raises(DataLossError, match="offset 31 is out of range"):
            await asyncio.to_thread(read)
        assert arrived == [(wanted, [wanted.start]) for wanted in ranges[:-1]]
