"""Tests the decoding of acquired records: some at a time, the result is that of one read."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.fetch.share.acquired_reader import AcquiredReader, CompletedShareFetch
from kproto.client.fetch.share.acquisition import AcknowledgeType, Acquisition, OffsetState
from kproto.client.fetch.share.buffer import ShareBuffer
from kproto.client.observing.counts import ShareCounts
from kproto.records import MAX_DECOMPRESSED_BYTES, BatchBuilder, encode_message_set, restamp
from kproto.records import read_batches as read
from kproto.records.codecs.compression import Codec, codec_for_id
from kproto.records.magic2 import record_batch, unreadable_records
from kproto.records.magic2.crc import crc32c
from kproto.wire.compiled import __compiled__
from kproto.wire.errors import CorruptBatchError, MissingCodecError, UnreadableRecordError
from kproto.wire.uuid import ZERO_UUID

OPEN = 255
GAP, ACCEPT, RELEASE = AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
REJECT, LOST = AcknowledgeType.REJECT, OffsetState.LOST
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


def test_large_records_of_compressed_batches_are_decoded_a_few_at_a_time() -> None:
    data = b""
    for first in range(0, 60, 5):
        builder = BatchBuilder(compression="gzip")
        for offset in range(first, first + 5):
            builder.append(None, bytes(100_000), timestamp=0, offset_delta=offset - first)
        (batch,) = read(builder.build())
        data += restamp(batch, base_offset=first)
    reader = AcquiredReader(fetch_of(data, [(0, 59)]), MAX_DECOMPRESSED_BYTES)
    lists: list[list[int]] = []
    while not reader.is_done:
        lists.append([each.offset for each in reader.read(500).records])
    assert [*chain(*lists)] == list(range(60))
    assert max(map(len, lists)) == 15  # the limit, and the batch that goes beyond it


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


def corrupt(offsets: list[int], at: int = -1) -> bytes:
    """Returns a batch with a wrong byte."""
    data = bytearray(batch_of(offsets))
    data[at] ^= 1
    return bytes(data)


def read_all(reader: AcquiredReader, most: int | None = 1) -> list[int]:
    found: list[int] = []
    while not reader.is_done:
        found += [each.offset for each in reader.read(most).records]
    return found


@pytest.mark.parametrize("most", [1, None])
def test_corrupt_batch_is_rejected_and_the_batches_after_it_are_returned(most: int | None) -> None:
    """Java's ShareCompletedFetch rejects the acquired offsets of the batch."""
    data = batch_of([0, 1]) + corrupt([2, 3]) + batch_of([5]) + corrupt([6]) + batch_of([7, 8])
    reader = AcquiredReader(fetch_of(data, [(0, 4), (5, 8)]), MAX_DECOMPRESSED_BYTES)
    assert read_all(reader, most) == [0, 1, 5, 7, 8]
    states = states_of(reader.fetch.acquisitions)
    rejected = {at for at, state in states.items() if state == REJECT}
    assert (rejected, states[4]) == ({2, 3, 6}, GAP)
    errors = [each for each in reader.errors if isinstance(each, CorruptBatchError)]
    assert [each.base_offset for each in errors] == [2, 6]
    assert {(each.topic, each.partition) for each in errors} == {TP}


def test_wrong_last_offset_of_a_corrupt_batch_rejects_no_later_batch() -> None:
    data = batch_of([0, 1]) + corrupt([2, 3], 23) + batch_of([4, 5])  # of last_offset_delta
    reader = AcquiredReader(fetch_of(data, [(0, 5)]), MAX_DECOMPRESSED_BYTES)
    assert read_all(reader) == [0, 1, 4, 5]
    states = states_of(reader.fetch.acquisitions)
    assert [states[at] for at in (1, 2, 3, 4)] == [OPEN, REJECT, REJECT, OPEN]


def test_offsets_after_a_batch_without_a_known_end_are_released() -> None:
    data = batch_of([0, 1]) + corrupt([2, 3], 16) + batch_of([4, 5])  # of the magic
    reader = AcquiredReader(fetch_of(data, [(0, 5)]), MAX_DECOMPRESSED_BYTES)
    assert read_all(reader) == [0, 1]
    states = states_of(reader.fetch.acquisitions)
    assert [states[at] for at in range(6)] == [OPEN, OPEN, *[RELEASE] * 4]
    (error,) = reader.errors
    assert "unknown magic" in str(error)


