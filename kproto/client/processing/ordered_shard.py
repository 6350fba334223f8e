"""`OrderedShard`: the records of a partition that are processed one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint

from ...records import Record
from ..metadata.cluster import TopicPartition
from .shard import Shard

__all__ = ["OrderedShard"]


class OrderedShard(Shard):
    """Starts one record after the other; `is_busy` is True while a worker processes the records.

    The worker iterates over `remaining`, the records of the current list that were not started. The
    first `counted` records of the list are in the summary of the pool. `uncounted` is the number of
    processed records that are not in the summary yet.
    """

    __slots__ = ("_is_delayed", "_records", "counted", "is_busy", "remaining")

    def __init__(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
    ) -> None:
        super().__init__(state, assignment_epoch, tp)
        self._records: list[Record] = []
        self.remaining: Iterator[Record] = iter(())
        self.counted = 0
        self.is_busy = False
        self._is_delayed = False

    @property
    def started_count(self) -> int:
        """The number of records of the current list that the worker has started."""
        return len(self._records) - length_hint(self.remaining)

    @property
    def uncounted(self) -> int:
        """The number of processed records that are not yet in the summary of the pool."""
        return self.started_count - self.is_busy - self.counted

    @property
    def held(self) -> int:
        # The worker's list keeps its processed records, too, until the next list.
        return self.queued + len(self._records)

    def _set_records(self, records: list[Record]) -> None:
        self.counted = 0
        self._records = records
        self.remaining = iter(records)

    def has_ready_record(self) -> bool:
        if self.is_busy or self._is_delayed or self.is_paused:
            return False
        if not length_hint(self.remaining):
            if not self.incoming:
                self._set_records([])
                return False
            self._set_records(self._next_list())
        return not self.is_draining

    def first_incomplete(self) -> int | None:
        if self.is_busy:
            return self._records[self.started_count - 1].offset
        return self.first_queued()

    def first_queued(self) -> int | None:
        remaining = length_hint(self.remaining)
        return self._records[-remaining].offset if remaining else self._first_incoming()

    def has_in_flight(self) -> bool:
        return self.is_busy

    def complete(self, record: Record) -> None:
        self.is_busy = False
        self.attempts.clear()

    def retry_later(self, record: Record) -> None:
        self._is_delayed = True
        self.abandon(record)

    def requeue(self, record: Record) -> None:
        self._is_delayed = False

    def abandon(self, record: Record) -> None:
        self.is_busy = False
        self._set_records([record, *self.remaining])

    def drain(self) -> None:
        if not self.is_draining:
            self.dropped = self.first_queued()
            self._stop()
            self.is_draining = True
            self._drop_incoming()

    def discard(self) -> None:
        self._stop()
        self.is_draining = self.is_lost = True
        self._drop_incoming()

    def _stop(self) -> list[Record]:
        """Removes the records that have not started; returns them.

        Empties `remaining`, so that the worker ends its batch after the present record.
        """
        remaining = list(self.remaining)
        if remaining:
            self._records = self._records[: -len(remaining)]
        return remaining

    def stop_early(self) -> None:
        """Empties `remaining`, so that the worker ends its batch.

        The remaining records stay queued in the shard.
        """
        remaining = self._stop()
        if remaining:
            self.incoming.appendleft(remaining)
            self.queued += len(remaining)

    def pause(self) -> None:
        self.is_paused = True
        self.stop_early()

    def resume(self) -> None:
        self.is_paused = False
