"""Deletes the oldest batches of a log by retention.bytes and retention.ms.

Kafka deletes whole segments; here each batch counts as a segment. As in Kafka, even the newest
segment may be deleted, and deletion stops at the first segment within the limits. There is no
timer: callers apply retention before they read a log.
"""

from __future__ import annotations

from ..topic_configs import TopicConfig
from .log import PartitionLog, RetentionBatchInfo

__all__ = ["apply_retention"]


def apply_retention(log: PartitionLog, config: TopicConfig, now_ms: int) -> None:
    """Deletes the oldest batches that have expired or that exceed the log's size limit.

    The limits are `retention.ms` and `retention.bytes`.
    """
    if config.retention_bytes < 0 and config.retention_ms < 0:
        return
    start = None
    size = log.size_in_bytes if config.retention_bytes >= 0 else 0
    for batch in log.stored():
        too_many = 0 <= config.retention_bytes <= size - batch.size_in_bytes
        if not too_many and not _is_expired(batch, config, now_ms):
            break
        size -= batch.size_in_bytes
        start = batch.next_offset
    if start is not None:
        log.delete_before(start)


def _is_expired(batch: RetentionBatchInfo, config: TopicConfig, now_ms: int) -> bool:
    """Returns True if the largest timestamp of a batch is more than `retention.ms` ago.

    If the batch was already that old at its append, it expires `retention_check_interval_ms` after
    the append.
    """
    if config.retention_ms < 0:
        return False
    if batch.appended_ms - batch.largest_time > config.retention_ms:
        return now_ms - batch.appended_ms > config.retention_check_interval_ms
    return now_ms - batch.largest_time > config.retention_ms
