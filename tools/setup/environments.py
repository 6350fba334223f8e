"""Creates virtual environments for packages that must not be in the project's own environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from .once import locked, made_from
from .programs import ProgramError, run_program

__all__ = ["InstallError", "python_with"]

INSTALL_TIMEOUT_S = 900.0
"""In seconds. Installing about ten wheels takes minutes on a slow connection."""


class InstallError(RuntimeError):
    """The environment cannot be created; the message has the command and its output."""


def python_with(
    folder: Path, *, install: Sequence[str], wanted: str, base: str = sys.executable
) -> Path:
    """Returns the interpreter of the environment in `folder`.

    `wanted` is a text that describes the environment, and `install` are the arguments of
    `pip install`. Creates the environment, with the Python `base`, if the environment or its
    interpreter is missing, or if `wanted` has changed. Safe if several processes call it at once.
    Raises InstallError.
    """
    python = folder / "bin" / "python"

    def make() -> None:
        _run([base, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *install])

    stamp = folder / "installed.txt"
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not python.exists():  # its base interpreter was removed
            stamp.unlink(missing_ok=True)
        made_from(wanted, folder, stamp, make)
    return python


def _run(command: list[str]) -> None:
    try:
        run_program(command, timeout_s=INSTALL_TIMEOUT_S)
    except ProgramError as error:
        raise InstallError(f"{' '.join(command)} failed: {error}") from error
