"""Builds the content of a cache folder once, in the first process that needs it, and atomically.

Manages the lock, the temporary folder, and the stamp: a file with the inputs of the build.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["finished_at_once", "locked", "made_from"]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Locks the file `path` between processes during the block; creates its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def finished_at_once(folder: Path) -> Iterator[Path]:
    """Yields the path of a temporary folder, which is renamed to `folder` if the block succeeds.

    The block must create the temporary folder. Before the block, a folder that a failed block left
    is removed. Only one process at a time may call this.
    """
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    yield unfinished
    unfinished.rename(folder)


def made_from(wanted: str, folder: Path, stamp: Path, make: Callable[[], None]) -> None:
    """Builds `folder` with `make`, unless the file `stamp` already has the text `wanted`.

    Removes the old folder before the build, and writes `stamp` after it. Use this function for a
    folder that must not be renamed after its build, such as a virtual environment. If a build is
    interrupted, the next call repeats it. Only one process at a time may call this.
    """
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    make()
    stamp.write_text(wanted, encoding="utf-8")
