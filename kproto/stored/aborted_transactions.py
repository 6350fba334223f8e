"""Finds the fetched batches of aborted transactions, which read_committed consumers skip. KIP-98.

A Fetch response lists the aborted transactions of a partition: producer id and first offset. Each
aborted transaction ends at the abort marker of its producer in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Final

from ..records import MAX_DECOMPRESSED_BYTES, RecordBatch
from .control_records import ControlRecordType

__all__ = ["AbortedTransactions"]

#: The key of a control record: its version and type (ControlRecordType).
_CONTROL_KEY: Final = Struct(">hh")


class AbortedTransactions:
    """Tracks the aborted transactions of a fetched partition while its batches are read in order.

    `aborted` has (first offset, producer id) of each aborted transaction in the Fetch response. For
    each batch in offset order, call `on_control_batch` if it is a control batch, else `is_aborted`.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._upcoming = deque(sorted(aborted))
        self._producer_ids: set[int] = set()

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Returns True if `batch` belongs to an aborted transaction.

        Also records the start of each aborted transaction whose first offset is at most the last
        offset of `batch`, because later calls need it.
        """
        while self._upcoming and self._upcoming[0][0] <= batch.last_offset:
            self._producer_ids.add(self._upcoming.popleft()[1])
        return batch.is_transactional and batch.producer_id in self._producer_ids

    def on_control_batch(
        self, batch: RecordBatch, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    ) -> None:
        """Ends the aborted transaction of the batch's producer if `batch` has an abort marker.

        Raises CorruptBatchError and MissingCodecError, as `RecordBatch.records` does.
        """
        for record in batch.records(max_decompressed_bytes=max_decompressed_bytes):
            key = record.key or b""
            if (
                len(key) >= _CONTROL_KEY.size
                and _CONTROL_KEY.unpack_from(key)[1] == ControlRecordType.ABORT
            ):
                self.is_aborted(batch)
                self._producer_ids.discard(batch.producer_id)
