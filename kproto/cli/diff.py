"""Describes the arguments of `kproto diff`, which compares the versions of two Kafka releases.

Does not import the table of releases; `run_diff` imports it when the command runs.
"""

from __future__ import annotations

import argparse

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto diff` and its arguments to the parser."""
    parser = commands.add_parser(
        "diff",
        help="show which versions differ between two releases of Kafka",
        description="Compares the versions that two releases support, from 0.8.2.0 to 4.4.0: APIs "
        "that were added or removed, ranges that changed, and the fields of each added version.",
    )
    for name in ("older", "newer"):
        parser.add_argument(name, metavar=name.upper(), help="a release such as 3.9.2")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(runs_in="run_diff")
