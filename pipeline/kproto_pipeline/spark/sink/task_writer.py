"""The rows of one task to their topics: each to its partition, encoded with its neighbours.

Owns which rows go together. Rows with a partition go there, those with a key to the partition of
its hash, as Kafka's own clients choose it, and those with neither to one partition after the other,
some of them each. Rows of one partition keep their order.
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

from ...columns.arrow_numpy import number_array
from ...columns.encoding import partition_hashes, record_sections
from ..client_pool import run_on_loop, shared_client
from ..worker_imports import keep_archive_finders
from .encoding_thread import EncodingThread
from .errors import RowError
from .sink_rows import Rows, rows_of
from .task_producer import EncodedBatch, TaskProducer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from ..options.option_table import WriteOptions

__all__ = ["write_rows"]

#: How many bytes of rows are encoded together: enough to fill the batches of some partitions.
_TOGETHER_BYTES: Final = 8 << 20

#: An Arrow batch from this size on, in bytes, is cut into parts of the other: Spark makes them of
#: up to 64 MiB, and what is made of rows on their way takes their size some times again.
_LARGE_BYTES: Final = 16 << 20
_PART_BYTES: Final = 2 << 20

#: How many bytes of rows with neither key nor partition go to one partition before the next has its
#: turn. What a partition has got of the rows that are encoded together becomes one batch.
_TURN_BYTES: Final = 128 << 10

#: A block of this size, which is never written to, makes glibc keep what is freed up to twice of
#: it. Otherwise each batch and each request has its memory from the system, page by page.
_UNTOUCHED_BYTES: Final = 16 << 20


def write_rows(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> int:
    """Write all rows; how many they were. When it returns, all are acknowledged.

    Raises:
        RowError: a row cannot be written, or was not acknowledged.
    """
    keep_archive_finders()
    bytes(_UNTOUCHED_BYTES)
    topics = _Topics(options)
    first = 0

    def encode(together: pa.RecordBatch) -> None:
        nonlocal first
        rows = rows_of(together, options, first)
        turn_rows = max(1, _TURN_BYTES * together.num_rows // max(1, together.nbytes))
        for encoded in _encoded(rows, topics, turn_rows, options.batch_bytes):
            sending.give(encoded)
        first += together.num_rows

    with closing(TaskProducer(options)) as sending:
        encoding = EncodingThread(encode)
        try:
            for together in _together(batches):
                encoding.give(together)
            encoding.finish()
            sending.finish()
        finally:
            sending.close()  # first, so that nobody waits for room
            encoding.close()
    return first


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in steps: small batches as one, of about `_TOGETHER_BYTES`, and large ones cut."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        is_large = batch.nbytes >= _LARGE_BYTES
        if not is_large:
            waiting.append(batch)
            size += batch.nbytes
        if is_large or size >= _TOGETHER_BYTES:
            yield from _joined(waiting)
            waiting, size = [], 0
        if is_large:
            yield from _parts(batch)
    yield from _joined(waiting)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A large batch in copies of its parts, so that one that waits keeps nothing of the others."""
    rows = max(1, _PART_BYTES * batch.num_rows // batch.nbytes)
    for first in range(0, batch.num_rows, rows):
        yield pa.ipc.read_record_batch(batch.slice(first, rows).serialize(), batch.schema)


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    if rows:
        table = pa.Table.from_batches(batches).combine_chunks()
        yield from table.to_batches(max_chunksize=rows)


class _Topics:
    """The partitions of the topics that the rows name, each asked for once a task."""

    def __init__(self, options: WriteOptions) -> None:
        self._client = options.client
        self._known: dict[str, tuple[list[int], list[int]]] = {}
        # Anywhere: tasks of a few rows would else all begin with the same partition.
        self._turn = random.randrange(1 << 16)  # noqa: S311 - a place to begin, no secret

    def partitions(self, topic: str) -> list[int]:
        """All partitions of a topic. Raises KprotoError."""
        return self._ask(topic)[0]

    def partitions_now(self, topic: str) -> list[int]:
        """The same, as the brokers say it now: some may have been added. Raises KprotoError."""
        self._known.pop(topic, None)
        return self._ask(topic, anew=True)[0]

    def in_turns(self, topic: str, rows: int, turn_rows: int) -> npt.NDArray[np.int64]:
        """Partitions for rows that name none: one after the other, of those that have a leader."""
        led = np.array(self._ask(topic)[1], dtype=np.int64)
        turns = self._turn + np.arange(rows) // turn_rows
        self._turn = int(turns[-1]) + 1
        return led[turns % len(led)]

    def _ask(self, topic: str, *, anew: bool = False) -> tuple[list[int], list[int]]:
        if topic not in self._known:

            async def asked() -> tuple[list[int], list[int]]:
                async with shared_client(self._client, retry=True) as client:
                    if anew:
                        await client.refresh([topic])
                    info = await client.topic(topic)
                found = sorted(info.partitions)
                led = [each for each in found if info.partitions[each].leader >= 0]
                return found, led or found

            self._known[topic] = run_on_loop(asked())
        return self._known[topic]


def _encoded(
    rows: Rows, topics: _Topics, turn_rows: int, batch_bytes: int
) -> Iterator[EncodedBatch]:
    chosen = _chosen(rows, topics, turn_rows)
    largest = int(chosen.max(initial=0)) + 1
    groups = rows.topics * largest + chosen
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order], append=-1)) + 1
    begin = 0
    for end in ends.tolist():
        members = order[begin:end]
        begin = end
        topic = rows.names[int(rows.topics[members[0]])]
        partition = int(chosen[members[0]])
        taken = number_array(members)
        for section in record_sections(
            rows.keys.take(taken),
            rows.values.take(taken),
            rows.headers.take(members),
            batch_bytes=batch_bytes,
        ):
            yield EncodedBatch(
                topic,
                partition,
                EncodedRecords(section.data, section.count),
                partial(_place, rows, members[section.first : section.first + section.count]),
            )


