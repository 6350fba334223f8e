"""Makes SIGTERM end a storm as Ctrl-C does, so that no member and no broker outlives it."""

from __future__ import annotations

import signal

__all__ = ["interrupt_at_sigterm"]


def interrupt_at_sigterm() -> None:
    """Installs a handler of SIGTERM that raises SIGINT: asyncio then cancels the storm.

    The default action of SIGTERM ends the process without killing the members and brokers. A shell
    makes a process in the background ignore SIGINT, so this function also ends that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
