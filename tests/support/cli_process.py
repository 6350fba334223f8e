"""A command of `kproto` as a process that runs until it is stopped."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from .environment import ROOT

__all__ = ["complaints", "started"]

#: A command that complains of nothing: of no resource left open, of no warning.
STRICT = ("-X", "dev", "-W", "error")


@contextlib.contextmanager
def started(
    *arguments: str,
    module: str = "kproto",
    options: Sequence[str] = STRICT,
    before: Sequence[str] = (),
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
) -> Iterator[subprocess.Popen[str]]:
    """The process of `python OPTIONS -m MODULE ARGUMENTS`, with `before` before it; it ends here.

    What it writes is text, and to be read by the caller.
    """
    process = subprocess.Popen(
        [*before, sys.executable, *options, "-m", module, *arguments],
        stdout=stdout,
        stderr=stderr,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def complaints(err: str) -> list[str]:
    """Lines of standard error, but for those in which asyncio's debug mode calls a machine slow."""
    slow = re.compile(r"Executing <.*> took \d+\.\d+ seconds")
    return [line for line in err.splitlines() if not slow.fullmatch(line)]
