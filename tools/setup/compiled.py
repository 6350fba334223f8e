"""Compiles the record modules with mypyc in a separate folder.

`python -m tools.setup.compiled` copies `kproto` to `.cache/compiled/package`, compiles each module
of `kproto.records` there unchanged, and prints the folder. The command rebuilds the folder if a
source has changed. `run_record_tests` runs the tests of records on the compiled modules.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .once import locked, made_from
from .programs import ProgramError, print_found, run_program

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CompiledError", "compiled_package", "run_record_tests"]

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache"
FOLDER: Final = CACHE / "compiled"
MODULES: Final = "kproto/records"

#: The files that the tests of records need besides the package; they are copied for each run.
TEST_FILES: Final = ("tests/__init__.py", "tests/conftest.py", "pyproject.toml")
TEST_FOLDERS: Final = ("tests/support", "tests/unit/records", "tools")

COMPILE_TIMEOUT_S: Final = 900.0
"""In seconds. Compiling takes about 30; a busy machine needs minutes."""

LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")


class CompiledError(RuntimeError):
    """The modules cannot be compiled on this machine."""


def compiled_package() -> Path:
    """Returns the folder with `kproto` and its compiled record modules.

    Builds the folder if it is missing or a source has changed. To use the modules, put the folder
    first on the import path of the same Python. Safe if several processes call this at once. Raises
    `CompiledError`, whose message names a missing requirement.
    """
    package = FOLDER / "package"

    def make() -> None:
        shutil.copytree(ROOT / "kproto", package / "kproto", ignore=LEFT_OUT)
        build(package)

    with locked(FOLDER / "lock"):
        made_from(fingerprint(), package, FOLDER / "built.txt", make)
    return package


def fingerprint() -> str:
    """Returns a hash of the sources, this file, the Python version and the pinned packages."""
    digest = hashlib.sha256(sys.version.encode())
    sources: Iterable[Path] = sorted((ROOT / "kproto").rglob("*.py"))
    for path in (*sources, Path(__file__), ROOT / "requirements" / "dev.txt"):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def build(package: Path) -> None:
    """Compiles every record module in `package`, in place."""
    missing = what_is_missing()
    if missing:
        raise CompiledError(f"the record modules cannot be compiled: {'; '.join(missing)}")
    modules = sorted(str(path.relative_to(package)) for path in (package / MODULES).rglob("*.py"))
    # mypyc reads settings from its working directory, `package`: no setting of the checkout
    # applies.
    _run([sys.executable, "-m", "mypyc", "--strict", *modules], package)
    shutil.rmtree(package / "build", ignore_errors=True)
    names = [name.removesuffix(".py").replace("/", ".") for name in modules]
    names = [name.removesuffix(".__init__") for name in names]
    check = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    path = importlib.import_module(name).__file__\n"
        "    assert not path.endswith('.py'), f'{path} is not compiled'\n"
    )
    _run([sys.executable, "-c", check, *names], package, PYTHONPATH=str(package))


def what_is_missing() -> list[str]:
    """Returns the missing requirements, with instructions to install them."""
    missing = []
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        missing.append(f"no C compiler {compiler!r} is on the path (Debian: apt-get install gcc)")
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        missing.append(f"there is no {header} (Debian: apt-get install python3-dev)")
    missing += [
        f"{sys.executable} has no {name}: run `make setup`"
        for name in ("mypyc", "setuptools")
        if importlib.util.find_spec(name) is None
    ]
    return missing


def run_record_tests(package: Path) -> str:
    """Runs the tests of tests/unit/records on the compiled modules.

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
    output = _run([*command, "tests/unit/records"], package, **debugged)
    return output.strip().splitlines()[-1]


def _run(command: list[str], folder: Path, **environment: str) -> str:
    try:
        return run_program(
            command,
            timeout_s=COMPILE_TIMEOUT_S,
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
