"""Tests the retention of records by size and by age."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.storage.memory_log import MemoryLog
from kproto.broker.storage.retention import apply_retention
from kproto.broker.topic_configs import TopicConfig
from tests.support.batches import TIMESTAMP, view

NOW = TIMESTAMP
SIZE = view(1).size_in_bytes
CHECK_MS = 300_000


def config(**settings: int | str) -> TopicConfig:
    given = {name.replace("_", "."): str(value) for name, value in settings.items()}
    return TopicConfig(given, 1000, CHECK_MS)


def filled(*times: int, now_ms: int = NOW) -> MemoryLog:
    """Returns a log with one batch of one record for each timestamp, all appended at `now_ms`."""
    log = MemoryLog()
    for timestamp in times:
        log.append(view(1, timestamp=timestamp), now_ms)
    return log


def kept(log: MemoryLog) -> list[int]:
    return [batch.base_offset for batch in log]


@pytest.mark.parametrize(
    ("retention_bytes", "expected"),
    [
        (-1, [0, 1, 2, 3]),
        (4 * SIZE, [0, 1, 2, 3]),
        (3 * SIZE + 1, [0, 1, 2, 3]),
        (3 * SIZE, [1, 2, 3]),
        (SIZE, [3]),
        (1, [3]),
        (0, []),
    ],
)
def test_retention_bytes_drops_whole_batches(retention_bytes: int, expected: list[int]) -> None:
    log = filled(*[NOW] * 4)
    apply_retention(log, config(retention_bytes=retention_bytes), NOW)
    assert kept(log) == expected
    assert (log.start_offset, log.end_offset) == (4 - len(expected), 4)
    assert log.size_in_bytes == len(expected) * SIZE
    if log.start_offset:
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            log.read(log.start_offset - 1, 1000, at_least_one=True)


def test_retention_ms_uses_largest_timestamp() -> None:
    log = filled(NOW, NOW + 10, NOW + 5)
    wanted = config(retention_ms=1000)
    for now_ms, expected in (
        (NOW + 1000, [0, 1, 2]),
        (NOW + 1001, [1, 2]),
        # the third batch is expired, but the second one before it is not
        (NOW + 1010, [1, 2]),
        (NOW + 1011, []),
    ):
        apply_retention(log, wanted, now_ms)
        assert kept(log) == expected
    assert (log.start_offset, log.end_offset) == (3, 3)
    log.append(view(1, timestamp=NOW + 1011), NOW + 1011)
    assert kept(log) == [3]


def test_age_is_unlimited_with_minus_one_and_seven_days_by_default() -> None:
    week = 604_800_000
    log = filled(NOW)
    apply_retention(log, config(retention_ms=-1), NOW + 10 * week)
    apply_retention(log, config(), NOW + week)
    assert kept(log) == [0]
    apply_retention(log, config(), NOW + week + 1)
    assert kept(log) == []


def test_records_too_old_on_append_stay_for_check_interval() -> None:
    log = filled(NOW - 5000, NOW)
    wanted = config(retention_ms=1000)
    apply_retention(log, wanted, NOW + CHECK_MS)
    assert kept(log) == [0, 1]
    apply_retention(log, wanted, NOW + CHECK_MS + 1)
    assert kept(log) == []


def test_retention_without_timestamps_uses_append_time() -> None:
    log = filled(-1)
    wanted = config(retention_ms=1000)
    apply_retention(log, wanted, NOW + 1000)
    assert kept(log) == [0]
    apply_retention(log, wanted, NOW + 1001)
    assert kept(log) == []


def test_retention_uses_log_append_time() -> None:
    log = MemoryLog()
    log.append(view(1, timestamp=NOW - 50_000), NOW, stamp_time=True)
    wanted = config(retention_ms=1000)
    apply_retention(log, wanted, NOW + 1000)
    assert kept(log) == [0]
    apply_retention(log, wanted, NOW + 1001)
    assert kept(log) == []


@pytest.mark.parametrize(
    ("policy", "cut"), [("compact", False), ("delete", True), ("compact,delete", True)]
)
def test_only_compacted_topic_has_no_retention(policy: str, cut: bool) -> None:
    log = filled(NOW, NOW)
    wanted = config(cleanup_policy=policy, retention_bytes=0, retention_ms=1)
    apply_retention(log, wanted, NOW + 1000)
    assert kept(log) == ([] if cut else [0, 1])


def test_retention_with_log_start_inside_a_batch() -> None:
    log = MemoryLog()
    for _ in range(3):
        log.append(view(4, timestamp=NOW), NOW)
    size = log.size_in_bytes // 3
    log.delete_before(2)
    apply_retention(log, config(retention_bytes=3 * size), NOW)
    assert (log.start_offset, kept(log)) == (2, [0, 4, 8])
    apply_retention(log, config(retention_bytes=2 * size), NOW)
    assert (log.start_offset, kept(log)) == (4, [4, 8])


def test_retention_says_until_when_it_deletes_nothing() -> None:
    log = filled(NOW, NOW + 10)
    wanted = config(retention_ms=1000)
    assert apply_retention(log, wanted, NOW) == NOW + 1000
    assert apply_retention(log, wanted, NOW + 1000) == NOW + 1000
    assert apply_retention(log, wanted, NOW + 1001) == NOW + 1010
    assert apply_retention(log, wanted, NOW + 1011) > NOW + 1_000_000  # the log is empty
    old = filled(NOW - 5000)
    assert apply_retention(old, wanted, NOW) == NOW + CHECK_MS
