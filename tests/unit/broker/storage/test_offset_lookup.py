"""Tests ListOffsets lookups by timestamp, and by special values such as latest."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.storage.memory_log import MemoryLog
from kproto.broker.storage.offset_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LARGEST_TIMESTAMP,
    LATEST,
    LATEST_TIERED,
    NOT_FOUND,
    fetch_offset_by_timestamp,
    legacy_offsets_before,
)
from kproto.records import RecordBatch
from tests.support.batches import TIMESTAMP, view


def filled() -> MemoryLog:
    """Returns a log with offsets 0 to 5, whose log start offset is 1."""
    log = MemoryLog()
    log.append(view(3, timestamp=2000), TIMESTAMP)
    log.append(view(3, timestamp=1000), TIMESTAMP)
    log.delete_before(1)
    return log


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (LATEST, (6, -1, 0)),
        (EARLIEST, (1, -1, 0)),
        (EARLIEST_LOCAL, (1, -1, 0)),
        (LATEST_TIERED, NOT_FOUND),
        (EARLIEST_PENDING_UPLOAD, NOT_FOUND),
        (LARGEST_TIMESTAMP, (2, 2002, 0)),
        (2002, (2, 2002, 0)),
        (2003, NOT_FOUND),
    ],
)
def test_fetch_offset_by_timestamp(timestamp: int, expected: tuple[int, int, int]) -> None:
    assert fetch_offset_by_timestamp(filled(), timestamp) == expected


def test_unreadable_batch_is_an_error() -> None:
    broken = bytearray(view(1).raw)
    broken[61] = 0x7F
    log = MemoryLog()
    log.append(RecordBatch(bytes(broken)), TIMESTAMP)
    with pytest.raises(BrokerResponseError, match="CORRUPT_MESSAGE"):
        fetch_offset_by_timestamp(log, 0)


def test_legacy_offsets_before() -> None:
    log, now = filled(), TIMESTAMP + 5
    assert legacy_offsets_before(log, LATEST, 10, now) == [6, 1]
    assert legacy_offsets_before(log, LATEST, 1, now) == [6]
    assert legacy_offsets_before(log, LATEST, -1, now) == []
    assert legacy_offsets_before(log, EARLIEST, 10, now) == [1]
    assert legacy_offsets_before(log, TIMESTAMP, 10, now) == [1]
    assert legacy_offsets_before(log, TIMESTAMP - 1, 10, now) == []
    assert legacy_offsets_before(MemoryLog(), LATEST, 10, now) == [0]
