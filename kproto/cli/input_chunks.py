"""Reads standard input and files without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Final

from .command_error import CommandError

__all__ = ["END", "STDIN", "InputEnd", "read_input"]

#: The path that means standard input.
STDIN: Final = "-"

#: Bytes of one read.
_CHUNK_BYTES: Final = 1 << 18

#: Maximum number of chunks that are read and not processed yet; 2 MB. The thread reads a file
#: faster than the producer encodes its lines: more chunks would take memory, and save no time.
_MAX_CHUNKS: Final = 8


class InputEnd:
    """Marks the end of a file."""


END: Final = InputEnd()


async def read_input(paths: Sequence[str]) -> AsyncGenerator[bytes | InputEnd, None]:
    """Yields the chunks of each file, and END after each file.

    A thread reads, because a read of a terminal or pipe blocks. The thread is a daemon, so that a
    pending read does not keep the process from exiting. Raises CommandError for a file that
    cannot be read.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | InputEnd | OSError | None] = asyncio.Queue()
    room = threading.Semaphore(_MAX_CHUNKS)
    stopped = threading.Event()

    def put(item: bytes | InputEnd | OSError | None) -> None:
        with suppress(RuntimeError):  # the event loop was closed after Ctrl-C
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def read() -> None:
        path = ""
        try:
            for path in paths:
                number = sys.stdin.fileno() if path == STDIN else os.open(path, os.O_RDONLY)
                try:
                    while not stopped.is_set() and (chunk := os.read(number, _CHUNK_BYTES)):
                        room.acquire()
                        put(chunk)
                finally:
                    if path != STDIN:
                        os.close(number)
                put(END)
        except OSError as error:
            put(OSError(error.errno, error.strerror, path))
        put(None)

    threading.Thread(target=read, name="kproto input", daemon=True).start()
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, OSError):
                raise CommandError(f"{item.filename} cannot be read: {item.strerror}")
            if isinstance(item, bytes):
                room.release()
            yield item
    finally:
        stopped.set()
        room.release(_MAX_CHUNKS)
