"""Appends many records to open batches in one pass: the fast path of `send_many`, without a wait.

Takes values and `ProducerRecord`s of exact types, for a batch that is open and has memory. Returns
at any other element, which the slow path then validates, or for which it opens a batch or requests
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

#: How old the time of day may be that a record gets, in seconds: timestamps are in ms.
_TICK_S: Final = 0.001

_NOWHERE: Final = -1


class AppendOutcome(Enum):
    """The reason for the end of a pass, if no element ended it."""

    PAUSE = "others are to have their turn"
    FULL = "there is no more room"
    END = "all is taken"


class TopicAppender(NamedTuple):
    """A topic of the metadata, and the function from a key to its partition."""

    info: TopicInfo
    choose: Callable[[bytes | None], int]


class Timing(NamedTuple):
    """The clocks of a pass, and the time in seconds at which it `ends_at`.

    The clocks are read once for `every` records: once for each of an iterator that may take time.
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
    """Put records into open batches and note in `acks` where they stand; returns why it ended.

    Returns an `AppendOutcome`, or the next element, which was not appended. What `values` raises
    is raised; what was appended before it stays appended.
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
                    at = _NOWHERE  # code of others ran, which may have given records too
            # Of which kind it is, and where it goes:
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
            # Into the batch that is open there:
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
