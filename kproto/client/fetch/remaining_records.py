"""Iterates over a list of records, and keeps only few of the records that it has returned."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import length_hint
from typing import Final

from ...records import Record
from ...records.header_block import NO_HEADERS

__all__ = ["RemainingRecords"]

#: How many records are kept together.
_PART_RECORDS: Final = 64


class RemainingRecords:
    """The records of a list that are not returned yet; `iterator` returns them.

    If the first record has headers, the iterator takes the records from parts of the list, and
    drops each part after its last record. Once the caller drops a record, Python then soon frees it
    with its decoded headers, and the garbage collector does not visit them. A single list would
    keep all records until its end; without headers, that takes less time.

    A thread may step the iterator while another thread reads the offsets. The other thread then
    gets the offset before or after a step, never a later one.
    """

    __slots__ = ("_part", "_parts", "iterator")

    def __init__(self, records: list[Record]) -> None:
        self._parts: list[list[Record]] = []
        if not records or records[0].encoded_headers == NO_HEADERS:
            self.iterator: Iterator[Record] = iter(records)
            #: The part from which the last record came, and the iterator over the part.
            self._part: tuple[list[Record], Iterator[Record]] = records, self.iterator
            return
        size = _PART_RECORDS
        # In reverse order, so that `pop` removes the next part.
        self._parts = [records[at : at + size] for at in range(0, len(records), size)][::-1]
        self._part = [], iter(())
        self.iterator = chain.from_iterable(iter(self._next_part, None))

    def _next_part(self) -> Iterator[Record] | None:
        for part in self._parts[-1:]:
            records = iter(part)
            # Only then removes the part: `next_offset` must find its records in another thread.
            self._part = part, records
            self._parts.pop()
            return records
        return None

    def __bool__(self) -> bool:
        return self.next_offset is not None

    @property
    def last_offset(self) -> int:
        """The offset of the last record that `iterator` returned. It must have returned one."""
        part, records = self._part
        return part[len(part) - length_hint(records) - 1].offset

    @property
    def next_offset(self) -> int | None:
        """The offset of the record that `iterator` returns next; None if no record is left."""
        parts = self._parts[-1:]  # first, see `_next_part`
        part, records = self._part
        left = length_hint(records)
        if left:
            return part[-left].offset
        for part in parts:
            return part[0].offset
        return None
