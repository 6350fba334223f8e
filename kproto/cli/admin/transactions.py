"""Describes the arguments of `kproto transactions`."""

from __future__ import annotations

import argparse
from typing import Final

from ..times import duration_ms
from .verbs import Verb, add_verbs, add_yes

__all__ = ["VERBS", "add_command"]

#: A transaction that is open for longer is suspect, in ms: the longest time that brokers allow by
#: default (transaction.max.timeout.ms).
_HANGING_MS: Final = 900_000


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        dest="states",
        action="append",
        default=[],
        metavar="STATE",
        help="only transactions in this state, such as Ongoing; may be given several times",
    )
    parser.add_argument(
        "--longer-than",
        type=duration_ms,
        metavar="DURATION",
        help="only transactions that are open for longer (Kafka 3.8)",
    )
    parser.add_argument(
        "--pattern", metavar="REGEX", help="only such transactional ids (Kafka 4.1)"
    )


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="transactional ids")


def _producers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="+", metavar="TOPIC[:PARTITION]")


def _hanging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC[:PARTITION]", help="default: all topics"
    )
    parser.add_argument(
        "--longer-than",
        type=duration_ms,
        default=_HANGING_MS,
        metavar="DURATION",
        help="without a write for longer than this (15m)",
    )


def _abort(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", metavar="TOPIC:PARTITION")
    parser.add_argument(
        "--start-offset",
        type=int,
        required=True,
        metavar="OFFSET",
        help="the first offset of the transaction, as hanging prints it",
    )
    add_yes(parser)


def _fence(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="transactional ids")
    parser.add_argument(
        "--create",
        action="store_true",
        help="also ids that no coordinator knows: fencing creates them",
    )
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Lists transactional ids with their states.", _list),
    Verb("describe", "Describes the open transactions of transactional ids.", _describe),
    Verb(
        "producers", "Lists the producers of partitions with their open transactions.", _producers
    ),
    Verb("hanging", "Finds open transactions that no coordinator knows.", _hanging),
    Verb("abort", "Ends a hanging transaction in a partition.", _abort),
    Verb(
        "fence", "Fences the producers of transactional ids, and aborts their transactions.", _fence
    ),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto transactions` and its verbs to the parser."""
    add_verbs(
        commands,
        "transactions",
        "Lists, describes and aborts transactions, and finds hanging ones.",
        VERBS,
    )
