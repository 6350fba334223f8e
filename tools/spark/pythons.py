"""Finds the oldest and the newest supported Python on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from tools.setup.programs import ProgramError, run_program

__all__ = ["ends_of_pythons"]

OLDEST: Final = (3, 11)
"""The lower bound of `requires-python`."""

ASKED: Final = """
import ensurepip, sys, venv
print(*sys.version_info[:2], sys.version_info.releaselevel)
"""


def ends_of_pythons() -> tuple[str, str]:
    """Returns the paths of the oldest and the newest Python on this machine, from 3.11 on.

    Ignores pre-releases. Prefers this interpreter to others of its version.
    """
    found = {sys.version_info[:2]: sys.executable}
    for path in _candidates():
        version = _version(path)
        if version is not None and version >= OLDEST:
            found.setdefault(version, str(path))
    return found[min(found)], found[max(found)]


def _candidates() -> list[Path]:
    named = [f"python{OLDEST[0]}.{minor}" for minor in range(OLDEST[1], OLDEST[1] + 10)]
    on_path = [Path(path) for name in named if (path := shutil.which(name))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    homes = sorted([*pyenv.glob("3.*"), *Path("/opt/python").glob("*")])
    inside = [home / "bin" / name for home in homes for name in named]
    return [*on_path, *(path for path in inside if path.exists())]


def _version(path: Path) -> tuple[int, int] | None:
    """Returns the version of an interpreter; None for a pre-release, or if it creates no venv."""
    try:
        said = run_program([str(path), "-c", ASKED], timeout_s=30)
    except (
        ProgramError
    ):  # for example the shim of a version manager for a version that is not installed
        return None
    match = re.fullmatch(r"(\d+) (\d+) final", said.strip())
    return None if match is None else (int(match[1]), int(match[2]))
