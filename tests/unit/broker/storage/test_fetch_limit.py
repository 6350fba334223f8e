"""Tests the byte limit that the partitions of one fetch share (KIP-74)."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.storage.fetch_limit import FetchLimit
from kproto.broker.storage.memory_log import MemoryLog
from tests.support.batches import TIMESTAMP, view

SIZE = view().size_in_bytes


def log_of(count: int) -> MemoryLog:
    log = MemoryLog()
    for _ in range(count):
        log.append(view(), TIMESTAMP)
    return log


def test_partitions_share_the_limit() -> None:
    limit = FetchLimit(3 * SIZE + 1, at_least_one=True)
    taken = [limit.read(log_of(2), 0, 1000).size for _ in range(3)]
    assert taken == [2 * SIZE, SIZE, 0]
    assert limit.remaining == 1


def test_only_the_first_batch_may_be_larger_than_the_limit() -> None:
    limit = FetchLimit(1, at_least_one=True)
    assert [limit.read(log_of(1), 0, 1000).size for _ in range(2)] == [SIZE, 0]
    assert limit.remaining == 0
    assert FetchLimit(1, at_least_one=False).read(log_of(1), 0, 1000).size == 0


def test_empty_reads_and_errors_use_no_limit() -> None:
    limit = FetchLimit(1, at_least_one=True)
    assert limit.read(log_of(0), 0, 1000).size == 0
    with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
        limit.read(log_of(0), 5, 1000)
    assert limit.read(log_of(1), 0, 0).size == SIZE
