"""Describes the arguments of `kproto produce`; `run_produce` sends the records."""

from __future__ import annotations

import argparse
from typing import Final

from .connection import add_connection
from .text_arguments import delimiter, header
from .times import duration_ms

__all__ = ["add_command"]

#: The codecs that every broker of today reads.
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

#: The default of --flush-timeout, in ms: enough for a broker that is slow or that moves a leader.
_FLUSH_TIMEOUT_MS: Final = 10_000


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto produce` and its arguments to the parser."""
    parser = commands.add_parser(
        "produce",
        help="send the lines of standard input or of files to a topic",
        description="Sends each line of standard input, or of files, as a record. The command ends "
        "when all records are acknowledged. If some are not, it says how many, and the exit code "
        "is 1; --undelivered writes them to a file. After Ctrl-C or SIGTERM, the command reads no "
        "further, and waits for the records that were read.",
    )
    parser.add_argument(
        "topic",
        nargs="?",
        metavar="TOPIC",
        help="may be left out if the lines are JSON with a topic (--json)",
    )
    parser.add_argument(
        "--file",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="read this file instead of standard input; may be given several times",
    )
    _add_records(parser)
    _add_sending(parser)
    add_connection(parser)
    parser.set_defaults(runs_in="run_produce")


def _add_records(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("records")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        action="store_true",
        help="each line is a JSON object with value, key, headers, partition and timestamp, as "
        "kproto consume --json prints it; a value of null is a tombstone, and no value an error",
    )
    form.add_argument(
        "--cloudevents",
        choices=("binary", "structured"),
        metavar="MODE",
        help="each line is a CloudEvent in JSON; send it in this content mode (binary or "
        "structured)",
    )
    form.add_argument(
        "--whole", action="store_true", help="each file, or all of standard input, is one record"
    )
    group.add_argument("-k", "--key", metavar="KEY", help="the key of every record")
    group.add_argument(
        "-K",
        "--key-separator",
        type=delimiter,
        metavar="TEXT",
        help=r"the key is the part of a line before this text, such as : or \t",
    )
    group.add_argument(
        "-H",
        "--header",
        dest="headers",
        action="append",
        default=[],
        type=header,
        metavar="NAME=VALUE",
        help="a header of every record; may be given several times",
    )
    group.add_argument(
        "-p", "--partition", type=int, metavar="N", help="send every record to this partition"
    )
    group.add_argument(
        "--repartition",
        action="store_true",
        help="with --json: ignore the partitions in the lines, so that the keys decide",
    )
    group.add_argument(
        "--timestamp", metavar="TIME", help="of every record: ISO 8601, ms, or 10m ago"
    )
    group.add_argument(
        "--empty-as-null", action="store_true", help="send null instead of an empty key or value"
    )
    group.add_argument(
        "-D",
        "--delimiter",
        type=delimiter,
        default=b"\n",
        metavar="TEXT",
        help=r"the end of a line; \n, \r, \t, \0 and \xHH are escapes (\n)",
    )


def _add_sending(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sending")
    group.add_argument(
        "-z", "--compression", choices=CODECS, metavar="CODEC", help=f"{', '.join(CODECS)}"
    )
    group.add_argument(
        "--acks", choices=("all", "1", "0"), help="acknowledgements to wait for (all)"
    )
    group.add_argument("--rate", type=float, metavar="N", help="send at most N records a second")
    group.add_argument(
        "--transactional-id",
        metavar="ID",
        help="send all records in one transaction, which is aborted if a record fails or after "
        "Ctrl-C",
    )
    group.add_argument(
        "--transaction-records",
        type=int,
        metavar="N",
        help="with --transactional-id: commit after each N records",
    )
    group.add_argument(
        "--undelivered",
        metavar="FILE",
        help="write the records that were not acknowledged to FILE, as lines for --json",
    )
    group.add_argument(
        "--flush-timeout",
        type=duration_ms,
        default=_FLUSH_TIMEOUT_MS,
        metavar="DURATION",
        help="after Ctrl-C or SIGTERM, wait up to this time until the records that were read are "
        "acknowledged (10s)",
    )
    group.add_argument(
        "--progress", action="store_true", help="print progress even if stderr is no terminal"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="print no progress and no sum")
