"""`AcquiredReader`: decodes the acquired records of a fetch, some at a time. Does no I/O.

A caller that takes single records has few decoded records at once, so that they stay in the caches
of the processor, and the garbage collector has few objects to visit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ....records import BatchReader, Record, RecordBatch, read_batches
from ....records.log_format import COMPRESSION_CODEC_MASK
from ....records.magic2.unreadable_records import split_batch
from ....wire.errors import CorruptBatchError, MissingCodecError, UnreadableRecordError
from ...metadata.cluster import TopicPartition
from .acquisition import AcknowledgeType, Acquisition, ShareOrigin, ShareRecord

__all__ = ["AcquiredReader", "CompletedShareFetch", "DecodedRecords", "OffsetRun"]

_MAGIC_OF_BATCHES: Final = 2

#: A few KB of a fetch may be hundreds of MB of records: they are decoded in lists of few bytes.
_LIST_BYTES: Final = 1 << 20


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
        """The time until which the locks certainly last, in seconds of the clock.

        That of the last offsets: the caller may have renewed records that were returned before.
        """
        return self.acquisitions[-1].locked_until


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


class _CorruptBatch(NamedTuple):
    """A corrupt batch, with the offsets in its header, which may be wrong."""

    first: int
    last: int
    error: CorruptBatchError


class AcquiredReader:
    """Decodes the acquired records of one fetch in the order of their offsets.

    Acknowledges offsets without a record as gaps. Rejects the offsets of a corrupt batch, as Java's
    share consumer does, and those of an unreadable record; releases the offsets of a batch whose
    codec is not installed, because another member may have the codec. `errors` has the error of
    each such batch or record; the other batches are decoded. Releases all later offsets if it
    cannot find the end of a corrupt batch, or if the last batch is corrupt.
    """

    __slots__ = (
        "_at",
        "_batch",
        "_batches",
        "_corrupt",
        "_end",
        "_kind_of_rest",
        "_max_decompressed_bytes",
        "_next_offsets",
        "_reader",
        "errors",
        "fetch",
        "is_done",
    )

    def __init__(self, fetch: CompletedShareFetch, max_decompressed_bytes: int) -> None:
        self.fetch = fetch
        self.errors: list[CorruptBatchError | MissingCodecError] = []
        self.is_done = False
        self._max_decompressed_bytes = max_decompressed_bytes
        self._batches = iter(read_batches(fetch.data, check_crc=False))
        self._batch: RecordBatch | None = None  # that is being read
        self._reader: BatchReader | None = None  # of a batch that was read in part
        self._corrupt: list[_CorruptBatch] = []  # since the last valid batch
        self._end = -1  # the last offset of the last valid batch
        self._kind_of_rest = AcknowledgeType.GAP
        # By acquisition: the first offset that is neither decoded nor acknowledged here. The
        # acquisitions before `_at` have no such offset.
        self._next_offsets = [each.first for each in fetch.acquisitions]
        self._at = 0

    def read(self, most: int | None) -> DecodedRecords:
        """Returns the next records, at most `most`; the last records set `is_done`.

        With `most`, adds no batch to records whose values had a MiB before their compression. A
        batch of an old magic (0 or 1) is returned completely, and so is the rest of a batch with an
        unreadable record.
        """
        decoded = DecodedRecords([], [], [])
        records = decoded.records
        size = 0
        while not self.is_done and (most is None or (len(records) < most and size < _LIST_BYTES)):
            left = None if most is None else most - len(records)
            found = None
            if self._at < len(self.fetch.acquisitions):  # the rest of a batch is not decoded
                found = self._next_records(left, decoded.marked)
            if found is None:
                self.is_done = True
                decoded.marked.extend(self._acknowledge_rest(self._kind_of_rest))
            elif found:
                self._add(found, decoded)
                if self._batch is not None and self._batch.attributes & COMPRESSION_CODEC_MASK:
                    size += sum(len(record.value or b"") for record in found)
        return decoded

    def release_rest(self) -> list[Acquisition]:
        """Releases the offsets that are not decoded yet; returns their acquisitions."""
        self.is_done = True
        return self._acknowledge_rest(AcknowledgeType.RELEASE)

    def _next_records(self, most: int | None, marked: list[Acquisition]) -> list[Record] | None:
        """Returns some records of the next batch, perhaps none; None at the end.

        Adds the acquisitions with acknowledged offsets to `marked`.
        """
        if self._reader is None:
            self._batch = self._next_batch(marked)
        batch = self._batch
        if batch is None:
            return None
        try:
            try:
                return self._records_of(batch, most)
            except CorruptBatchError:
                self._reader = None
                return self._readable_records(batch, marked)
        except MissingCodecError as error:
            self._reader = None
            if self._acknowledge(*self._offsets_of(batch), AcknowledgeType.RELEASE, marked):
                self.errors.append(error)
            return []

    def _records_of(self, batch: RecordBatch, most: int | None) -> list[Record]:
        """Returns the next records of a batch, at most `most`."""
        if self._reader is None:
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
        return found

    def _readable_records(self, batch: RecordBatch, marked: list[Acquisition]) -> list[Record]:
        """Returns the readable records of a batch; rejects its unreadable records."""
        topic, partition = self.fetch.tp
        items = split_batch(
            batch,
            max_decompressed_bytes=self._max_decompressed_bytes,
            topic=topic,
            partition=partition,
        )
        records = [each for each in items if not isinstance(each, UnreadableRecordError)]
        offsets = {each.offset for each in records}
        for error in items:
            if isinstance(error, UnreadableRecordError):
                first = last = error.record_offset
                if error.content != "record":
                    last = error.next_offset - 1
                elif first in offsets:
                    continue  # an offset that did not ascend
                if self._acknowledge(first, last, AcknowledgeType.REJECT, marked):
                    self.errors.append(error)
        return records

    def _next_batch(self, marked: list[Acquisition]) -> RecordBatch | None:
        """Returns the next batch that overlaps an acquisition; None if there is none."""
        acquisitions = self.fetch.acquisitions
        try:
            for batch in self._batches:
                first, last = self._offsets_of(batch)
                try:
                    batch.check()
                except CorruptBatchError as error:
                    self._corrupt.append(_CorruptBatch(first, last, error))
                    continue
                self._reject_corrupt(first - 1, marked)
                self._end = last
                if not batch.is_control and any(
                    each.first <= last and each.last >= first for each in acquisitions
                ):
                    return batch
        except CorruptBatchError as error:  # the end of the batch is unknown
            self._corrupt.append(_CorruptBatch(0, -1, error))
        self._reject_corrupt(None, marked)
        return None

    def _offsets_of(self, batch: RecordBatch) -> tuple[int, int]:
        """Returns the first and the last offset of a batch."""
        is_wrapper = batch.record_count < 0 and batch.magic < _MAGIC_OF_BATCHES
        return self._end + 1 if is_wrapper else batch.base_offset, batch.last_offset

    def _reject_corrupt(self, last: int | None, marked: list[Acquisition]) -> None:
        """Rejects the offsets of the corrupt batches since the last valid one, up to `last`.

        `last` is None if no valid batch follows. Then all later offsets are released, because the
        last offset in the header of a corrupt batch may be wrong.
        """
        corrupt, self._corrupt = self._corrupt, []
        for first, its_last, error in corrupt:
            end = its_last if last is None else min(its_last, last)
            is_changed = self._acknowledge(first, end, AcknowledgeType.REJECT, marked)
            if last is None:
                self._kind_of_rest = AcknowledgeType.RELEASE
            if is_changed or last is None:
                error.topic, error.partition = self.fetch.tp
                self.errors.append(error)

    def _acknowledge(self, first: int, last: int, kind: int, marked: list[Acquisition]) -> bool:
        """Acknowledges the offsets that are neither decoded nor acknowledged; True if any were."""
        changed = []
        for each, begin in zip(self.fetch.acquisitions, self._next_offsets, strict=True):
            its_first, its_last = max(first, begin), min(last, each.last)
            if its_first <= its_last and each.acknowledge_open(kind, its_first, its_last):
                changed.append(each)
        marked += changed
        return bool(changed)

    def _reader_of(self, batch: RecordBatch) -> BatchReader:
        topic, partition = self.fetch.tp
        return batch.reader(
            max_decompressed_bytes=self._max_decompressed_bytes, topic=topic, partition=partition
        )

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
                if acquisition.acknowledge_gaps(begin, its_offsets, AcknowledgeType.GAP):
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
