"""How much all logs of a cluster may hold together, and how much they do.

Plain numbers. Knows no log; each takes its room from here and gives it back.
"""

from __future__ import annotations

import logging

from ..api_error import api_error

__all__ = ["StorageLimit"]

logger = logging.getLogger("kproto.broker")


class StorageLimit:
    """`limit` bytes, of which `used` are taken."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._told = False

    def has(self, size: int) -> bool:
        """Whether so many bytes are left."""
        return self.used + size <= self.limit

    def take(self, size: int) -> None:
        """Raises KAFKA_STORAGE_ERROR when there is not so much.

        That is what Kafka says where a disk is full. Producers try again then, and go on once
        topics or records are deleted.
        """
        if not self.has(size):
            reason = (
                f"the logs take {self.used} bytes; {size} more would pass max_stored_bytes, "
                f"{self.limit}"
            )
            if not self._told:
                logger.warning("a batch is refused: %s", reason)
                self._told = True
            raise api_error("KAFKA_STORAGE_ERROR", reason)
        self._told = False
        self.used += size

    def release(self, size: int) -> None:
        """What was taken is free again."""
        self.used -= size
