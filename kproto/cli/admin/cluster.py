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


def _one_broker(parser: argparse.ArgumentParser) -> None:
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


def _updates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "features",
        nargs="*",
        metavar="FEATURE=LEVEL",
        help="such as group.version=1, or metadata.version=4.1-IV0",
    )
    parser.add_argument(
        "--release-version",
        metavar="RELEASE",
        help="the levels of all features in this release, such as 4.1",
    )
    _confirmed(parser)


def _confirmed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="let the controller only check it")
    add_yes(parser)


def _unsafe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--unsafe", action="store_true", help="also if metadata is lost; Kafka 4.4 refuses it"
    )


def _downgrade(parser: argparse.ArgumentParser) -> None:
    _unsafe(parser)
    _updates(parser)


def _disable(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("features", nargs="+", metavar="FEATURE")
    _unsafe(parser)
    _confirmed(parser)


def _quorum(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status", action="store_true", help="a row about the quorum: leader, epoch, largest lag"
    )


def _controller(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-i", "--controller-id", required=True, type=int, metavar="ID", help="its node id"
    )
    parser.add_argument(
        "-d",
        "--controller-directory-id",
        metavar="ID",
        help="the id of its metadata directory; default: that in kproto cluster quorum",
    )
    parser.add_argument("--dry-run", action="store_true", help="only print what would be changed")
    add_yes(parser)


def _new_controller(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--endpoint",
        dest="endpoints",
        action="append",
        required=True,
        metavar="LISTENER://HOST:PORT",
        help="its address for the other voters, such as CONTROLLER://host:9093; may be given "
        "several times",
    )
    _controller(parser)


def _release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release-version", required=True, metavar="RELEASE", help="such as 4.1")


def _levels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "features",
        nargs="+",
        metavar="FEATURE=LEVEL",
        help="such as group.version=1, or metadata.version=4.1-IV0",
    )


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="TOPIC", help="a name or a pattern")
    parser.add_argument(
        "--brokers", required=True, metavar="ID,ID", help="the brokers that get the replicas"
    )
    parser.add_argument("--file", metavar="FILE", help="write the plan to a file")


def _plan_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plan", metavar="FILE", help="a plan file, also of kafka-reassign-partitions.sh"
    )


def _reassignments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        nargs="*",
        metavar="TOPIC[:PARTITION]",
        help="these partitions, also those whose reassignment is complete; default: those in "
        "progress",
    )
    _plan_file(parser)
    parser.add_argument(
        "--remove-throttle",
        action="store_true",
        help="remove the throttles if all reassignments of the plan are complete",
    )


def _rate(text: str) -> int:
    """Returns a rate in bytes per second. Raises ArgumentTypeError if it is not positive."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes per second")
    return int(text)


def _reassign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="TOPIC:PARTITION")
    parser.add_argument(
        "--replicas", metavar="ID,ID", help="the new replicas, the preferred leader first"
    )
    _plan_file(parser)
    parser.add_argument("--cancel", action="store_true", help="cancel the reassignments")
    parser.add_argument(
        "--throttle",
        type=_rate,
        metavar="BYTES",
        help="with --plan: bytes/s that each broker copies at most",
    )
    parser.add_argument(
        "--log-dir-throttle",
        type=_rate,
        metavar="BYTES",
        help="with --plan: bytes/s of each broker between its log directories",
    )
    parser.add_argument(
        "--keep-throttle", action="store_true", help="with --cancel: do not remove the throttles"
    )
    parser.add_argument(
        "--additional",
        action="store_true",
        help="with --plan: also while other reassignments are in progress",
    )
    parser.add_argument(
        "--disallow-replication-factor-change",
        action="store_true",
        help="refuse another number of replicas than now (Kafka 4.1)",
    )
    parser.add_argument(
        "--rollback", metavar="FILE", help="with --plan: write the replicas of now as a plan"
    )
    parser.add_argument(
        "--wait",
        action="store_true",
        help="with --plan: wait until the reassignments are complete, and remove the throttles",
    )
    add_yes(parser)


def _unregister(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", type=int, metavar="ID")
    add_yes(parser)


#: The verbs, the default first.
VERBS: Final = (
    Verb("brokers", "Lists brokers with racks, and the controller.", _brokers),
    Verb("features", "Lists features with supported and finalized levels.", _nothing),
    Verb("upgrade-features", "Raises the finalized levels of features.", _updates),
    Verb("downgrade-features", "Lowers the finalized levels of features.", _downgrade),
    Verb("disable-features", "Sets the finalized levels of features to 0.", _disable),
    Verb("version-mapping", "Lists the levels of features in a Kafka release.", _release),
    Verb("feature-dependencies", "Lists the levels that levels of features require.", _levels),
    Verb("quorum", "Describes the metadata quorum: voters, observers and their lag.", _quorum),
    Verb("add-controller", "Adds a controller to the voters of the quorum.", _new_controller),
    Verb("remove-controller", "Removes a controller from the voters of the quorum.", _controller),
    Verb(
        "log-dirs", "Lists the log directories of brokers with the sizes of replicas.", _one_broker
    ),
    Verb("api-versions", "Lists the versions of the APIs that brokers support.", _one_broker),
    Verb("plan", "Plans the replicas of topics on the given brokers, with few moves.", _plan),
    Verb("reassign", "Moves the replicas of partitions to other brokers.", _reassign),
    Verb("reassignments", "Lists reassignments with their progress.", _reassignments),
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
