"""Runs the sessions of a page: each command of its console blocks, as a shell runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from .environment import ROOT
from .pages import blocks, page_text

__all__ = ["commands_of", "differences"]


def commands_of(page: str) -> list[tuple[str, str]]:
    """Returns each command of the console blocks of a page, with the text below it."""
    found: list[tuple[str, str]] = []
    for block in blocks(page_text(page), "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append((command, printed))
    return found


def differences(page: str, bootstrap: str, folder: Path) -> list[str]:
    """Runs the commands of a page in `folder`; returns those that print other text.

    `…` in the page stands for any text in a line.
    """
    shim = folder / "bin" / "kproto"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kproto "$@"\n')
    shim.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cloudevents")]),
        "KPROTO_BOOTSTRAP": bootstrap,
        "LC_ALL": "C.UTF-8",
    }
    environment.pop("KPROTO_PROPERTIES", None)
    environment.pop("PYTHONDEVMODE", None)  # asyncio would print which steps of a command are slow
    wrong: list[str] = []
    for command, wanted in commands_of(page):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        printed = done.stdout + (done.stderr if done.returncode else "")
        pattern = re.escape(wanted).replace("…", "[^\n]*")
        if not re.fullmatch(pattern, printed):
            wrong.append(f"$ {command}\n{printed}")
    return wrong
