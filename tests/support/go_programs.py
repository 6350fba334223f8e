"""Builds Go programs for tests, and compiles the tests of Go packages to programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.availability import not_available

__all__ = ["built", "built_tests"]


def built(what: str, folder: Path, into: Path) -> Path:
    """Builds the program in `folder` into the folder `into`; returns the path of the program.

    Skips the test if Go is missing or the build fails; in CI the test fails. The first build
    downloads Go modules from a proxy; later builds use Go's cache.
    """
    return _build(what, folder, into / folder.name, "build", ".")


def built_tests(what: str, folder: Path, package: str, into: Path) -> Path:
    """Compiles the tests of the Go package `package` to a program; returns the program's path.

    The module in `folder` requires this package. If the build fails, skips the test, or in CI fails
    the test.
    """
    return _build(what, folder, into / f"{folder.name}.test", "test", "-c", package)


def _build(what: str, folder: Path, program: Path, command: str, *arguments: str) -> Path:
    go = shutil.which("go")
    if go is None:
        not_available(what, "go is not on the PATH", "Go (https://go.dev/dl)")
    done = subprocess.run(
        [go, command, "-o", str(program), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        not_available(what, done.stderr)
    return program
