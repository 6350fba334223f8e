"""Writes the golden vectors of `kproto vectors`: messages as JSON and as bytes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .. import messages
from ..fuzz.vectors import vector_lines
from ..protocol.message_classes import definitions_in
from ..wire.counted import counted
from .command_error import CommandError
from .selection import import_package, message_names

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Writes the vectors to files in `--out`, or to standard output; returns 0."""
    package = messages if options.package is None else import_package(options.package)
    names = None
    if options.messages is not None:
        names = message_names(options.messages, definitions_in(package))
    sizes = options.sizes or options.package is not None
    lines = vector_lines(package, names, sizes=sizes)
    if options.out is not None:
        _to_files(Path(options.out), lines)
        return 0
    try:
        for _, line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise Python reports the closed pipe again when it flushes the output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _to_files(folder: Path, lines: Iterator[tuple[str, str]]) -> None:
    """Writes a `.jsonl` file for each module of messages, and replaces existing files."""
    lines_by_name: dict[str, list[str]] = {}
    for module, line in lines:
        lines_by_name.setdefault(f"{module or 'messages'}.jsonl", []).append(line)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in lines_by_name.items():
            (folder / name).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--out: cannot write to {folder}: {error}") from None
    count = sum(map(len, lines_by_name.values()))
    print(f"{counted(count, 'vector')} in {counted(len(lines_by_name), 'file')} in {folder}")
