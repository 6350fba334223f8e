"""Runs real Kafka from the terminal, one broker or several: `start`, `status`, `stop`, `fetch`."""

from __future__ import annotations

import argparse
import sys

from tools.setup.java import JavaNotFoundError

from . import (
    DEFAULT_VERSION,
    KafkaCluster,
    KafkaJarsError,
    KafkaNode,
    KafkaStartError,
    resolve_jars,
    running_nodes,
)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "start":
            return _start(options)
        if options.command == "stop":
            return _stop(options.port)
        if options.command == "fetch":
            print(resolve_jars(options.version))
            return 0
        return _status()
    except (KafkaStartError, KafkaJarsError, JavaNotFoundError) as error:
        print(f"kafka: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.kafka", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start brokers that run until they are stopped")
    start.add_argument("--version", default=DEFAULT_VERSION, help="default: %(default)s")
    start.add_argument("--port", type=int, help="default: a free one")
    start.add_argument("--nodes", type=int, default=1, help="brokers; default: %(default)s")
    start.add_argument(
        "--racks",
        type=lambda text: text.split(","),
        default=(),
        metavar="A,B,C",
        help="the rack of each node; leaders then direct consumers to the replica in their rack",
    )
    start.add_argument("--heap", default="512m", help="a JVM's heap; default: %(default)s")
    start.add_argument(
        "--config",
        nargs="+",
        action="extend",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="settings of server.properties, such as auto.create.topics.enable=true",
    )
    start.add_argument(
        "--secured",
        action="store_true",
        help="with a listener for each kind of TLS and SASL, and ACLs; writes a client.properties "
        "of the user alice for each",
    )
    stop = commands.add_parser(
        "stop", help="stop a broker that `start` started, and its whole cluster"
    )
    # Not all by default: other processes of the same checkout may use the brokers' data.
    which = stop.add_mutually_exclusive_group(required=True)
    which.add_argument("--port", type=int, help="the broker at this port")
    which.add_argument(
        "--all", action="store_true", help="all brokers, even those of other processes"
    )
    fetch = commands.add_parser("fetch", help="fetch a version's jars and print their folder")
    fetch.add_argument("--version", default=DEFAULT_VERSION, help="default: %(default)s")
    commands.add_parser("status", help="list the brokers that run")
    return parser


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _start(options: argparse.Namespace) -> int:
    if options.port is not None and (options.secured or options.nodes > 1 or options.racks):
        raise KafkaStartError("a secured broker and a cluster choose free ports: leave out --port")
    if options.secured:
        return _start_secured(options)
    if options.nodes > 1 or options.racks:
        return _start_cluster(options)
    node = KafkaNode(
        options.version,
        port=options.port,
        config=dict(options.config),
        heap=options.heap,
        detached=True,
    )
    node.start()
    print(node.bootstrap)
    return 0


def _start_cluster(options: argparse.Namespace) -> int:
    cluster = KafkaCluster(
        options.version,
        nodes=options.nodes,
        racks=options.racks,
        config=dict(options.config),
        heap=options.heap,
        detached=True,
    )
    cluster.start()
    print(cluster.bootstrap)
    return 0


def _start_secured(options: argparse.Namespace) -> int:
    # Imported only if needed, because it imports a package for certificates.
    from .secured import SecuredKafka

    kafka = SecuredKafka(
        options.version,
        nodes=options.nodes,
        racks=options.racks,
        config=dict(options.config),
        detached=True,
    )
    kafka.start()
    print(kafka.cluster.bootstrap)
    for path in kafka.write_properties():
        print(path)
    return 0


def _stop(port: int | None) -> int:
    running = [node for node in running_nodes() if node.detached]
    clusters = {node.voters for node in running if node.bootstrap.endswith(f":{port}")}
    chosen = [node for node in running if port is None or node.voters in clusters]
    for node in chosen:
        node.stop()
        print(f"stopped Kafka {node.version} at {node.bootstrap}")
    if not chosen:
        where = "" if port is None else f" at port {port}"
        print(f"no broker{where} to stop", file=sys.stderr)
        return int(port is not None)
    return 0


def _status() -> int:
    for node in running_nodes():
        owner = "until stopped" if node.detached else "until the process that started it ends"
        print(f"{node.bootstrap}  Kafka {node.version}  pid {node.process_group}  runs {owner}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
