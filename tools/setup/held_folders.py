"""Folders of servers: which process holds each, and which ones are left over.

The starting process and the server hold a lock in the folder, so a folder with a free lock has no
owner, however its owner ended. Knows nothing of the server.
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
    """Creates a folder inside `home`; returns it with the descriptor that holds its lock.

    First removes folders there that no process holds.
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
    """Returns whether a process still holds this folder."""
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
