"""Runs the tests of the example services, each in an environment with the service's own packages.

`python -m tools.setup.example_services` runs the tests of all examples with a requirements.txt. It
ends with 1 if a test fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from .environments import python_with

__all__ = ["SERVICES", "run_example_tests"]

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache" / "examples"

#: The folders of the example services.
SERVICES: Final = tuple(
    sorted(path.parent for path in (ROOT / "examples").glob("*/requirements.txt"))
)

_TIMEOUT_S: Final = 300.0


def run_example_tests(service: Path) -> subprocess.CompletedProcess[str]:
    """Runs the tests of a service with the pytest plugin of this checkout; returns the process.

    Builds the environment of the service if it is missing or out of date. Raises InstallError.
    """
    requirements = service / "requirements.txt"
    python = python_with(
        CACHE / service.name,
        install=["-r", str(requirements)],
        wanted=requirements.read_text(encoding="utf-8"),
    )
    command = [str(python), "-X", "dev", "-m", "pytest", "-q", "-p", "kproto.pytest_plugin"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=service,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def main() -> int:
    """Prints the output of the tests of each service; returns 1 if a test has failed."""
    failed = False
    for service in SERVICES:
        done = run_example_tests(service)
        print(f"{service.relative_to(ROOT)}:\n{done.stdout}{done.stderr}")
        failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
