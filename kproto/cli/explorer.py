"""Describes the arguments of `kproto explorer`, which builds an HTML page about the protocol.

Does not import the builder of the page; `run_explorer` imports it when the command runs.
"""

from __future__ import annotations

import argparse

from .package import add_package

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto explorer` and its arguments to the parser."""
    parser = commands.add_parser(
        "explorer",
        help="open a page to study the protocol and to decode bytes",
        description="Builds one HTML page with every message, version and error code of Kafka, "
        "which decodes the bytes that are pasted into it, and opens it in the browser. The page "
        "needs no server and no network.",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write the page to this file instead of opening it; - for standard output",
    )
    add_package(parser, "a page of the messages")
    parser.set_defaults(runs_in="run_explorer")
