"""Describes the arguments of `kproto inspect`, which prints a message version or an error code.

Does not import the message definitions; `run_inspect` imports them when the command runs.
"""

from __future__ import annotations

import argparse

from .package import add_package

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto inspect` and its arguments to the parser."""
    parser = commands.add_parser(
        "inspect",
        help="show the layout of a message, and the changes of its versions, or an error code",
        description="Shows the layout of one version of a message: the offset of each field, its "
        "type, default, tag, size and meaning. Lists messages if NAME is missing, a part of a name "
        "or an api key. Explains an error code: `kproto inspect error 6`, or its name as NAME; "
        "`kproto inspect error` lists all error codes.",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="NAME",
        help="a message such as FetchResponse, a part of its name, an api key, the name of an "
        "error code, or `error`",
    )
    parser.add_argument(
        "code", nargs="?", metavar="CODE", help="after `error`: an error code, or its name"
    )
    add_package(parser, "show messages")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--version", type=int, metavar="N", help="the version (default: the latest that is final)"
    )
    which.add_argument(
        "--diff",
        type=int,
        nargs=2,
        metavar=("OLDER", "NEWER"),
        help="show the changes from one version to another",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(runs_in="run_inspect", takes_version=True, refuse=parser.error)
