"""Describes the arguments of `kproto cluster`."""

from __future__ import annotations

import argparse
from typing import Final

from .verbs import Verb, add_verbs, add_yes

__all__ = ["VERBS", "add_command"]


def _nothing(parser: argparse.ArgumentParser) -> None:
    del parser


def _brokers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fenced", action="store_true", help="also fenced brokers (Kafka 4.0)")


def _log_dirs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--broker",
        dest="brokers",
        action="append",
        default=[],
        type=int,
        metavar="ID",
        help="only this broker; may be given several times",
    )


def _elect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="TOPIC[:PARTITION]", help="default: all partitions"
    )
    parser.add_argument(
        "--unclean",
        action="store_true",
        help="elect a replica that is not in sync if no other is left: records may be lost",
    )
    add_yes(parser)


def _reassignments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        nargs="*",
        metavar="TOPIC[:PARTITION]",
        help="these partitions, also those whose reassignment is complete; default: those in "
        "progress",
    )


def _reassign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="TOPIC:PARTITION")
    parser.add_argument(
        "--replicas", metavar="ID,ID", help="the new replicas, the preferred leader first"
    )
    parser.add_argument("--cancel", action="store_true", help="cancel the reassignment")
    add_yes(parser)


def _unregister(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", type=int, metavar="ID")
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("brokers", "Lists brokers with racks, and the controller.", _brokers),
    Verb("features", "Lists features with supported and finalized versions.", _nothing),
    Verb("quorum", "Describes the metadata quorum: voters, observers and their lag.", _nothing),
    Verb("log-dirs", "Lists the log directories of brokers with the sizes of replicas.", _log_dirs),
    Verb("reassignments", "Lists reassignments with their progress.", _reassignments),
    Verb("reassign", "Moves the replicas of a partition to other brokers.", _reassign),
    Verb("elect", "Elects preferred leaders, or unclean ones.", _elect),
    Verb("unregister", "Removes the registration of a broker that is gone.", _unregister),
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto cluster` and its verbs to the parser."""
    add_verbs(
        commands,
        "cluster",
        "Describes brokers, features, quorum and log directories, and moves replicas.",
        VERBS,
    )
