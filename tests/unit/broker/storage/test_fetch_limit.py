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


@pytest.mark.parametrize(
    ("max_bytes", "partition_max_bytes", "readable"),
    [
        (SIZE + 5, 1000, [SIZE + 5, SIZE + 5]),
        (1000, SIZE + 5, [SIZE + 5, 2 * SIZE + 10]),
        (5 * SIZE, 1000, [3 * SIZE, 5 * SIZE]),
        (1, 1000, [SIZE, SIZE]),
        (0, 1000, [SIZE, SIZE]),
        (1000, 1000, [3 * SIZE, 6 * SIZE]),
    ],
)
def test_readable_bytes_are_those_of_kafka_which_cuts_the_last_batch(
    max_bytes: int, partition_max_bytes: int, readable: list[int]
) -> None:
    limit = FetchLimit(max_bytes, at_least_one=True)
    found = []
    for _ in readable:
        limit.read(log_of(3), 0, partition_max_bytes)
        found.append(limit.readable)
    assert found == readable
