"""Builds the parser of all commands, or of a single one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Final

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


def whole_parser(commands: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Returns the parser of `commands`, by default of all."""
    parser = argparse.ArgumentParser(prog="kproto", description="Tools for Kafka and its protocol.")
    parser.add_argument("--version", action="version", version=_VERSION)
    added = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
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
