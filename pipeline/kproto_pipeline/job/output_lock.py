"""Locks a local output, so that only one run at a time writes to it.

The operating system releases the lock when the process ends, even if it is killed. The lock file is
next to the output; the run removes the file when the run ends.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import OutputBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["lock_output"]


@contextmanager
def lock_output(output: Path) -> Iterator[None]:
    """Holds the lock of an output during the block.

    Raises:
        OutputBusyError: another run holds the lock.
    """
    import fcntl

    output.parent.mkdir(parents=True, exist_ok=True)
    path = output.with_name(f".{output.name}-kproto.lock")
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _names_file(path, file):
                break
        except BlockingIOError:
            os.close(file)
            raise OutputBusyError(
                f"another run writes to {output}; wait until that run ends, or stop it, and start "
                "this run again"
            ) from None
        os.close(file)  # the previous run removed this file, so another run could lock a new one
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _names_file(path: Path, file: int) -> bool:
    """Returns True if `path` still names the open file."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    status = os.fstat(file)
    return (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino)
