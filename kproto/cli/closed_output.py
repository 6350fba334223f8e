"""Notices that the reader of standard output has closed its pipe, even if nothing is written."""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import Final

from ..clock import SYSTEM_CLOCK

__all__ = ["until_output_is_closed"]

#: Seconds between two checks: short for a user, and cheap.
_INTERVAL_S: Final = 0.2


async def until_output_is_closed() -> None:
    """Returns when the reader of standard output has closed the pipe.

    Never returns if standard output is no pipe, or on a system without `poll`.
    """
    poll = _poll_of_output()
    while poll is None or not poll.poll(0):
        await SYSTEM_CLOCK.sleep(_INTERVAL_S)


def _poll_of_output() -> select.poll | None:
    if sys.platform == "win32":
        return None
    try:
        descriptor = sys.stdout.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):  # closed, or replaced by an object without a file
        return None
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        return None
    poll = select.poll()
    poll.register(descriptor, 0)  # POLLERR and POLLHUP are always reported
    return poll
