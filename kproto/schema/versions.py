"""Defines version ranges, which message definitions write as `3`, `1-4`, `2+` or `none`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["MAX_VERSION", "NO_VERSIONS", "Versions"]

#: The highest version, the largest int16; it is the `highest` of an open-ended range.
MAX_VERSION = 32767

_RANGE = re.compile(r"(?P<low>[0-9]+)(?:(?P<open>\+)|-(?P<high>[0-9]+))?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Versions:
    """A range of versions, both bounds included; empty if `highest < lowest`."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parses `3`, `1-4`, `2+` or `none`. Raises ValueError, with a reason, for other text."""
        if text == "none":
            return NO_VERSIONS
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no version range: write 3, 1-4, 2+ or none")
        low = int(match["low"])
        high = MAX_VERSION if match["open"] else int(match["high"] or low)
        if max(low, high) > MAX_VERSION:
            raise ValueError(f"{text!r} is no version range: a version is at most {MAX_VERSION}")
        if high < low:
            raise ValueError(f"{text!r} is a reversed version range")
        return cls(low, high)

    @classmethod
    def single(cls, version: int) -> Versions:
        """Returns the range of a single version."""
        return cls(version, version)

    @property
    def empty(self) -> bool:
        """Returns True if the range is `none`."""
        return self.highest < self.lowest

    @property
    def open_ended(self) -> bool:
        """Returns True if the range is open-ended, such as `2+`."""
        return self.highest == MAX_VERSION

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __bool__(self) -> bool:
        return not self.empty

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))

    def __len__(self) -> int:
        return max(0, self.highest - self.lowest + 1)

    def covers(self, other: Versions) -> bool:
        """Returns True if every version of `other` is in this range."""
        return other.empty or (self.lowest <= other.lowest and other.highest <= self.highest)

    def intersect(self, other: Versions) -> Versions:
        """Returns the versions that are in both ranges, NO_VERSIONS if there are none."""
        low, high = max(self.lowest, other.lowest), min(self.highest, other.highest)
        return Versions(low, high) if low <= high else NO_VERSIONS

    def span(self, other: Versions) -> Versions:
        """Returns the smallest range that contains both ranges."""
        if self.empty:
            return other
        if other.empty:
            return self
        return Versions(min(self.lowest, other.lowest), max(self.highest, other.highest))

    def __str__(self) -> str:
        if self.empty:
            return "none"
        if self.open_ended:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


#: The empty range.
NO_VERSIONS = Versions(0, -1)
