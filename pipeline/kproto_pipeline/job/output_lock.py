"""One run at a time on an output of this machine. Knows nothing of what is in it.

The lock is the system's, so that it ends with its process, however that ends. Its file stands
beside the output, and is removed when the run ends by itself.
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
    """Hold the lock of an output while the block runs.

    Raises:
        OutputBusyError: another run holds it.
    """
    import fcntl

    output.parent.mkdir(parents=True, exist_ok=True)
    path = output.with_name(f".{output.name}-kproto.lock")
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(path, file):
                break
        except BlockingIOError:
            os.close(file)
            raise OutputBusyError(
                f"another run writes to {output}; wait for its end, or end it, and start again"
            ) from None
        os.close(file)  # who held it has removed the file: it locks nobody out any more
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _is(path: Path, file: int) -> bool:
    """Whether the path still names the open file."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(file)
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)
