"""Describes the arguments of `kproto diff`, which compares the versions of two releases.

Does not import the table of releases; `run_diff` imports it when the command runs.
"""

from __future__ import annotations

import argparse

from .package import add_package

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto diff` and its arguments to the parser."""
    parser = commands.add_parser(
        "diff",
        help="show which versions differ between two releases",
        description="Compares the versions that two releases of Kafka support, from 0.8.2.0 to "
        "4.4.0: APIs that were added or removed, ranges that changed, and the fields of each added "
        "version. Also compares folders of definitions of your own, or the package that was "
        "generated from them, with each other and with releases of Kafka.",
    )
    parser.add_argument(
        "older", metavar="OLDER", help="a release such as 3.9.2, or a folder of definitions"
    )
    parser.add_argument(
        "newer", metavar="NEWER", nargs="?", help="the same; omit it with --package"
    )
    parser.add_argument(
        "--schemas",
        metavar="DIR",
        help="OLDER and NEWER are names of releases in this folder of your own releases",
    )
    parser.add_argument(
        "--common",
        action="store_true",
        help="print the final versions that two releases of Kafka share, by API",
    )
    add_package(parser, "compare OLDER with the messages")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(runs_in="run_diff", refuse=parser.error)
