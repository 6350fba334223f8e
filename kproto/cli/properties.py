"""`-X NAME=VALUE` and `--properties FILE`: the arguments that say how to reach a secured broker.

Shared by commands that speak to brokers. Knows no command; `given_properties` reads them.
"""

from __future__ import annotations

import argparse

__all__ = ["add_properties"]


def add_properties(parser: argparse.ArgumentParser) -> None:
    """Describe the two arguments."""
    parser.add_argument(
        "--properties",
        metavar="FILE",
        help="a client.properties file that says how to reach the broker: TLS and SASL "
        "(docs/reference/client-properties.md)",
    )
    parser.add_argument(
        "-X",
        dest="x_properties",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one such property, such as security.protocol=SSL; counts more than the file, and may "
        "be given several times. Others see what is on a command line: secrets belong in a file",
    )
