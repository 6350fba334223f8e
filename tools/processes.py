"""Inspects the descendants of a process, on Linux."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["below", "command_of", "cpu_s", "parent_of", "peak_bytes"]

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


def below(root: int) -> list[int]:
    """Returns the ids of all descendants of process `root`, in any process group."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        its = children.get(waiting.pop(), [])
        found += its
        waiting += its
    return found


def command_of(pid: int) -> str:
    """Returns the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def parent_of(pid: int) -> int:
    """Returns the id of the parent of a running process."""
    return int(_fields(pid)[1])


def cpu_s(root: int) -> float:
    """Returns the CPU seconds of a process and its descendants.

    Includes ended children if their parent has waited for them.
    """
    ticks = 0
    for pid in (root, *below(root)):
        ticks += sum(map(int, _fields(pid)[11:15]))
    return ticks / _TICKS_A_SECOND


def peak_bytes(pid: int) -> int:
    """Returns the peak memory of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def _fields(pid: int) -> list[str]:
    """Returns the fields of `/proc/PID/stat` from the state on; none if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
