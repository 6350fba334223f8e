"""Being interrupted: Ctrl-C, and the signals by which a terminal or a service ends a program.

Each is a KeyboardInterrupt in the main thread. Owns when it may come. Knows nothing of what is
interrupted.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["INTERRUPTED", "ending_signals_interrupt", "uninterrupted"]

#: The exit code of a program that was interrupted, as shells have it.
INTERRUPTED: Final = 128 + signal.SIGINT

#: Those that end a program, where the system has them.
_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def ending_signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt as Ctrl-C does, unless they are ignored."""
    ours = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let what is within come to its end; an interrupt that came meanwhile is raised behind it."""
    came: list[int] = []
    numbers = [
        number
        for number in (signal.SIGINT, *_ENDING)
        if signal.getsignal(number) is signal.default_int_handler
    ]
    for number in numbers:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
