"""Describes the arguments of `kproto tail`; `run_consume` prints the records."""

from __future__ import annotations

import argparse

from .connection import add_connection
from .consume import add_filters, add_range

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto tail` and its arguments to the parser."""
    parser = commands.add_parser(
        "tail",
        help="follow topics beside each other, for people",
        description="Prints the last records of each partition and then each new record, as a "
        "line with topic, partition, offset, time, key and value, until Ctrl-C. Control characters "
        "are escaped, and long lines are cut at the width of the terminal. Programs use kproto "
        "consume.",
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="a name or a pattern")
    add_range(parser, last=10)
    group = parser.add_argument_group("output")
    add_filters(group)
    group.add_argument("--wrap", action="store_true", help="do not cut long lines")
    add_connection(parser)
    parser.set_defaults(
        runs_in="run_consume",
        is_tail=True,
        group=None,
        json=False,
        format=None,
        cloudevents=False,
        key_separator=None,
        delimiter=b"\n",
        null="",
        progress=False,
        quiet=True,
        isolation="read_committed",
    )
