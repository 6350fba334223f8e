"""The arguments of `kproto broker`: the broker in memory, from the terminal.

Knows no broker; `run_broker` runs it.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

__all__ = ["add_command"]

_DEFAULT_PORT = 9092
_MAX_STORED_BYTES = 1_073_741_824  # that of the settings


class TopicToCreate(NamedTuple):
    """What `--topic` says; None for the default number of partitions."""

    name: str
    partitions: int | None


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command's arguments."""
    parser = commands.add_parser(
        "broker",
        help="run a Kafka broker in memory",
        description="Runs a Kafka broker in memory until Ctrl-C. Its first line ends with the "
        "address that clients need. What it stores is gone when it ends.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (%(default)s)")
    parser.add_argument(
        "--port",
        type=int,
        default=_DEFAULT_PORT,
        help="TCP port; 0 lets the system choose (%(default)s)",
    )
    parser.add_argument(
        "--advertised-host",
        metavar="HOST",
        help="the name that clients shall connect to, if not that of --host",
    )
    parser.add_argument(
        "--advertised-port",
        type=int,
        metavar="PORT",
        help="the port that clients shall connect to, if not that of --port",
    )
    parser.add_argument(
        "--topic",
        dest="topics",
        action="append",
        default=[],
        type=parse_topic,
        metavar="NAME[:PARTITIONS]",
        help="create a topic; may be given several times",
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=1,
        metavar="N",
        help="partitions of a topic for which nobody says how many (%(default)s)",
    )
    parser.add_argument(
        "--max-stored-bytes",
        type=int,
        default=_MAX_STORED_BYTES,
        metavar="N",
        help="what all records together may take in memory (%(default)s)",
    )
    parser.add_argument(
        "--auto-create-topics",
        action="store_true",
        help="create a topic when a client first asks for it",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log every request by name, version and size"
    )
    parser.set_defaults(runs_in="run_broker")


def parse_topic(text: str) -> TopicToCreate:
    """Read NAME or NAME:PARTITIONS."""
    name, colon, partitions = text.partition(":")
    if not colon:
        return TopicToCreate(name, None)
    if not (partitions.isascii() and partitions.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS")
    return TopicToCreate(name, int(partitions))
