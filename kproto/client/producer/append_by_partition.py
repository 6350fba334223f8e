"""The fast path of `send_many` for records with keys: appends them by partition.

`RecordsByPartition` reads a call's records in chunks. The keys of a chunk are hashed at once. Once
there are enough records, each partition's records are appended to its batches, one partition after
the other. The records of a partition keep their order. A chunk that has other elements than plain
records with keys is left to `append_many_pass`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter, length_hint
from typing import Any, Final, NamedTuple, TypeVar

from ..producer_record import Headers, ProducerRecord, as_record
from .accumulator import RecordAccumulator
from .acks import Acks
from .held_batches import HeldBatches
from .partitioner import TopicPartitioner

__all__ = ["CHUNK_RECORDS", "RecordsByPartition", "indexes_by_partition", "items_at"]

T = TypeVar("T")

#: The number of records in a chunk. The validation and hashing of so many records takes less than
#: `appender.YIELD_AFTER_S`.
CHUNK_RECORDS: Final = 16_384

#: Before the first record is appended, chunks are read until there is this number of records for
#: each partition of the topic, at most `MAX_READ_RECORDS` in all. More records make larger batches.
PARTITION_RECORDS: Final = 128
MAX_READ_RECORDS: Final = 8 * CHUNK_RECORDS

_PLAIN: Final = {ProducerRecord}
_FIELDS: Final[tuple[Callable[[Any], Any], ...]] = tuple(
    itemgetter(at) for at in range(len(ProducerRecord._fields))
)
_BYTES: Final = {bytes}
_SEQUENCES: Final = ({tuple}, {list}, {tuple, list})


class _Chunk(NamedTuple):
    """The fields of a chunk's records; `headers` is empty if no record has headers."""

    values: list[bytes]
    keys: list[bytes]
    headers: list[Headers]
    partitions: Iterable[int]


def _read_chunk(
    elements: Sequence[Any], partitioner: TopicPartitioner, accumulator: RecordAccumulator
) -> _Chunk | None:
    """Returns the fields of `elements`; None if they must be appended one by one.

    Returns None if an element needs validation: an element with another type, with a partition or a
    timestamp of its own, without a key or a value, or with invalid headers. Also returns None for
    headers if the topic has only one partition: appending record by record then takes less time.
    """
    partitions_of_keys = partitioner.partitions_of_keys
    if partitions_of_keys is None or not elements or type(elements[0]) is not ProducerRecord:
        return None
    if set(map(type, elements)) != _PLAIN:
        return None
    if elements[0].headers and len(partitioner.info.partitions) == 1:
        return None
    # Reading one field of all records after the other takes less time than `zip(*elements)`.
    values, keys, headers, timestamps, partitions = [list(map(of, elements)) for of in _FIELDS]
    count = len(keys)
    if (
        set(map(type, keys)) != _BYTES
        or set(map(type, values)) != _BYTES
        or timestamps.count(None) != count
        or partitions.count(None) != count
    ):
        return None
    if not any(headers):
        headers = []
    elif not _are_valid(headers, accumulator):
        return None
    return _Chunk(values, keys, headers, partitions_of_keys(keys))


def indexes_by_partition(
    partitions: Iterable[int], start: int = 0, known: dict[int, list[int]] | None = None
) -> dict[int, list[int]]:
    """Returns the indexes of the records of each partition.

    `partitions` has the partition of each record, in the order of the indexes, which begin at
    `start`. If there are `known` indexes, the call adds to them.
    """
    indexes = {} if known is None else known
    for index, partition in enumerate(partitions, start):
        try:
            indexes[partition].append(index)
        except KeyError:
            indexes[partition] = [index]
    return indexes


def items_at(indexes: Sequence[int], items: Sequence[T]) -> Sequence[T]:
    """Returns the items at `indexes`, in the order of the indexes."""
    if len(indexes) < 2:
        return [items[at] for at in indexes]
    found: tuple[T, ...] = itemgetter(*indexes)(items)  # in less time than a comprehension
    return found


