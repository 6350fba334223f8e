"""`python -m tools.reference compare|fuzz|vectors|answer|conformance`: uses Kafka's classes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from . import answering, conformance, findings, vectors
from .classes import ReferenceUnavailableError
from .conformance import MUTATIONS, SEED


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "compare":
                return _compare(options)
            case "fuzz":
                return _fuzz(options)
            case "vectors":
                print(vectors.write())
                return 0
            case "answer":
                answering.serve(sys.stdin, sys.stdout)
                return 0
            case _:
                return _conformance(options)
    except ReferenceUnavailableError as error:
        print(f"reference: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    compare = commands.add_parser("compare", help="compare bytes and JSON of every message")
    fuzz = commands.add_parser(
        "fuzz", help="decode mutated encodings of every message, and compare the outcomes"
    )
    fuzz.add_argument("--mutations", type=int, default=MUTATIONS, help="default: %(default)s")
    fuzz.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    commands.add_parser("vectors", help="rewrite tests/vectors")
    commands.add_parser("answer", help="answer the lines of `kproto fuzz` (docs/how-to/fuzzing.md)")
    written = commands.add_parser(
        "conformance", help="run compare and fuzz, and write docs/evidence/conformance.md"
    )
    for command in (compare, fuzz, written):
        command.add_argument("--processes", type=int, help="default: one for each processor")
    return parser


def _compare(options: argparse.Namespace) -> int:
    with _progress("comparing") as progress:
        compared = findings.compare_all(processes=options.processes, progress=progress)
    print(conformance.comparison_summary(compared))
    unexpected = conformance.unexpected(compared)
    for difference in unexpected:
        print(difference)
    return 1 if unexpected else 0


def _fuzz(options: argparse.Namespace) -> int:
    with _progress("judging") as progress:
        result = findings.fuzz(
            options.mutations, options.seed, processes=options.processes, progress=progress
        )
    print(conformance.fuzz_table(result))
    for disagreement in result.disagreements:
        print(disagreement)
    return 1 if result.disagreed else 0


def _conformance(options: argparse.Namespace) -> int:
    with _progress("comparing") as progress:
        compared = findings.compare_all(processes=options.processes, progress=progress)
    with _progress("judging") as progress:
        result = findings.fuzz(MUTATIONS, SEED, processes=options.processes, progress=progress)
    conformance.PATH.write_text(conformance.render(compared, result), encoding="utf-8")
    print(conformance.PATH)
    return 1 if conformance.unexpected(compared) or result.disagreed else 0


@contextmanager
def _progress(what: str) -> Iterator[findings.Progress]:
    """Shows a progress bar on standard error during the block."""
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show


if __name__ == "__main__":
    sys.exit(main())
