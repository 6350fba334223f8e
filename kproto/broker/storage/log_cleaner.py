"""Decides when the log of a compacted topic is compacted, and compacts it.

Source: Kafka's LogCleanerManager. There is no timer: callers compact a log before they read it, and
at most every `log_cleaner_backoff_ms`. As in Kafka, the active segment is never compacted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from ...wire.errors import CorruptBatchError, DecodeError, MissingCodecError
from ..topic_configs import TopicConfig
from .compaction import CompactionRound, ProducerLastRecord, compact, latest_offsets
from .log_segments import LogSegment, segments_of
from .partition import Partition
from .producer_state import ProducerStateManager

__all__ = ["CleanableRange", "apply_compaction", "cleanable_range"]

logger = logging.getLogger("kproto.broker")


class CleanableRange(NamedTuple):
    """Holds the range of offsets that a compaction makes free of duplicates.

    `dirty_offset` is the offset after the last compaction, `end_offset` the base offset of the
    first segment that may not be compacted yet. `dirty_ratio` is the share of the bytes from
    `dirty_offset` on. `is_overdue` is True if a record is older than max.compaction.lag.ms.
    """

    dirty_offset: int
    end_offset: int
    dirty_ratio: float
    is_overdue: bool


def apply_compaction(partition: Partition, config: TopicConfig, now_ms: int) -> None:
    """Compacts the log if its topic is compacted, and enough of the log is dirty.

    Does nothing if the last check, or the append of the first batch, was less than
    `config.cleaner_backoff_ms` ago. If a batch cannot
    be decoded, logs a warning, and never compacts the partition again, as in Kafka.
    """
    if not config.requires_keys or partition.is_uncleanable:
        return
    checked_ms = partition.cleaner_checked_ms
    if checked_ms is None:
        oldest = next(partition.log.stored_batches(), None)
        checked_ms = now_ms if oldest is None else oldest.appended_ms
    if now_ms - checked_ms < config.cleaner_backoff_ms:
        return
    partition.cleaner_checked_ms = now_ms
    found = _range_of(partition, config, now_ms)
    if found.dirty_ratio > config.min_cleanable_dirty_ratio or (
        found.is_overdue and found.dirty_ratio > 0
    ):
        try:
            _compact(partition, config, found, now_ms)
        except (CorruptBatchError, DecodeError, MissingCodecError) as error:
            partition.is_uncleanable = True
            logger.warning("partition %d cannot be compacted: %s", partition.index, error)


def _range_of(partition: Partition, config: TopicConfig, now_ms: int) -> CleanableRange:
    log = partition.log
    dirty_offset = max(partition.first_dirty_offset, log.start_offset)
    dirty = [it for it in log.stored_batches() if it.batch.last_offset >= dirty_offset]
    dirty_bytes = sum(it.batch.size_in_bytes for it in dirty)
    return cleanable_range(
        segments_of(dirty, config),
        config,
        dirty_offset=dirty_offset,
        clean_bytes=log.size_in_bytes - dirty_bytes,
        last_stable_offset=partition.last_stable_offset,
        now_ms=now_ms,
    )


def cleanable_range(
    segments: Sequence[LogSegment],
    config: TopicConfig,
    *,
    dirty_offset: int,
    clean_bytes: int,
    last_stable_offset: int,
    now_ms: int,
) -> CleanableRange:
    """Returns the range of a log that may be compacted.

    `segments` are the segments from `dirty_offset` on, the active segment last; `clean_bytes` is
    the size of the log before them. Segments with records of an ongoing transaction, or with
    records younger than min.compaction.lag.ms, may not be compacted.
    """
    inactive = segments[:-1]
    youngest = now_ms - config.min_compaction_lag_ms
    cleanable: list[LogSegment] = []
    for segment, following in zip(inactive, segments[1:], strict=False):
        is_unstable = following.base_offset > last_stable_offset
        if is_unstable or (config.min_compaction_lag_ms > 0 and segment.largest_time > youngest):
            break
        cleanable.append(segment)
    end_offset = segments[len(cleanable)].base_offset if segments else dirty_offset
    cleanable_bytes = sum(segment.size_in_bytes for segment in cleanable)
    total = clean_bytes + cleanable_bytes
    oldest = min((it.first_time for it in inactive if it.first_time > 0), default=now_ms)
    return CleanableRange(
        dirty_offset,
        end_offset,
        cleanable_bytes / total if total else 0.0,
        oldest < now_ms - config.max_compaction_lag_ms,
    )


def _compact(partition: Partition, config: TopicConfig, found: CleanableRange, now_ms: int) -> None:
    log, states = partition.log, partition.producer_states
    states.expire(now_ms - config.producer_id_expiration_ms)
    before = [it for it in log.stored_batches() if it.batch.next_offset <= found.end_offset]
    dirty = [it for it in before if it.batch.last_offset >= found.dirty_offset]
    aborted = states.aborted_transactions(log.start_offset, log.end_offset)
    compacted = compact(
        before,
        CompactionRound(
            latest_offsets(dirty, found.dirty_offset, aborted),
            found.end_offset,
            aborted,
            _last_records(states),
            now_ms,
            config.delete_retention_ms,
        ),
    )
    log.replace_before(found.end_offset, compacted.batches)
    states.replace_aborted(compacted.aborted)
    partition.first_dirty_offset = found.end_offset


def _last_records(states: ProducerStateManager) -> dict[int, ProducerLastRecord]:
    return {
        producer_id: ProducerLastRecord(
            state.batches[-1].last_offset if state.batches else None, state.epoch
        )
        for producer_id, state in states.producers.items()
    }
