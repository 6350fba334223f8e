"""Builds the content of a cache once, in whichever process comes first, completely or not at all.

Owns the lock, the temporary folder, and the stamp with the inputs of a build. Knows nothing of the
content.
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
    """Holds a lock between processes during the block; creates its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def finished_at_once(folder: Path) -> Iterator[Path]:
    """Yields a place beside `folder` that gets its name if the block succeeds.

    Removes the remains of an earlier block. The caller ensures that one process does this.
    """
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    yield unfinished
    unfinished.rename(folder)


def made_from(wanted: str, folder: Path, stamp: Path, make: Callable[[], None]) -> None:
    """Has `make` fill `folder` unless `stamp` says that it was made from `wanted`.

    For content that cannot be moved after its build: a folder without its stamp is built anew. The
    caller ensures that one process does this.
    """
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    make()
    stamp.write_text(wanted, encoding="utf-8")
