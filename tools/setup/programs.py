"""Runs a program to its end or under supervision, and prints a program's single result.

Knows no program; the caller knows the meaning of a failure.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["FIRST", "LAST", "ProgramError", "print_found", "run_program", "supervised"]

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")

FIRST: Final = slice(5)
"""The lines of output in an error, for a program that names the fault at once."""

LAST: Final = slice(-60, None)
"""The same for a program that names it at its end; long enough for a few failed tests."""


class ProgramError(RuntimeError):
    """A program did not run, took too long or failed; the message has its output."""


def run_program(
    command: Sequence[str],
    *,
    timeout_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    shown: slice = LAST,
) -> str:
    """Runs a program in `folder`, with all of `environment` or this process's; returns its output.

    The output is its standard output. Raises `ProgramError`, with the lines `shown` of both
    outputs. `shown` of both outputs.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        raise ProgramError(f"{name} does not run: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ProgramError(f"{name} was not done after {timeout_s:g} s") from error
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[shown])
        raise ProgramError(f"{name} ended with {done.returncode}; it said:\n{said}")
    return done.stdout


def supervised(command: Sequence[str], *, grace_s: float) -> list[str]:
    """Returns `command` wrapped so that it ends when the pipe at its input closes.

    After the holder of the other end closes it, or ends, the command has `grace_s` seconds to stop.
    """
    return [sys.executable, str(SUPERVISOR), str(grace_s), *command]


def print_found(name: str, find: Callable[[], object], failure: type[Exception]) -> None:
    """Prints the result of `find`; ends with a plain message of program `name` on failure."""
    try:
        print(find())
    except failure as error:
        sys.exit(f"{name}: {error}")
