"""Compiles kproto's listed modules with mypyc in a separate folder.

`python -m tools.setup.compiled` copies `kproto` to `.cache/compiled/package`, compiles there the
modules that pyproject.toml lists, unchanged, and prints the folder. The command rebuilds the folder
if a source has changed. `run_compiled_tests` runs the tests of the compiled modules.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .mypyc_build import C_FUNCTIONS, CompileError, compile_package
from .once import locked, made_from
from .programs import ProgramError, print_found, run_program

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CompiledError", "compiled_package", "run_compiled_tests"]

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache"
FOLDER: Final = CACHE / "compiled"

#: The files that the tests need besides the package; they are copied for each run.
TEST_FILES: Final = ("tests/__init__.py", "tests/conftest.py", "pyproject.toml")
#: Folders of tests of compiled modules.
TESTS: Final = ("tests/unit/records", "tests/unit/wire")
TEST_FOLDERS: Final = ("tests/support", "tools", *TESTS)

TEST_TIMEOUT_S: Final = 900.0
LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")


class CompiledError(RuntimeError):
    """The modules cannot be compiled on this machine."""


def compiled_package() -> Path:
    """Returns the folder with `kproto` and its compiled modules.

    Builds the folder if it is missing or a source has changed. To use the modules, put the folder
    first on the import path of the same Python. Safe if several processes call this at once. Raises
    `CompiledError`, whose message names a missing requirement.
    """
    package = FOLDER / "package"

    def make() -> None:
        try:
            compile_package(ROOT, package)
        except CompileError as error:
            raise CompiledError(str(error)) from error

    with locked(FOLDER / "lock"):
        made_from(fingerprint(), package, FOLDER / "built.txt", make)
    return package


def fingerprint() -> str:
    """Returns a hash of the sources, the settings, the Python version and the pinned packages."""
    digest = hashlib.sha256(sys.version.encode())
    sources: Iterable[Path] = sorted((ROOT / "kproto").rglob("*.py"))
    settings = Path("pyproject.toml"), Path("requirements/dev.txt")
    builders = Path(__file__), Path(__file__).with_name("mypyc_build.py"), C_FUNCTIONS
    for path in (*sources, *(ROOT / name for name in settings), *builders):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def run_compiled_tests(package: Path) -> str:
    """Runs the tests of records and of `kproto.wire` on the compiled modules.

    Skips the exhaustive tests, which take minutes. Returns pytest's last line. Raises
    `CompiledError` with the end of the output if a test fails.
    """
    for name in TEST_FOLDERS:
        shutil.rmtree(package / name, ignore_errors=True)
        shutil.copytree(ROOT / name, package / name, ignore=LEFT_OUT)
    for name in TEST_FILES:
        shutil.copyfile(ROOT / name, package / name)
    command = [sys.executable, "-X", "dev", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=quick", "-m", "not exhaustive"]
    debugged = {"PYTHONPATH": str(package), "PYTHONMALLOC": "debug"}  # detects overruns in C
    output = _run([*command, *TESTS], package, **debugged)
    return output.strip().splitlines()[-1]


def _run(command: list[str], folder: Path, **environment: str) -> str:
    try:
        return run_program(
            command,
            timeout_s=TEST_TIMEOUT_S,
            folder=folder,
            environment=os.environ | environment,
        )
    except ProgramError as error:
        raise CompiledError(f"{shlex.join(command)} failed: {error}") from error


def main() -> None:
    """Prints the folder, or ends with an error message."""
    print_found("compiled", compiled_package, CompiledError)


if __name__ == "__main__":
    main()
