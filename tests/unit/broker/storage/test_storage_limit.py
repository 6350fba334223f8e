"""Tests the storage limit that all logs share."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.storage.memory_log import BATCH_OVERHEAD_BYTES, MemoryLog
from kproto.broker.storage.storage_limit import StorageLimit
from tests.support.batches import TIMESTAMP, view

SIZE = view(1).size_in_bytes + BATCH_OVERHEAD_BYTES


def test_logs_share_and_release_storage() -> None:
    storage_limit = StorageLimit(3 * SIZE)
    first, second = MemoryLog(storage_limit), MemoryLog(storage_limit)
    first.append(view(1), TIMESTAMP)
    first.append(view(1), TIMESTAMP)
    second.append(view(1), TIMESTAMP)
    assert storage_limit.used == 3 * SIZE
    for log in (first, second):
        end = log.end_offset
        with pytest.raises(BrokerResponseError, match=r"KAFKA_STORAGE_ERROR.*max_stored_bytes"):
            log.append(view(1), TIMESTAMP)
        assert (log.end_offset, storage_limit.used) == (end, 3 * SIZE)
    first.delete_before(1)
    assert storage_limit.used == 2 * SIZE
    assert second.append(view(1), TIMESTAMP) == 1
    first.delete_before(2)
    second.delete_before(2)
    assert storage_limit.used == 0


def test_half_deleted_batch_keeps_its_storage() -> None:
    storage_limit = StorageLimit(10_000)
    log = MemoryLog(storage_limit)
    log.append(view(3), TIMESTAMP)
    used = storage_limit.used
    log.delete_before(2)
    assert storage_limit.used == used
    log.delete_before(3)
    assert storage_limit.used == 0


def test_many_small_batches_take_more_than_their_bytes() -> None:
    """The limit counts Python's objects, too: a batch of 70 bytes takes about 500 bytes."""
    storage_limit = StorageLimit(1_000_000)
    log = MemoryLog(storage_limit)
    for _ in range(1_000_000 // SIZE):
        log.append(view(1), TIMESTAMP)
    with pytest.raises(BrokerResponseError, match="KAFKA_STORAGE_ERROR"):
        log.append(view(1), TIMESTAMP)
    assert log.size_in_bytes < 200_000
