"""What a fetch brought of one partition and nobody has yet: batches, opened when their turn comes.

So memory and the caches of the processor hold the records of one batch, not of a whole fetch. A
batch that cannot be opened stays the first, however often it is asked for. Knows no broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from ...records import BatchReader, Record, RecordBatch
from ...wire.errors import CorruptBatchError, MissingCodecError
from ..commits.incomplete_offsets import IncompleteOffsets
from .filtered_batches import PlacedBatch
from .partition_state import PartitionState

__all__ = ["CompletedFetch", "FetchedBatch", "FetchedRecords", "FetchedValues"]

#: Small batches of one fetch are handed out together up to so many records, and large ones in parts
#: of so many: what a list costs beside its records is little then. Python looks for garbage when
#: 700 objects more have been made than were freed, in time for all there are; who handles one list
#: after the other does not come to that.
_LIST_RECORDS: Final = 500


class FetchedRecords(NamedTuple):
    """Records of one partition in order; `high_watermark` is the offset behind its last record."""

    topic: str
    partition: int
    records: list[Record]
    high_watermark: int


class FetchedValues(NamedTuple):
    """Values of one partition in order, and the offset of the record behind them.

    The offsets of the values are not told: compaction and transactions leave gaps, so that they
    cannot be counted. `high_watermark` is the offset behind the last record of the partition.
    """

    topic: str
    partition: int
    values: list[bytes | None]
    next_offset: int
    high_watermark: int


class FetchedBatch(NamedTuple):
    """A batch of one partition as it came, not opened; its checksum is right.

    `batch.raw` is its bytes, `batch.records()` opens it. The first may hold records before the
    offset that was asked for, the last of `stop_at_end` some behind the end. Of a message set
    (magic 0 and 1) it is a message, or a wrapper of compressed ones. It holds on to the whole fetch
    that it came in: copy `batch.raw` to keep it for long. `high_watermark` is the offset behind the
    last record of the partition.
    """

    topic: str
    partition: int
    batch: RecordBatch
    high_watermark: int


class CompletedFetch:
    """Batches of one fetch of one partition, which `state` is of, in order.

    Each `take` removes what it gives, and gives None where nothing is left. Those of records and
    values raise CorruptBatchError and MissingCodecError of the first batch that has not been
    given, which stays.
    """

    __slots__ = (
        "_batches",
        "_end",
        "_max_decompressed_bytes",
        "_reader",
        "high_watermark",
        "state",
    )

    def __init__(
        self,
        state: PartitionState,
        batches: Iterable[PlacedBatch],
        *,
        high_watermark: int,
        max_decompressed_bytes: int,
    ) -> None:
        self.state = state
        self.high_watermark = high_watermark
        self._end = state.end
        self._batches = deque(batches)
        self._max_decompressed_bytes = max_decompressed_bytes
        self._reader: BatchReader | None = None  # of the first batch, if a part of it is given

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def from_offset(self) -> int:
        """From where on to fetch, to get again what waits here."""
        return self._batches[0].from_offset

    @property
    def position(self) -> int:
        """The offset at which it begins."""
        from_offset, batch = self._batches[0]
        if batch.record_count < 0:  # a wrapper, which tells the offset of its last message
            return from_offset
        return max(from_offset, batch.base_offset)

    def take_records(self) -> tuple[FetchedRecords, list[PlacedBatch]] | None:
        """The records of some small batches, or of a part of a large one; and of which batches."""
        records: list[Record] = []
        taken: list[PlacedBatch] = []
        while self._goes_on(len(records)):
            placed = self._batches[0]
            try:
                found = self._next_records(placed)
            except (CorruptBatchError, MissingCodecError):
                self._reader = None
                if records:
                    break
                raise
            if records:
                records += found
            else:
                records = found
            taken.append(placed)
        if not records:
            return None
        topic, partition = self.state.topic, self.state.partition
        return FetchedRecords(topic, partition, records, self.high_watermark), taken

    def take_values(self) -> FetchedValues | None:
        """The values of the next batch, or of some small ones."""
        values: list[bytes | None] = []
        next_offset = 0
        self._reader = None
        while self._goes_on(len(values)):
            placed = self._batches[0]
            try:
                found = self._values_of(placed)
            except (CorruptBatchError, MissingCodecError):
                if values:
                    break
                raise
            if values:
                values += found
            else:
                values = found
            next_offset = self._next_offset(placed.batch)
            self._batches.popleft()
        if not values:
            return None
        return FetchedValues(
            self.state.topic, self.state.partition, values, next_offset, self.high_watermark
        )

    def take_batch(self) -> FetchedBatch | None:
        """The next batch."""
        if not self._batches:
            return None
        self._reader = None
        batch = self._batches.popleft().batch
        return FetchedBatch(self.state.topic, self.state.partition, batch, self.high_watermark)

    def give_back(self, batches: Iterable[PlacedBatch], from_offset: int) -> None:
        """Put batches that were taken last in front again, but for records before `from_offset`."""
        self._reader = None
        for placed in reversed(
            [placed for placed in batches if placed.batch.next_offset > from_offset]
        ):
            if self._batches and self._batches[0].batch is placed.batch:
                self._batches.popleft()  # one of which a part was taken
            begins = max(placed.from_offset, from_offset)
            self._batches.appendleft(placed._replace(from_offset=begins))

    def _goes_on(self, count: int) -> bool:
        """Whether the next batch goes into a list that has `count` already."""
        if not self._batches:
            return False
        if not count:
            return True
        more = self._batches[0].batch.record_count
        return self._reader is None and count + more <= _LIST_RECORDS

    def _next_offset(self, batch: RecordBatch) -> int:
        next_offset = batch.next_offset
        return next_offset if self._end is None else min(next_offset, self._end)

    def _next_records(self, placed: PlacedBatch) -> list[Record]:
        """The records of the first batch, or of the next part of it; gone from here then."""
        batch = placed.batch
        if self._reader is None and batch.record_count <= _LIST_RECORDS:
            records = self._records_of(placed)
            self._batches.popleft()
            return self._not_done(batch, records)
        if self._reader is None:
            self._reader = batch.reader(
                from_offset=placed.from_offset,
                max_decompressed_bytes=self._max_decompressed_bytes,
                topic=self.state.topic,
                partition=self.state.partition,
            )
        records = self._up_to_end(batch, self._reader.read(_LIST_RECORDS))
        if not self._reader.left:
            self._reader = None
            self._batches.popleft()
        elif records:
            self._batches[0] = PlacedBatch(records[-1].offset + 1, batch)
        return self._not_done(batch, records)

    def _records_of(self, placed: PlacedBatch) -> list[Record]:
        """All records of a batch."""
        from_offset, batch = placed
        records = batch.records(
            from_offset=from_offset,
            max_decompressed_bytes=self._max_decompressed_bytes,
            topic=self.state.topic,
            partition=self.state.partition,
        )
        return self._up_to_end(batch, records)

    def _up_to_end(self, batch: RecordBatch, records: list[Record]) -> list[Record]:
        end = self._end
        if end is None or batch.next_offset <= end:
            return records
        return [record for record in records if record.offset < end]

    def _not_done(self, batch: RecordBatch, records: list[Record]) -> list[Record]:
        """Without those that are done already."""
        ahead = self.state.ahead
        if ahead is None or not self._is_in(ahead, batch):
            return records
        return [record for record in records if not ahead.has(record.offset)]

    @staticmethod
    def _is_in(ahead: IncompleteOffsets, batch: RecordBatch) -> bool:
        """Whether records of the batch may be among these."""
        if batch.record_count < 0:
            return True  # a wrapper, which tells the offset of its last message
        is_among = batch.next_offset > ahead.base and batch.base_offset < ahead.top
        return is_among and ahead.is_in(batch.partition_leader_epoch)

    def _values_of(self, placed: PlacedBatch) -> list[bytes | None]:
        from_offset, batch = placed
        if self.state.ahead is not None and self._is_in(self.state.ahead, batch):
            records = self._not_done(batch, self._records_of(placed))
            return [record.value for record in records]
        if self._end is not None and batch.next_offset > self._end:
            return [record.value for record in self._records_of(placed)]
        return batch.values(
            from_offset=from_offset, max_decompressed_bytes=self._max_decompressed_bytes
        )