def _place(rows: Rows, members: npt.NDArray[np.int64], record: int) -> str:
    return rows.place(int(members[record]))


def _chosen(rows: Rows, topics: _Topics, turn_rows: int) -> npt.NDArray[np.int64]:
    """The partition of each row.

    Raises:
        RowError: its topic cannot be asked for, or has no such partition.
    """
    chosen = rows.partitions.copy()
    keyed = rows.keys.is_valid().to_numpy(zero_copy_only=False)
    hashes: npt.NDArray[np.int64] | None = None
    for number, topic in enumerate(rows.names):
        its = rows.topics == number
        row = int(np.flatnonzero(its)[0])
        try:
            partitions = topics.partitions(topic)
            open_rows = its & (chosen < 0)
            by_key = open_rows & keyed
            if by_key.any():
                if hashes is None:
                    hashes = partition_hashes(rows.keys)
                number_array = np.array(partitions, dtype=np.int64)
                chosen[by_key] = number_array[hashes[by_key] % len(partitions)]
            keyless = open_rows & ~keyed
            if keyless.any():
                chosen[keyless] = topics.in_turns(topic, int(keyless.sum()), turn_rows)
        except KprotoError as error:
            raise RowError(f"{rows.place(row)}, for topic {topic!r}: {error}") from error
        unknown = its & ~np.isin(chosen, partitions)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            try:
                partitions = topics.partitions_now(topic)
            except KprotoError as error:
                raise RowError(f"{rows.place(row)}, for topic {topic!r}: {error}") from error
            unknown = its & ~np.isin(chosen, partitions)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            raise RowError(
                f"{rows.place(row)}: topic {topic!r} has no partition {int(chosen[row])}; it has "
                f"{len(partitions)}"
            )
    return chosen
