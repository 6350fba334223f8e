"""Builds the parser of all commands, or of a single one."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from ..version import __version__
from .admin.verbs import verb_first

__all__ = ["COMMANDS", "parse", "whole_parser"]

#: The module of each command, in the order of `kproto --help`.
COMMANDS: Final = {
    "produce": "produce",
    "consume": "consume",
    "tail": "tail",
    "topics": "admin.topics",
    "groups": "admin.groups",
    "configs": "admin.configs",
    "cluster": "admin.cluster",
    "acls": "admin.acls",
    "users": "admin.users",
    "quotas": "admin.quotas",
    "tokens": "admin.tokens",
    "transactions": "admin.transactions",
    "request": "request",
    "broker": "broker",
    "inspect": "inspect",
    "diff": "diff",
    "explorer": "explorer",
    "decode": "decode",
    "proxy": "proxy",
    "capture": "capture",
    "fuzz": "fuzz",
    "vectors": "vectors",
    "completion": "completion",
}

_VERSION: Final = f"kproto {__version__}"


class _HelpFormatter(argparse.HelpFormatter):
    """Formats help as argparse does, but reads the width of the terminal without shutil.

    argparse creates a formatter for each argument, and shutil loads three compression modules.
    """

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": _terminal_width() - 2, **options})


class _Parser(argparse.ArgumentParser):
    """A parser whose help has the format of `_HelpFormatter`; those of its commands, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _HelpFormatter, **options})


def _terminal_width() -> int:
    """Returns the columns of the terminal as `shutil.get_terminal_size` does: 80 without one."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return 80


def whole_parser(commands: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Returns the parser of `commands`, by default of all."""
    parser = _Parser(prog="kproto", description="Tools for Kafka and its protocol.")
    parser.add_argument("--version", action="version", version=_VERSION)
    added = parser.add_subparsers(
        title="commands",
        metavar="COMMAND",
        required=True,
        prog=parser.prog,
    )
    for command in commands:
        import_module(f"{__package__}.{COMMANDS[command]}").add_command(added)
    for described in added.choices.values():
        if described.get_default("takes_version"):  # its --version is that of a message
            continue
        described.add_argument("--version", action="version", version=_VERSION)
    return parser


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Returns the options of a command line. Raises SystemExit as argparse does.

    Loads only the module of the command, so that it starts fast.
    """
    command, rest = words[0] if words else "", list(words[1:])
    if command == "--version":
        return whole_parser([]).parse_args(words)
    if command not in COMMANDS:
        return whole_parser().parse_args(words)
    module = import_module(f"{__package__}.{COMMANDS[command]}")
    if hasattr(module, "VERBS"):
        rest = verb_first(rest, [verb.name for verb in module.VERBS])
    return whole_parser([command]).parse_args([command, *rest])
