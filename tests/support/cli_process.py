"""Runs a command of `kproto` as a process until a test stops it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .environment import ROOT

__all__ = ["complaints", "started"]

#: Python options that turn every warning into an error, such as that of an unclosed resource.
STRICT = ("-X", "dev", "-W", "error")


@contextlib.contextmanager
def started(
    *arguments: str,
    module: str = "kproto",
    options: Sequence[str] = STRICT,
    before: Sequence[str] = (),
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    cwd: Path = ROOT,
) -> Iterator[subprocess.Popen[str]]:
    """Runs `BEFORE python OPTIONS -m MODULE ARGUMENTS` in `cwd`; kills it when the block ends.

    The caller must read the process's output, which is text.
    """
    process = subprocess.Popen(
        [*before, sys.executable, *options, "-m", module, *arguments],
        stdout=stdout,
        stderr=stderr,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def complaints(err: str) -> list[str]:
    """Returns the lines of standard error, without asyncio's debug lines about slow callbacks."""
    slow = re.compile(r"Executing <.*> took \d+\.\d+ seconds")
    return [line for line in err.splitlines() if not slow.fullmatch(line)]
