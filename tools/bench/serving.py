"""Runs a broker in a separate process, so that the measured CPU time is the client's only."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

__all__ = ["served_by"]


@contextlib.contextmanager
def served_by(module: str) -> Iterator[str]:
    """Runs `python -m MODULE --serve`; yields the first line that the program prints.

    Closes the program's standard input after the block.
    """
    command = [sys.executable, "-m", module, "--serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
