"""Describes the arguments of `kproto capture`, which lists the traffic of recordings and captures.

Does not import the readers of the files; `run_capture` imports them when the command runs.
"""

from __future__ import annotations

import argparse

from .package import add_package
from .proxy import add_filters

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto capture` and its arguments to the parser."""
    parser = commands.add_parser(
        "capture",
        help="list requests and responses between clients and brokers, from a recording or capture",
        description="Lists the requests in a recording of kproto proxy, or in a pcap or pcapng "
        "file of tcpdump (which needs kproto[capture]), each with its response, in the order of "
        "the responses.",
    )
    parser.add_argument("file", metavar="FILE", help="the file; - for the standard input")
    parser.add_argument(
        "--port",
        dest="ports",
        action="append",
        type=int,
        metavar="PORT",
        help="a port of brokers in a capture; may be given several times (default: detected)",
    )
    add_package(parser, "the connections also carry the messages")
    add_filters(parser)
    parser.add_argument(
        "--stats",
        action="store_true",
        help="print sums by API, and the software of the clients, instead of the list",
    )
    parser.add_argument(
        "--open", type=int, metavar="N", help="print the messages of line N, as kproto decode does"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
    parser.add_argument(
        "--show-secrets",
        action="store_true",
        help="with --open: show SASL tokens and other secrets",
    )
    parser.set_defaults(runs_in="run_capture")
