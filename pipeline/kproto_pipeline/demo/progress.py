"""Shows a progress bar on a terminal, and one line per stage in a log.

Uses no library for progress bars, because one redrawn line is enough.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["StageProgress"]

_WIDTH: Final = 30
# The redraw interval: looks continuous, and costs little.
_REDRAW_SECONDS: Final = 0.1


@dataclass
class StageProgress:
    """Shows the progress of one stage during a `with` block.

    `total` is the expected number of units, and `unit` is the name of a unit. After the block,
    `seconds` is the duration of the stage.
    """

    name: str
    total: int
    unit: str = "events"
    out: TextIO = field(default_factory=lambda: sys.stderr)
    done: int = 0
    seconds: float = 0.0
    _started_at: float = 0.0
    _drawn: float = 0.0

    def __enter__(self) -> Self:
        self._started_at = time.monotonic()
        self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seconds = time.monotonic() - self._started_at
        if self.out.isatty():
            self.out.write("\r\x1b[2K")
        if kind is None:
            self.out.write(f"{self.name}: {self.total:,} {self.unit} in {self.seconds:.1f} s\n")
        self.out.flush()

    def advance_to(self, done: int) -> None:
        """Sets the number of finished units, and redraws the bar at most every 0.1 s."""
        self.done = done
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            self._draw()

    def _draw(self) -> None:
        if not self.out.isatty():
            return
        self._drawn = time.monotonic()
        part = min(self.done / self.total, 1.0) if self.total else 0.0
        bar = "█" * round(part * _WIDTH)
        self.out.write(f"\r\x1b[2K{self.name:<10} {bar:·<{_WIDTH}} {part:4.0%}")
        self.out.flush()
