"""How much of which log goes into one fetch response (KIP-74)."""

from __future__ import annotations

from .log import LogSlice, PartitionLog

__all__ = ["FetchLimit"]


class FetchLimit:
    """The limit of one response, which its partitions share in the order in which they are read.

    `left` is in bytes of records. With `at_least_one` the first batch comes however large it is.
    """

    def __init__(self, max_bytes: int, *, at_least_one: bool) -> None:
        self.left = max_bytes
        self.at_least_one = at_least_one

    def read(self, log: PartitionLog, offset: int, max_bytes: int) -> LogSlice:
        """The batches from `offset` on, at most `max_bytes`. Raises OFFSET_OUT_OF_RANGE."""
        found = log.read(offset, min(max_bytes, self.left), at_least_one=self.at_least_one)
        if found.size:
            self.left = max(0, self.left - found.size)
            self.at_least_one = False
        return found
