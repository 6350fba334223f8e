"""Tests the decoding of acquired records: some at a time, the result is that of one read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.fetch.share.acquired_reader import AcquiredReader, CompletedShareFetch
from kproto.client.fetch.share.acquisition import AcknowledgeType, Acquisition
from kproto.client.fetch.share.buffer import ShareBuffer
from kproto.client.observing.counts import ShareCounts
from kproto.records import MAX_DECOMPRESSED_BYTES, BatchBuilder, encode_message_set, restamp
from kproto.records import read_batches as read
from kproto.wire.errors import CorruptBatchError
from kproto.wire.uuid import ZERO_UUID

OPEN = 255
GAP, ACCEPT, RELEASE = AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
TP = ("t", 0)


def batch_of(offsets: list[int]) -> bytes:
    """Returns a batch with records at `offsets`, as compaction leaves it."""
    builder = BatchBuilder()
    for at in offsets:
        builder.append(None, b"%d" % at, timestamp=0, offset_delta=at - offsets[0])
    (batch,) = read(builder.build())
    return restamp(batch, base_offset=offsets[0])


def fetch_of(data: bytes, ranges: list[tuple[int, int]]) -> CompletedShareFetch:
    acquisitions = [Acquisition(None, 1, TP, ZERO_UUID, *its, 1, 9.0) for its in ranges]
    return CompletedShareFetch(TP, 1, data, acquisitions)


def buffer_of(*, is_explicit: bool) -> ShareBuffer:
    return ShareBuffer(
        lambda pending: None, MAX_DECOMPRESSED_BYTES, ShareCounts(), is_explicit=is_explicit
    )


def ascending(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), unique=True, max_size=most).map(sorted)


@st.composite
def fetches(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]], bytes]:
    """Returns stored offsets, acquired ranges, and the batches of the offsets."""
    stored, bounds = draw(ascending(60)), draw(ascending(70))
    ranges = [
        (a, b) for a, b in zip(bounds[::2], [at - 1 for at in bounds[1::2]], strict=False) if a <= b
    ]
    data = b""
    rest = stored
    while rest:
        count = draw(st.integers(1, len(rest)))
        data += batch_of(rest[:count])
        rest = rest[count:]
    return stored, ranges or [(0, 70)], data


def states_of(acquisitions: list[Acquisition]) -> dict[int, int]:
    return {
        offset: state
        for each in acquisitions
        for offset, state in enumerate(each.states, each.first)
    }


@given(fetches(), st.data())
def test_each_acquired_record_is_returned_once_and_each_other_offset_is_a_gap(
    drawn: tuple[list[int], list[tuple[int, int]], bytes], data: st.DataObject
) -> None:
    stored, ranges, batches = drawn
    fetch = fetch_of(batches, ranges)
    acquired = {at for first, last in ranges for at in range(first, last + 1)}
    reader, found = AcquiredReader(fetch, MAX_DECOMPRESSED_BYTES), []
    while not reader.is_done:
        decoded = reader.read(data.draw(st.one_of(st.none(), st.integers(1, 9))))
        found += [each.offset for each in decoded.records]
        by_run = {
            at
            for run in decoded.runs
            for at in range(run.first, run.last + 1)
            if run.acquisition.states[at - run.acquisition.first] == OPEN
        }
        assert by_run == {each.offset for each in decoded.records}
    assert found == [at for at in stored if at in acquired]
    expected = {at: OPEN if at in stored else GAP for at in acquired}
    assert states_of(fetch.acquisitions) == expected


@given(fetches(), st.data())
def test_returned_records_are_accepted_and_dropped_ones_released(
    drawn: tuple[list[int], list[tuple[int, int]], bytes], data: st.DataObject
) -> None:
    stored, ranges, batches = drawn
    fetch = fetch_of(batches, ranges)
    acquired = {at for first, last in ranges for at in range(first, last + 1)}
    buffer = buffer_of(is_explicit=False)
    buffer.add(fetch)
    returned: list[int] = []
    for _ in range(data.draw(st.integers(0, 12))):
        buffer.on_poll()
        kind = data.draw(st.sampled_from(["record", "record", "list", "poll"]))
        if kind == "record":
            record = buffer.take_record()
            records = [] if record is None else [record]
        elif kind == "list":
            taken = buffer.take_list()
            records = [] if taken is None else taken[1]
        else:
            polled = buffer.take_polled(data.draw(st.integers(1, 20))) or {}
            records = polled.get(TP, [])
        returned += [each.offset for each in records]
    buffer.release_other_topics([])
    buffer.on_poll()
    assert not buffer.has_unreturned
    assert returned == [at for at in stored if at in acquired][: len(returned)]
    for at, state in states_of(fetch.acquisitions).items():
        if at in returned:
            assert state == ACCEPT
        elif at in stored:
            assert state == RELEASE
        else:
            assert state in (GAP, RELEASE)  # the buffer has not read every gap


def test_few_records_are_decoded_for_a_caller_of_single_records() -> None:
    buffer = buffer_of(is_explicit=False)
    fetch = fetch_of(batch_of([*range(1200)]), [(0, 1199)])
    buffer.add(fetch)
    assert buffer.take_record() is not None
    assert sum(1 for _ in buffer.remaining) == 499
    assert buffer.has_unreturned
    assert not buffer.has_fetched
    assert buffer.unlocked_at == 9.0
    buffer.on_poll()
    assert fetch.acquisitions[0].states.count(ACCEPT) == 500


def test_list_has_all_records_of_its_fetch() -> None:
    """The caller can renew only the locks of records that it has."""
    buffer = buffer_of(is_explicit=True)
    buffer.add(fetch_of(batch_of([*range(1200)]), [(0, 1199)]))
    assert buffer.take_record() is not None
    taken = buffer.take_list()
    assert taken is not None
    assert [each.offset for each in taken[1]] == [*range(1, 1200)]
    assert not buffer.has_unreturned


def test_locks_that_end_drop_the_records_that_are_not_decoded() -> None:
    buffer = buffer_of(is_explicit=False)
    fetch = fetch_of(batch_of([*range(1200)]), [(0, 1199)])
    buffer.add(fetch)
    assert buffer.take_record() is not None
    buffer.drop_unlocked(10.0)
    assert buffer.take_record() is None
    buffer.on_poll()
    assert fetch.acquisitions[0].states.count(ACCEPT) == 1
    assert fetch.acquisitions[0].states.count(OPEN) == 1199


def test_records_from_a_broken_batch_on_are_released() -> None:
    broken = bytearray(batch_of([2, 3]))
    broken[-1] ^= 1
    data = batch_of([0, 1]) + bytes(broken) + batch_of([5])
    reader = AcquiredReader(fetch_of(data, [(0, 5)]), MAX_DECOMPRESSED_BYTES)
    found: list[int] = []
    while not reader.is_done:
        found += [each.offset for each in reader.read(1).records]
    assert found == [0, 1]
    assert isinstance(reader.error, CorruptBatchError)
    assert (reader.error.topic, reader.error.partition) == TP
    states = states_of(reader.fetch.acquisitions)
    assert states == {0: OPEN, 1: OPEN, 2: RELEASE, 3: RELEASE, 4: RELEASE, 5: RELEASE}


@pytest.mark.parametrize("magic", [0, 1])
def test_message_set_is_read_as_a_whole(magic: int) -> None:
    data = encode_message_set([(None, b"%d" % at, (), 0) for at in range(4)], magic=magic)
    reader = AcquiredReader(fetch_of(data, [(1, 3)]), MAX_DECOMPRESSED_BYTES)
    assert [each.offset for each in reader.read(None).records] == [1, 2, 3]
