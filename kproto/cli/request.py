"""Describes the arguments of `kproto request`; `run_request` sends the request."""

from __future__ import annotations

import argparse

from .connection import add_connection

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto request` and its arguments to the parser."""
    parser = commands.add_parser(
        "request",
        help="send any request of the protocol, and print the response as JSON",
        description="Sends a request, whose fields are JSON as of Kafka's JsonConverter, and "
        "prints the response. Fields that are left out take their defaults. Without an option for "
        "the broker, the request goes to the brokers that can answer it, such as the leaders. The "
        "exit code is 1 if the response has an error code.",
    )
    parser.add_argument("name", metavar="NAME", help="such as Metadata, or an api key such as 3")
    parser.add_argument(
        "json",
        nargs="?",
        default="{}",
        metavar="JSON",
        help='the fields, such as \'{"topics": [{"name": "orders"}]}\'; - reads standard input '
        "(%(default)s)",
    )
    parser.add_argument(
        "--api-version", type=int, metavar="N", help="default: the newest that both sides have"
    )
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--broker", type=int, metavar="ID", help="send it to this broker")
    target.add_argument(
        "--controller", action="store_true", help="send it to the controller of the metadata"
    )
    target.add_argument(
        "--coordinator-of",
        metavar="GROUP",
        help="send it to the coordinator of a group, or of a transactional id with the prefix "
        "transactional:",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="send nothing; print the bytes of the request as kproto decode does",
    )
    parser.add_argument("--timeout-ms", type=int, metavar="MS", help="time for the response")
    add_connection(parser)
    parser.set_defaults(runs_in="run_request")
