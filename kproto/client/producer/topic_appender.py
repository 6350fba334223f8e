"""The fast path of `send_many`: appends many records to open batches in one pass, without a wait.

It takes values and `ProducerRecord`s of exact types, for open batches with memory. It returns at
any other element: the slow path, in `appender`, validates that element, opens a batch or requests
metadata. So each rule is written once, in the slow path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

from ...records import ENCODE_FAILURES, MAX_TIMESTAMP_MS, GrowingBatch
from ..metadata.cluster import TopicInfo
from .accumulator import Accumulator
from .acks import Acks
from .batch import Batch
from .record_validation import Headers, ProducerRecord

__all__ = ["AppendOutcome", "Timing", "TopicAppender", "take"]

#: The time for which a pass uses one timestamp, in seconds: timestamps are in ms.
_TICK_S: Final = 0.001

_NOWHERE: Final = -1


class AppendOutcome(Enum):
    """The reason for the end of a pass, if no element ended it."""

    PAUSE = "the time of the pass is over: the call yields to the event loop"
    FULL = "the buffer is full"
    END = "all records are appended"


class TopicAppender(NamedTuple):
    """A topic of the metadata, and the function from a key to its partition."""

    info: TopicInfo
    choose: Callable[[bytes | None], int]


class Timing(NamedTuple):
    """The clocks of a pass, and the time at which it ends, in seconds.

    The clocks are read once for `every` records; for an iterator, which may take time, they are
    read for each record.
    """

    now_ms: Callable[[], int]
    monotonic: Callable[[], float]
    ends_at: float
    every: int


def take(
    values: Iterator[Any],
    appender: TopicAppender,
    accumulator: Accumulator,
    buffer_bytes: int,
    timing: Timing,
    acks: Acks,
) -> Any:
    """Appends records to open batches, and adds their positions to `acks`.

    Returns the reason for its end: an `AppendOutcome`, or the next element, which was not appended.
    Raises the exceptions of `values`; records before them stay appended.
    """
    topic, limit = appender.info.name, accumulator.batch_bytes
    takes_headers = accumulator.takes_headers
    choose, partitions = appender.choose, appender.info.partitions
    now_ms, monotonic, ends_at, every = timing
    keyless = choose(None)
    is_one = len(partitions) == 1
    index = len(acks)
    at = _NOWHERE
    batch: Batch | None = None
    content = GrowingBatch()
    value: bytes | None
    headers: Headers
    is_late = False
    now = until_look = 0
    fresh_until = 0.0
    try:
        for given in values:
            if until_look:
                until_look -= 1
            else:
                until_look = every - 1
                moment = monotonic()
                is_late = moment >= ends_at
                if moment >= fresh_until:
                    now = now_ms()
                    fresh_until = moment + _TICK_S
                if every == 1:
                    at = _NOWHERE  # the iterator ran other code, which may have sent records, too
            # The kind of the element, and its partition:
            if type(given) is bytes:
                value, key, headers, timestamp, partition = given, None, (), now, keyless
            elif type(given) is ProducerRecord:
                value, key, headers, own_timestamp, chosen = given
                if (
                    (value is not None and type(value) is not bytes)
                    or (key is not None and type(key) is not bytes)
                    or (
                        headers
                        and (
                            (type(headers) is not tuple and type(headers) is not list)
                            or not takes_headers
                        )
                    )
                ):
                    return given
                if own_timestamp is None:
                    timestamp = now
                elif type(own_timestamp) is int and 0 <= own_timestamp <= MAX_TIMESTAMP_MS:
                    timestamp = own_timestamp
                else:
                    return given
                if chosen is None:
                    partition = keyless if key is None or is_one else choose(key)
                elif type(chosen) is int and chosen in partitions:
                    partition = chosen
                else:
                    return given
            else:
                return given
            # Append it to the open batch of the partition:
            is_elsewhere = partition != at
            if is_elsewhere:
                batch = accumulator.open_batch(topic, partition)
                if batch is None:
                    return given
                content, at = batch.content, partition
            try:
                added = content.append(key, value, headers, timestamp, limit)
            except ENCODE_FAILURES:
                return given
            if not added:
                return given
            if is_elsewhere and batch is not None:
                acks.add_run(index, batch, content.count - 1)
            index += 1
            accumulator.buffered += added
            if accumulator.buffered > buffer_bytes:
                return AppendOutcome.FULL
            if is_late:
                return AppendOutcome.PAUSE
        return AppendOutcome.END
    finally:
        acks.grow_to(index)
