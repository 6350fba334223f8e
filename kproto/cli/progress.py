"""Prints the progress of a command on standard error."""

from __future__ import annotations

import sys
from typing import Final

from ..clock import SYSTEM_CLOCK, Clock
from ..wire.counted import counted

__all__ = ["Progress", "amount"]

#: Seconds between two lines of progress: often enough to read, and cheap.
_INTERVAL_S: Final = 0.5

_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


def amount(number: float) -> str:
    """Returns a number of bytes with a decimal unit: `12.3 MB`."""
    unit = 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.0f} B" if unit == 0 else f"{number:.1f} {_UNITS[unit]}"


class Progress:
    """Counts records and bytes, and prints them with the rate.

    On a terminal the line is replaced, elsewhere each state is a line. Prints nothing if `shown` is
    False.
    """

    def __init__(self, *, shown: bool, clock: Clock = SYSTEM_CLOCK) -> None:
        self.records = 0
        self.bytes = 0
        self._shown = shown
        self._clock = clock
        #: The time of the start, in seconds of the clock.
        self.begun = self._printed = clock.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._has_line = False

    def add(self, records: int, size: int, note: str = "") -> None:
        """Counts records; prints a line if the last one is old. `note` is printed behind it."""
        self.records += records
        self.bytes += size
        if self._shown and self._clock.monotonic() - self._printed >= _INTERVAL_S:
            self._print(note)

    def end(self, *, summary: bool) -> None:
        """Removes the line; prints the sum of the command if `summary` is True."""
        if self._has_line:
            sys.stderr.write("\r\x1b[K")
            self._has_line = False
        if summary:
            print(self.text(), file=sys.stderr)

    def text(self) -> str:
        """Returns the sum: records, bytes, seconds, and the rate."""
        elapsed = max(self._clock.monotonic() - self.begun, 0.001)
        records = counted(self.records, "record", separator=",")
        return (
            f"{records}, {amount(self.bytes)} in {elapsed:.1f} s "
            f"({self.records / elapsed:,.0f} records/s)"
        )

    def _print(self, note: str) -> None:
        self._printed = self._clock.monotonic()
        line = self.text() + note
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            self._has_line = True
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
