"""The fast path of `send_many` for records with keys: appends a chunk of them by partition.

The keys of the chunk are hashed at once, and each partition's records are appended to its batch in
one run. The records of a partition keep their order. A chunk that has other elements than plain
records with keys is left to `append_many_pass`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from ..producer_record import Headers, ProducerRecord
from .accumulator import RecordAccumulator
from .acks import Acks
from .batch import ProducerBatch
from .partitioner import TopicPartitioner

__all__ = ["CHUNK_RECORDS", "append_by_partition"]

#: The records of a chunk: enough to give each of many partitions a run, and to append them in a
#: part of `appender.YIELD_AFTER_S`.
CHUNK_RECORDS: Final = 2_048

_PLAIN: Final = {ProducerRecord}
_BYTES: Final = {bytes}
_SEQUENCES: Final = ({tuple}, {list}, {tuple, list})


def append_by_partition(
    chunk: Sequence[object],
    partitioner: TopicPartitioner,
    accumulator: RecordAccumulator,
    buffer_bytes: int,
    timestamp: int,
    acks: Acks,
    on_opened: Callable[[ProducerBatch], object],
) -> bool:
    """Appends all records of `chunk`, or none; returns True if they are appended.

    Calls `on_opened` with each batch that the call opens. Records without a timestamp get
    `timestamp`, in ms. Appends none if the buffer has no room for them, or if an element needs
    validation: one with another type, a partition or a timestamp of its own, without a key or a
    value, or with invalid headers.
    """
    partitions_of_keys = partitioner.partitions_of_keys
    if partitions_of_keys is None or set(map(type, chunk)) != _PLAIN:
        return False
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
        or (not (has_no_headers := not any(headers)) and not _are_valid(headers, accumulator))
    ):
        return False
    room = buffer_bytes - accumulator.buffered
    if sum(map(len, values)) + sum(map(len, keys)) > room:
        return False
    indexes: dict[int, list[int]] = {}
    for index, partition in enumerate(partitions_of_keys(keys)):
        try:
            indexes[partition].append(index)
        except KeyError:
            indexes[partition] = [index]
    start = len(acks)
    rank = start
    acks.add_order(start, list(chain.from_iterable(indexes.values())))
    topic, limit = partitioner.info.name, accumulator.batch_bytes
    for partition, its in indexes.items():
        done = 0
        run_keys = [keys[at] for at in its]
        run_values = [values[at] for at in its]
        while done < len(its):
            batch = accumulator.open_batch(topic, partition)
            if has_no_headers and batch is not None:
                content = batch.content
                position = content.count
                appended, grown = content.append_run(
                    run_keys[done:] if done else run_keys,
                    run_values[done:] if done else run_values,
                    timestamp,
                    limit,
                )
                if appended:
                    acks.add_run(rank + done, batch, position)
                    accumulator.buffered += grown
                    done += appended
                    continue
            batch, position = accumulator.add(
                topic, partition, run_keys[done], run_values[done], headers[its[done]], timestamp
            )
            acks.add_run(rank + done, batch, position)
            done += 1
            if not position:
                on_opened(batch)
        rank += len(its)
    acks.set_count(rank)
    return True


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
