"""`ShareBuffer`: fetched and returned records of a share consumer. Does no I/O.

A list has the records of one partition in one response, or some of them if the caller takes single
records. Lists are decoded when they are polled. With implicit acknowledgement, the next poll
accepts the records that the previous poll returned. The next poll also rejects each record for
which a caller got an UndecodableRecordError: the caller has no record to acknowledge, and continues
after it. Only the records of a list that was not returned completely need a step for each record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import length_hint
from typing import Any, Final, TypeAlias

from ....messages.share_fetch_response import AcquiredRecords, PartitionData
from ....wire.errors import KprotoError, ProtocolError, UndecodableRecordError
from ...metadata.cluster import TopicPartition
from ...observing.counts import ShareCounts
from .acquired_reader import AcquiredReader, CompletedShareFetch, DecodedRecords, OffsetRun
from .acquisition import AcknowledgeType, Acquisition, OffsetState, ShareRecord
from .requests import SentAcks

__all__ = ["ShareBuffer", "acquired_ranges"]

#: Decodes records up to the first undecodable one; also returns the error of that record, or None.
DecodeList: TypeAlias = Callable[[list[Any]], tuple[list[Any], UndecodableRecordError | None]]

_NEVER: Final = float("inf")

#: The most offsets of an acquired range. Brokers lock at most 10,000 records of a partition, but
#: gaps of a compacted log may be in the range.
_MOST_OFFSETS: Final = 1 << 20

#: The most records that are decoded together if the caller takes single records, or polls. By
#: default Python collects garbage once 700 more objects were created than freed.
_LIST_RECORDS: Final = 500


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


class ReturnedList:
    """A decoded list; the records before `remaining` are returned, `accepted` of them accepted."""

    __slots__ = ("_is_trimmed", "accepted", "fetch", "records", "remaining", "runs")

    def __init__(
        self, fetch: CompletedShareFetch, records: list[ShareRecord], runs: list[OffsetRun]
    ) -> None:
        self.fetch = fetch
        self.records = records
        self.remaining: Iterator[ShareRecord] = iter(records)
        self.accepted = 0
        self.runs = runs
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
            return [
                run.acquisition
                for run in self.runs
                if run.acquisition.acknowledge_open(kind, run.first, run.last)
            ]
        return self._acknowledge(self.accepted, count, AcknowledgeType.ACCEPT)

    def lost_acceptances(self, count: int) -> list[SentAcks]:
        """Returns the acceptances that `accept(count)` cannot store: their locks have ended."""
        found = []
        for each in dict.fromkeys(run.acquisition for run in self.runs):
            if OffsetState.LOST not in each.states or self.accepted >= count:
                continue
            states = bytearray([OffsetState.LOST]) * len(each.states)
            for record in self.records[self.accepted : count]:
                at = record.offset - each.first
                if record.acquisition is each and each.states[at] == OffsetState.LOST:
                    states[at] = AcknowledgeType.ACCEPT
            if AcknowledgeType.ACCEPT in states:
                found.append(SentAcks(each, bytes(states)))
        return found

    def _acknowledge(self, begin: int, end: int, kind: int) -> list[Acquisition]:
        changed = _acknowledge_open(self.records[begin:end], kind)
        self.accepted = max(self.accepted, end)
        return changed

    def keep_from(self, index: int) -> Iterator[ShareRecord]:
        """Makes the records from `index` on the records that were not returned; returns them."""
        self.remaining = iter(self.records[index:])
        return self.remaining

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


def _acknowledge_open(records: Iterable[ShareRecord], kind: int) -> list[Acquisition]:
    """Acknowledges the records that are not acknowledged; returns their acquisitions."""
    changed: dict[int, Acquisition] = {}
    for record in records:
        acquisition = record.acquisition
        if acquisition is not None and not acquisition.is_acknowledged(record.offset):
            acquisition.states[record.offset - acquisition.first] = kind
            changed[id(acquisition)] = acquisition
    return list(changed.values())


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
        counts: ShareCounts,
        *,
        is_explicit: bool,
    ) -> None:
        self._on_pending = on_pending
        self._max_decompressed_bytes = max_decompressed_bytes
        self._is_explicit = is_explicit
        self._counts = counts
        self._fetched: deque[CompletedShareFetch] = deque()
        self._reader: AcquiredReader | None = None  # of a fetch that is decoded in part
        self._returned: list[ReturnedList] = []  # by the last poll, the current list last
        self._is_one_by_one = True  # the caller takes single records
        self._errors: deque[KprotoError] = deque()  # of batches that cannot be decoded
        self._undecodable: list[ShareRecord] = []  # since the last poll
        self.remaining: Iterator[ShareRecord] = iter(())
        #: How many fetches were begun to be returned.
        self.begun_count = 0

    @property
    def has_fetched(self) -> bool:
        """True if a fetch waits, of which no record was returned."""
        return bool(self._fetched)

    @property
    def has_returned(self) -> bool:
        """True if the caller may still process records of the last poll."""
        return bool(self._returned)

    @property
    def has_unreturned(self) -> bool:
        """True if any record waits to be returned."""
        waits = bool(self._fetched) or self._reader is not None
        return waits or length_hint(self.remaining) > 0

    @property
    def progress(self) -> tuple[int, int]:
        """A value that changes when a record of the current list is returned."""
        current = self._returned[-1] if self._returned else None
        return id(current), length_hint(self.remaining)

    def add(self, fetch: CompletedShareFetch) -> None:
        """Adds a fetched list."""
        self._fetched.append(fetch)

    # Polls

    def on_poll(self) -> list[SentAcks]:
        """Accepts the records that were returned since the last poll, unless `is_explicit`.

        Rejects the undecodable records whose errors were raised since the last poll. Returns the
        acceptances that are not sent, because the locks of their records have ended.
        """
        undecodable, self._undecodable = self._undecodable, []
        self._report(_acknowledge_open(undecodable, AcknowledgeType.REJECT))
        if not self._returned:
            return []
        current = self._returned[-1]
        keeps = length_hint(self.remaining) > 0
        lost: list[SentAcks] = []
        if not self._is_explicit:
            for each in self._returned:
                lost += self._accept(each, each.returned_count)
        self._returned = [current] if keeps else []
        return lost

    def accept_processed(self) -> list[SentAcks]:
        """Accepts the returned records, except for the last one, which is being processed.

        Does nothing if the last poll has returned several records: all of them are being processed.
        Rejects the undecodable ones of these records. Returns the acceptances that are not sent,
        because the locks of their records have ended.
        """
        lost: list[SentAcks] = []
        if self._is_explicit or not self._is_one_by_one:
            return lost
        # The counts are read first: the thread of a blocking client may take records meanwhile.
        counts = [each.returned_count for each in self._returned]
        if counts:
            counts[-1] -= 1
        undecodable = {id(each) for each in self._undecodable}
        for each, count in zip(self._returned, counts, strict=True):
            if count <= each.accepted:
                continue
            if undecodable:
                its = [x for x in each.records[each.accepted : count] if id(x) in undecodable]
                self._report(_acknowledge_open(its, AcknowledgeType.REJECT))
            lost += self._accept(each, count)
        return lost

    def _accept(self, returned: ReturnedList, count: int) -> list[SentAcks]:
        lost = returned.lost_acceptances(count)
        self._report(returned.accept(count))
        return lost

    def on_undecodable(self, record: ShareRecord) -> None:
        """Notes that a caller gets the error of a record; the next poll rejects the record."""
        self._undecodable.append(record)

    def release_undecodable(self) -> None:
        """Releases the record of the last such error, because no caller has received the error."""
        self._report(_acknowledge_open([self._undecodable.pop()], AcknowledgeType.RELEASE))

    def _report(self, changed: list[Acquisition]) -> None:
        if changed:
            self._on_pending(changed)

    def _decode_next(self, most: int | None = _LIST_RECORDS) -> ReturnedList | None:
        """Makes the next list, of at most `most` records, the current one; None if there is none.

        Raises the errors of batches that cannot be decoded, one in each call, after the other
        records of their fetch.
        """
        while True:
            reader = self._reader
            if reader is None:
                if self._errors:
                    raise self._errors.popleft()
                if not self._fetched:
                    return None
                fetch = self._fetched.popleft()
                reader = self._reader = AcquiredReader(fetch, self._max_decompressed_bytes)
                self.begun_count += 1
            current = self._read(reader, most)
            if current is not None:
                return current

    def _read(self, reader: AcquiredReader, most: int | None) -> ReturnedList | None:
        """Makes the next records of a fetch the current list; None if it has no more."""
        decoded = self._decode(reader, most)
        if not decoded.records:
            return None
        current = ReturnedList(reader.fetch, decoded.records, decoded.runs)
        self._returned.append(current)
        self.remaining = current.remaining
        return current

    def _extend(self, current: ReturnedList, reader: AcquiredReader) -> None:
        """Adds all other records of its fetch to the current list."""
        count = current.returned_count
        decoded = self._decode(reader, None)
        current.records.extend(decoded.records)
        current.runs.extend(decoded.runs)
        self.remaining = current.keep_from(count)

    def _decode(self, reader: AcquiredReader, most: int | None) -> DecodedRecords:
        decoded = reader.read(most)
        if reader.is_done:
            self._reader = None
            self._errors += reader.errors
        self._counts.records += len(decoded.records)
        self._report(decoded.marked)
        return decoded

    def take_record(self) -> ShareRecord | None:
        """Returns the next record; None if there is none."""
        self._is_one_by_one = True
        for record in self.remaining:
            return record
        if self._decode_next() is None:
            return None
        return next(self.remaining)

    def take_list(
        self,
        most: int | None = None,
        decode: DecodeList | None = None,
        *,
        raises_undecodable: bool = True,
    ) -> tuple[TopicPartition, list[Any]] | None:
        """Returns the rest of the current fetch, or the records of the next one; None without one.

        Returns at most `most` records, in lists of up to 500 records. Without `most` the buffer
        keeps no record of the fetch, whose lock would end before the caller could renew it. The
        records are decoded by `decode`. If a record is undecodable, returns the
        records before it. If it is the first one, raises its error, and the record counts as
        returned; without `raises_undecodable`, returns None, and the next call raises the error.
        """
        self._is_one_by_one = False
        if length_hint(self.remaining):
            if most is None and self._reader is not None:
                self._extend(self._returned[-1], self._reader)
        elif self._decode_next(None if most is None else min(most, _LIST_RECORDS)) is None:
            return None
        current = self._returned[-1]
        if most is None or length_hint(self.remaining) <= most:
            records = list(self.remaining)
        else:
            records = [next(self.remaining) for _ in range(most)]
        decoded, error = (records, None) if decode is None else decode(records)
        if error is None:
            return current.fetch.tp, decoded
        first = current.returned_count - len(records)
        if decoded:
            self.remaining = current.keep_from(first + len(decoded))
            return current.fetch.tp, decoded
        if not raises_undecodable:
            self.remaining = current.keep_from(first)
            return None
        self.remaining = current.keep_from(first + 1)
        self.on_undecodable(records[0])
        raise error

    def take_polled(
        self, most: int, decode: DecodeList | None = None
    ) -> dict[TopicPartition, list[Any]] | None:
        """Returns up to `most` records of all lists, by partition; None if there is none.

        Decodes them by `decode`. If a record is undecodable, returns the records before it, and the
        next call raises the error; raises the error at once if there is no record before it.
        """
        found: dict[TopicPartition, list[Any]] = {}
        left = most
        while left:
            try:
                taken = self.take_list(left, decode, raises_undecodable=not found)
            except KprotoError as error:
                if not found:
                    raise
                self._errors.appendleft(error)  # the next poll raises it
                break
            if taken is None:
                break
            found.setdefault(taken[0], []).extend(taken[1])
            left -= len(taken[1])
        return found or None

    # Drops

    def release_other_topics(self, topics: Collection[str]) -> None:
        """Releases the records of all topics except for `topics` that were not returned."""
        self._drop(lambda fetch: fetch.tp[0] not in topics, releases=True)

    def drop_all(self) -> None:
        """Drops all records that were not returned; the close of their session releases them."""
        self._drop(lambda fetch: True, releases=False)

    def drop_node(self, node: int) -> None:
        """Drops the records of a broker that were not returned, because their locks have ended."""
        self._drop(lambda fetch: fetch.node == node, releases=False)

    def drop_moved(self, leaders: Mapping[TopicPartition, int]) -> None:
        """Drops the records that were not returned, and whose partition has another leader now.

        The new leader returns the records again.
        """
        self._drop(lambda fetch: leaders.get(fetch.tp, fetch.node) != fetch.node, releases=False)

    def drop_unlocked(self, now: float) -> list[TopicPartition]:
        """Drops the records that were not returned, and whose locks have ended.

        Returns their partitions.
        """
        dropped = {each.tp for each in self._unreturned() if each.locked_until <= now}
        self._drop(lambda fetch: fetch.locked_until <= now, releases=False)
        return sorted(dropped)

    @property
    def unlocked_at(self) -> float:
        """The time at which the first lock of a record that was not returned has ended."""
        return min((each.locked_until for each in self._unreturned()), default=_NEVER)

    def _unreturned(self) -> list[CompletedShareFetch]:
        """Returns the fetches with records that were not returned."""
        found = list(self._fetched)
        if self._reader is not None:
            found.append(self._reader.fetch)
        if length_hint(self.remaining):
            found.append(self._returned[-1].fetch)
        return found

    def _drop(self, is_dropped: Callable[[CompletedShareFetch], bool], *, releases: bool) -> None:
        kept: deque[CompletedShareFetch] = deque()
        readers = [] if self._reader is None else [self._reader]
        for fetch in self._fetched:
            if is_dropped(fetch):
                readers.append(AcquiredReader(fetch, self._max_decompressed_bytes))
            else:
                kept.append(fetch)
        self._fetched = kept
        for reader in readers:
            if not is_dropped(reader.fetch):
                continue
            if reader is self._reader:
                self._reader = None
                self._errors += reader.errors
            if releases:
                self._report(reader.release_rest())
        current = self._returned[-1] if self._returned else None
        if current is None or not length_hint(self.remaining) or not is_dropped(current.fetch):
            return
        self._report(current.drop_remaining(releases=releases))
        self.remaining = current.remaining
