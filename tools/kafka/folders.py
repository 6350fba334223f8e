"""The folders that nodes live in: who holds which, and which are left over.

Each node has `.cache/kafka/nodes/<name>/` with its settings, data, log and `node.json`. A lock in
it is held by the starting process and by the JVM, so a folder whose lock is free belongs to
nobody, whatever became of its owner. Knows nothing of what a node is.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from pathlib import Path

from tools.setup.once import locked

from .jars import CACHE

__all__ = ["LOCK", "NODES", "is_held", "reserve"]

NODES = CACHE / "nodes"
LOCK = "alive.lock"


def reserve() -> tuple[Path, int]:
    """Make a folder of its own for a node; return it with the descriptor that holds its lock.

    Folders that nobody holds any more are removed first.
    """
    with locked(NODES / "registry.lock"):
        for folder in NODES.iterdir():
            if folder.is_dir() and not is_held(folder):
                shutil.rmtree(folder, ignore_errors=True)
        folder = NODES / uuid.uuid4().hex[:8]
        folder.mkdir()
        descriptor = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder, descriptor


def is_held(folder: Path) -> bool:
    """Return whether a process still holds this node's folder."""
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
