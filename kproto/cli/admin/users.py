"""Describes the arguments of `kproto users`."""

from __future__ import annotations

import argparse
from typing import Final

from .verbs import Verb, add_verbs, add_yes

__all__ = ["VERBS", "add_command"]

_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("users", nargs="*", metavar="USER", help="default: all users")


def _add_mechanism(parser: argparse.ArgumentParser, default: str | None, text: str) -> None:
    parser.add_argument(
        "--mechanism", choices=_MECHANISMS, default=default, metavar="MECHANISM", help=text
    )


def _set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER")
    _add_mechanism(parser, _MECHANISMS[1], f"{' or '.join(_MECHANISMS)} (%(default)s)")
    parser.add_argument(
        "--iterations", type=int, metavar="N", help="of the hash; default: the least, 4096"
    )
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        help="read the password from the first line of FILE; default: the terminal or standard "
        "input",
    )


def _delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER")
    _add_mechanism(parser, None, "only this credential; default: all credentials of the user")
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Lists SCRAM users with their mechanisms.", _list),
    Verb("set", "Sets the SCRAM password of a user, who need not exist.", _set),
    Verb("delete", "Deletes SCRAM credentials of a user.", _delete),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto users` and its verbs to the parser."""
    add_verbs(commands, "users", "Lists, sets and deletes SCRAM users.", VERBS)
