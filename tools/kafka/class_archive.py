"""Archives the loaded classes of a broker's JVM, so that a start takes half the CPU time.

This is Java's class data sharing (JEP 350). A node that runs for this purpose writes the archive
once, into `.cache/kafka/<version>/classes`. A JVM ignores the file if the Java build or the jars
differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.setup.once import locked, made_from

from .jars import CACHE

__all__ = ["class_archive"]


def class_archive(version: str, java: Path, make: Callable[[Path], None]) -> Path | None:
    """Returns the file with the loaded classes of a broker of release `version`, for `java`.

    If the file is missing, `make` writes it. Returns None if the file cannot be written; later
    calls try again only if Java has changed. Safe if several processes call it at once.
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