def test_corrupt_batch_that_was_not_acquired_is_no_error() -> None:
    data = corrupt([0, 1]) + batch_of([2, 3])
    reader = AcquiredReader(fetch_of(data, [(2, 3)]), MAX_DECOMPRESSED_BYTES)
    assert read_all(reader) == [2, 3]
    assert reader.errors == []


@pytest.mark.parametrize("most", [1, 2, None])
def test_unreadable_record_is_rejected_and_its_batch_is_returned(most: int | None) -> None:
    builder = BatchBuilder()
    for at in range(4):
        builder.append(None, b"value-%d" % at, timestamp=0)
    data = bytearray(builder.build())
    at = data.index(b"value-2") - 2
    data[at] = 0x7E  # a key of 63 bytes, which the record does not have
    crc = crc32c(bytes(data[21:]))
    data[17:21] = crc.to_bytes(4, "big")
    reader = AcquiredReader(fetch_of(bytes(data) + batch_of([4]), [(0, 4)]), MAX_DECOMPRESSED_BYTES)
    assert read_all(reader, most) == [0, 1, 3, 4]
    states = states_of(reader.fetch.acquisitions)
    assert {at for at, state in states.items() if state != OPEN} == {2}
    (error,) = reader.errors
    assert isinstance(error, UnreadableRecordError)
    assert (error.record_offset, states[2]) == (2, REJECT)


@pytest.mark.skipif(__compiled__, reason="compiled code calls its own codec_for_id")
def test_batch_whose_codec_is_missing_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object) -> bytes:
        raise MissingCodecError("no codec")

    packed = BatchBuilder(compression="gzip")
    packed.append(None, b"x", timestamp=0)
    data = packed.build() + batch_of([1])
    gzip = codec_for_id(1)._replace(decompress=missing)

    def codec(number: int) -> Codec:
        return gzip if number == 1 else codec_for_id(number)

    monkeypatch.setattr(record_batch, "codec_for_id", codec)
    monkeypatch.setattr(unreadable_records, "codec_for_id", codec)
    reader = AcquiredReader(fetch_of(data, [(0, 1)]), MAX_DECOMPRESSED_BYTES)
    assert read_all(reader) == [1]
    assert states_of(reader.fetch.acquisitions) == {0: RELEASE, 1: OPEN}
    assert [type(each) for each in reader.errors] == [MissingCodecError]


def test_lost_offsets_stay_lost_when_the_records_around_them_are_decoded() -> None:
    fetch = fetch_of(batch_of([0, 2]), [(0, 2)])
    fetch.acquisitions[0].lose(1, 1)
    reader = AcquiredReader(fetch, MAX_DECOMPRESSED_BYTES)
    assert read_all(reader) == [0, 2]
    assert states_of(fetch.acquisitions) == {0: OPEN, 1: LOST, 2: OPEN}


def test_records_after_the_acquired_ones_are_not_decoded() -> None:
    reader = AcquiredReader(fetch_of(batch_of([*range(900)]), [(0, 3)]), MAX_DECOMPRESSED_BYTES)
    assert [each.offset for each in reader.read(4).records] == [0, 1, 2, 3]
    assert reader.read(4).records == []
    assert reader.is_done


@pytest.mark.parametrize("magic", [0, 1])
def test_message_set_is_read_as_a_whole(magic: int) -> None:
    data = encode_message_set([(None, b"%d" % at, (), 0) for at in range(4)], magic=magic)
    reader = AcquiredReader(fetch_of(data, [(1, 3)]), MAX_DECOMPRESSED_BYTES)
    assert [each.offset for each in reader.read(None).records] == [1, 2, 3]


@pytest.mark.parametrize("magic", [0, 1])
def test_part_of_a_compressed_message_set_is_read(magic: int) -> None:
    data = encode_message_set(
        [(None, b"%d" % at, (), 0) for at in range(4)], magic=magic, compression="gzip"
    )
    reader = AcquiredReader(fetch_of(data, [(1, 2)]), MAX_DECOMPRESSED_BYTES)
    assert [each.offset for each in reader.read(None).records] == [1, 2]
