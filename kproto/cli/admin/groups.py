"""Describes the arguments of `kproto groups`."""

from __future__ import annotations

import argparse
from typing import Final

from ..times import duration_ms
from .verbs import Verb, add_verbs, add_yes

__all__ = ["VERBS", "add_command"]

#: The default time between two tables of `kproto groups watch`, in ms.
_WATCH_MS: Final = 2_000


def _add_group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        dest="states",
        action="append",
        default=[],
        metavar="STATE",
        help="only groups in this state, such as Stable or Empty; may be given several times",
    )
    parser.add_argument(
        "--type",
        dest="types",
        action="append",
        default=[],
        metavar="TYPE",
        help="only groups of this type: Classic, Consumer, Share or Streams; may be given several "
        "times",
    )


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", nargs="+", metavar="GROUP", help="an id or a pattern")


def _lag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP", help="an id or a pattern; default: all groups"
    )
    parser.add_argument(
        "--sum",
        action="store_true",
        help="print a row for each group and topic; a negative lag counts as 0",
    )


def _watch(parser: argparse.ArgumentParser) -> None:
    _lag(parser)
    parser.add_argument(
        "--interval",
        type=duration_ms,
        default=_WATCH_MS,
        metavar="DURATION",
        help="time between two tables, such as 500ms (2s)",
    )
    parser.add_argument("-n", "--count", type=int, metavar="N", help="end after N tables")


def _reset(parser: argparse.ArgumentParser) -> None:
    _add_group(parser)
    parser.add_argument(
        "--topic",
        dest="topics",
        action="append",
        default=[],
        metavar="TOPIC[:PARTITION]",
        help="default: all partitions with committed offsets; may be given several times",
    )
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="to the log starts")
    to.add_argument("--to-latest", action="store_true", help="to the log ends")
    to.add_argument(
        "--to-current",
        action="store_true",
        help="to the committed offsets inside the log, or to the log ends without one",
    )
    to.add_argument("--to-offset", type=int, metavar="OFFSET", help="to this offset")
    to.add_argument(
        "--to-time", metavar="TIME", help="to the first record of this time or later, such as 2h"
    )
    to.add_argument(
        "--shift", type=int, metavar="N", help="N records forward, or back if N is negative"
    )
    to.add_argument(
        "--from-file",
        metavar="FILE",
        help="to the offsets in FILE: lines of topic,partition,offset, or the output of lag or "
        "reset with --csv or --json; of reset's own output, the column new counts; rows of other "
        "groups are not applied",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the new offsets, and commit nothing"
    )
    add_yes(parser)


def _delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", nargs="+", metavar="GROUP", help="an id or a pattern")
    add_yes(parser)


def _delete_offsets(parser: argparse.ArgumentParser) -> None:
    _add_group(parser)
    parser.add_argument("topics", nargs="+", metavar="TOPIC[:PARTITION]")
    add_yes(parser)


def _remove_members(parser: argparse.ArgumentParser) -> None:
    _add_group(parser)
    parser.add_argument(
        "members", nargs="*", metavar="INSTANCE", help="instance ids; default: all members"
    )
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Lists groups of every type.", _list),
    Verb("describe", "Describes the members of groups and their partitions.", _describe),
    Verb(
        "lag",
        "Prints committed offsets, or start offsets, and lag by partition. A negative lag is "
        "that of a committed offset beyond the log end.",
        _lag,
    ),
    Verb("watch", "Prints the lag again and again, as a live table.", _watch),
    Verb(
        "reset",
        "Commits other offsets for a group without members, or sets those of a share group.",
        _reset,
    ),
    Verb("delete", "Deletes groups of every type with their offsets.", _delete),
    Verb(
        "delete-offsets",
        "Deletes committed offsets, or the offsets of a share group for topics.",
        _delete_offsets,
    ),
    Verb("remove-members", "Removes members from a group.", _remove_members),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto groups` and its verbs to the parser."""
    add_verbs(
        commands, "groups", "Lists groups, prints their lag, and resets their offsets.", VERBS
    )
