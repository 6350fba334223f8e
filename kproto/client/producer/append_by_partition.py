"""The fast path of `send_many` for records with keys: appends a chunk of them by partition.

The keys of the chunk are hashed at once, and each partition's records are appended to its batch in
one run. The records of a partition keep their order. A chunk that has other elements than plain
records with keys is left to `append_many_pass`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from ..producer_record import Headers, ProducerRecord
from .accumulator import RecordAccumulator
from .acks import Acks
from .batch import ProducerBatch
from .partitioner import TopicPartitioner

__all__ = ["CHUNK_RECORDS", "ChunkByPartition", "chunk_by_partition", "indexes_by_partition"]

#: The number of records in a chunk. It is large enough to give each of a thousand partitions a run;
#: the validation and hashing of so many records takes less than `appender.YIELD_AFTER_S`.
CHUNK_RECORDS: Final = 16_384

_PLAIN: Final = {ProducerRecord}
_BYTES: Final = {bytes}
_SEQUENCES: Final = ({tuple}, {list}, {tuple, list})


def chunk_by_partition(
    chunk: Sequence[object],
    partitioner: TopicPartitioner,
    accumulator: RecordAccumulator,
    room: int,
) -> ChunkByPartition | None:
    """Returns the records of `chunk` by partition; None if they must be appended one by one.

    Returns None if the records may have more than `room` bytes, or if an element needs validation:
    an element with another type, with a partition or a timestamp of its own, without a key or a
    value, or with invalid headers.
    """
    partitions_of_keys = partitioner.partitions_of_keys
    if partitions_of_keys is None or set(map(type, chunk)) != _PLAIN:
        return None
    values: tuple[bytes, ...]
    keys: tuple[bytes, ...]
    headers: tuple[Headers, ...]
    values, keys, headers, timestamps, partitions = zip(*chunk, strict=True)
    count = len(keys)
    if (
        set(map(type, keys)) != _BYTES
        or set(map(type, values)) != _BYTES
        or timestamps.count(None) != count
        or partitions.count(None) != count
        or sum(map(len, values)) + sum(map(len, keys)) > room
    ):
        return None
    if not any(headers):
        headers = ()
    elif not _are_valid(headers, accumulator):
        return None
    indexes = indexes_by_partition(partitions_of_keys(keys))
    return ChunkByPartition(partitioner.info.name, accumulator, values, keys, headers, indexes)


def indexes_by_partition(partitions: Iterable[int]) -> dict[int, list[int]]:
    """Returns the indexes of the records of each partition.

    `partitions` has the partition of each record, in the order of the indexes.
    """
    indexes: dict[int, list[int]] = {}
    for index, partition in enumerate(partitions):
        try:
            indexes[partition].append(index)
        except KeyError:
            indexes[partition] = [index]
    return indexes


class ChunkByPartition:
    """Appends the records of a chunk, one partition after the other.

    `indexes` has the indexes of each partition's records in the chunk. `headers` is empty if no
    record has headers.
    """

    __slots__ = ("_accumulator", "_headers", "_indexes", "_keys", "_remaining", "_topic", "_values")

    def __init__(
        self,
        topic: str,
        accumulator: RecordAccumulator,
        values: Sequence[bytes],
        keys: Sequence[bytes],
        headers: Sequence[Headers],
        indexes: dict[int, list[int]],
    ) -> None:
        self._topic = topic
        self._accumulator = accumulator
        self._values = values
        self._keys = keys
        self._headers = headers
        self._indexes = indexes
        self._remaining: Iterator[tuple[int, list[int]]] = iter(indexes.items())

    def begin(self, acks: Acks) -> None:
        """Stores in `acks` the order in which `append_next` appends the records."""
        acks.add_order(len(acks), list(chain.from_iterable(self._indexes.values())))

    def append_next(
        self, timestamp: int, acks: Acks, on_opened: Callable[[ProducerBatch], object]
    ) -> bool:
        """Appends the records of the next partition; returns False if no partition is left.

        The records get `timestamp`, in ms. Adds their batches to `acks`, and calls `on_opened` with
        each batch that the call opens.
        """
        for partition, indexes in self._remaining:
            self._append_run(partition, indexes, timestamp, acks, on_opened)
            return True
        return False

    def unappended(self) -> list[ProducerRecord]:
        """Returns the records that are not appended, in the order of the chunk."""
        left = sorted(chain.from_iterable(indexes for _, indexes in self._remaining))
        return [
            ProducerRecord(
                self._values[at], self._keys[at], self._headers[at] if self._headers else ()
            )
            for at in left
        ]

    def _append_run(
        self,
        partition: int,
        indexes: list[int],
        timestamp: int,
        acks: Acks,
        on_opened: Callable[[ProducerBatch], object],
    ) -> None:
        accumulator, topic, headers = self._accumulator, self._topic, self._headers
        rank = len(acks)
        done = 0
        keys = [self._keys[at] for at in indexes]
        values = [self._values[at] for at in indexes]
        while done < len(indexes):
            if headers:
                batch, position = accumulator.add(
                    topic, partition, keys[done], values[done], headers[indexes[done]], timestamp
                )
                appended = 1
            else:
                batch, position, appended = accumulator.add_run(
                    topic, partition, keys, values, done, timestamp
                )
            acks.add_run(rank + done, batch, position)
            done += appended
            if not position:
                on_opened(batch)
        acks.set_count(rank + len(indexes))


def _are_valid(headers: tuple[Headers, ...], accumulator: RecordAccumulator) -> bool:
    """Returns True if all headers can be encoded without an error."""
    if not accumulator.supports_headers or set(map(type, headers)) not in _SEQUENCES:
        return False
    pairs = list(chain.from_iterable(headers))
    try:
        names, values = zip(*pairs, strict=True)
        "".join(names).encode("utf-8", "surrogateescape")
    except (TypeError, ValueError):
        return False
    return set(map(type, values)) <= {bytes, type(None)}
