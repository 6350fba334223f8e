"""Stores which records were acknowledged, and which records a reader saw. Works on plain data."""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, field

__all__ = ["AcknowledgedOffsets", "Sightings", "number_of", "record_value"]

_NUMBER = struct.Struct(">IQ")

#: Stored for an acknowledged record whose offset the broker did not return (a duplicate batch).
UNTOLD = -1
_NONE = -2


def record_value(partition: int, sequence: int, filler: int) -> bytes:
    """Returns the value of record number `sequence` of a partition, with `filler` more bytes."""
    return _NUMBER.pack(partition, sequence) + bytes(filler)


def number_of(value: bytes | None) -> tuple[int, int]:
    """Returns the partition and the number of a record, from its value."""
    partition, sequence = _NUMBER.unpack_from(value or b"")
    return partition, sequence


@dataclass
class AcknowledgedOffsets:
    """The offsets of the acknowledged records of each partition, by record number.

    `failed` is the number of records that were not acknowledged.
    """

    partitions: int
    failed: int = 0
    _offsets: dict[int, array[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._offsets = {at: array("q") for at in range(self.partitions)}

    def acknowledged(self, partition: int, sequence: int, offset: int) -> None:
        """Stores the offset of an acknowledged record."""
        offsets = self._offsets[partition]
        offsets.extend([_NONE] * (sequence + 1 - len(offsets)))
        offsets[sequence] = offset

    def offset(self, partition: int, sequence: int) -> int | None:
        """Returns the offset of record number `sequence`; None if it is not acknowledged."""
        offsets = self._offsets[partition]
        found = offsets[sequence] if sequence < len(offsets) else _NONE
        return None if found == _NONE else found

    @property
    def total(self) -> int:
        """Returns the number of acknowledged records."""
        return sum(self.of(partition) for partition in self._offsets)

    def of(self, partition: int) -> int:
        """Returns the number of acknowledged records of a partition."""
        offsets = self._offsets[partition]
        return len(offsets) - offsets.count(_NONE)


@dataclass
class Sightings:
    """The records that one reader saw, with counts of duplicates and other faults."""

    partitions: int
    seen: int = 0
    doubled: int = 0
    disordered: int = 0
    misplaced: int = 0  #: in another partition, or at another offset, than acknowledged
    _bits: dict[int, bytearray] = field(default_factory=dict)
    _highest: dict[int, int] = field(default_factory=dict)
    _offsets: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bits = {at: bytearray() for at in range(self.partitions)}
        self._highest = dict.fromkeys(range(self.partitions), -1)
        self._offsets = dict.fromkeys(range(self.partitions), -1)

    def saw(
        self,
        place: int,
        offset: int,
        value: bytes | None,
        account: AcknowledgedOffsets | None = None,
    ) -> None:
        """Counts a record that the reader saw at `offset` of partition `place`.

        With `account`, also compares the offset with the acknowledged one.
        """
        partition, sequence = number_of(value)
        bits = self._bits[partition]
        if len(bits) <= sequence:
            bits.extend(bytes(max(1024, sequence + 1 - len(bits))))
        if bits[sequence]:
            self.doubled += 1
        else:
            bits[sequence] = 1
            self.seen += 1
        if sequence < self._highest[partition] or offset <= self._offsets[place]:
            self.disordered += 1
        self._highest[partition] = max(self._highest[partition], sequence)
        self._offsets[place] = offset
        told = None if account is None else account.offset(partition, sequence)
        if partition != place or (told is not None and told not in (UNTOLD, offset)):
            self.misplaced += 1

    def lost(self, account: AcknowledgedOffsets) -> list[tuple[int, int]]:
        """Returns partition and number of each acknowledged record that the reader did not see."""
        return [
            (partition, sequence)
            for partition, bits in self._bits.items()
            for sequence in range(len(account._offsets[partition]))
            if account.offset(partition, sequence) is not None
            and not (sequence < len(bits) and bits[sequence])
        ]
