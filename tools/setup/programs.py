"""Runs a program to its end or under supervision, and prints the result of a set-up command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["FIRST", "LAST", "ProgramError", "print_found", "run_program", "supervised"]

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")

FIRST: Final = slice(5)
"""The lines of output that an error shows, if the program reports a fault at the beginning."""

LAST: Final = slice(-60, None)
"""The lines of output that an error shows, if the program reports a fault at the end."""


class ProgramError(RuntimeError):
    """A program did not start, took too long, or failed (then the message has its output)."""


def run_program(
    command: Sequence[str],
    *,
    timeout_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    shown: slice = LAST,
) -> str:
    """Runs a program in `folder` with `environment` (default: this process's); returns its stdout.

    Raises `ProgramError`; if the program failed, the error has the lines `shown` of stdout and
    stderr.
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
    """Returns a command that runs `command` until the pipe at its standard input closes.

    When the process at the other end of the pipe closes the pipe or ends, `command` gets SIGTERM,
    and SIGKILL after `grace_s` seconds.
    """
    return [sys.executable, str(SUPERVISOR), str(grace_s), *command]


def print_found(name: str, find: Callable[[], object], failure: type[Exception]) -> None:
    """Prints the result of `find`; on `failure`, exits with a message that begins with `name`."""
    try:
        print(find())
    except failure as error:
        sys.exit(f"{name}: {error}")
