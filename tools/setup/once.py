"""Builds the content of a cache once, in the first process that needs it, and atomically.

Manages the lock, the temporary folder, and the stamp with the inputs of the build.
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
    """Yields a temporary folder next to `folder`, and renames it to `folder` if the block succeeds.

    First removes the temporary folder of a failed block. Only one process at a time may call it.
    """
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    yield unfinished
    unfinished.rename(folder)


def made_from(wanted: str, folder: Path, stamp: Path, make: Callable[[], None]) -> None:
    """Calls `make` to fill `folder`, unless the file `stamp` contains `wanted`.

    For content that cannot be renamed after its build: a folder without its stamp is rebuilt. Only
    one process at a time may call it.
    """
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    make()
    stamp.write_text(wanted, encoding="utf-8")
