"""Describes the arguments of `kproto configs`."""

from __future__ import annotations

import argparse
from typing import Final

from .verbs import Verb, add_verbs, add_yes

__all__ = ["RESOURCE_TYPES", "VERBS", "add_command"]

#: The types of resources on the command line, with the names of Kafka's types.
RESOURCE_TYPES: Final = {
    "topic": "TOPIC",
    "broker": "BROKER",
    "broker-logger": "BROKER_LOGGER",
    "group": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}

_RESOURCE_HELP: Final = (
    f"TYPE/NAME, with one of the types {', '.join(RESOURCE_TYPES)}, such as topic/orders; the name "
    "of a topic or a group may be a pattern; broker/ without a name stands for the defaults of all "
    "brokers"
)


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "resources", nargs="*", metavar="RESOURCE", help=f"{_RESOURCE_HELP}; default: all topics"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also inherited configs, defaults, and "
        "those of a broker's properties file, which kafka-configs lists only with --all, too",
    )
    parser.add_argument(
        "--name",
        dest="names",
        action="append",
        default=[],
        metavar="NAME",
        help="only this config, also at its default; may be given several times",
    )


def _set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("resource", metavar="RESOURCE", help=_RESOURCE_HELP)
    parser.add_argument(
        "entries", nargs="+", metavar="NAME=VALUE", help="such as retention.ms=1000"
    )
    parser.add_argument("--dry-run", action="store_true", help="let the broker only check it")
    add_yes(parser, pattern=True)


def _unset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("resource", metavar="RESOURCE", help=_RESOURCE_HELP)
    parser.add_argument("entries", nargs="+", metavar="NAME")
    parser.add_argument("--dry-run", action="store_true", help="let the broker only check it")
    add_yes(parser, pattern=True)


#: The verbs, the default first.
VERBS: Final = (
    Verb("list", "Prints the configs that were set for resources.", _list),
    Verb("set", "Sets configs of a resource; all others stay.", _set),
    Verb("unset", "Returns configs of a resource to their defaults.", _unset),
    Verb("append", "Adds values to configs that are lists.", _set),
    Verb("subtract", "Removes values from configs that are lists.", _set),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto configs` and its verbs to the parser."""
    add_verbs(
        commands,
        "configs",
        "Prints and changes configs of topics, brokers, loggers, groups and client metrics.",
        VERBS,
    )
