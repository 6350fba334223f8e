"""Tests which records compaction removes, and when a log is compacted.

`tests/kafka/test_compaction_like_kafka.py` compares whole logs with those of a real broker.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from kproto.broker.storage.log import StoredBatch
from kproto.broker.storage.log_append import append_records
from kproto.broker.storage.log_cleaner import apply_compaction
from kproto.broker.storage.log_segments import segments_of
from kproto.broker.storage.partition import Partition
from kproto.broker.storage.storage_limit import StorageLimit
from kproto.broker.topic_configs import TopicConfig
from kproto.records import RecordBatch, encode_batch
from kproto.stored.transaction_markers import TxnMarker
from tests.support.batches import TIMESTAMP, patched

NOW = TIMESTAMP
MINUTE_MS = 60_000
Pair = tuple[bytes | None, bytes | None]


def config(**settings: float | str) -> TopicConfig:
    """Returns the configs of a compacted topic whose segments have the batches of one minute."""
    given = {"cleanup_policy": "compact", "segment_ms": MINUTE_MS, **settings}
    texts = {name.replace("_", "."): str(value) for name, value in given.items()}
    return TopicConfig(texts, 1_048_588, cleaner_backoff_ms=0)


def append(
    partition: Partition, pairs: Sequence[Pair], minute: float = 0, *, of: TopicConfig | None = None
) -> None:
    time_ms = NOW + int(minute * MINUTE_MS)
    batch = encode_batch([(key, value, (), time_ms) for key, value in pairs])
    append_records(partition, config() if of is None else of, batch, 9, time_ms)


def offsets(partition: Partition) -> list[int]:
    return [record.offset for batch in partition.log for record in batch.records()]


def bounds(partition: Partition) -> list[tuple[int, int, int]]:
    return [(batch.base_offset, batch.last_offset, batch.record_count) for batch in partition.log]


def test_only_latest_record_of_a_key_remains_with_its_offset() -> None:
    partition = Partition(0)
    append(partition, [(b"a", b"1"), (b"b", b"1"), (b"a", b"2")])
    append(partition, [(b"b", b"2")])
    append(partition, [(b"a", b"3")], 2)
    apply_compaction(partition, config(), NOW)
    assert offsets(partition) == [2, 3, 4], "the active segment does not count"
    assert bounds(partition) == [(0, 2, 1), (3, 3, 1), (4, 4, 1)]
    (kept,) = next(iter(partition.log)).records()
    assert (kept.key, kept.value, kept.timestamp) == (b"a", b"2", NOW)
    assert (partition.log.start_offset, partition.log.end_offset) == (0, 5)
    for batch in partition.log:
        batch.check()


def test_active_segment_is_not_compacted() -> None:
    partition = Partition(0)
    for _ in range(3):
        append(partition, [(b"a", b"1")])
    apply_compaction(partition, config(), NOW)
    assert offsets(partition) == [0, 1, 2]


def test_segment_bytes_rolls_segments() -> None:
    partition = Partition(0)
    for number in range(4):
        append(partition, [(b"a", bytes(600_000))], number / 100)
    small = config(segment_bytes=1_048_576)
    bases = [segment.base_offset for segment in segments_of(partition.log.stored_batches(), small)]
    assert bases == [0, 1, 2, 3]
    apply_compaction(partition, small, NOW)
    assert offsets(partition) == [2, 3]


def test_segment_ms_of_records_without_timestamps_uses_append_time() -> None:
    batch = RecordBatch(encode_batch([(b"a", b"1", (), -1)]))
    stored = [StoredBatch(batch, NOW + minute * MINUTE_MS) for minute in (0, 1, 3)]
    assert len(segments_of(stored, config())) == 2


def test_log_is_compacted_only_above_min_cleanable_dirty_ratio() -> None:
    partition, half = Partition(0), config(min_cleanable_dirty_ratio=0.5)
    for minute in range(0, 8, 2):
        append(partition, [(b"%d" % minute, b"1")], minute)
    apply_compaction(partition, half, NOW)
    assert partition.first_dirty_offset == 3
    for minute in (8, 10, 12):
        append(partition, [(b"0", b"2")], minute)
    apply_compaction(partition, half, NOW)
    assert offsets(partition) == [0, 1, 2, 3, 4, 5, 6], "3 of 6 inactive batches are dirty"
    append(partition, [(b"0", b"2")], 14)
    apply_compaction(partition, half, NOW)
    assert offsets(partition) == [1, 2, 3, 6, 7]


def test_min_compaction_lag_keeps_young_segments() -> None:
    settings = {"min_compaction_lag_ms": 10 * MINUTE_MS, "min_cleanable_dirty_ratio": 0}
    partition, lagging = Partition(0), config(**settings)
    for minute in (0, 2, 4, 6):
        append(partition, [(b"a", b"1")], minute)
    apply_compaction(partition, lagging, NOW + 12 * MINUTE_MS - 1)
    assert offsets(partition) == [0, 1, 2, 3]
    apply_compaction(partition, lagging, NOW + 12 * MINUTE_MS)
    assert offsets(partition) == [1, 2, 3]


def test_max_compaction_lag_compacts_below_dirty_ratio() -> None:
    settings = {"min_cleanable_dirty_ratio": 1, "max_compaction_lag_ms": 10 * MINUTE_MS}
    partition, limited = Partition(0), config(**settings)
    for minute in (0, 2):
        append(partition, [(b"a", b"1"), (b"a", b"2")], minute)
    apply_compaction(partition, limited, NOW + 10 * MINUTE_MS)
    assert offsets(partition) == [0, 1, 2, 3]
    apply_compaction(partition, limited, NOW + 10 * MINUTE_MS + 1)
    assert offsets(partition) == [1, 2, 3]


def test_max_compaction_lag_limits_segment_ms() -> None:
    assert config(segment_ms=1000, max_compaction_lag_ms=100).segment_ms == 100
    deleted = config(cleanup_policy="delete", segment_ms=1000, max_compaction_lag_ms=100)
    assert deleted.segment_ms == 1000


def test_tombstone_remains_until_delete_horizon() -> None:
    partition, retained = Partition(0), config(delete_retention_ms=5_000)
    append(partition, [(b"a", b"1"), (b"b", b"1")])
    append(partition, [(b"a", None)])
    append(partition, [(b"c", b"1")], 2)
    apply_compaction(partition, retained, NOW)
    assert offsets(partition) == [1, 2, 3]
    horizons = [batch.delete_horizon for batch in partition.log]
    assert horizons == [None, NOW + 5_000, None]
    for minute, now_ms, expected in (
        (4, NOW + 4_999, [1, 2, 3, 4]),
        (6, NOW + 5_000, [1, 3, 4, 5]),
    ):
        append(partition, [(b"d%d" % minute, b"1")], minute)
        eager = config(delete_retention_ms=1, min_cleanable_dirty_ratio=0)
        apply_compaction(partition, eager, now_ms)
        assert offsets(partition) == expected


def write_in_transaction(partition: Partition, *, is_commit: bool, producer_id: int = 7) -> None:
    batch = encode_batch(
        [(b"t", b"1", (), NOW)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append_records(partition, config(), batch, 9, NOW)
    partition.end_transaction(TxnMarker(producer_id, 0, is_commit, 0), NOW)


def test_aborted_records_are_removed_and_marker_later() -> None:
    partition, eager = Partition(0), config(delete_retention_ms=0, min_cleanable_dirty_ratio=0)
    write_in_transaction(partition, is_commit=False)
    partition.producer_states.expire(NOW)
    append(partition, [(b"a", b"1")], 2)
    apply_compaction(partition, eager, NOW)
    assert bounds(partition) == [(1, 1, 1), (2, 2, 1)], "the marker stays with its records"
    assert len(partition.producer_states.aborted_transactions(0, 9)) == 1
    append(partition, [(b"b", b"1")], 4)
    apply_compaction(partition, eager, NOW)
    assert next(iter(partition.log)).delete_horizon == NOW
    assert partition.producer_states.aborted_transactions(0, 9) == []
    append(partition, [(b"c", b"1")], 6)
    apply_compaction(partition, eager, NOW)
    assert bounds(partition) == [(2, 2, 1), (3, 3, 1), (4, 4, 1)]


def test_aborted_record_does_not_replace_earlier_record() -> None:
    partition = Partition(0)
    append(partition, [(b"t", b"0")])
    write_in_transaction(partition, is_commit=False)
    append(partition, [(b"a", b"1")], 2)
    apply_compaction(partition, config(), NOW)
    assert offsets(partition)[0] == 0


def test_segment_of_ongoing_transaction_is_not_compacted() -> None:
    partition = Partition(0)
    append(partition, [(b"t", b"0")])
    batch = encode_batch(
        [(b"t", b"1", (), NOW)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append_records(partition, config(), batch, 9, NOW)
    append(partition, [(b"t", b"2")], 2)
    apply_compaction(partition, config(), NOW)
    assert offsets(partition) == [0, 1, 2]
    partition.end_transaction(TxnMarker(7, 0, True, 0), NOW)
    apply_compaction(partition, config(), NOW)
    assert offsets(partition) == [1, 2, 3]


def test_last_batch_of_a_producer_remains_as_header() -> None:
    partition = Partition(0)
    for sequence in (0, 1):
        batch = encode_batch(
            [(b"a", b"1", (), NOW)], producer_id=7, producer_epoch=0, base_sequence=sequence
        )
        append_records(partition, config(), batch, 9, NOW)
    append(partition, [(b"a", b"2")])
    append(partition, [(b"a", b"3")], 2)
    apply_compaction(partition, config(), NOW)
    assert bounds(partition) == [(1, 1, 0), (2, 2, 1), (3, 3, 1)]
    (header, *_) = partition.log
    assert (header.producer_id, header.base_sequence, header.max_timestamp) == (7, 1, NOW)


def test_record_without_key_from_before_compaction_is_removed() -> None:
    partition, deleted = Partition(0), config(cleanup_policy="delete")
    append(partition, [(None, b"1"), (b"a", b"1")], of=deleted)
    append(partition, [(b"b", b"1")], 2)
    apply_compaction(partition, config(), NOW)
    assert offsets(partition) == [1, 2]


def test_offsets_by_time_skip_removed_records() -> None:
    partition = Partition(0)
    stamped = config(message_timestamp_type="LogAppendTime")
    append(partition, [(b"a", b"1"), (b"b", b"1")], of=stamped)
    append(partition, [(b"a", b"2")], of=stamped)
    append(partition, [(b"c", b"1")], 2, of=stamped)
    apply_compaction(partition, stamped, NOW)
    found = partition.log.offset_for_time(NOW)
    assert found is not None
    assert found.offset == 1


def test_compaction_frees_memory_of_removed_records() -> None:
    limit = StorageLimit(10_000_000)
    partition = Partition(0, storage_limit=limit)
    for _ in range(50):
        append(partition, [(b"a", bytes(10_000))])
    append(partition, [(b"a", b"1")], 2)
    apply_compaction(partition, config(), NOW)
    size = sum(batch.size_in_bytes for batch in partition.log)
    assert size == partition.log.size_in_bytes
    assert limit.used == size + 2 * 450


def test_log_is_checked_only_after_cleaner_backoff() -> None:
    texts = {"cleanup.policy": "compact", "segment.ms": str(MINUTE_MS)}
    partition, slow = Partition(0), TopicConfig(texts, 1000)
    for minute in (0, 0, 2):
        append(partition, [(b"a", b"1")], minute)
    for now_ms, expected in ((NOW, [0, 1, 2]), (NOW + 14_999, [0, 1, 2]), (NOW + 15_000, [1, 2])):
        apply_compaction(partition, slow, now_ms)
        assert offsets(partition) == expected


def test_unreadable_batch_is_logged_and_stops_compaction(
    caplog: pytest.LogCaptureFixture,
) -> None:
    partition = Partition(0)
    good = encode_batch([(b"a", b"1", (), NOW)])
    partition.log.append(RecordBatch(patched(good, len(good) - 6, b"\x7f")), NOW)
    for minute in (0, 2):
        append(partition, [(b"a", b"1")], minute)
    for _ in range(2):
        apply_compaction(partition, config(), NOW)
    warnings = [it for it in caplog.records if it.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "cannot be compacted" in warnings[0].getMessage()
    assert bounds(partition)[-1] == (2, 2, 1)


def test_truncation_makes_lost_offsets_dirty_again() -> None:
    partition = Partition(0)
    for minute in (0, 0, 2, 4):
        append(partition, [(b"a", b"1")], minute)
    apply_compaction(partition, config(), NOW)
    assert partition.first_dirty_offset == 3
    partition.truncate(2)
    assert partition.first_dirty_offset == 2


def test_marker_has_log_append_time_of_its_topic() -> None:
    partition = Partition(0)
    partition.end_transaction(TxnMarker(7, 0, True, 0), NOW, stamp_time=True)
    (marker,) = partition.log
    assert (marker.timestamp_type, marker.max_timestamp) == (1, NOW)


def test_recompressed_batch_stays_transactional() -> None:
    partition = Partition(0)
    batch = encode_batch(
        [(b"t", b"1", (), NOW)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append_records(partition, config(compression_type="gzip"), batch, 9, NOW)
    (stored,) = partition.log
    assert (stored.compression, stored.is_transactional) == ("gzip", True)
    assert partition.last_stable_offset == 0
