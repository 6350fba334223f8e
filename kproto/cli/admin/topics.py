"""Describes the arguments of `kproto topics`."""

from __future__ import annotations

import argparse
from typing import Final

from .verbs import Verb, add_verbs, add_yes

__all__ = ["VERBS", "add_command", "config_entry"]


def config_entry(text: str) -> tuple[str, str]:
    """Returns a config from `NAME=VALUE`. Raises ArgumentTypeError for other text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE, such as retention.ms=1000")
    return name, value


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="TOPIC", help="a name or a pattern")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pattern", nargs="?", metavar="GLOB", help="only topics with such names, such as 'orders*'"
    )
    parser.add_argument("--internal", action="store_true", help="also internal topics")


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="TOPIC", help="a name or a pattern; default: all topics"
    )
    for name, what in (
        ("under-replicated", "with fewer replicas in sync than replicas"),
        ("under-min-isr", "with fewer replicas in sync than min.insync.replicas, or no leader"),
        ("at-min-isr", "with as many replicas in sync as min.insync.replicas"),
        ("unavailable", "without a leader"),
    ):
        parser.add_argument(
            f"--{name}",
            dest="filters",
            action="append_const",
            const=name,
            help=f"only partitions {what}; several such options name the partitions of any",
        )
    parser.add_argument(
        "--with-overrides", action="store_true", help="only topics with configs, and their configs"
    )
    internal = parser.add_mutually_exclusive_group()
    internal.add_argument(
        "--internal",
        action="store_true",
        help="also internal topics, which the options for partitions include",
    )
    internal.add_argument("--exclude-internal", action="store_true", help="no internal topics")


def _create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="TOPIC")
    parser.add_argument(
        "--partitions", type=int, default=-1, metavar="N", help="default: the broker's"
    )
    parser.add_argument(
        "--replication-factor", type=int, default=-1, metavar="N", help="default: the broker's"
    )
    parser.add_argument(
        "-c",
        "--config",
        dest="configs",
        action="append",
        default=[],
        type=config_entry,
        metavar="NAME=VALUE",
        help="a config of the topics; may be given several times",
    )
    parser.add_argument(
        "--if-missing", action="store_true", help="topics that exist already are no error"
    )
    parser.add_argument("--dry-run", action="store_true", help="let the broker only check it")


def _delete(parser: argparse.ArgumentParser) -> None:
    _add_names(parser)
    add_yes(parser)


def _alter(parser: argparse.ArgumentParser) -> None:
    _add_names(parser)
    parser.add_argument(
        "--partitions", type=int, required=True, metavar="N", help="the new number of partitions"
    )
    parser.add_argument("--dry-run", action="store_true", help="let the broker only check it")
    add_yes(parser, pattern=True)


def _offsets(parser: argparse.ArgumentParser) -> None:
    _add_names(parser)
    parser.add_argument(
        "--time",
        metavar="TIME",
        help="also the first offset of this time or later, such as 10m; or the offset that is "
        "max-timestamp, earliest-local, latest-tiered or earliest-pending-upload",
    )
    parser.add_argument(
        "--sum", action="store_true", help="a row for each topic, and a row with the total"
    )


def _sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="TOPIC", help="a name or a pattern; default: all topics"
    )


def _delete_records(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="TOPIC[:PARTITION]")
    before = parser.add_mutually_exclusive_group(required=True)
    before.add_argument("--before-offset", type=int, metavar="OFFSET", help="-1 is the end")
    before.add_argument("--before", metavar="TIME", help="such as 7d or 2026-01-31")
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Lists topics with partitions and replicas.", _list),
    Verb("describe", "Describes the partitions of topics.", _describe),
    Verb("create", "Creates topics.", _create),
    Verb("delete", "Deletes topics with their records.", _delete),
    Verb("alter", "Adds partitions to topics.", _alter),
    Verb(
        "offsets",
        "Prints the log start and log end offsets of partitions, and the number of offsets between "
        "them, in which markers of transactions and compacted records count.",
        _offsets,
    ),
    Verb("sizes", "Prints the bytes of topics on the disks of the brokers.", _sizes),
    Verb("delete-records", "Deletes the oldest records of partitions.", _delete_records),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto topics` and its verbs to the parser."""
    add_verbs(commands, "topics", "Lists, describes, creates, alters and deletes topics.", VERBS)
