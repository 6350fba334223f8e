"""Describes the arguments of `kproto fuzz`, which tests a codec or a broker with broken messages.

Does not import the fuzzer; `run_fuzz` imports it when the command runs.
"""

from __future__ import annotations

import argparse

from .properties import add_properties

__all__ = ["add_command"]

_CASES = 10_000
_BROKER_FRAMES = 2_000
_RATE = 200.0
_TIMEOUT_S = 5.0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto fuzz` and its arguments to the parser."""
    parser = commands.add_parser(
        "fuzz",
        help="send odd and broken messages to an implementation or a broker",
        description="Sends valid, odd and broken messages to a command that answers lines of JSON "
        "(docs/how-to/fuzzing.md), and reports each difference from the judge; or sends broken "
        "frames to a broker. The exit code is 1 if there are findings that are not harmless.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--command", help="the command under test, as one argument")
    what.add_argument("--broker", metavar="HOST:PORT", help="a broker under test, which may break")
    parser.add_argument(
        "--judge",
        choices=("auto", "java", "kproto"),
        help="source of the right answers: Kafka's Java classes (in a checkout, with Java), "
        "kproto's codec, or the first that is available (auto)",
    )
    parser.add_argument(
        "--package",
        metavar="NAME",
        help="the command implements the messages of this generated package, as Python imports it "
        "from here; its codec is the judge",
    )
    parser.add_argument(
        "--messages",
        metavar="NAME,…",
        help="only these messages (MetadataRequest), or those of an API (Metadata, or its key 3)",
    )
    parser.add_argument("--versions", metavar="N,…", help="only these versions, such as 4-11,13")
    parser.add_argument("--kinds", metavar="KIND,…", help="only these kinds of cases")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed (%(default)s)")
    parser.add_argument(
        "--cases",
        type=int,
        metavar="N",
        help=f"number of cases ({_CASES}), or of frames to a broker ({_BROKER_FRAMES})",
    )
    parser.add_argument("--time", type=float, metavar="S", help="end after S seconds")
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help=f"most seconds for an answer ({_TIMEOUT_S:g})",
    )
    parser.add_argument(
        "--no-shrink", action="store_true", help="keep the examples as large as they were found"
    )
    parser.add_argument(
        "--replay", metavar="CASE", help="send a case of a report again: its JSON, a file, or -"
    )
    parser.add_argument(
        "--known", metavar="FILE", help="these findings, a line of JSON each, do not fail the run"
    )
    parser.add_argument(
        "--write-known",
        metavar="FILE",
        help="write the findings of --known, and then those of this run that are not harmless",
    )
    parser.add_argument("--json", metavar="FILE", help="write a JSON report; - for standard output")
    parser.add_argument("--html", metavar="FILE", help="write the report as an HTML page")
    parser.add_argument(
        "--rate",
        type=float,
        metavar="N",
        help=f"frames a second to a broker, at most ({_RATE:g})",
    )
    add_properties(parser)
    parser.add_argument(
        "--not-loopback",
        action="store_true",
        help="the broker may be on another machine; requires --it-may-break too",
    )
    parser.add_argument(
        "--it-may-break",
        action="store_true",
        help="confirm that the broker and its records may be lost",
    )
    parser.set_defaults(runs_in="run_fuzz")
