"""Describes `-X NAME=VALUE` and `--properties FILE`, the arguments to reach a secured broker.

`kproto proxy` and `kproto fuzz` share them; `read_properties` reads their values.
"""

from __future__ import annotations

import argparse

__all__ = ["add_properties"]


def add_properties(parser: argparse._ActionsContainer) -> None:
    """Adds `--properties` and `-X` to the parser of a command, or to a group of arguments."""
    parser.add_argument(
        "--properties",
        metavar="FILE",
        help="a client.properties file with TLS and SASL for the broker "
        "(docs/reference/client-properties.md)",
    )
    parser.add_argument(
        "-X",
        dest="x_properties",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one such property, for example security.protocol=SSL; overrides the file, and may be "
        "given several times. Other users can see a command line: keep secrets in a file",
    )