class RecordsByPartition:
    """Reads the records of a call, and appends them, one partition after the other.

    `read` reads a chunk of records until `begin` starts to append them; `append_next` returns False
    when all of them are appended. `refused` is a chunk that must be appended one by one after
    them; None if there is none.
    """

    __slots__ = (
        "_accumulator",
        "_acks",
        "_done",
        "_headers",
        "_held",
        "_indexes",
        "_is_appending",
        "_keys",
        "_remaining",
        "_run",
        "_run_headers",
        "_run_keys",
        "_run_values",
        "_source",
        "_topic",
        "_values",
        "refused",
    )

    def __init__(
        self, source: Iterator[Any], accumulator: RecordAccumulator, acks: Acks, held: HeldBatches
    ) -> None:
        self.refused: list[Any] | None = None
        self._source = source
        self._accumulator = accumulator
        self._acks = acks
        self._held = held
        self._clear()

    def _clear(self) -> None:
        self._topic = ""
        self._values: list[bytes] = []
        self._keys: list[bytes] = []
        self._headers: list[Headers] = []
        self._indexes: dict[int, list[int]] = {}
        self._is_appending = False
        self._remaining: Iterator[tuple[int, list[int]]] = iter(())
        self._begin_run(0, [])

    @property
    def is_at_end(self) -> bool:
        """True if all elements are read."""
        return not length_hint(self._source)

    @property
    def is_appending(self) -> bool:
        """True from `begin` until all read records are appended."""
        return self._is_appending

    def read(self, partitioner: TopicPartitioner) -> bool:
        """Reads a chunk; returns True if there are enough records, or if no more can be read.

        Stores the chunk in `refused` if it must be appended one by one.
        """
        elements = list(islice(self._source, CHUNK_RECORDS))
        chunk = _read_chunk(elements, partitioner, self._accumulator)
        if chunk is None:
            self.refused = elements
            return True
        self._topic = partitioner.info.name
        start = len(self._keys)
        if chunk.headers or self._headers:
            self._headers += [()] * (start - len(self._headers))
            self._headers += chunk.headers or [()] * len(elements)
        self._values += chunk.values
        self._keys += chunk.keys
        if len(partitioner.info.partitions) == 1:
            only = next(iter(partitioner.info.partitions))
            self._indexes.setdefault(only, []).extend(range(start, len(self._keys)))
        else:
            indexes_by_partition(chunk.partitions, start, self._indexes)
        most = min(PARTITION_RECORDS * len(partitioner.info.partitions), MAX_READ_RECORDS)
        return self.is_at_end or len(self._keys) + CHUNK_RECORDS > most

    def begin(self) -> None:
        """Starts to append the records that were read."""
        self._is_appending = True
        if len(self._indexes) > 1:
            order = list(chain.from_iterable(self._indexes.values()))
            self._acks.add_order(len(self._acks), order)
        self._remaining = iter(self._indexes.items())

    def append_next(self, timestamp: int) -> bool:
        """Appends the next records, at most until a batch is full; returns False if none is left.

        The records get `timestamp`, in ms.
        """
        _, indexes = self._run
        if self._done == len(indexes):
            following = next(self._remaining, None)
            if following is None:
                self._clear()
                return False
            self._begin_run(*following)
        self._append_run(timestamp)
        return True

    def _begin_run(self, partition: int, indexes: list[int]) -> None:
        self._run = partition, indexes
        is_all = len(indexes) == len(self._keys)
        self._run_keys = self._keys if is_all else items_at(indexes, self._keys)
        self._run_values = self._values if is_all else items_at(indexes, self._values)
        self._run_headers: Sequence[Headers] | None = None
        if self._headers:
            self._run_headers = self._headers if is_all else items_at(indexes, self._headers)
        self._done = 0

    def _append_run(self, timestamp: int) -> None:
        partition, indexes = self._run
        rank = len(self._acks)
        batch, position, appended = self._accumulator.add_run(
            self._topic,
            partition,
            self._run_keys,
            self._run_values,
            self._done,
            timestamp,
            self._run_headers,
        )
        self._acks.add_run(rank, batch, position)
        self._acks.set_count(rank + appended)
        self._done += appended
        if not position:
            self._held.add(batch)
        if self._done == len(indexes):
            self._held.end_run(batch, is_last=self.refused is None and self.is_at_end)

    def unappended(self) -> list[ProducerRecord]:
        """Returns the records that were read but not appended, in the order of the call."""
        remaining = self._remaining if self._is_appending else iter(self._indexes.items())
        left = [*self._run[1][self._done :]]
        for _, indexes in remaining:
            left += indexes
        left.sort()
        headers = self._headers
        return [
            *(
                ProducerRecord(self._values[at], self._keys[at], headers[at] if headers else ())
                for at in left
            ),
            *map(as_record, self.refused or ()),
        ]


def _are_valid(headers: Sequence[Headers], accumulator: RecordAccumulator) -> bool:
    """Returns True if all headers can be encoded without an error."""
    if not accumulator.supports_headers or set(map(type, headers)) not in _SEQUENCES:
        return False
    pairs = list(chain.from_iterable(headers))
    try:
        if set(map(len, pairs)) != {2}:
            return False
        "".join(map(itemgetter(0), pairs)).encode("utf-8", "surrogateescape")
        return set(map(type, map(itemgetter(1), pairs))) <= {bytes, type(None)}
    except (LookupError, TypeError, ValueError):
        return False
