"""`kproto broker`: the broker in memory, from the terminal."""

from __future__ import annotations

import argparse
import logging
import signal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..broker import BrokerSettings

__all__ = ["add_command"]

_DEFAULT_PORT = 9092


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
        "--auto-create-topics",
        action="store_true",
        help="create a topic when a client first asks for it",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log every request by name, version and size"
    )
    parser.set_defaults(run=run)


def parse_topic(text: str) -> TopicToCreate:
    """Read NAME or NAME:PARTITIONS."""
    name, colon, partitions = text.partition(":")
    if not colon:
        return TopicToCreate(name, None)
    if not (partitions.isascii() and partitions.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS")
    return TopicToCreate(name, int(partitions))


def run(options: argparse.Namespace) -> int:
    """Run the broker until SIGINT or SIGTERM; the exit code."""
    import asyncio

    from ..broker import BrokerSettings

    settings = BrokerSettings(
        host=options.host,
        port=options.port,
        advertised_host=options.advertised_host,
        num_partitions=options.partitions,
        auto_create_topics=options.auto_create_topics,
    )
    if options.verbose:
        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    asyncio.run(_serve(settings, options.topics))
    return 0


async def _serve(settings: BrokerSettings, topics: list[TopicToCreate]) -> None:
    import asyncio

    from ..broker import Broker

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    broker = Broker(settings)
    for topic in topics:
        broker.create_topic(topic.name, topic.partitions)
    async with broker:
        print(f"kproto broker, in memory, listens on {broker.bootstrap}", flush=True)
        await stop.wait()
