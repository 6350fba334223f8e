"""Describes the arguments of `kproto decode`, which explains bytes of the Kafka protocol.

Does not import the decoder; `run_decode` imports it when the command runs.
"""

from __future__ import annotations

import argparse
from typing import Final

from .package import add_package

__all__ = ["add_command"]

#: The default of `--max-nodes`. A node of the tree is a message, a field or an element.
_SHOWN_NODES: Final = 2000

#: The default of `--max-input-bytes`.
_MAX_INPUT_BYTES: Final = 268_435_456


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto decode` and its arguments to the parser."""
    parser = commands.add_parser(
        "decode",
        help="decode any bytes of the protocol, byte by byte",
        description="Explains each byte of a request, a response or records. The header of a "
        "request names its message; other bytes require --message or --guess.",
    )
    parser.add_argument(
        "bytes",
        nargs="?",
        default="-",
        metavar="BYTES",
        help="hex, a dump, a literal, numbers or base64; - reads standard input (the default)",
    )
    parser.add_argument(
        "--file", metavar="FILE", help="read the bytes from a file instead; - is stdin"
    )
    parser.add_argument(
        "--form",
        choices=("auto", "hex", "dump", "words", "decimal", "literal", "base64", "binary"),
        default="auto",
        help="format of the input (%(default)s)",
    )
    parser.add_argument(
        "--message", metavar="NAME|API_KEY", help="the message in the bytes, such as Fetch or 1"
    )
    add_package(parser, "also decode the messages")
    parser.add_argument("--version", type=int, metavar="N", help="the version of the message")
    parser.add_argument(
        "--response", action="store_true", help="the bytes are a response, not a request"
    )
    parser.add_argument(
        "--part",
        choices=("frame", "message", "body"),
        help="a frame with its size, a message with its header, or a body alone "
        "(detected by default)",
    )
    parser.add_argument(
        "--records",
        action="store_true",
        help="the bytes are record batches, as in a log segment",
    )
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--key",
        action="store_true",
        help="the bytes are the key of a record of the internal topic --records-of",
    )
    part.add_argument(
        "--value",
        action="store_true",
        help="the bytes are the value of a record of the internal topic --records-of; --message "
        "names its message, if several fit",
    )
    parser.add_argument(
        "--records-of",
        default="",
        metavar="TOPIC",
        help="topic of the records, such as __consumer_offsets, if the message does not name it",
    )
    parser.add_argument(
        "--guess",
        action="store_true",
        help="rank the messages and versions that the bytes could be; --message and --version "
        "limit them",
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/how-to/decode.md)")
    parser.add_argument(
        "--max-nodes",
        type=int,
        default=_SHOWN_NODES,
        metavar="N",
        help="print at most N nodes (%(default)s)",
    )
    parser.add_argument("--all", action="store_true", help="print every node")
    parser.add_argument(
        "--show-secrets",
        action="store_true",
        help="print SASL tokens, passwords, HMACs and other secrets",
    )
    parser.add_argument(
        "--about", action="store_true", help="print the purpose of each field, if it is known"
    )
    parser.add_argument(
        "--width", type=int, metavar="COLUMNS", help="columns of the output (the terminal's)"
    )
    parser.add_argument(
        "--max-input-bytes",
        type=int,
        default=_MAX_INPUT_BYTES,
        metavar="N",
        help="read at most N bytes of input (%(default)s)",
    )
    parser.set_defaults(runs_in="run_decode", takes_version=True)
