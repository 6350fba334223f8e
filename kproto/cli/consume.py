"""Describes the arguments of `kproto consume`; `run_consume` prints the records."""

from __future__ import annotations

import argparse

from .connection import add_connection
from .text_arguments import delimiter, separator
from .times import duration_ms

__all__ = ["add_command", "add_filters", "add_range"]

_FORMAT_HELP = (
    "print each record by this format, as kcat does: %%t topic, %%p partition, %%o offset, %%k "
    "key, %%s value, %%h headers, %%T timestamp in ms, %%D timestamp as ISO 8601, %%K and %%S "
    r"lengths, %%R length as int32, %%%% percent; \n, \t and \xHH are escapes"
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto consume` and its arguments to the parser."""
    parser = commands.add_parser(
        "consume",
        help="print the records of topics",
        description="Prints the value of each record as a line. Without an option for the start, "
        "prints the records that arrive from now on; with --group, continues at the committed "
        "offsets. Ctrl-C ends the command; a group member then commits what was printed.",
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="a name or a pattern")
    add_range(parser)
    _add_output(parser)
    group = parser.add_argument_group("group")
    group.add_argument(
        "-g", "--group", metavar="GROUP", help="join this group, and commit what was printed"
    )
    group.add_argument(
        "--isolation",
        choices=("read_committed", "read_uncommitted"),
        metavar="LEVEL",
        help="read_committed leaves out the records of open and aborted transactions; default: "
        "isolation.level of the properties, then read_uncommitted",
    )
    add_connection(parser)
    parser.set_defaults(runs_in="run_consume", is_tail=False)


def add_range(parser: argparse.ArgumentParser, *, last: int | None = None) -> None:
    """Adds the arguments for the first and the last record; `last` is the default of `--last`."""
    group = parser.add_argument_group("range")
    start = group.add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="start at the log start")
    start.add_argument(
        "--from",
        dest="from_time",
        metavar="TIME",
        help="start at the first record of this time or later: ISO 8601, ms since 1970, or 10m ago",
    )
    start.add_argument(
        "--last",
        type=int,
        default=last,
        metavar="N",
        help="start at the last N records of each partition; markers of transactions do not count"
        + ("" if last is None else " (%(default)s)"),
    )
    start.add_argument(
        "-o", "--offset", type=int, metavar="OFFSET", help="start at this offset in each partition"
    )
    group.add_argument(
        "-p",
        "--partition",
        dest="partitions",
        action="append",
        default=[],
        type=int,
        metavar="N",
        help="only this partition; may be given several times",
    )
    group.add_argument(
        "-e",
        "--until-end",
        action="store_true",
        help="end at the log ends of the start; with --group, end when the member has no lag",
    )
    group.add_argument(
        "--until",
        metavar="TIME",
        help="only records before this time; end at the log ends of the start",
    )
    group.add_argument(
        "-n", "--count", type=int, metavar="N", help="end after N records have been printed"
    )
    group.add_argument(
        "--timeout",
        type=duration_ms,
        metavar="DURATION",
        help="end if no record arrives for this time, such as 10s",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        action="store_true",
        help="print a JSON object for each record: topic, partition, offset, timestamp, key, value "
        "and headers; kproto produce --json reads it back byte for byte",
    )
    form.add_argument("-f", "--format", metavar="FORMAT", help=_FORMAT_HELP)
    form.add_argument(
        "--cloudevents",
        action="store_true",
        help="print each CloudEvent as JSON; records that are none are reported, and the exit code "
        "is then 1",
    )
    form.add_argument(
        "-K",
        "--key-separator",
        type=delimiter,
        metavar="TEXT",
        help="print the key and this text before the value",
    )
    group.add_argument(
        "-D",
        "--delimiter",
        type=separator,
        default=b"\n",
        metavar="TEXT",
        help=r"print this after each record (\n); '' prints nothing after it",
    )
    group.add_argument(
        "--null",
        default="",
        metavar="TEXT",
        help="print this for a null key or value (nothing)",
    )
    add_filters(group)
    group.add_argument(
        "--progress",
        action="store_true",
        help="print progress, rate and lag even if stderr is no terminal, or stdout is one",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="print no progress")


def add_filters(group: argparse._ActionsContainer) -> None:
    """Adds the arguments that choose records by key and value."""
    group.add_argument(
        "--key",
        dest="keys",
        action="append",
        default=[],
        metavar="KEY",
        help="print only records with this key; may be given several times",
    )
    group.add_argument(
        "--grep",
        metavar="REGEX",
        help="print only records whose value matches this regular expression",
    )
