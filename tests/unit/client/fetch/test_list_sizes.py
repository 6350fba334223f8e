"""Tests that lists of records and values have few bytes, however well their batches compress."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import pytest

from kproto.client.fetch.completed_fetch import CompletedFetch, UnreadBatch
from kproto.client.fetch.fetch_buffer import FetchBuffer
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.settings import ClientSettings
from kproto.records import Record, RecordBatch
from tests.unit.client.scripted_log import batch

LIST_BYTES = 1 << 20
LARGE = b"v" * 50_000  # with its key, a record has 100 KB

#: Lists of the records of a buffer, by each method that returns lists.
TAKES: dict[str, Callable[[FetchBuffer], list[bytes | None] | None]] = {
    "records": lambda buffer: values_of(buffer.take_records()),
    "values": lambda buffer: None if (found := buffer.take_values()) is None else found.values,
    "decoded": lambda buffer: values_of(buffer.take_decoded(lambda records: (records, None))),
    "poll": lambda buffer: (
        None
        if (found := buffer.take_polled(10_000)) is None
        else [record.value for records in found.values() for record in records]
    ),
}


def values_of(fetched: object) -> list[bytes | None] | None:
    records: Iterable[Record] | None = getattr(fetched, "records", None)
    return None if records is None else [record.value for record in records]


def completed(partition: int, *counts: int, value: bytes = LARGE, codec: str) -> CompletedFetch:
    """Returns a fetch of batches that have the given numbers of records."""
    made: list[UnreadBatch] = []
    offset = size = 0
    for count in counts:
        values = [b"%d %s" % (offset + n, value) for n in range(count)]
        data = batch(offset, values, compression=codec)
        made.append(UnreadBatch(offset, RecordBatch(data)))
        size += len(data)
        offset += count
    state = TopicPartitionState(("t", partition), ClientSettings(), position=offset)
    return CompletedFetch(
        state, made, size_in_bytes=size, high_watermark=offset, max_decompressed_bytes=1 << 30
    )


def numbers(values: Iterable[bytes | None]) -> list[int]:
    return [int(value.split()[0]) for value in values if value is not None]


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("take", TAKES)
def test_lists_of_large_records_are_short(take: str, codec: str) -> None:
    buffer = FetchBuffer(max_polled_bytes=LIST_BYTES)
    buffer.add(completed(0, *[5] * 60, codec=codec))
    read: list[int] = []
    while (found := TAKES[take](buffer)) is not None:
        assert len(found) <= 25  # the limit, and a list or batch that goes beyond it
        read += numbers(found)
    assert read == list(range(300))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_large_batch_is_returned_in_parts(codec: str) -> None:
    buffer = FetchBuffer()
    buffer.add(completed(0, 100, codec=codec))
    sizes: list[int] = []
    while (found := buffer.take_records()) is not None:
        assert numbers(values_of(found) or ())[0] == sum(sizes)
        sizes.append(len(found.records))
    assert sizes == [10] * 10


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("take", TAKES)
def test_small_batches_are_joined(take: str, codec: str) -> None:
    buffer = FetchBuffer()
    buffer.add(completed(0, *[5] * 90, value=b"small", codec=codec))
    found = TAKES[take](buffer)
    assert found is not None
    assert numbers(found) == list(range(450))


@pytest.mark.parametrize("take", TAKES)
def test_a_small_batch_before_a_large_one_is_a_list(take: str) -> None:
    """The large batch is decompressed, and does not fit; the next list begins with it."""
    buffer = FetchBuffer(max_polled_bytes=1)
    fetch = completed(0, 2, 30, 3, codec="gzip")
    buffer.add(fetch)
    read: list[list[int]] = []
    while (found := TAKES[take](buffer)) is not None:
        read.append(numbers(found))
    assert [*chain(*read)] == list(range(35))
    if take != "values":
        assert read[0] == [0, 1]
        assert max(map(len, read)) == 10


def test_few_batches_stay_decompressed_between_the_lists_of_run() -> None:
    """Ten partitions take turns, as if each had backpressure after each list."""
    limit = 2_500_000
    buffer = FetchBuffer(max_decompressed_bytes=limit)
    fetches = [completed(partition, 10, codec="gzip") for partition in range(10)]
    for fetch in fetches:
        buffer.add(fetch)
    read: dict[int, list[int]] = {}
    most_opened = 0
    while (found := buffer.take_records(200_000)) is not None:
        read.setdefault(found.partition, []).extend(numbers(values_of(found) or ()))
        state = fetches[found.partition].state
        buffer.pause_buffered(state)
        assert sum(each.decompressed_bytes for each in fetches) <= limit
        most_opened = max(most_opened, sum(each.decompressed_bytes > 0 for each in fetches))
        buffer.resume_buffered(state)
        assert sum(each.decompressed_bytes for each in fetches[1:]) <= limit
    assert read == {partition: list(range(10)) for partition in range(10)}
    assert most_opened == 2


@pytest.mark.parametrize("how", ["drop", "drop_paused", "drop_broken", "take_batch"])
def test_dropped_fetches_are_not_kept(how: str) -> None:
    buffer = FetchBuffer()
    fetch = completed(0, 30, codec="gzip")
    buffer.add(fetch)
    buffer.take_records(200_000)
    assert fetch.decompressed_bytes > 0
    if how == "drop":
        buffer.drop(fetch.state)
    elif how == "drop_paused":
        buffer.pause_buffered(fetch.state)
        buffer.drop_paused(1)
    elif how == "drop_broken":
        buffer.drop_broken()
    else:
        buffer.take_batch()
    assert not buffer._opened


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_first_list_begins_far_in_a_large_batch(codec: str) -> None:
    fetch = completed(0, 3_000, value=bytes(1_000), codec=codec)
    fetch.put_back([fetch._batches[0]], 2_900)
    found = fetch.take_records(1)
    assert found is not None
    assert numbers(values_of(found[0]) or ()) == [2_900]
