"""Tests the log of a partition: appends, reads, deletions, truncation, and lookups by timestamp."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import BrokerResponseError
from kproto.broker.storage.memory_log import BATCH_OVERHEAD_BYTES, MemoryLog
from kproto.broker.storage.storage_limit import StorageLimit
from kproto.records import LOG_APPEND_TIME, RecordBatch, read_batches
from kproto.records.varints import encode_varint
from tests.support.batches import TIMESTAMP, batch_bytes, view
from tests.unit.records.batches import batch_bytes as with_payload
from tests.unit.records.batches import record_bytes


def filled(*counts: int, value: bytes = b"v") -> MemoryLog:
    log = MemoryLog()
    for count in counts:
        log.append(view(count, value=value), TIMESTAMP)
    return log


def bases(log: MemoryLog, offset: int, max_bytes: int, *, at_least_one: bool = True) -> list[int]:
    found = log.read(offset, max_bytes, at_least_one=at_least_one)
    joined = found.join()
    assert found.size == len(joined)
    batches = list(read_batches(joined, allow_partial=False))
    return [batch.base_offset for batch in batches]


def test_an_empty_log() -> None:
    log = MemoryLog()
    assert (log.start_offset, log.end_offset, log.size_in_bytes) == (0, 0, 0)
    assert bases(log, 0, 1000) == []


def test_append_changes_the_offset_and_the_leader_epoch_and_nothing_else() -> None:
    log = filled(3)
    sent = view(2, compression="gzip")
    assert log.append(sent, TIMESTAMP) == 3
    stored = list(log)[1]
    stored.check()
    assert (stored.base_offset, stored.partition_leader_epoch) == (3, 0)
    assert stored.raw[:8] == (3).to_bytes(8, "big")
    assert stored.raw[8:12] == sent.raw[8:12]
    assert stored.raw[16:] == sent.raw[16:], "the records are passed on as they came"
    assert log.end_offset == 5


def test_append_with_log_append_time() -> None:
    log = MemoryLog()
    log.append(view(2), 1_800_000_000_000, stamp_time=True)
    (stored,) = log
    stored.check()
    assert stored.timestamp_type == LOG_APPEND_TIME
    assert {record.timestamp for record in stored.records()} == {1_800_000_000_000}


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, [0, 3, 5]), (2, [0, 3, 5]), (3, [3, 5]), (4, [3, 5]), (5, [5])]
)
def test_a_read_begins_with_the_batch_that_holds_the_offset(
    offset: int, expected: list[int]
) -> None:
    assert bases(filled(3, 2, 1), offset, 10_000) == expected


def test_a_read_at_the_end_is_empty_and_one_beyond_is_out_of_range() -> None:
    log = filled(3)
    assert bases(log, 3, 1000) == []
    for offset in (-1, 4):
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            log.read(offset, 1000, at_least_one=True)


def test_first_batch_is_returned_whole_under_any_limit() -> None:
    log = filled(1, 1, 1)
    size = next(iter(log)).size_in_bytes
    assert bases(log, 0, 0) == [0]
    assert bases(log, 0, size - 1, at_least_one=False) == []
    assert bases(log, 0, size, at_least_one=False) == [0]
    assert bases(log, 0, 2 * size - 1) == [0]
    assert bases(log, 0, 2 * size) == [0, 1]


def test_a_read_as_a_message_set_takes_no_more_bytes_than_the_batches() -> None:
    log = filled(*[20] * 5)
    batch, *_ = log
    found = log.read(0, 3 * batch.size_in_bytes, at_least_one=True)
    for magic in (0, 1):
        messages = list(read_batches(found.join_as_message_set(magic, 0)))
        assert {message.magic for message in messages} == {magic}
        assert sum(message.size_in_bytes for message in messages) <= found.size
        assert [message.base_offset for message in messages] == list(range(len(messages)))
        assert len(messages) in (20, 40), "whole batches"
    small = log.read(25, 1, at_least_one=True)
    rest = list(read_batches(small.join_as_message_set(1, 25)))
    assert [message.base_offset for message in rest] == list(range(25, 40)), "the first comes"


def test_message_set_of_control_records_is_an_overflow() -> None:
    log = MemoryLog()
    assert log.read(0, 1000, at_least_one=True).join_as_message_set(1, 0) == b""
    control = RecordBatch(batch_bytes(1, is_control=True))
    log.append(control, TIMESTAMP)
    overflow = log.read(0, 1000, at_least_one=True).join_as_message_set(1, 0)
    assert len(overflow) == 12, "what Kafka 3.9 sends then"
    assert list(read_batches(overflow)) == []
    log.append(view(1), TIMESTAMP)
    found = log.read(0, 1000, at_least_one=True).join_as_message_set(1, 0)
    assert [message.base_offset for message in read_batches(found)] == [1]


def test_a_broken_batch_as_a_message_set() -> None:
    log = MemoryLog()
    broken = bytearray(view(1).raw)
    broken[61] = 0x7F
    log.append(RecordBatch(bytes(broken)), TIMESTAMP)
    with pytest.raises(BrokerResponseError, match="CORRUPT_MESSAGE"):
        log.read(0, 1000, at_least_one=True).join_as_message_set(0, 0)


def test_size_from_an_offset_counts_its_whole_batch_and_all_later_ones() -> None:
    log = MemoryLog()
    sizes = []
    for count in (2, 3, 1):
        log.append(view(count), TIMESTAMP)
        sizes.append(view(count).size_in_bytes)
    from_each = [sum(sizes)] * 2 + [sum(sizes[1:])] * 3 + [sizes[2], 0]
    assert [log.size_from(offset) for offset in range(7)] == from_each
    log.delete_before(3)
    assert [log.size_from(offset) for offset in (3, 5, 6)] == [sum(sizes[1:]), sizes[2], 0]


def test_delete_before() -> None:
    log = filled(3, 2, 1)
    sizes = [batch.size_in_bytes for batch in log]
    log.delete_before(4)
    assert (log.start_offset, log.end_offset, log.size_in_bytes) == (4, 6, sum(sizes[1:]))
    assert bases(log, 4, 10_000) == [3, 5], "the batch that holds the start stays whole"
    with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
        log.read(3, 1000, at_least_one=True)
    log.delete_before(2)
    assert log.start_offset == 4, "the start never goes back"
    log.append(view(1), TIMESTAMP)
    assert bases(log, 5, sizes[2]) == [5]
    log.delete_before(7)
    assert (log.start_offset, log.size_in_bytes, list(log)) == (7, 0, [])
    with pytest.raises(BrokerResponseError, match="beyond the end"):
        log.delete_before(8)
    assert log.append(view(1), TIMESTAMP) == 7
    assert bases(log, 7, 0) == [7]


def test_offset_for_time() -> None:
    log = MemoryLog()
    for start in (1000, 2000, 1500, 3000):
        log.append(view(3, timestamp=start), TIMESTAMP)
    found = {at: log.offset_for_time(at) for at in (0, 1001, 1003, 2002, 2003, 3002)}
    assert found == {
        0: (0, 1000),
        1001: (1, 1001),
        1003: (3, 2000),
        2002: (5, 2002),
        2003: (9, 3000),
        3002: (11, 3002),
    }
    assert log.offset_for_time(3003) is None
    assert log.offset_of_largest_time() == (11, 3002)
    assert MemoryLog().offset_of_largest_time() is None


def test_offset_for_time_decodes_batches_and_skips_deleted_records() -> None:
    log = MemoryLog()
    log.append(view(5, timestamp=1000, step_ms=10, compression="gzip"), TIMESTAMP)
    assert log.offset_for_time(1015) == (2, 1020)
    log.delete_before(3)
    assert log.offset_for_time(0) == (3, 1030)


def test_offset_for_time_skips_unreadable_records() -> None:
    """Brokers do not check the offsets of the records in an uncompressed batch."""
    log = MemoryLog()
    payload = b"".join(
        record_bytes(offset_delta=encode_varint(delta), timestamp_delta=encode_varint(time))
        for delta, time in ((0, 0), (1000, 10), (2, 20))
    )
    data = with_payload(
        payload,
        record_count=3,
        last_offset_delta=2,
        base_timestamp=TIMESTAMP,
        max_timestamp=TIMESTAMP + 20,
    )
    log.append(RecordBatch(data), TIMESTAMP)
    assert log.offset_for_time(TIMESTAMP + 5) == (2, TIMESTAMP + 20)
    assert log.offset_of_largest_time() == (2, TIMESTAMP + 20)


def test_offset_for_time_of_log_append_time() -> None:
    log = MemoryLog()
    log.append(view(3), 5000, stamp_time=True)
    log.append(view(3), 6000, stamp_time=True)
    assert log.offset_for_time(5001) == (3, 6000)
    log.delete_before(4)
    assert log.offset_for_time(0) == (4, 6000)


def test_the_largest_time_when_its_record_is_deleted() -> None:
    log = MemoryLog()
    for start in (9000, 2000, 7000, 3000, 7000):
        log.append(view(2, timestamp=start), TIMESTAMP)
    expected = [
        (1, 9001),  # offset 0 is deleted; its batch is still in the log
        (5, 7001),
        (5, 7001),
        (5, 7001),
        (5, 7001),
        (9, 7001),
        (9, 7001),
        (9, 7001),
        (9, 7001),
    ]
    for deleted, found in enumerate(expected, start=1):
        log.delete_before(deleted)
        assert log.offset_of_largest_time() == found, deleted
    log.delete_before(10)
    assert log.offset_of_largest_time() is None
    log.append(view(1, timestamp=1000), TIMESTAMP)
    assert log.offset_of_largest_time() == (10, 1000)
    assert log.offset_for_time(1001) is None


def test_largest_time_within_a_half_deleted_batch() -> None:
    log = MemoryLog()
    log.append(view(3, timestamp=9000, step_ms=-1000), TIMESTAMP)  # 9000, 8000, 7000
    log.append(view(1, timestamp=7500), TIMESTAMP)
    for deleted, found in ((0, (0, 9000)), (1, (1, 8000)), (2, (3, 7500)), (3, (3, 7500))):
        log.delete_before(deleted)
        assert log.offset_of_largest_time() == found


@given(
    batches=st.lists(
        st.tuples(st.integers(1, 3), st.integers(1000, 1010), st.integers(-3, 3)), max_size=8
    ),
    deleted=st.integers(0, 20),
    wanted=st.integers(990, 1020),
)
def test_offset_for_time_equals_linear_search(
    batches: list[tuple[int, int, int]], deleted: int, wanted: int
) -> None:
    log = MemoryLog()
    for count, timestamp, step_ms in batches:
        log.append(view(count, timestamp=timestamp, step_ms=step_ms), TIMESTAMP)
        log.delete_before(min(deleted, log.end_offset))
    records = [
        (record.offset, record.timestamp)
        for batch in log
        for record in batch.records(from_offset=log.start_offset)
    ]
    since = [record for record in records if record[1] >= wanted]
    assert log.offset_for_time(wanted) == (since[0] if since else None)
    largest = max(records, key=lambda record: (record[1], -record[0]), default=None)
    assert log.offset_of_largest_time() == largest


def test_watchers_are_called_after_each_append() -> None:
    log = MemoryLog()
    seen: list[int] = []

    def watch() -> None:
        seen.append(log.end_offset)

    log.watchers.add(watch)
    log.append(view(2), TIMESTAMP)
    log.append(view(1), TIMESTAMP)
    log.watchers.discard(watch)
    log.append(view(1), TIMESTAMP)
    assert seen == [2, 3]


@given(
    counts=st.lists(st.integers(1, 4), max_size=8),
    deleted=st.integers(0, 30),
    offset=st.integers(0, 35),
    max_bytes=st.integers(0, 900),
    at_least_one=st.booleans(),
)
def test_read_equals_linear_search(
    counts: list[int], deleted: int, offset: int, max_bytes: int, at_least_one: bool
) -> None:
    log = filled(*counts, value=b"some value")
    log.delete_before(min(deleted, log.end_offset))
    if not log.start_offset <= offset <= log.end_offset:
        with pytest.raises(BrokerResponseError):
            log.read(offset, max_bytes, at_least_one=at_least_one)
        return
    expected: list[RecordBatch] = []
    left = max_bytes
    for batch in log:
        if batch.last_offset < offset:
            continue
        if batch.size_in_bytes > left and not (at_least_one and not expected):
            break
        expected.append(batch)
        left -= batch.size_in_bytes
    found = log.read(offset, max_bytes, at_least_one=at_least_one)
    assert found.batches == expected
    assert found.size == sum(batch.size_in_bytes for batch in expected)
    assert log.size_in_bytes == sum(batch.size_in_bytes for batch in log)


def test_batches_are_stamped_with_the_epoch_of_the_leader() -> None:
    log = filled(1)
    log.epochs.assign(4, log.end_offset)
    log.append(view(1), TIMESTAMP)
    assert [stored.partition_leader_epoch for stored in log] == [0, 4]


def test_truncate_drops_the_end() -> None:
    log = filled(3, 3, 3)
    log.truncate(9)
    assert log.end_offset == 9, "nothing lies behind the end"
    log.truncate(7)
    assert log.end_offset == 6, "batches are lost whole"
    assert bases(log, 0, 10_000) == [0, 3]
    log.append(view(2), TIMESTAMP)
    assert bases(log, 0, 10_000) == [0, 3, 6]
    log.truncate(6)
    assert log.end_offset == 6
    log.truncate(0)
    assert (log.start_offset, log.end_offset, log.size_in_bytes) == (0, 0, 0)
    assert list(log) == []
    with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
        log.truncate(1)


def test_truncate_after_delete_before() -> None:
    log = filled(3, 3, 3)
    log.delete_before(4)
    with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
        log.truncate(3)
    log.truncate(5)
    assert (log.start_offset, log.end_offset) == (4, 4)
    log.append(view(2), TIMESTAMP)
    assert bases(log, 4, 10_000) == [4]


@given(st.lists(st.tuples(st.sampled_from(["append", "delete", "truncate"]), st.integers(0, 40))))
def test_truncated_batches_free_storage(steps: list[tuple[str, int]]) -> None:
    storage_limit = StorageLimit(1 << 30)
    log = MemoryLog(storage_limit)
    for what, number in steps:
        if what == "append":
            log.append(view(1 + number % 3), TIMESTAMP)
            continue
        offset = log.start_offset + number % (log.end_offset - log.start_offset + 1)
        if what == "delete":
            log.delete_before(offset)
        else:
            log.truncate(offset)
            assert log.start_offset <= log.end_offset <= offset
        batches = list(log)
        assert log.size_in_bytes == sum(batch.size_in_bytes for batch in batches)
        assert storage_limit.used == log.size_in_bytes + len(batches) * BATCH_OVERHEAD_BYTES
        if batches:
            assert batches[-1].next_offset == log.end_offset
    log.delete_before(log.end_offset)
    assert storage_limit.used == 0
