"""Virtual environments beside our own, each for packages that are never installed with ours.

Knows no package: whoever wants some says which.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from .once import locked, made_from
from .programs import ProgramError, run_program

__all__ = ["InstallError", "python_with"]

INSTALL_TIMEOUT_S = 900.0
"""About ten wheels; the slowest line we mean to serve needs minutes."""


class InstallError(RuntimeError):
    """The environment cannot be made here; the message has the command and what it said."""


def python_with(
    folder: Path, *, install: Sequence[str], wanted: str, base: str = sys.executable
) -> Path:
    """Returns the interpreter of the environment in `folder`, which is made when it must.

    `install` are the arguments of `pip install`; `wanted` is what the environment depends on, and
    when that has changed it is made anew; it is made with the Python `base`. Safe in several
    processes at once. Raises InstallError.
    """
    python = folder / "bin" / "python"

    def make() -> None:
        _run([base, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *install])

    stamp = folder / "installed.txt"
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not python.exists():  # the one that it was made with may be gone
            stamp.unlink(missing_ok=True)
        made_from(wanted, folder, stamp, make)
    return python


def _run(command: list[str]) -> None:
    try:
        run_program(command, timeout_s=INSTALL_TIMEOUT_S)
    except ProgramError as error:
        raise InstallError(f"{' '.join(command)} failed: {error}") from error
