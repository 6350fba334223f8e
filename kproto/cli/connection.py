"""Describes the arguments that name a cluster; `open_client` reads their values."""

from __future__ import annotations

import argparse

from .properties import add_properties

__all__ = ["add_connection"]


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Adds `--bootstrap`, `--context`, `--properties` and `-X` to the parser of a command."""
    group = parser.add_argument_group("connection")
    group.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        help="bootstrap servers, joined by commas; default: those of --context or the properties, "
        "then KPROTO_BOOTSTRAP, then localhost:9092",
    )
    group.add_argument(
        "--context",
        metavar="NAME",
        help="the properties under [NAME] in contexts.toml of the configuration folder "
        "(~/.config/kproto)",
    )
    add_properties(group)
