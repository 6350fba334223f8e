"""Folders that servers live in: who holds which, and which are left over.

A lock in each is held by the starting process and by the server, so a folder whose lock is free
belongs to nobody, whatever became of its owner. Knows nothing of what a server is.
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
    """Make a folder of its own inside `home`; return it with the descriptor that holds its lock.

    Folders there that nobody holds any more are removed first.
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
    """Return whether a process still holds this folder."""
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
