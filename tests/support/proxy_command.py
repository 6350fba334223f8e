"""Runs `kproto proxy` and `kproto capture` as child processes, as in a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .cli_process import started
from .environment import ROOT

__all__ = ["RunningProxy", "capture", "proxy"]

TIMEOUT_S = 60


class RunningProxy:
    """A process of `kproto proxy`, whose output has one JSON object per line.

    The proxy rewrites broker addresses and records the traffic to a file.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.told: list[dict[str, Any]] = [json.loads(process.stdout.readline())]
        self.address = self.told[0]["notice"].split()[-1]
        # Read in a thread, because a proxy stops forwarding if its output is not read.
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.told += map(json.loads, self._process.stdout)

    def end(self) -> None:
        """Stops the process as Ctrl-C does, and waits for the end of its output."""
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(TIMEOUT_S) == 0
        self._reader.join()

    def seen(self) -> Counter[tuple[str, str, str]]:
        """Returns how many events the proxy reported, by side, API and kind."""
        return Counter(
            (line["from"], line.get("api", ""), line["kind"])
            for line in self.told
            if "kind" in line
        )


@contextlib.contextmanager
def proxy(target: str, recording: Path, *options: str) -> Iterator[RunningProxy]:
    """Runs a proxy for `target` that rewrites broker addresses and records to this file."""
    arguments = [target, "--rewrite", "--json", "--record", str(recording), *options]
    with started("proxy", "127.0.0.1:0", *arguments, options=(), stderr=None) as process:
        yield RunningProxy(process)


def capture(*arguments: str) -> str:
    """Returns the output of `kproto capture`."""
    return subprocess.run(
        [sys.executable, "-m", "kproto", "capture", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout
