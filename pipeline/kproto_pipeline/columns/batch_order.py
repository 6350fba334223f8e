"""Offsets rise from batch to batch: the check of it.

No checksum covers the offset at which a batch begins, so a log that was damaged, or a broker that
sends a batch twice, shows here alone. Knows batch headers and nothing behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.wire.errors import CorruptBatchError

if TYPE_CHECKING:
    from kproto.records import RecordBatch

__all__ = ["checked_next_offset"]


def checked_next_offset(batch: RecordBatch, before: int | None) -> int:
    """The offset behind `batch`, for the next call; `before` is that behind the batch before it.

    Of a message set, an entry's own offset is all that is known: that of its last message.

    Raises:
        CorruptBatchError: the batch begins before `before`.
    """
    if before is not None and batch.base_offset < before:
        batch.check()  # A wrong checksum says more.
        raise CorruptBatchError(
            f"offsets do not rise: the batch holds {batch.base_offset} to {batch.last_offset}, and "
            f"the one before it ends at {before - 1}",
            offset=batch.position,
            base_offset=batch.base_offset,
        )
    return batch.next_offset
