"""Describes the arguments of `kproto acls`."""

from __future__ import annotations

import argparse
from typing import Final

from .verbs import Verb, add_verbs, add_yes

__all__ = ["VERBS", "add_command"]

_NAME_HELP: Final = (
    r"orders-* stands for all names with this prefix, * for all names; orders-\* is the name with *"
)


def _filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--principal", metavar="TYPE:NAME", help="such as User:alice")
    parser.add_argument("--resource", metavar="TYPE", help="such as topic or group")
    parser.add_argument("--name", metavar="NAME", help=f"the name in the ACL: {_NAME_HELP}")
    parser.add_argument("--operation", metavar="OPERATION", help="such as read")
    parser.add_argument("--permission", metavar="allow|deny", help="allow or deny")
    parser.add_argument("--host", metavar="HOST", help="the host in the ACL; * is all hosts")
    parser.add_argument(
        "--match",
        action="store_true",
        help="all ACLs that apply to the resource --name, also those with a prefix or *",
    )


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("permission", choices=("allow", "deny"), metavar="allow|deny")
    parser.add_argument("principal", metavar="TYPE:NAME", help="such as User:alice or User:*")
    parser.add_argument("operations", metavar="OPERATION,…", help="such as read or read,describe")
    parser.add_argument(
        "resource_type", metavar="TYPE", help="topic, group, cluster, transactional-id, and so on"
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=_NAME_HELP,
    )
    parser.add_argument(
        "--host", default="*", help="only for clients at this address (%(default)s)"
    )


def _remove(parser: argparse.ArgumentParser) -> None:
    _filter(parser)
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Lists ACLs.", _filter),
    Verb("add", "Adds ACLs.", _add),
    Verb("remove", "Removes the ACLs that a filter matches.", _remove),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto acls` and its verbs to the parser."""
    add_verbs(commands, "acls", "Lists, adds and removes ACLs.", VERBS)
