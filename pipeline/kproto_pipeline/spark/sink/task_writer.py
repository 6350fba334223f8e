"""Writes the rows of one task: chooses partitions, encodes batches, and sends the batches.

A row with a partition goes to that partition. Any other row with a key goes to the partition of the
key's hash, as with Kafka's Java client. Rows with neither partition nor key go to one partition for
`_STICKY_BYTES`, then to the next partition. Rows of one partition keep their order.
"""

from __future__ import annotations

import random
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kproto.client import EncodedRecords
from kproto.wire.errors import KprotoError

from ...columns.arrow_numpy import null_mask
from ...columns.encoding import partition_hashes, record_sections
from ..client_pool import run_on_loop, shared_client
from ..worker_imports import drop_archive_finders, freeze_imported_once
from .encoding_thread import EncodingThread
from .errors import RowError
from .row_checksum import RowChecksum
from .sink_rows import SinkRows, sink_rows
from .task_producer import EncodedBatch, TaskProducer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from ..options.option_table import WriteOptions

__all__ = ["write_rows"]

#: The bytes of rows that are encoded together: enough to fill batches of several partitions.
_TARGET_BYTES: Final = 8 << 20

#: An Arrow batch of at least `_LARGE_BYTES` is split into parts of about `_PART_BYTES`: Spark's
#: batches have up to 64 MiB, and encoding needs several times their memory.
_LARGE_BYTES: Final = 16 << 20
_PART_BYTES: Final = 2 << 20

#: The bytes of rows with neither key nor partition that go to one partition before the next one.
#: The rows of a partition that are encoded together become one batch.
_STICKY_BYTES: Final = 128 << 10

#: The numbers below this one have 16 bits; numpy sorts 16 bits by radix, in less time than 64 bits.
_UINT16_NUMBERS: Final = 1 << 16

#: If a block of this size is allocated and freed, glibc keeps freed blocks of up to that size for
#: reuse (mallopt(3), M_MMAP_THRESHOLD). Otherwise each batch and request gets new pages.
_UNTOUCHED_BYTES: Final = 16 << 20


