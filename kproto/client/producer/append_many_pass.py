"""The fast path of `send_many`: appends many records to open batches in one pass, without a wait.

A pass appends bytes, and `ProducerRecord`s whose fields have exact types. Elements that are all
bytes are a `ValueRun`: a pass encodes many of them at once. A pass ends when the buffer has no
memory left, when the time of the pass is over, or at an element that it cannot append. The slow
path, in `appender`, then validates that element, opens a batch or requests metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from ...records import ENCODE_FAILURES, MAX_TIMESTAMP_MS, GrowingBatch
from ...wire.errors import EncodeError
from ..producer_record import Headers, ProducerRecord
from .accumulator import RecordAccumulator
from .acks import Acks
from .batch import ProducerBatch
from .partitioner import TopicPartitioner

__all__ = ["AppendEndReason", "AppendPassClock", "ValueRun", "append_to_open_batches", "pass_over"]

#: The time for which a pass uses one timestamp, in seconds: timestamps are in ms.
_TIMESTAMP_S: Final = 0.001

_NO_PARTITION: Final = -1

#: The partition of a keyless record if each record needs its own call of `partition_of`.
_PER_RECORD: Final = -2


#: The maximum number of values that are encoded at once, with one timestamp: this takes less than a
#: millisecond.
_MOST_VALUES: Final = 1_024


class ValueRun(Iterator[bytes]):
    """Iterates over values without keys; `taken` is the number of values that were read."""

    __slots__ = ("taken", "values")

    def __init__(self, values: Sequence[bytes]) -> None:
        self.values = values
        self.taken = 0

    def __next__(self) -> bytes:
        if self.taken == len(self.values):
            raise StopIteration
        self.taken += 1
        return self.values[self.taken - 1]


def pass_over(elements: Sequence[Any]) -> Iterator[Any]:
    """Returns an iterator over elements of a call; a `ValueRun` if all elements are bytes."""
    return ValueRun(elements) if set(map(type, elements)) == {bytes} else iter(elements)


class AppendEndReason(Enum):
    """The reason why a pass of `append_to_open_batches` ended.

    If a pass ends at an element for the slow path, it returns that element instead.
    """

    TIME_OVER = "the time of the pass is over: the call yields to the event loop"
    BUFFER_FULL = "the buffer is full"
    ALL_APPENDED = "all records are appended"


class AppendPassClock(NamedTuple):
    """The clocks of a pass, and `ends_at`, the time of its end in seconds of `monotonic`.

    The pass reads the clocks once per `every` records. For an iterator, whose elements may take
    time, `every` is 1.
    """

    now_ms: Callable[[], int]
    monotonic: Callable[[], float]
    ends_at: float
    every: int


def append_to_open_batches(
    values: Iterator[Any],
    partitioner: TopicPartitioner,
    accumulator: RecordAccumulator,
    buffer_bytes: int,
    timing: AppendPassClock,
    acks: Acks,
) -> Any:
    """Appends records to open batches, and adds their batches and positions to `acks`.

    Returns the reason why the pass has ended: an `AppendEndReason`, or the element that was not
    appended. If a user's partitioner has already chosen the partition of this element, returns a
    record with the element's values and this partition, so that the partitioner is not called
    twice. Raises the exceptions of `values`; the records before the exception stay appended.
    """
    if type(values) is ValueRun and not partitioner.is_per_record:
        return _append_values(values, partitioner, accumulator, buffer_bytes, timing, acks)
    topic, limit = partitioner.info.name, accumulator.batch_bytes
    supports_headers = accumulator.supports_headers
    partition_of, partitions = partitioner.partition_of, partitioner.info.partitions
    now_ms, monotonic, ends_at, every = timing
    is_per_record = partitioner.is_per_record
    keyless = _PER_RECORD if is_per_record else partition_of(None)
    is_one = len(partitions) == 1 and not is_per_record
    index = len(acks)
    open_partition = _NO_PARTITION
    batch: ProducerBatch | None = None
    content = GrowingBatch()
    value: bytes | None
    headers: Headers
    is_time_over = False
    now = until_clock_read = 0
    timestamp_valid_until = 0.0
    try:
        for element in values:
            if until_clock_read:
                until_clock_read -= 1
            else:
                until_clock_read = every - 1
                monotonic_now = monotonic()
                is_time_over = monotonic_now >= ends_at
                if monotonic_now >= timestamp_valid_until:
                    now = now_ms()
                    timestamp_valid_until = monotonic_now + _TIMESTAMP_S
                if every == 1:
                    open_partition = _NO_PARTITION  # the iterator may have appended records
            # Read the element, and choose its partition:
            if type(element) is bytes:
                value, key, headers, timestamp, partition = element, None, (), now, keyless
            elif type(element) is ProducerRecord:
                value, key, headers, own_timestamp, own_partition = element
                if (
                    (value is not None and type(value) is not bytes)
                    or (key is not None and type(key) is not bytes)
                    or (
                        headers
                        and (
                            (type(headers) is not tuple and type(headers) is not list)
                            or not supports_headers
                        )
                    )
                ):
                    return element
                if own_timestamp is None:
                    timestamp = now
                elif type(own_timestamp) is int and 0 <= own_timestamp <= MAX_TIMESTAMP_MS:
                    timestamp = own_timestamp
                else:
                    return element
                if own_partition is None:
                    try:
                        partition = keyless if key is None or is_one else partition_of(key)
                    except EncodeError:  # a user's partitioner has failed
                        return element
                elif type(own_partition) is int and own_partition in partitions:
                    partition = own_partition
                else:
                    return element
            else:
                return element
            # Append it to the open batch of the partition:
            is_other_partition = partition != open_partition
            if is_other_partition:
                if partition == _PER_RECORD:
                    try:
                        partition = partition_of(None)
                    except EncodeError:
                        return element
                batch = accumulator.open_batch(topic, partition)
                if batch is None:
                    return (
                        ProducerRecord(value, key, headers, timestamp, partition)
                        if is_per_record
                        else element
                    )
                content, open_partition = batch.content, partition
            try:
                added = content.append(key, value, headers, timestamp, limit)
            except ENCODE_FAILURES:
                return (
                    ProducerRecord(value, key, headers, timestamp, partition)
                    if is_per_record
                    else element
                )
            if not added:
                return (
                    ProducerRecord(value, key, headers, timestamp, partition)
                    if is_per_record
                    else element
                )
            if is_other_partition and batch is not None:
                acks.add_run(index, batch, content.count - 1)
            index += 1
            accumulator.buffered += added
            if accumulator.buffered > buffer_bytes:
                return AppendEndReason.BUFFER_FULL
            if is_time_over:
                return AppendEndReason.TIME_OVER
        return AppendEndReason.ALL_APPENDED
    finally:
        acks.set_count(index)


def _append_values(
    run: ValueRun,
    partitioner: TopicPartitioner,
    accumulator: RecordAccumulator,
    buffer_bytes: int,
    timing: AppendPassClock,
    acks: Acks,
) -> AppendEndReason | bytes:
    """Appends values without keys to the open batch, as `append_to_open_batches` does."""
    values, index = run.values, len(acks)
    batch = accumulator.open_batch(partitioner.info.name, partitioner.partition_of(None))
    while run.taken < len(values):
        if batch is None:
            return next(run)
        content, now = batch.content, timing.now_ms()
        first = content.count
        room = content.size_in_bytes + max(0, buffer_bytes - accumulator.buffered)
        count, grown = content.append_run(
            None,
            values[run.taken : run.taken + _MOST_VALUES],
            now,
            min(accumulator.batch_bytes, room),
        )
        if not count:  # the batch or the buffer has no certain room for a value, or it is large
            value = values[run.taken]
            count, grown = 1, content.append(None, value, (), now, accumulator.batch_bytes)
            if not grown:
                return next(run)
        run.taken += count
        acks.add_run(index, batch, first)
        index += count
        acks.set_count(index)
        accumulator.buffered += grown
        if accumulator.buffered > buffer_bytes:
            return AppendEndReason.BUFFER_FULL
        if timing.monotonic() >= timing.ends_at:
            return AppendEndReason.TIME_OVER
    return AppendEndReason.ALL_APPENDED
