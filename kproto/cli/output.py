"""Writes bytes to standard output."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from collections.abc import Sequence
from typing import Final

__all__ = ["PieceWriter", "output_and_kind", "write_all"]

#: Bytes that a pipe or terminal takes at once when `poll` reports it as writable.
_WRITABLE_BYTES: Final = getattr(select, "PIPE_BUF", 512)


def write_all(data: bytes) -> None:
    """Writes all of `data`; with PYTHONUNBUFFERED a single write may write only a part."""
    left = memoryview(data)
    while left:
        left = left[sys.stdout.buffer.write(left) or 0 :]


class PieceWriter:
    """Writes pieces to standard output, and lets the event loop run while their reader is slow.

    A pager may stop reading for minutes: a write that blocks the event loop would also stop the
    heartbeats of a member, and a SIGTERM would have no effect.
    """

    def __init__(self) -> None:
        #: The number of pieces that the last `write` has written as a whole.
        self.count = 0

    async def write(self, pieces: Sequence[bytes]) -> None:
        """Writes and flushes `pieces`. Raises OSError of the write.

        If the task is cancelled meanwhile, `count` says how many pieces are written.
        """
        self.count = 0
        sys.stdout.flush()
        descriptor = _pollable_output()
        if descriptor is None:
            write_all(b"".join(pieces))
            sys.stdout.flush()
            self.count = len(pieces)
            return
        data, written = memoryview(b"".join(pieces)), 0
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        try:
            while written < len(data):
                if not poll.poll(0):
                    await _until_writable(descriptor)
                written += os.write(descriptor, data[written : written + _WRITABLE_BYTES])
        finally:
            self.count = whole_pieces(pieces, written)


def whole_pieces(pieces: Sequence[bytes], size: int) -> int:
    """Returns how many pieces the first `size` bytes of all pieces have as a whole."""
    end = 0
    for count, piece in enumerate(pieces):
        end += len(piece)
        if end > size:
            return count
    return len(pieces)


def output_and_kind() -> tuple[int, bool] | None:
    """Returns the descriptor of standard output, and whether it is a pipe.

    Returns None if it has no descriptor, and on a system without `poll`.
    """
    if sys.platform == "win32":
        return None
    try:
        descriptor = sys.stdout.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):  # closed, or replaced by an object without a file
        return None
    return descriptor, stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _pollable_output() -> int | None:
    """Returns the descriptor of standard output if it is a pipe or a terminal, else None."""
    found = output_and_kind()
    if found is None:
        return None
    descriptor, is_pipe = found
    return descriptor if is_pipe or os.isatty(descriptor) else None


async def _until_writable(descriptor: int) -> None:
    """Waits until a write does not block; returns also if the reader has closed the pipe."""
    loop = asyncio.get_running_loop()
    writable: asyncio.Future[None] = loop.create_future()

    def set_writable() -> None:
        if not writable.done():
            writable.set_result(None)

    loop.add_writer(descriptor, set_writable)
    try:
        await writable
    finally:
        loop.remove_writer(descriptor)
