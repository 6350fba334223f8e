"""Runs the coroutine of a command until it ends or a signal stops it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, Final

__all__ = ["TERMINATED", "run_until_signal"]

#: The exit code of a shell after SIGTERM.
TERMINATED: Final = 128 + signal.SIGTERM


def run_until_signal(coroutine: Coroutine[Any, Any, int]) -> int:
    """Runs the coroutine of a command; returns its exit code, or TERMINATED after SIGTERM.

    SIGTERM cancels the coroutine as Ctrl-C does, so that a member commits and leaves its group, and
    an open transaction is aborted. Raises KeyboardInterrupt after Ctrl-C.
    """

    async def run() -> int:
        task = asyncio.ensure_future(coroutine)
        stopped = False

        def stop() -> None:
            nonlocal stopped
            stopped = True
            task.cancel()

        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        try:
            return await task
        except asyncio.CancelledError:
            if stopped:
                return TERMINATED
            task.cancel()
            await asyncio.wait([task])
            raise

    return asyncio.run(run())
