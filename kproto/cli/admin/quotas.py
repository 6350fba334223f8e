"""Describes the arguments of `kproto quotas`."""

from __future__ import annotations

import argparse
from typing import Final

from .verbs import Verb, add_verbs

__all__ = ["VERBS", "add_command"]


def _entity(parser: argparse.ArgumentParser) -> None:
    for name, what in (("user", "user"), ("client-id", "client id"), ("ip", "IP address")):
        either = parser.add_mutually_exclusive_group()
        either.add_argument(f"--{name}", metavar="NAME", help=f"the {what}")
        either.add_argument(
            f"--{name}-default",
            action="store_true",
            help=f"the default of each {what} without its own quota",
        )


def _set(parser: argparse.ArgumentParser) -> None:
    _entity(parser)
    parser.add_argument(
        "quotas",
        nargs="+",
        metavar="NAME=NUMBER",
        help="producer_byte_rate, consumer_byte_rate (bytes/s), request_percentage, "
        "controller_mutation_rate, connection_creation_rate (for --ip)",
    )
    parser.add_argument("--dry-run", action="store_true", help="let the broker only check it")


def _unset(parser: argparse.ArgumentParser) -> None:
    _entity(parser)
    parser.add_argument("quotas", nargs="+", metavar="NAME")
    parser.add_argument("--dry-run", action="store_true", help="let the broker only check it")


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Lists client quotas.", _entity),
    Verb("set", "Sets client quotas.", _set),
    Verb("unset", "Removes client quotas.", _unset),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto quotas` and its verbs to the parser."""
    add_verbs(commands, "quotas", "Lists, sets and removes client quotas.", VERBS)
