"""Limits the memory of all logs of a cluster."""

from __future__ import annotations

import logging
from typing import Final

from ..api_error import api_error
from .free_memory import return_free_memory

__all__ = ["StorageLimit"]

#: After this many released bytes, free memory is returned to the operating system. Less would cost
#: time at each small deletion; more would leave memory that other programs need.
_RETURNED_BYTES: Final = 33_554_432

logger = logging.getLogger("kproto.broker")


class StorageLimit:
    """Counts the bytes of all logs (`used`), and refuses more than `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._is_logged = False
        self._released = 0

    def has(self, size: int) -> bool:
        """Returns True if `size` more bytes fit into the limit."""
        return self.used + size <= self.limit

    def take(self, size: int) -> None:
        """Adds `size` to the used bytes. Raises KAFKA_STORAGE_ERROR if the sum exceeds the limit.

        Kafka returns this error if a disk is full. The error is retriable, so producers succeed
        when topics or records have been deleted.
        """
        if not self.has(size):
            reason = (
                f"the logs take {self.used} bytes; {size} more would exceed max_stored_bytes, "
                f"{self.limit}"
            )
            if not self._is_logged:
                logger.warning("a batch is refused: %s", reason)
                self._is_logged = True
            raise api_error("KAFKA_STORAGE_ERROR", reason)
        self._is_logged = False
        self.used += size

    def release(self, size: int) -> None:
        """Subtracts `size` from the used bytes."""
        self.used -= size
        self._released += size

    def return_memory(self) -> None:
        """Returns free memory to the operating system, if enough bytes were released.

        The caller has dropped the batches of the released bytes.
        """
        if self._released >= _RETURNED_BYTES:
            self._released = 0
            return_free_memory()
