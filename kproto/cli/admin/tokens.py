"""Describes the arguments of `kproto tokens`."""

from __future__ import annotations

import argparse
from typing import Final

from ..times import duration_ms
from .verbs import Verb, add_verbs, add_yes

__all__ = ["VERBS", "add_command"]


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "owners", nargs="*", metavar="TYPE:NAME", help="such as User:alice; default: all owners"
    )


def _create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--owner", metavar="TYPE:NAME", help="default: the user of this client")
    parser.add_argument(
        "--renewer",
        dest="renewers",
        action="append",
        default=[],
        metavar="TYPE:NAME",
        help="a principal that may renew the token; may be given several times",
    )
    parser.add_argument(
        "--lifetime",
        type=duration_ms,
        default=-1,
        metavar="DURATION",
        help="the longest life with renewals, such as 7d; default: the brokers' limit",
    )


def _add_hmac(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hmac-file",
        metavar="FILE",
        help="read the token's HMAC (base64) from FILE; default: the first line of standard input",
    )


def _renew(parser: argparse.ArgumentParser) -> None:
    _add_hmac(parser)
    parser.add_argument(
        "--period",
        type=duration_ms,
        default=-1,
        metavar="DURATION",
        help="from now on, such as 1d; default: the brokers' setting",
    )


def _expire(parser: argparse.ArgumentParser) -> None:
    _add_hmac(parser)
    parser.add_argument(
        "--period",
        type=duration_ms,
        default=-1,
        metavar="DURATION",
        help="from now on; default: the token ends at once",
    )
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Lists delegation tokens, without their HMACs.", _list),
    Verb("create", "Creates a delegation token, and prints its HMAC.", _create),
    Verb("renew", "Renews a delegation token.", _renew),
    Verb("expire", "Ends a delegation token.", _expire),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto tokens` and its verbs to the parser."""
    add_verbs(commands, "tokens", "Lists, creates, renews and ends delegation tokens.", VERBS)
