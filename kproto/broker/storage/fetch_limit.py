"""Limits the records of a fetch response (KIP-74), and detects diverging epochs (KIP-320)."""

from __future__ import annotations

from ..api_error import api_error
from .leader_epoch_cache import EpochEnd
from .log import LogSlice, PartitionLog

__all__ = ["FetchLimit", "diverging_epoch"]


class FetchLimit:
    """Limits the records of one response, over all of its partitions.

    `remaining` is the number of bytes of records that may still be read. If `at_least_one` is set,
    the first batch of the response is read even if the batch is larger (KIP-74).

    `readable` is the number of bytes that Kafka would return. Kafka cuts the last batch of a
    partition at the limit; this broker omits that batch, so its response may be shorter. The
    handler compares `min_bytes` of the request with `readable`, so that it waits no longer than
    Kafka.
    """

    def __init__(self, max_bytes: int, *, at_least_one: bool) -> None:
        self.max_bytes = max_bytes
        self.remaining = max_bytes
        self.readable = 0
        self.at_least_one = at_least_one

    def read(
        self, log: PartitionLog, offset: int, max_bytes: int, end_offset: int | None = None
    ) -> LogSlice:
        """Reads batches from `offset` on: at most `max_bytes`, and at most `remaining` bytes.

        Reads no batch from `end_offset` on; None stands for the log end offset.

        If `at_least_one` is set, the first batch of the response is read even if it exceeds both
        limits. Subtracts the size of the read batches from `remaining`. Adds to `readable` the
        number of bytes that Kafka would return. Raises OFFSET_OUT_OF_RANGE if `offset` is outside
        of the log.
        """
        found = log.read(
            offset,
            min(max_bytes, self.remaining),
            at_least_one=self.at_least_one,
            end_offset=end_offset,
        )
        cut = min(log.size_from(offset, end_offset), max_bytes, self.max_bytes - self.readable)
        self.readable += max(found.size, cut)
        if found.size:
            self.remaining = max(0, self.remaining - found.size)
            self.at_least_one = False
        return found


def diverging_epoch(log: PartitionLog, offset: int, last_epoch: int) -> EpochEnd | None:
    """Returns the epoch and end offset at which the client's log diverges; None if it does not.

    The client fetches from `offset`, and the last record that it fetched has leader epoch
    `last_epoch`. If `log` does not have that epoch, or the epoch ends before `offset`, the client
    has records that the log has lost. Raises OFFSET_OUT_OF_RANGE if `offset` is below the log start
    offset, or if `last_epoch` is above the current epoch.
    """
    end = log.epochs.end_of(last_epoch, log.end_offset)
    if end is None:
        raise api_error("OFFSET_OUT_OF_RANGE", f"leader epoch {last_epoch} is not known here")
    if offset < log.start_offset:
        raise api_error(
            "OFFSET_OUT_OF_RANGE", f"offset {offset} is before the first, {log.start_offset}"
        )
    if end.epoch < last_epoch or end.end_offset < offset:
        return end
    return None
