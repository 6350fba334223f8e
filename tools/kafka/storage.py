"""Formats the storage of a new node like Kafka's tool, but without starting a JVM for each node.

`kafka-storage format` writes the feature levels of a release, which are the same for every node
with default settings. The formatted folder is cached in `.cache/kafka/<version>/storage`; a new
node gets a copy with its own ids. The caller runs the tool.
"""

from __future__ import annotations

import shutil
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tools.setup.once import finished_at_once, locked

from .jars import CACHE

__all__ = ["has_own_features", "new_id", "storage_of", "write_storage"]

META: Final = "meta.properties"

#: The prefixes of settings that change what `kafka-storage format` writes, or where.
OF_THE_TOOL: Final = ("unstable.", "inter.broker.protocol", "process.roles", "metadata.log.dir")


def new_id() -> str:
    """Returns a random id in Kafka's format: 16 random bytes as base64url."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")


def has_own_features(config: Iterable[str]) -> bool:
    """Returns True if a setting in `config` can change the storage, so that the cache is wrong."""
    return any(name.startswith(OF_THE_TOOL) for name in config)


def storage_of(version: str, make: Callable[[Path], None]) -> Path:
    """Returns the formatted folder of a release; `make` writes the folder if it is missing.

    Safe if several processes call it at once.
    """
    home = (CACHE / version).resolve()
    folder = home / "storage"
    with locked(home / "storage.lock"):
        if not folder.is_dir():
            with finished_at_once(folder) as unfinished:
                make(unfinished)
    return folder


def write_storage(formatted: Path, folder: Path, *, node_id: str, cluster_id: str) -> None:
    """Writes a copy of the folder `formatted`, with these ids and a new directory id."""
    shutil.copytree(formatted, folder, dirs_exist_ok=True)
    ids = {"node.id": node_id, "cluster.id": cluster_id, "directory.id": new_id()}
    lines = []
    for line in (formatted / META).read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        lines.append(f"{name}{equals}{ids.pop(name, value)}\n")
    assert not ids, f"the storage of Kafka has no {', '.join(ids)}"
    (folder / META).write_text("".join(lines), encoding="utf-8")
