"""`ConcurrentSends`: the records of many calls of `send`, appended together by partition.

If many coroutines call `Producer.send` in one iteration of the event loop, the first call appends
its record and schedules the sender's next plan. The records of the next calls are collected, and
appended before that plan. Before any other call of the producer appends records, the collected
records are appended. So records of one partition keep the order of the calls.
"""

from __future__ import annotations

import asyncio
from typing import Final

from .accumulator import RecordAccumulator
from .append_by_partition import indexes_by_partition, items_at
from .batch import Outcome
from .partitioner import TopicPartitioner

__all__ = ["MAX_COLLECTED_BYTES", "ConcurrentSends"]

#: The most bytes of keys and values that are collected at a time; `buffer_bytes` does not limit
#: them. With this many bytes, each of a thousand partitions gets several records of 100 bytes at
#: once.
MAX_COLLECTED_BYTES: Final = 2 << 20

#: A record with more bytes than this is appended at once: collecting such a record would save only
#: a small part of the time that it takes.
_MAX_RECORD_BYTES: Final = 4_096


class ConcurrentSends:
    """Collects records with keys for one topic.

    `loop` is the event loop of the client.
    """

    __slots__ = (
        "_accumulator",
        "_keys",
        "_partitioner",
        "_room",
        "_values",
        "_waiters",
        "loop",
    )

    def __init__(
        self,
        partitioner: TopicPartitioner,
        accumulator: RecordAccumulator,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._partitioner = partitioner
        self._accumulator = accumulator
        self.loop = loop
        self._room = MAX_COLLECTED_BYTES
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._waiters: list[asyncio.Future[Outcome]] = []

    def collect(self, key: bytes, value: bytes) -> asyncio.Future[Outcome] | None:
        """Collects a record; returns a future that is done once the record is acked or has failed.

        Returns None, and does not collect the record, if the record has more than
        `_MAX_RECORD_BYTES`, or if the collected records would exceed `MAX_COLLECTED_BYTES`.
        """
        size = len(key) + len(value)
        if size > _MAX_RECORD_BYTES or size > self._room:
            return None
        self._room -= size
        waiter: asyncio.Future[Outcome] = self.loop.create_future()
        self._keys.append(key)
        self._values.append(value)
        self._waiters.append(waiter)
        return waiter

    def append(self, timestamp: int) -> None:
        """Appends the collected records, all with `timestamp` in ms."""
        if not self._keys:
            return
        try:
            self._append(timestamp)
        except BaseException as fault:  # otherwise callers would wait forever for their records
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_exception(fault)
            raise

    def _append(self, timestamp: int) -> None:
        add_run, topic = self._accumulator.add_run, self._partitioner.info.name
        _, partition_of, _, partitions_of_keys = self._partitioner
        if partitions_of_keys is None:
            partitions = [partition_of(key) for key in self._keys]
        else:
            partitions = partitions_of_keys(self._keys)
        first_call = self._accumulator.collected_calls
        self._accumulator.collected_calls += len(partitions)
        for partition, indexes in indexes_by_partition(partitions).items():
            keys = items_at(indexes, self._keys)
            values = items_at(indexes, self._values)
            waiters = items_at(indexes, self._waiters)
            done = 0
            while done < len(keys):
                batch, position, appended = add_run(topic, partition, keys, values, done, timestamp)
                end = done + appended
                batch.waiters.append((position, waiters[done:end], first_call, indexes[done:end]))
                done = end
