"""Deletes the oldest batches of a log by retention.bytes and retention.ms.

Kafka deletes whole segments; here each batch counts as a segment. As in Kafka, even the newest
segment may be deleted, and deletion stops at the first segment within the limits. There is no
timer: callers apply retention before they read a log.
"""

from __future__ import annotations

import sys
from typing import Final

from ..topic_configs import TopicConfig
from .log import PartitionLog, RetentionBatchInfo

__all__ = ["apply_retention"]

_NEVER_MS: Final = sys.maxsize


def apply_retention(log: PartitionLog, config: TopicConfig, now_ms: int) -> int:
    """Deletes the oldest batches that have expired or that exceed the log's size limit.

    The limits are `retention.ms` and `retention.bytes`. Returns the time in ms until which another
    call deletes nothing, if neither the log nor the configs change.
    """
    if config.retention_bytes < 0 and config.retention_ms < 0:
        return _NEVER_MS
    start = None
    until_ms = _NEVER_MS
    size = log.size_in_bytes if config.retention_bytes >= 0 else 0
    for batch in log.stored():
        too_many = 0 <= config.retention_bytes <= size - batch.size_in_bytes
        if not too_many:
            until_ms = _last_ms(batch, config)
            if now_ms <= until_ms:
                break
            until_ms = _NEVER_MS
        size -= batch.size_in_bytes
        start = batch.next_offset
    if start is not None:
        log.delete_before(start)
    return until_ms


def _last_ms(batch: RetentionBatchInfo, config: TopicConfig) -> int:
    """Returns the last ms of a batch: `retention.ms` after the largest timestamp of the batch.

    If the batch was already that old at its append, it expires `retention_check_interval_ms` after
    the append.
    """
    if config.retention_ms < 0:
        return _NEVER_MS
    if batch.appended_ms - batch.largest_time > config.retention_ms:
        return batch.appended_ms + config.retention_check_interval_ms
    return batch.largest_time + config.retention_ms
