"""How a consumer fetches, and where it continues if the log lacks its position."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ...wire.checks import check_whole_number

__all__ = ["FetchOptions", "ResetPolicy"]

#: The largest int32, in bytes or in ms.
_MOST: Final = 0x7FFFFFFF


class ResetPolicy(Enum):
    """Where a consumer continues if its position is out of range (auto.offset.reset)."""

    EARLIEST = "at the start of the log"
    LATEST = "at the end of the log, unless the start of the log has overtaken the position"
    NONE = "nowhere: that is an error"


class FetchOptions(NamedTuple):
    """How to fetch.

    `max_partition_fetch_bytes` bounds the bytes of each partition in a response. A broker holds a
    fetch for at most `max_wait_ms`.
    """

    max_partition_fetch_bytes: int
    max_wait_ms: int
    read_committed: bool
    reset_policy: ResetPolicy = ResetPolicy.EARLIEST

    def check(self) -> None:
        """Raises ConfigurationError for numbers that a fetch request cannot have."""
        check_whole_number("max_partition_fetch_bytes", self.max_partition_fetch_bytes, 1, _MOST)
        check_whole_number("max_wait_ms", self.max_wait_ms, 0, _MOST)
