"""Archives the loaded classes of a broker's JVM, which halves the work of a start.

That is Java's class data sharing (JEP 350): a file in `.cache/kafka/<version>/classes`, written
once by a node that runs for it only. A JVM ignores a file of another build or other jars. Knows
nothing of how a node starts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.setup.once import locked, made_from

from .jars import CACHE

__all__ = ["class_archive"]


def class_archive(version: str, java: Path, make: Callable[[Path], None]) -> Path | None:
    """Returns the archive for this release and this program; `make` writes it if it is missing.

    Returns None if it could not be made, and does not try again until Java changes. Safe in several
    processes at once.
    """
    home = (CACHE / version).resolve()
    folder = home / "classes"
    program = java.resolve()
    wanted = f"{home / 'jars'} for {program} of {program.stat().st_mtime_ns}"

    def fill() -> None:
        folder.mkdir()
        make(folder / "broker.jsa")

    with locked(home / "classes.lock"):
        made_from(wanted, folder, home / "classes.stamp", fill)
    found = folder / "broker.jsa"
    return found if found.is_file() else None
