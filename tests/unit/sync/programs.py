"""Runs programs that use the blocking client, for tests of forks, signals and exits."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import NamedTuple

from tests.support.environment import SOURCE_FOLDERS

__all__ = ["WARNINGS", "Ended", "run_program"]

#: Options of Python that print what was not closed. Not `-X dev`: with it, asyncio logs each
#: callback that a busy machine delays.
WARNINGS = ("-W", "always::ResourceWarning")

#: No program takes more than a few seconds; the limit ends one that hangs.
_LIMIT_S = 60.0


class Ended(NamedTuple):
    """The exit code of a program, and what it has printed."""

    code: int
    output: str
    errors: str


def run_program(
    text: str,
    bootstrap: str,
    *options: str,
    on_start: Callable[[subprocess.Popen[str]], object] | None = None,
) -> Ended:
    """Runs a program, whose `bootstrap` has the broker's address; returns how it has ended.

    `options` are those of Python. Calls `on_start` with the process when it has printed a line.
    """
    begin = f"import kproto, kproto.sync\nbootstrap = {bootstrap!r}\n"
    paths = os.pathsep.join(map(str, SOURCE_FOLDERS))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDEVMODE": ""}
    with subprocess.Popen(
        [sys.executable, *options, "-u", "-c", begin + textwrap.dedent(text)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        first = ""
        try:
            if on_start is not None:
                assert process.stdout is not None
                first = process.stdout.readline()
                on_start(process)
            output, errors = process.communicate(timeout=_LIMIT_S)
        except BaseException:
            process.kill()
            raise
    return Ended(process.returncode, first + output, errors)
