"""What a cache holds is made once, whichever process asks first, and is there whole or not at all.

Owns the lock, the folder that is not finished yet, and the stamp that says what something was made
from. Knows nothing of what is made.
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
    """Keep out of the block every other process that asks for this lock; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def finished_at_once(folder: Path) -> Iterator[Path]:
    """A place beside `folder` that gets its name when the block ends well; nothing is there yet.

    What an earlier block left is removed. The caller sees to it that one process does this.
    """
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    yield unfinished
    unfinished.rename(folder)


def made_from(wanted: str, folder: Path, stamp: Path, make: Callable[[], None]) -> None:
    """Have `make` fill `folder` unless `stamp` says that it was made from what is `wanted`.

    For what cannot be moved when it is finished: a folder without its stamp is made anew. The
    caller sees to it that one process does this.
    """
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    make()
    stamp.write_text(wanted, encoding="utf-8")
