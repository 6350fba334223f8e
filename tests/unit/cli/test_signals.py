"""Tests how a command ends after signals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.environment import ROOT

PROGRAM = """
import asyncio, os, signal, threading
from kproto.cli.signals import run_until_signal

async def work():
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    finally:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        await asyncio.sleep(60)

try:
    run_until_signal(work(), prints=True)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_second_interrupt_ends_quietly(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            timeout=50,
        )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (tmp_path / "out").read_text() == "interrupted\n"
