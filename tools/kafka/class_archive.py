"""Archives the loaded classes of a broker's JVM, which halves the work of a start.

This is Java's class data sharing (JEP 350): a file in `.cache/kafka/<version>/classes`, which a
node that runs for this purpose writes once. A JVM ignores the file if the Java build or the jars
differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.setup.once import locked, made_from

from .jars import CACHE

__all__ = ["class_archive"]


def class_archive(version: str, java: Path, make: Callable[[Path], None]) -> Path | None:
    """Returns the archive for a release and a `java` program; `make` writes it if it is missing.

    Returns None if it cannot be written; then tries again only after Java changes. Safe if several
    processes call it at once.
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
