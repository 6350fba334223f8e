"""The folders of nodes, `.cache/kafka/nodes/<name>/`: settings, data, log, `node.json`."""

from __future__ import annotations

from pathlib import Path

from tools.setup import held_folders
from tools.setup.held_folders import LOCK, is_held

from .jars import CACHE

__all__ = ["LOCK", "NODES", "is_held", "reserve"]

NODES = CACHE / "nodes"


def reserve() -> tuple[Path, int]:
    """Creates a folder for a node; returns the folder, and the file descriptor of its lock."""
    return held_folders.reserve(NODES)
