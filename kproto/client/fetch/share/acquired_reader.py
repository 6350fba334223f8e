"""`AcquiredReader`: decodes the acquired records of a fetch, some at a time. Does no I/O.

A caller that takes single records has few decoded records at once, so that they stay in the caches
of the processor, and the garbage collector has few objects to visit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ....records import BatchReader, Record, RecordBatch, read_batches
from ....wire.errors import CorruptBatchError, MissingCodecError
from ...metadata.cluster import TopicPartition
from .acquisition import AcknowledgeType, Acquisition, ShareOrigin, ShareRecord

__all__ = ["AcquiredReader", "CompletedShareFetch", "DecodedRecords", "OffsetRun"]

_MAGIC_OF_BATCHES: Final = 2


class CompletedShareFetch(NamedTuple):
    """The acquired records of one partition in a response.

    `data` has the batches of the response, which may have more records than were acquired.
    `acquisitions` are in the order of their offsets.
    """

    tp: TopicPartition
    node: int
    data: bytes
    acquisitions: list[Acquisition]

    @property
    def locked_until(self) -> float:
        """The time until which the locks certainly last, in seconds of the clock."""
        return self.acquisitions[0].locked_until


class OffsetRun(NamedTuple):
    """The offsets from `first` to `last` of an acquisition: decoded records, with their gaps."""

    acquisition: Acquisition
    first: int
    last: int


class DecodedRecords(NamedTuple):
    """Decoded records, with their offsets by acquisition.

    `marked` are the acquisitions with newly acknowledged offsets: those without a record.
    """

    records: list[ShareRecord]
    runs: list[OffsetRun]
    marked: list[Acquisition]


class AcquiredReader:
    """Decodes the acquired records of one fetch in the order of their offsets.

    Acknowledges offsets without a record as gaps. If a batch cannot be decoded, `error` is its
    error, and all later offsets without a record are released: the broker delivers them again, and
    archives them after the number of deliveries that it allows.
    """

    __slots__ = (
        "_at",
        "_batches",
        "_max_decompressed_bytes",
        "_next_offsets",
        "_reader",
        "error",
        "fetch",
        "is_done",
    )

    def __init__(self, fetch: CompletedShareFetch, max_decompressed_bytes: int) -> None:
        self.fetch = fetch
        self.error: CorruptBatchError | MissingCodecError | None = None
        self.is_done = False
        self._max_decompressed_bytes = max_decompressed_bytes
        self._batches = iter(read_batches(fetch.data))
        self._reader: BatchReader | None = None  # of a batch that was read in part
        # By acquisition: the first offset that is neither decoded nor acknowledged here. The
        # acquisitions before `_at` have no such offset.
        self._next_offsets = [each.first for each in fetch.acquisitions]
        self._at = 0

    def read(self, most: int | None) -> DecodedRecords:
        """Returns the next records, at most `most`; the last records set `is_done`.

        A batch of an old magic (0 or 1) is returned completely.
        """
        decoded = DecodedRecords([], [], [])
        records = decoded.records
        while not self.is_done and (most is None or len(records) < most):
            found = self._next_records(None if most is None else most - len(records))
            if found is None:
                self.is_done = True
                decoded.marked.extend(self._acknowledge_rest(self._kind_of_missing))
            elif found:
                self._add(found, decoded)
        return decoded

    def release_rest(self) -> list[Acquisition]:
        """Releases the offsets that are not decoded yet; returns their acquisitions."""
        self.is_done = True
        return self._acknowledge_rest(AcknowledgeType.RELEASE)

    @property
    def _kind_of_missing(self) -> int:
        return AcknowledgeType.GAP if self.error is None else AcknowledgeType.RELEASE

    def _next_records(self, most: int | None) -> list[Record] | None:
        """Returns some records of the next batch; none for a broken batch; None at the end."""
        try:
            if self._reader is None:
                batch = self._next_batch()
                if batch is None:
                    return None
                if batch.magic < _MAGIC_OF_BATCHES or most is None or batch.record_count <= most:
                    topic, partition = self.fetch.tp
                    return batch.records(
                        max_decompressed_bytes=self._max_decompressed_bytes,
                        topic=topic,
                        partition=partition,
                    )
                self._reader = self._reader_of(batch)
            reader = self._reader
            found = reader.read(reader.remaining if most is None else most)
            if not reader.remaining:
                self._reader = None
        except (CorruptBatchError, MissingCodecError) as error:
            self._reader = None
            self._on_error(error)
            return []
        return found

    def _next_batch(self) -> RecordBatch | None:
        """Returns the next batch that overlaps an acquisition; None if there is none."""
        acquisitions = self.fetch.acquisitions
        try:
            for batch in self._batches:
                if batch.is_control:
                    continue
                first, last = batch.base_offset, batch.last_offset
                if any(each.first <= last and each.last >= first for each in acquisitions):
                    return batch
        except (CorruptBatchError, MissingCodecError) as error:
            self._on_error(error)
        return None

    def _reader_of(self, batch: RecordBatch) -> BatchReader:
        topic, partition = self.fetch.tp
        return batch.reader(
            max_decompressed_bytes=self._max_decompressed_bytes, topic=topic, partition=partition
        )

    def _on_error(self, error: CorruptBatchError | MissingCodecError) -> None:
        if self.error is None:
            self.error = error
            if isinstance(error, CorruptBatchError):
                error.topic, error.partition = self.fetch.tp

    def _add(self, found: list[Record], decoded: DecodedRecords) -> None:
        """Adds those records of a batch that were acquired, and acknowledges the offsets between.

        Leaves out records that do not ascend.
        """
        acquisitions, begins = self.fetch.acquisitions, self._next_offsets
        offsets = [each.offset for each in found]
        last = offsets[-1]
        is_dense = offsets == [*range(offsets[0], offsets[0] + len(offsets))]
        for at in range(self._at, len(acquisitions)):
            acquisition, begin = acquisitions[at], begins[at]
            if acquisition.first > last:
                break
            records = found
            has_gaps = not is_dense or offsets[0] != begin
            if not is_dense or offsets[0] < begin or last > acquisition.last:
                records = _ascending(found, begin, acquisition.last)
                if not records:
                    continue
                has_gaps = True
            end = records[-1].offset
            if has_gaps:
                its_offsets = [each.offset for each in records]
                if acquisition.acknowledge_gaps(begin, its_offsets, self._kind_of_missing):
                    decoded.marked.append(acquisition)
            decoded.records.extend(_share_records(records, acquisition))
            decoded.runs.append(OffsetRun(acquisition, begin, end))
            begins[at] = end + 1
            if end == acquisition.last and at == self._at:
                self._at += 1

    def _acknowledge_rest(self, kind: int) -> list[Acquisition]:
        rest = zip(self.fetch.acquisitions, self._next_offsets, strict=True)
        return [each for each, begin in rest if each.acknowledge_open(kind, begin)]


def _ascending(records: list[Record], first: int, last: int) -> list[Record]:
    """Returns the records with offsets from `first` to `last`, without those that do not ascend."""
    found = []
    for record in records:
        if first <= record.offset <= last:
            found.append(record)
            first = record.offset + 1
    return found


def _share_records(records: list[Record], acquisition: Acquisition) -> list[ShareRecord]:
    """Makes records of one batch records of `acquisition`, and returns them."""
    origin = ShareOrigin.of(records[0]._origin, acquisition)
    for record in records:
        record.__class__ = ShareRecord
        record._origin = origin
    return records  # type: ignore[return-value]  # they are now
