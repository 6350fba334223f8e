"""Which batches belong to aborted transactions (KIP-98), by the headers of batches alone.

The broker names, beside fetched bytes, the producer of each aborted transaction and where it began;
its abort marker ends it. Knows no partition and no fetch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Final

from ..records import MAX_DECOMPRESSED_BYTES, RecordBatch
from .control import ControlRecordType

__all__ = ["AbortedTransactions"]

#: The key of a control record: its version and type (ControlRecordType).
_CONTROL_KEY: Final = Struct(">hh")


class AbortedTransactions:
    """What to hide of one fetched partition; it is shown each batch, in order.

    `begun` are the first offset and the producer id of each aborted transaction.
    """

    def __init__(self, begun: Iterable[tuple[int, int]]) -> None:
        self._waiting = deque(sorted(begun))
        self._active: set[int] = set()

    def hides(self, batch: RecordBatch) -> bool:
        """True when no reader that wants committed records alone may see `batch`."""
        while self._waiting and self._waiting[0][0] <= batch.last_offset:
            self._active.add(self._waiting.popleft()[1])
        return batch.is_transactional and batch.producer_id in self._active

    def see_marker(
        self, batch: RecordBatch, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    ) -> None:
        """Take note of a control batch: an abort marker ends the transaction of its producer."""
        for record in batch.records(max_decompressed_bytes=max_decompressed_bytes):
            key = record.key or b""
            if (
                len(key) >= _CONTROL_KEY.size
                and _CONTROL_KEY.unpack_from(key)[1] == ControlRecordType.ABORT
            ):
                self.hides(batch)
                self._active.discard(batch.producer_id)
