"""The classes of a broker as its JVM has read and checked them: a start takes half of the work.

That is Java's class data sharing (JEP 350): a file in `.cache/kafka/<version>/classes`, made once
by a node that runs for it alone. A JVM passes over a file that is not of its own build or jars.
Knows nothing of how a node is started.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.setup.once import locked, made_from

from .jars import CACHE

__all__ = ["class_archive"]


def class_archive(version: str, java: Path, make: Callable[[Path], None]) -> Path | None:
    """Returns the file for this release and this program; `make` writes it, if it is not there yet.

    None where it could not be made: that is not tried again before there is another Java. Safe in
    several processes at once.
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
