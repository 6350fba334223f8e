"""Creates folders of servers, and removes folders that no process uses any more.

The starting process and the server lock a file in the folder. A folder with a free lock is unused,
even if the processes were killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from pathlib import Path

from .once import locked

__all__ = ["LOCK", "is_held", "reserve"]

LOCK = "alive.lock"


def reserve(home: Path) -> tuple[Path, int]:
    """Creates a folder in `home`; returns the folder, and the file descriptor of its lock.

    First removes the unused folders in `home`.
    """
    with locked(home / "registry.lock"):
        for folder in home.iterdir():
            if folder.is_dir() and not is_held(folder):
                shutil.rmtree(folder, ignore_errors=True)
        folder = home / uuid.uuid4().hex[:8]
        folder.mkdir()
        descriptor = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder, descriptor


def is_held(folder: Path) -> bool:
    """Returns True if a process still uses this folder."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
