"""Running a program to its end or under supervision, and being one that prints what it found.

Knows no program; whoever runs one says what its failure means.
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
"""The lines of the output that an error repeats, of a program that names the fault at once."""

LAST: Final = slice(-60, None)
"""Likewise, of a program that names it at its end; long enough for a few failed tests."""


class ProgramError(RuntimeError):
    """A program did not run, took too long or failed; the message has what it said."""


def run_program(
    command: Sequence[str],
    *,
    timeout_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    shown: slice = LAST,
) -> str:
    """Run a program in `folder`, with all of `environment` or this process's; return its output.

    The output is what it wrote to its standard output. Raises `ProgramError`, with the lines
    `shown` of both outputs.
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
    """`command`, to be started with a pipe as its input: it does not outlive the pipe's other end.

    Whoever holds that end lets go of it, or ends, and the command has `grace_s` seconds to stop.
    """
    return [sys.executable, str(SUPERVISOR), str(grace_s), *command]


def print_found(name: str, find: Callable[[], object], failure: type[Exception]) -> None:
    """Print what `find` gives; end with a plain message of the program `name` on a `failure`."""
    try:
        print(find())
    except failure as error:
        sys.exit(f"{name}: {error}")
