"""The arguments of `kproto decode`: any bytes, annotated.

Knows no bytes; `run_decode` takes them apart.
"""

from __future__ import annotations

import argparse
from typing import Final

__all__ = ["add_command"]

#: Most nodes that are printed: more than anybody reads. `--all` lifts it.
_SHOWN_NODES: Final = 2000

#: Most bytes of input: more than a frame may have, and room for it as hex.
_MAX_INPUT_BYTES: Final = 268_435_456


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command's arguments."""
    parser = commands.add_parser(
        "decode",
        help="take any bytes of the protocol apart, byte by byte",
        description="Prints what each byte of a request, a response or records is. A request with "
        "its header says itself what it is; for anything else name the message, or let it be "
        "guessed.",
    )
    parser.add_argument(
        "bytes",
        nargs="?",
        default="-",
        metavar="BYTES",
        help="hex in any spacing, a hexdump, or base64; - reads standard input (the default)",
    )
    parser.add_argument("--file", metavar="FILE", help="read the bytes from a file instead")
    parser.add_argument(
        "--form",
        choices=("auto", "hex", "base64", "binary"),
        default="auto",
        help="what the input is (%(default)s)",
    )
    parser.add_argument(
        "--message", metavar="NAME|API_KEY", help="what the bytes are, such as Fetch or 1"
    )
    parser.add_argument("--version", type=int, metavar="N", help="the version of the message")
    parser.add_argument(
        "--response", action="store_true", help="the bytes are a response, not a request"
    )
    parser.add_argument(
        "--part",
        choices=("frame", "message", "body"),
        help="a frame with its size, a message with its header, or a body alone "
        "(by default what fits)",
    )
    parser.add_argument(
        "--records",
        action="store_true",
        help="the bytes are record batches, as in a log segment",
    )
    parser.add_argument(
        "--records-of",
        default="",
        metavar="TOPIC",
        help="the topic that the records are from, such as __consumer_offsets, where the message "
        "does not name it",
    )
    parser.add_argument(
        "--guess", action="store_true", help="say which messages and versions they could be"
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/how-to/decode.md)")
    parser.add_argument(
        "--max-nodes",
        type=int,
        default=_SHOWN_NODES,
        metavar="N",
        help="print at most so many nodes (%(default)s)",
    )
    parser.add_argument("--all", action="store_true", help="print every node")
    parser.add_argument(
        "--show-secrets",
        action="store_true",
        help="print SASL tokens, passwords, HMACs and what else is secret",
    )
    parser.add_argument(
        "--about", action="store_true", help="print what each field is for, where that is known"
    )
    parser.add_argument(
        "--width", type=int, metavar="COLUMNS", help="of the terminal (by default what it has)"
    )
    parser.add_argument(
        "--max-input-bytes",
        type=int,
        default=_MAX_INPUT_BYTES,
        metavar="N",
        help="read at most so many bytes of input (%(default)s)",
    )
    parser.set_defaults(runs_in="run_decode", takes_version=True)
