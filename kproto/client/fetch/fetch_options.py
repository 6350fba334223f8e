"""`FetchOptions`: the fetch settings of a consumer, and its offset reset policy."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ...wire.checks import check_whole_number

__all__ = ["FetchOptions", "ResetPolicy"]

#: The largest int32, in bytes or in ms.
_MAX_VALUE: Final = 0x7FFFFFFF


class ResetPolicy(Enum):
    """The new position of a partition whose position is out of range (auto.offset.reset)."""

    EARLIEST = "the start of the log"
    LATEST = "the end of the log; its start, if that has overtaken the position"
    NONE = "none: the poll raises the error"


class FetchOptions(NamedTuple):
    """The settings of fetch requests.

    `max_partition_fetch_bytes` bounds the bytes of each partition in a response. A broker delays
    the response to a fetch without records for at most `max_wait_ms`.
    """

    max_partition_fetch_bytes: int
    max_wait_ms: int
    read_committed: bool
    reset_policy: ResetPolicy = ResetPolicy.EARLIEST

    def check(self) -> None:
        """Raises ConfigurationError if a number is out of range for a fetch request."""
        check_whole_number(
            "max_partition_fetch_bytes", self.max_partition_fetch_bytes, 1, _MAX_VALUE
        )
        check_whole_number("max_wait_ms", self.max_wait_ms, 0, _MAX_VALUE)
