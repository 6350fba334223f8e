"""Builds programs in Go for tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.availability import not_available

__all__ = ["built"]


def built(what: str, folder: Path, into: Path) -> Path:
    """Builds the program in `folder` into the folder `into`; returns the path of the program.

    Skips the test if Go is missing or the build fails; in CI the test fails. The first build
    downloads Go modules from a proxy; later builds use Go's cache.
    """
    go = shutil.which("go")
    if go is None:
        not_available(what, "go is not on the PATH", "Go (https://go.dev/dl)")
    program = into / folder.name
    done = subprocess.run(
        [go, "build", "-o", str(program), "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        not_available(what, done.stderr)
    return program
