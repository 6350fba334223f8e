"""`ShareBuffer`: fetched and returned records of a share consumer. Does no I/O.

A list has the records of one partition in one response. Lists are decoded when they are polled.
With implicit acknowledgement, the next poll accepts the records that the previous poll returned.
Only the records of a list that was not returned completely need a step for each record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import length_hint
from typing import Final, NamedTuple

from ....messages.share_fetch_response import AcquiredRecords, PartitionData
from ....records import Record, read_batches
from ....wire.errors import CorruptBatchError, KprotoError, MissingCodecError, ProtocolError
from ...metadata.cluster import TopicPartition
from .acquisition import AcknowledgeType, Acquisition, ShareOrigin, ShareRecord

__all__ = ["CompletedShareFetch", "ShareBuffer", "acquired_ranges", "decode_fetch"]

_NEVER: Final = float("inf")

#: The most offsets of an acquired range. Brokers lock at most 10,000 records of a partition, but
#: gaps of a compacted log may be in the range.
_MOST_OFFSETS: Final = 1 << 20


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
        """The time at which the locks have certainly ended, in seconds of the clock."""
        return self.acquisitions[0].locked_until


class DecodedFetch(NamedTuple):
    """The records of a fetch; `error` is the error of the first batch that cannot be decoded."""

    records: list[ShareRecord]
    error: KprotoError | None


def acquired_ranges(data: PartitionData, tp: TopicPartition) -> list[AcquiredRecords]:
    """Returns the acquired ranges of a partition in a response, in the order of their offsets.

    Raises ProtocolError if a range is empty or too long, or if ranges overlap.
    """
    ranges = sorted(data.acquired_records, key=lambda each: each.first_offset)
    before = -1
    for each in ranges:
        count = each.last_offset - each.first_offset + 1
        if each.first_offset <= before or not 0 < count <= _MOST_OFFSETS:
            raise ProtocolError(
                f"the broker has acquired the offsets {each.first_offset} to {each.last_offset} of "
                f"{tp[0]}[{tp[1]}], after {before}; ranges ascend, and have 1 to {_MOST_OFFSETS:,} "
                "offsets"
            )
        before = each.last_offset
    return ranges


def decode_fetch(fetch: CompletedShareFetch, max_decompressed_bytes: int) -> DecodedFetch:
    """Returns the acquired records of a fetch.

    Acknowledges offsets without a record as gaps. If a batch cannot be decoded, releases the
    offsets without a record: the broker delivers them again, and archives them after the number of
    deliveries that it allows.
    """
    topic, partition = fetch.tp
    found: list[list[ShareRecord]] = [[] for _ in fetch.acquisitions]
    error: KprotoError | None = None
    try:
        for batch in read_batches(fetch.data):
            first, last = batch.base_offset, batch.last_offset
            overlapping = [
                (at, each)
                for at, each in enumerate(fetch.acquisitions)
                if each.first <= last and each.last >= first
            ]
            if batch.is_control or not overlapping:
                continue
            try:
                records = batch.records(
                    max_decompressed_bytes=max_decompressed_bytes, topic=topic, partition=partition
                )
            except (CorruptBatchError, MissingCodecError) as fault:
                error = error or fault
                continue
            for at, each in overlapping:
                its = records
                if not (each.first <= first and last <= each.last):
                    its = [x for x in records if each.first <= x.offset <= each.last]
                if its:
                    found[at] += _share_records(its, each)
    except (CorruptBatchError, MissingCodecError) as fault:
        error = error or fault
    missing = AcknowledgeType.GAP if error is None else AcknowledgeType.RELEASE
    for each, its_records in zip(fetch.acquisitions, found, strict=True):
        if len(its_records) != len(each.states):
            each.mark_missing([record.offset for record in its_records], missing)
    if isinstance(error, CorruptBatchError):
        error.topic, error.partition = topic, partition
    return DecodedFetch([record for its in found for record in its], error)


def _share_records(records: list[Record], acquisition: Acquisition) -> list[ShareRecord]:
    """Makes records of one batch records of `acquisition`, and returns them."""
    origin = ShareOrigin.of(records[0]._origin, acquisition)
    for record in records:
        record.__class__ = ShareRecord
        record._origin = origin
    return records  # type: ignore[return-value]  # they are now


class ReturnedList:
    """A decoded list; the records before `remaining` are returned, `accepted` of them accepted."""

    __slots__ = ("_is_trimmed", "accepted", "acquisitions", "node", "records", "remaining", "tp")

    def __init__(self, fetch: CompletedShareFetch, records: list[ShareRecord]) -> None:
        self.tp = fetch.tp
        self.node = fetch.node
        self.acquisitions = fetch.acquisitions
        self.records = records
        self.remaining: Iterator[ShareRecord] = iter(records)
        self.accepted = 0
        self._is_trimmed = False  # records were dropped, which must not be accepted

    @property
    def returned_count(self) -> int:
        """The number of returned records."""
        return len(self.records) - length_hint(self.remaining)

    def accept(self, count: int) -> list[Acquisition]:
        """Accepts the first `count` records; returns the acquisitions of newly accepted records."""
        if count == len(self.records) and not self.accepted and not self._is_trimmed:
            self.accepted = count
            kind = AcknowledgeType.ACCEPT
            return [each for each in self.acquisitions if each.acknowledge_open(kind)]
        return self._acknowledge(self.accepted, count, AcknowledgeType.ACCEPT)

    def _acknowledge(self, begin: int, end: int, kind: int) -> list[Acquisition]:
        changed: dict[int, Acquisition] = {}
        for record in self.records[begin:end]:
            acquisition = record.acquisition
            if acquisition is not None and not acquisition.is_acknowledged(record.offset):
                acquisition.states[record.offset - acquisition.first] = kind
                changed[id(acquisition)] = acquisition
        self.accepted = max(self.accepted, end)
        return list(changed.values())

    def drop_remaining(self, *, releases: bool) -> list[Acquisition]:
        """Drops the records that were not returned.

        With `releases` releases them; returns the acquisitions of released records.
        """
        # One step of Python: the thread of a blocking client may take records at the same time.
        count = len(self.records) - len(list(self.remaining))
        changed: list[Acquisition] = []
        if releases:
            before, self.accepted = self.accepted, 0
            changed = self._acknowledge(count, len(self.records), AcknowledgeType.RELEASE)
            self.accepted = before
        del self.records[count:]
        self._is_trimmed = True
        self.remaining = iter(())
        return changed


class ShareBuffer:
    """The fetched lists of a consumer, and the lists that the last poll has returned.

    `remaining` are the records of the current list that were not returned. `on_pending` is called
    with acquisitions that have acknowledgements to send. With `is_explicit` the buffer accepts no
    record by itself.
    """

    def __init__(
        self,
        on_pending: Callable[[list[Acquisition]], object],
        max_decompressed_bytes: int,
        *,
        is_explicit: bool,
    ) -> None:
        self._on_pending = on_pending
        self._max_decompressed_bytes = max_decompressed_bytes
        self._is_explicit = is_explicit
        self._fetched: deque[CompletedShareFetch] = deque()
        self._returned: list[ReturnedList] = []  # by the last poll, the current list last
        self._is_one_by_one = True  # the caller takes single records
        self._error: KprotoError | None = None  # of a batch that cannot be decoded
        self.remaining: Iterator[ShareRecord] = iter(())

    @property
    def has_fetched(self) -> bool:
        """True if a fetched list waits to be polled."""
        return bool(self._fetched)

    @property
    def has_returned(self) -> bool:
        """True if the caller may still process records of the last poll."""
        return bool(self._returned)

    @property
    def has_unreturned(self) -> bool:
        """True if any record waits to be returned."""
        return bool(self._fetched) or length_hint(self.remaining) > 0

    @property
    def progress(self) -> tuple[int, int]:
        """A value that changes when a record of the current list is returned."""
        current = self._returned[-1] if self._returned else None
        return id(current), length_hint(self.remaining)

    def add(self, fetch: CompletedShareFetch) -> None:
        """Adds a fetched list."""
        self._fetched.append(fetch)

    # Polls

    def on_poll(self) -> None:
        """Accepts the records that were returned since the last poll, unless `is_explicit`."""
        if not self._returned:
            return
        current = self._returned[-1]
        keeps = length_hint(self.remaining) > 0
        if not self._is_explicit:
            for each in self._returned:
                self._report(each.accept(each.returned_count))
        self._returned = [current] if keeps else []

    def accept_processed(self) -> None:
        """Accepts the returned records, except for the last one, which is being processed.

        Does nothing if the last poll has returned several records: all of them are being processed.
        """
        if self._is_explicit or not self._is_one_by_one:
            return
        for at, each in enumerate(self._returned, 1):
            count = each.returned_count - (at == len(self._returned))
            if count > each.accepted:
                self._report(each.accept(count))

    def _report(self, changed: list[Acquisition]) -> None:
        if changed:
            self._on_pending(changed)

    def _decode_next(self) -> ReturnedList | None:
        """Makes the next list the current one; None if there is none.

        Raises the error of a batch that cannot be decoded, after the records of the other batches.
        """
        while True:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if not self._fetched:
                return None
            fetch = self._fetched.popleft()
            decoded = decode_fetch(fetch, self._max_decompressed_bytes)
            self._error = decoded.error
            self._report([each for each in fetch.acquisitions if each.has_unsent])
            if decoded.records:
                current = ReturnedList(fetch, decoded.records)
                self._returned.append(current)
                self.remaining = current.remaining
                return current

    def take_record(self) -> ShareRecord | None:
        """Returns the next record; None if there is none."""
        self._is_one_by_one = True
        for record in self.remaining:
            return record
        if self._decode_next() is None:
            return None
        return next(self.remaining)

    def take_list(self, most: int | None = None) -> tuple[TopicPartition, list[ShareRecord]] | None:
        """Returns the rest of the current list, or the next list; None if there is none.

        Returns at most `most` records.
        """
        self._is_one_by_one = False
        if not length_hint(self.remaining) and self._decode_next() is None:
            return None
        tp = self._returned[-1].tp
        if most is None or length_hint(self.remaining) <= most:
            return tp, list(self.remaining)
        return tp, [next(self.remaining) for _ in range(most)]

    def take_polled(self, most: int) -> dict[TopicPartition, list[ShareRecord]] | None:
        """Returns up to `most` records of all lists, by partition; None if there is none."""
        found: dict[TopicPartition, list[ShareRecord]] = {}
        left = most
        while left:
            try:
                taken = self.take_list(left)
            except KprotoError as error:
                if not found:
                    raise
                self._error = error  # the next poll raises it
                break
            if taken is None:
                break
            found.setdefault(taken[0], []).extend(taken[1])
            left -= len(taken[1])
        return found or None

    # Drops

    def release(self, tps: Collection[TopicPartition]) -> None:
        """Releases the records of partitions that were not returned."""
        self._drop(lambda fetch: fetch.tp in tps, lambda each: each.tp in tps, releases=True)

    def drop_all(self) -> None:
        """Drops all records that were not returned; the close of their session releases them."""
        self._drop(lambda fetch: True, lambda each: True, releases=False)

    def drop_node(self, node: int) -> None:
        """Drops the records of a broker that were not returned, because their locks have ended."""
        self._drop(lambda fetch: fetch.node == node, lambda each: each.node == node, releases=False)

    def drop_moved(self, leaders: Mapping[TopicPartition, int]) -> None:
        """Drops the records that were not returned, and whose partition has another leader now.

        The new leader returns the records again.
        """
        self._drop(
            lambda fetch: leaders.get(fetch.tp, fetch.node) != fetch.node,
            lambda each: leaders.get(each.tp, each.node) != each.node,
            releases=False,
        )

    def drop_unlocked(self, now: float) -> None:
        """Drops the records that were not returned, and whose locks have ended."""
        self._drop(
            lambda fetch: fetch.locked_until <= now,
            lambda each: each.acquisitions[0].locked_until <= now,
            releases=False,
        )

    @property
    def unlocked_at(self) -> float:
        """The time at which the first lock of a record that was not returned has ended."""
        ends = [each.locked_until for each in self._fetched]
        if length_hint(self.remaining):
            ends.append(self._returned[-1].acquisitions[0].locked_until)
        return min(ends, default=_NEVER)

    def _drop(
        self,
        is_dropped: Callable[[CompletedShareFetch], bool],
        is_current_dropped: Callable[[ReturnedList], bool],
        *,
        releases: bool,
    ) -> None:
        kept: deque[CompletedShareFetch] = deque()
        for fetch in self._fetched:
            if not is_dropped(fetch):
                kept.append(fetch)
                continue
            for each in fetch.acquisitions:
                each.is_dropped = True
                if releases and each.acknowledge_open(AcknowledgeType.RELEASE):
                    self._report([each])
        self._fetched = kept
        current = self._returned[-1] if self._returned else None
        if current is not None and length_hint(self.remaining) and is_current_dropped(current):
            self._report(current.drop_remaining(releases=releases))
            self.remaining = current.remaining
