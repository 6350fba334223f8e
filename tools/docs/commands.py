"""Runs `--help` of every command, and formats the output as Markdown."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from unittest import mock

from kproto_codegen.cli import main as kproto_codegen
from kproto_pipeline.job.command import main as kproto_pipeline

from kproto.cli import main as kproto

__all__ = ["PROGRAMS", "command_pages", "help_of", "subcommands"]

Main = Callable[[Sequence[str]], object]

PROGRAMS: Final[dict[str, Main]] = {
    "kproto": kproto,
    "kproto-codegen": kproto_codegen,
    "kproto-pipeline": kproto_pipeline,
}

_WIDTH: Final = "90"


def command_pages() -> str:
    """Returns Markdown with the help of each program and of each of its commands."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    for program in PROGRAMS:
        yield f"## {program}\n\n```text\n{help_of(program)}```\n"
        for command in subcommands(program):
            yield f"### {program} {command}\n\n```text\n{help_of(program, command)}```\n"


def subcommands(program: str) -> list[str]:
    """Returns the commands that the help of a program lists."""
    choices = re.search(r"^\s+COMMAND$|^commands:$|^\s+\{(.*)\}", help_of(program), re.MULTILINE)
    if choices and choices[1]:
        return choices[1].split(",")
    return re.findall(r"^    ([a-z]+)(?:  |$)", help_of(program), re.MULTILINE)


def help_of(program: str, *commands: str) -> str:
    """Returns the output of `--help` for a terminal of fixed width without colors."""
    out = io.StringIO()
    terminal = {"COLUMNS": _WIDTH, "NO_COLOR": "1", "PYTHON_COLORS": "0"}
    with (
        mock.patch.dict(os.environ, terminal),
        contextlib.redirect_stdout(out),
        contextlib.suppress(SystemExit),
    ):
        PROGRAMS[program]([*commands, "--help"])
    return out.getvalue()
