"""Builds the platform wheel of kproto for this machine, and tests it in a clean environment.

    python -m tools.setup.wheels [--out DIR] [--wheel FILE] [--installed] [--no-tests]

Installs the wheel and pytest into a new virtual environment, without kproto's sources, and runs the
tests of the compiled modules, hostile bytes included. Checks that `kproto.__compiled__` is True,
and that `KPROTO_PURE=1` selects the pure code. Prints the CPU time of `import kproto` in both
cases. `--wheel` tests a wheel that exists; `--installed` tests the wheel that is installed for the
Python that runs this command, as cibuildwheel does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .programs import ProgramError, run_program

__all__ = ["build_wheel", "compiled_files", "install", "run_tests"]

ROOT: Final = Path(__file__).resolve().parents[2]

#: The files that the tests need, copied to a folder without `kproto`.
TEST_FILES: Final = ("pyproject.toml", "README.md", "Makefile")
TEST_FOLDERS: Final = ("tests", "tools", "schemas", "docs", "examples")
#: The tests of the compiled modules, and of the modules that call them most. These tests run with
#: Python's debugging allocator, which detects overruns of compiled code.
TESTS: Final = (
    "tests/unit/wire",
    "tests/unit/records",
    "tests/unit/messages",
    "tests/unit/protocol",
    "tests/unit/stored",
    "tests/unit/test_pickled_errors.py",
    "tests/unit/test_pickled_values.py",
)
#: The tests, except slow ones, of further modules that call the compiled modules.
CALLERS: Final = (
    "tests/unit/broker",
    "tests/unit/client",
    "tests/unit/fuzz",
    "tests/unit/proxy",
    "tests/unit/study",
)
SELECTED: Final = "not exhaustive and not kafka and not peers and not reference and not spark"

#: Installed together with the wheel, in the versions that requirements/dev.txt pins.
TEST_PACKAGES: Final = (
    "anyio",
    "pytest",
    "pytest-asyncio",
    "pytest-xdist",
    "testcontainers",
    "trustme",
)
EXTRAS: Final = "capture,codegen,compression,testing"

TIMEOUT_S: Final = 1800.0
IMPORT_ROUNDS: Final = 15

_CHECK: Final = """
import sys, kproto
from kproto.records.magic2 import record_decoding
from kproto.messages import HeartbeatRequest
from kproto.wire import reading
wanted = sys.argv[1] == "compiled"
assert kproto.__compiled__ is wanted, kproto.__compiled__
for module in (reading, record_decoding):
    assert module.__file__.endswith(".py") is not wanted, module.__file__
encode = vars(HeartbeatRequest).get("encode")  # set only if the C functions find the slots
assert (type(encode).__name__ == "instancemethod") is wanted, encode
"""

_IMPORT_TIME: Final = """
import time
start = time.process_time()
import kproto
from kproto.messages import FetchResponse, ProduceRequest
from kproto.records import RecordBatch
print(time.process_time() - start)
"""


def build_wheel(out: Path, *, is_compiled: bool = True) -> Path:
    """Builds a wheel in the folder `out` and returns its path; raises ProgramError."""
    with tempfile.TemporaryDirectory(prefix="kproto-dist-") as folder:
        run_program(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, "."],
            timeout_s=TIMEOUT_S,
            folder=ROOT,
            environment={**os.environ, "HATCH_BUILD_HOOKS_ENABLE": "1" if is_compiled else ""},
        )
        (built,) = Path(folder).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built, out / built.name))


def compiled_files(wheel: Path) -> list[str]:
    """Returns the names of the compiled files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if name.endswith((".so", ".pyd"))]


def install(wheel: Path, folder: Path) -> Path:
    """Creates a virtual environment in `folder` with the wheel and the packages for its tests.

    Returns the interpreter. Raises ProgramError.
    """
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], ROOT)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["--constraint", str(ROOT / "requirements" / "dev.txt")]
    wanted = f"kproto[{EXTRAS}] @ {wheel.resolve().as_uri()}"
    _run([*pip, *constraints, *TEST_PACKAGES, wanted], folder)
    return python


def run_tests(
    python: Path, folder: Path, *, is_pure: bool = False, with_callers: bool = True
) -> str:
    """Runs the tests of the compiled modules with `python`; returns the last lines of pytest.

    `with_callers` adds the tests of the modules that call them. Copies the tests to `folder`, which
    must not have kproto's sources. Raises ProgramError with the end of the output if a test fails
    or the interpreter crashes.
    """
    for name in TEST_FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored, dirs_exist_ok=True)
    for name in TEST_FILES:
        shutil.copyfile(ROOT / name, folder / name)
    command = [str(python), "-X", "dev", "-X", "faulthandler", "-m", "pytest", "-q"]
    command += ["-p", "no:cacheprovider", "--hypothesis-profile=quick", "-m"]
    pure = "1" if is_pure else ""
    outputs = [_run([*command, SELECTED, *TESTS], folder, KPROTO_PURE=pure, PYTHONMALLOC="debug")]
    if with_callers:
        selected = f"{SELECTED} and not slow"
        callers = [*command, selected, "--numprocesses=auto", *CALLERS]
        outputs.append(_run(callers, folder, KPROTO_PURE=pure))
    return "; ".join(output.strip().splitlines()[-1] for output in outputs)


def check_selection(python: Path, folder: Path) -> None:
    """Checks that Python runs the compiled modules, or their sources if KPROTO_PURE is 1.

    Raises ProgramError.
    """
    _run([str(python), "-c", _CHECK, "compiled"], folder, KPROTO_PURE="")
    _run([str(python), "-c", _CHECK, "pure"], folder, KPROTO_PURE="1")


def import_times(python: Path, folder: Path) -> tuple[float, float]:
    """Returns the median CPU ms to import kproto and three classes, compiled and pure.

    The rounds alternate. Raises ProgramError.
    """
    times: dict[str, list[float]] = {"": [], "1": []}
    for _ in range(IMPORT_ROUNDS):
        for pure, measured in times.items():
            output = _run([str(python), "-c", _IMPORT_TIME], folder, KPROTO_PURE=pure)
            measured.append(float(output) * 1000)
    return statistics.median(times[""]), statistics.median(times["1"])


def _run(command: Sequence[str], folder: Path, **environment: str) -> str:
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return run_program(
        command, timeout_s=TIMEOUT_S, folder=folder, environment=inherited | environment
    )


def main() -> int:
    """Builds, installs and tests the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder of the wheel")
    parser.add_argument("--wheel", type=Path, help="test this wheel, and build none")
    parser.add_argument("--installed", action="store_true", help="test what is installed")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests with pytest")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="kproto-wheel-test-") as name:
            folder = Path(name)
            python = Path(sys.executable)
            if not arguments.installed:
                wheel = arguments.wheel or build_wheel(arguments.out)
                print(f"{wheel}: {len(compiled_files(wheel))} compiled files", flush=True)
                python = install(wheel, folder / "venv")
            check_selection(python, folder)
            print("compiled by default, pure with KPROTO_PURE=1", flush=True)
            compiled, pure = import_times(python, folder)
            print(f"import: {compiled:.1f} ms compiled, {pure:.1f} ms pure", flush=True)
            if not arguments.no_tests:
                print(f"tests: {run_tests(python, folder)}", flush=True)
    except ProgramError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