def write_rows(
    options: WriteOptions,
    batches: Iterable[pa.RecordBatch],
    task_producer: TaskProducer | None = None,
) -> int:
    """Writes all rows, waits for their acknowledgements, and returns the number of rows.

    `task_producer` sends the batches, by default a new `TaskProducer`.

    Raises:
        RowError: a row cannot be written, or was not acknowledged.
        KprotoError: no broker is reachable.
    """
    drop_archive_finders()
    freeze_imported_once()
    bytes(_UNTOUCHED_BYTES)
    topics = _TopicPartitions(options)
    message_format = 2 if options.cloud_events is None else _message_format(options)
    first = 0
    checksum = RowChecksum()

    def encode(batch: pa.RecordBatch) -> None:
        nonlocal first
        rows = sink_rows(batch, options, first, message_format)
        if options.exactly_once:
            checksum.add(rows)
        sticky_rows = max(1, _STICKY_BYTES * batch.num_rows // max(1, batch.nbytes))
        producer.send([*_encode(rows, topics, sticky_rows, options.batch_bytes)])
        first += batch.num_rows

    with closing(task_producer or TaskProducer(options)) as producer:
        encoding = EncodingThread(encode)
        try:
            for batch in _resized_batches(batches):
                encoding.submit(batch)
            encoding.finish()
            producer.finish(checksum.written)
        finally:
            producer.close()  # first, so that the encoding thread does not block
            encoding.close()
    return first


def _message_format(options: WriteOptions) -> int:
    """Returns the newest record format that the brokers accept. Raises KprotoError."""

    async def connect() -> int:
        async with shared_client(options.client, retry=True) as client:
            return client.message_format

    return run_on_loop(connect())


def _resized_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Joins small Arrow batches and splits large ones, to batches of about `_TARGET_BYTES`."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        is_large = batch.nbytes >= _LARGE_BYTES
        if not is_large:
            waiting.append(batch)
            size += batch.nbytes
        if is_large or size >= _TARGET_BYTES:
            yield from _concatenated(waiting)
            waiting, size = [], 0
        if is_large:
            yield from _split(batch)
    yield from _concatenated(waiting)


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields copies of the parts of a large batch.

    A queued slice would keep the memory of the whole batch. A queued copy keeps only its own
    memory.
    """
    rows = max(1, _PART_BYTES * batch.num_rows // batch.nbytes)
    for first in range(0, batch.num_rows, rows):
        yield pa.ipc.read_record_batch(batch.slice(first, rows).serialize(), batch.schema)


def _concatenated(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    if rows:
        # By malloc: Arrow's default pool returns large freed blocks to the system, so each batch
        # would get new pages.
        table = pa.Table.from_batches(batches).combine_chunks(pa.system_memory_pool())
        yield from table.to_batches(max_chunksize=rows)


class _TopicPartitions:
    """The partitions of the topics that rows name.

    Requests the metadata of each topic once per task, and again if a row names an unknown
    partition.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._client = options.client
        self._by_topic: dict[str, tuple[list[int], list[int]]] = {}
        # Random, because otherwise all tasks with few rows would use the same partition.
        self._sticky = random.randrange(1 << 16)  # noqa: S311 - no secret

    def partitions(self, topic: str) -> list[int]:
        """Returns the numbers of all partitions of a topic.

        Raises KprotoError if the client cannot get the metadata of the topic.
        """
        return self._partitions(topic)[0]

    def refreshed_partitions(self, topic: str) -> list[int]:
        """Requests new metadata of a topic; returns the numbers of all its partitions.

        The new metadata may have additional partitions. Raises KprotoError if the client cannot get
        the metadata.
        """
        self._by_topic.pop(topic, None)
        return self._partitions(topic, refresh=True)[0]

    def sticky_partitions(self, topic: str, rows: int, sticky_rows: int) -> npt.NDArray[np.int64]:
        """Returns a partition for each of `rows` rows that have neither key nor partition.

        Each `sticky_rows` consecutive rows get the same partition. Skips partitions without a
        leader if at least one partition has a leader.
        """
        with_leader = np.array(self._partitions(topic)[1], dtype=np.int64)
        turns = self._sticky + np.arange(rows) // sticky_rows
        self._sticky = int(turns[-1]) + 1
        return with_leader[turns % len(with_leader)]

    def _partitions(self, topic: str, *, refresh: bool = False) -> tuple[list[int], list[int]]:
        if topic not in self._by_topic:

            async def fetch_partitions() -> tuple[list[int], list[int]]:
                async with shared_client(self._client, retry=True) as client:
                    if refresh:
                        await client.refresh([topic])
                    info = await client.topic(topic)
                found = sorted(info.partitions)
                with_leader = [each for each in found if info.partitions[each].leader >= 0]
                return found, with_leader or found

            self._by_topic[topic] = run_on_loop(fetch_partitions())
        return self._by_topic[topic]


def _encode(
    rows: SinkRows, topics: _TopicPartitions, sticky_rows: int, batch_bytes: int
) -> Iterator[EncodedBatch]:
    chosen = _choose_partitions(rows, topics, sticky_rows)
    largest = int(chosen.max(initial=0)) + 1
    groups = rows.topics * largest + chosen
    if len(rows.names) * largest <= _UINT16_NUMBERS:
        groups = groups.astype(np.uint16)
    order = np.argsort(groups, kind="stable")
    ends = [*(np.flatnonzero(np.diff(groups[order])) + 1).tolist(), len(order)]
    for section in record_sections(
        rows.keys,
        rows.values,
        rows.headers,
        batch_bytes=batch_bytes,
        order=order,
        ends=ends,
    ):
        members = order[section.first : section.first + section.count]
        yield EncodedBatch(
            rows.names[int(rows.topics[members[0]])],
            int(chosen[members[0]]),
            EncodedRecords(section.data, section.count),
            partial(_describe, rows, members),
        )


def _describe(rows: SinkRows, members: npt.NDArray[np.int64], record: int) -> str:
    return rows.describe(int(members[record]))


def _choose_partitions(
    rows: SinkRows, topics: _TopicPartitions, sticky_rows: int
) -> npt.NDArray[np.int64]:
    """Returns the number of the partition for each row.

    Raises:
        RowError: the metadata of a topic cannot be fetched, or a row names a partition that its
            topic does not have.
    """
    chosen = rows.partitions.copy()
    null = null_mask(rows.keys)
    keyed = np.ones(len(chosen), dtype=np.bool_) if null is None else ~null
    hashes: npt.NDArray[np.int64] | None = None
    for number, topic in enumerate(rows.names):
        its = rows.topics == number
        row = int(np.argmax(its))
        try:
            partitions = topics.partitions(topic)
            open_rows = its & (chosen < 0)
            by_key = open_rows & keyed
            if by_key.any():
                if hashes is None:
                    hashes = partition_hashes(rows.keys)
                number_array = np.array(partitions, dtype=np.int64)
                by_hash = number_array[hashes % len(partitions)]
                np.copyto(chosen, by_hash, where=by_key)
            keyless = open_rows & ~keyed
            if keyless.any():
                chosen[keyless] = topics.sticky_partitions(topic, int(keyless.sum()), sticky_rows)
        except KprotoError as error:
            raise RowError(f"{rows.describe(row)}, for topic {topic!r}: {error}") from error
        if open_rows.all():
            continue
        unknown = its & ~np.isin(chosen, partitions)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            try:
                partitions = topics.refreshed_partitions(topic)
            except KprotoError as error:
                raise RowError(f"{rows.describe(row)}, for topic {topic!r}: {error}") from error
            unknown = its & ~np.isin(chosen, partitions)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            raise RowError(
                f"{rows.describe(row)}: topic {topic!r} has no partition {int(chosen[row])}; it "
                f"has {len(partitions)}. If the rows were read from another topic, drop the column "
                "partition: then the keys decide"
            )
    return chosen
