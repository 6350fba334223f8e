"""Describes the arguments of `kproto proxy`, which forwards connections and prints their traffic.

Does not import the proxy; `run_proxy` imports it when the command runs.
"""

from __future__ import annotations

import argparse

from .package import add_package
from .properties import add_properties

__all__ = ["add_command"]

_MAX_RECORDED_BYTES = 1_073_741_824  # the default of `study.recording.Recorder`


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto proxy` and its arguments to the parser."""
    parser = commands.add_parser(
        "proxy",
        help="forward between clients and brokers, and print requests and responses",
        description="Listens at one address, forwards every byte to the broker at another, and "
        "prints each request and response, until Ctrl-C. With --rewrite clients stay connected "
        "through the proxy, whatever addresses the brokers advertise.",
    )
    parser.add_argument(
        "listen",
        metavar="LISTEN",
        help="host:port for clients; the system replaces port 0 by a free port",
    )
    parser.add_argument("target", metavar="TARGET", help="host:port of a broker")
    parser.add_argument(
        "--rewrite",
        action="store_true",
        help="rewrite brokers' addresses in responses, and open a port for each broker",
    )
    parser.add_argument(
        "--advertised-host",
        metavar="HOST",
        help="with --rewrite: the host that clients connect to (that of LISTEN)",
    )
    parser.add_argument(
        "--first-broker-port",
        type=int,
        default=0,
        metavar="PORT",
        help="with --rewrite: the first port for single brokers; 0 lets the system choose each",
    )
    add_properties(parser)
    add_package(parser, "also decode the messages")
    add_filters(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print no requests and responses"
    )
    parser.add_argument("--record", metavar="FILE", help="record all traffic for kproto capture")
    parser.add_argument(
        "--max-bytes",
        type=int,
        default=_MAX_RECORDED_BYTES,
        metavar="N",
        help="most bytes of the recording; the proxy continues without it (%(default)s)",
    )
    parser.add_argument(
        "--show-secrets",
        action="store_true",
        help="log SASL tokens, and record them and other secrets unredacted",
    )
    parser.set_defaults(runs_in="run_proxy")


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Adds `--api` and `--client-id`, which filter requests and responses, to a parser."""
    parser.add_argument(
        "--api",
        dest="apis",
        action="append",
        metavar="NAME[,NAME]",
        help="show only these APIs, such as Fetch,Produce; api keys too",
    )
    parser.add_argument(
        "--client-id",
        dest="client_ids",
        action="append",
        metavar="PATTERN",
        help="show only these clients, such as 'billing-*'; may be given several times",
    )
