"""Tests the storage limit that all logs share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kproto
from kproto import BrokerResponseError
from kproto.broker.storage.free_memory import _malloc_trim
from kproto.broker.storage.memory_log import BATCH_OVERHEAD_BYTES, MemoryLog
from kproto.broker.storage.storage_limit import StorageLimit
from tests.support.batches import TIMESTAMP, view

SIZE = view(1).size_in_bytes + BATCH_OVERHEAD_BYTES


#: Fills and empties a log, and prints the resident memory of the process in KB: before, filled,
#: emptied.
PROGRAM = """
import os
from kproto.broker.storage.memory_log import MemoryLog
from kproto.records import RecordBatch, encode_batch

def resident():
    lines = open("/proc/self/status").read().splitlines()
    print(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")))

log, kept = MemoryLog(), []
batch = RecordBatch(encode_batch([(None, os.urandom(16_000), (), 0)]))
resident()
for _ in range(5_000):
    log.append(batch, 0)
    kept.append(bytes(1_000))  # other objects lie between the batches, as in a broker
resident()
log.delete_before(log.end_offset)
resident()
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists() or _malloc_trim() is None,
    reason="the C library keeps no freed memory, or the memory cannot be measured",
)
def test_memory_of_deleted_records_is_returned_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONMALLOC": "default"},
    )
    before, filled, emptied = map(int, done.stdout.split())
    assert filled - before > 60_000
    # The objects between the batches keep some pages in use, in compiled code more than in pure.
    assert emptied - before < (35_000 if kproto.__compiled__ else 20_000)


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
