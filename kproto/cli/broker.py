"""Describes the arguments of `kproto broker`, which runs the embedded broker.

Does not import the broker; `run_broker` imports it when the command runs.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

__all__ = ["add_command"]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LAST_PORT = 65_535
_MAX_STORED_BYTES = 1_073_741_824  # the default of `BrokerSettings.max_stored_bytes`


class ListenerToOpen(NamedTuple):
    """Holds the parsed value of one `--listener`."""

    protocol: str
    host: str
    port: int


class TopicToCreate(NamedTuple):
    """Holds the parsed value of one `--topic`.

    `partitions` is None if the argument names no partition count, so that `--partitions` applies.
    """

    name: str
    partitions: int | None


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto broker` and its arguments to the parser."""
    parser = commands.add_parser(
        "broker",
        help="run a Kafka broker in memory, or several",
        description="Runs a Kafka broker, or a cluster of brokers, in memory until Ctrl-C. The "
        "first line of output ends with the addresses that clients connect to. All records are "
        "lost when the command ends.",
    )
    parser.add_argument(
        "--brokers",
        type=int,
        default=1,
        metavar="N",
        help="number of brokers; they listen at --port and the ports after it (%(default)s)",
    )
    parser.add_argument(
        "--rack",
        dest="racks",
        action="append",
        default=[],
        metavar="RACK",
        help="rack of a broker; pass it once for each broker, in their order",
    )
    parser.add_argument(
        "--replica-selector",
        metavar="NAME",
        help="with RackAwareReplicaSelector, consumers read from replicas in their rack (none)",
    )
    parser.add_argument(
        "--release",
        metavar="RELEASE",
        help="support the versions of this Kafka release, such as 0.9, 3.9.2 or 4.4 (all known)",
    )
    parser.add_argument("--host", help="host of the listener (127.0.0.1)")
    parser.add_argument("--port", type=int, help="TCP port; 0 lets the system choose (9092)")
    parser.add_argument(
        "--advertised-host",
        metavar="HOST",
        help="the host that clients connect to (that of --host)",
    )
    parser.add_argument(
        "--advertised-port",
        type=int,
        metavar="PORT",
        help="the port that clients connect to (that of --port)",
    )
    _add_security(parser)
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
        help="partitions of each topic for which --topic has no number (%(default)s)",
    )
    parser.add_argument(
        "--max-stored-bytes",
        type=int,
        default=_MAX_STORED_BYTES,
        metavar="N",
        help="most bytes of memory for all records together (%(default)s)",
    )
    parser.add_argument(
        "--auto-create-topics",
        action="store_true",
        help="create a topic when a client first requests it",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log every request by name, version and size"
    )
    parser.set_defaults(runs_in="run_broker")


def _add_security(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for listeners, authentication and authorization to the parser."""
    parser.add_argument(
        "--listener",
        dest="listeners",
        action="append",
        default=[],
        type=parse_listener,
        metavar="PROTOCOL://HOST:PORT",
        help=f"listener and its security protocol ({', '.join(_PROTOCOLS)}), instead of --host "
        "and --port; may be given several times",
    )
    parser.add_argument(
        "--user",
        dest="users",
        action="append",
        default=[],
        type=parse_user,
        metavar="NAME:PASSWORD",
        help="user for SASL (PLAIN, SCRAM); may be given several times. The password is visible in "
        "the process list of this machine",
    )
    parser.add_argument(
        "--unsecured-tokens",
        action="store_true",
        help="also accept unsigned bearer tokens (OAUTHBEARER, KIP-255): any client can then "
        "authenticate as any user, super users included",
    )
    parser.add_argument(
        "--tls-certificate", metavar="FILE", help="the broker's certificate, PEM, for SSL"
    )
    parser.add_argument(
        "--tls-key",
        metavar="FILE",
        help="the key of the certificate, PEM, if it is in another file",
    )
    parser.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help="CA that signs the certificates of clients, PEM; each client must then present one",
    )
    parser.add_argument(
        "--acl",
        dest="acls",
        action="append",
        default=[],
        metavar="ACL",
        help="an ACL such as 'allow User:alice read topic orders-*'; may be given several times. "
        "All other operations are then denied",
    )
    parser.add_argument(
        "--super-user",
        dest="super_users",
        action="append",
        default=[],
        metavar="TYPE:NAME",
        help="a principal with all rights, such as User:admin; may be given several times. "
        "Other principals then have only the rights of --acl",
    )


def parse_listener(text: str) -> ListenerToOpen:
    """Parses `PROTOCOL://HOST:PORT`. Raises ArgumentTypeError for other text."""
    protocol, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    if protocol not in _PROTOCOLS or not host:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not PROTOCOL://HOST:PORT with one of {', '.join(_PROTOCOLS)}"
        )
    if not (port.isascii() and port.isdigit() and int(port) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} does not end with a port")
    return ListenerToOpen(protocol, host.strip("[]"), int(port))


def parse_user(text: str) -> tuple[str, str]:
    """Parses `NAME:PASSWORD`; returns (name, password).

    Raises ArgumentTypeError if either is empty; the error does not quote the password.
    """
    name, _, password = text.partition(":")
    if not name or not password:
        raise argparse.ArgumentTypeError("a user is NAME:PASSWORD, and neither may be empty")
    return name, password


def parse_topic(text: str) -> TopicToCreate:
    """Parses `NAME` or `NAME:PARTITIONS`. Raises ArgumentTypeError for other text."""
    name, colon, partitions = text.partition(":")
    if not colon:
        return TopicToCreate(name, None)
    if not (partitions.isascii() and partitions.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS")
    return TopicToCreate(name, int(partitions))
