"""Notices that the reader of standard output has closed its pipe, even if nothing is written."""

from __future__ import annotations

import select
import sys
from typing import Final

from ..clock import SYSTEM_CLOCK
from .output import output_and_kind

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
    found = output_and_kind()
    if found is None or sys.platform == "win32":
        return None
    descriptor, is_pipe = found
    if not is_pipe:
        return None
    poll = select.poll()
    poll.register(descriptor, 0)  # POLLERR and POLLHUP are always reported
    return poll
