"""Describes the argument `--package`, the user's own messages, for several commands."""

from __future__ import annotations

import argparse

__all__ = ["add_package"]


def add_package(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds `--package` to a parser. `what` says for what the command uses the package."""
    parser.add_argument(
        "--package",
        metavar="NAME",
        help=f"{what} of this package, which kproto-codegen generated; as Python imports it from "
        "here",
    )
