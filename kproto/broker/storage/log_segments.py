"""Divides the batches of a log into segments, as Kafka rolls them.

The broker stores no segments: compaction computes them from the batches and the current configs of
the topic. A segment is rolled before a batch that exceeds segment.bytes or segment.ms; Kafka has
further reasons that concern index files. Source: Kafka's LogSegment.shouldRoll.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...records import NO_TIMESTAMP
from ..topic_configs import TopicConfig
from .log import StoredBatch

__all__ = ["LogSegment", "segments_of"]


class LogSegment(NamedTuple):
    """Holds the attributes of a segment that compaction needs; times are in ms.

    `first_time` is the largest timestamp of the first batch, NO_TIMESTAMP if its records have no
    timestamps. `largest_time` is the largest timestamp of the segment; if the records have no
    timestamps, the time of the last append.
    """

    base_offset: int
    size_in_bytes: int
    first_time: int
    largest_time: int


def segments_of(stored: Iterable[StoredBatch], config: TopicConfig) -> list[LogSegment]:
    """Returns the segments of consecutive batches; the last segment is the active segment."""
    segments: list[LogSegment] = []
    open_segment: _OpenSegment | None = None
    for batch, appended_ms in stored:
        if open_segment is None or open_segment.must_roll(
            batch.size_in_bytes, batch.max_timestamp, appended_ms, config
        ):
            if open_segment is not None:
                segments.append(open_segment.closed())
            open_segment = _OpenSegment(batch.base_offset, batch.max_timestamp, appended_ms)
        open_segment.add(batch.size_in_bytes, batch.max_timestamp, appended_ms)
    if open_segment is not None:
        segments.append(open_segment.closed())
    return segments


class _OpenSegment:
    def __init__(self, base_offset: int, first_time: int, created_ms: int) -> None:
        self.base_offset = base_offset
        self.first_time = first_time
        self.created_ms = created_ms
        self.size = 0
        self.largest_time = NO_TIMESTAMP
        self.appended_ms = created_ms

    def must_roll(self, size: int, timestamp: int, appended_ms: int, config: TopicConfig) -> bool:
        """Returns True if a batch must begin the next segment."""
        if self.first_time >= 0:
            waited_ms = timestamp - self.first_time
        else:
            waited_ms = appended_ms - self.created_ms
        return self.size + size > config.segment_bytes or waited_ms > config.segment_ms

    def add(self, size: int, timestamp: int, appended_ms: int) -> None:
        self.size += size
        self.largest_time = max(self.largest_time, timestamp)
        self.appended_ms = appended_ms

    def closed(self) -> LogSegment:
        largest = self.appended_ms if self.largest_time < 0 else self.largest_time
        return LogSegment(self.base_offset, self.size, self.first_time, largest)
