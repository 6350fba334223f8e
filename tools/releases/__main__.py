"""Writes schemas/versions.json from the kafka-clients jar of every release.

`python -m tools.releases` runs this program. With `--check`, it only compares the file with the
jars.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kproto_codegen.errors import DefinitionError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tools.setup.java import JavaNotFoundError
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError
from tools.setup.programs import ProgramError

from .classes import facts_of_classes
from .facts import ReleaseApi, facts_of_definitions
from .jars import clients_jars
from .names import DEFINITIONS_SINCE, RELEASES
from .table import format_table

OUT = Path(__file__).resolve().parents[2] / "schemas" / "versions.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the table; with --check, only compares it with the file.

    Returns 1 on failure, or if --check finds a difference.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.releases", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="default: schemas/versions.json")
    parser.add_argument("--check", action="store_true", help="compare, and do not write")
    options = parser.parse_args(arguments)
    try:
        with _bar() as show:
            text = read_all(show)
    except (MavenError, JavaNotFoundError, CompilerError, ProgramError, DefinitionError) as error:
        print(f"releases: {error}", file=sys.stderr)
        return 1
    same = options.out.is_file() and options.out.read_text(encoding="utf-8") == text
    if not (same or options.check):
        options.out.write_text(text, encoding="utf-8")
    print(
        f"{options.out}: {'is up to date' if same else 'differs' if options.check else 'written'}"
    )
    return 1 if options.check and not same else 0


def read_all(show: Callable[[int, int], None] = lambda done, total: None) -> str:
    """Returns the content of versions.json, from the jars; calls `show` with the progress.

    Raises MavenError, JavaNotFoundError, CompilerError, ProgramError or DefinitionError.
    """
    found: dict[str, dict[int, ReleaseApi]] = {}
    old: dict[str, Path] = {}
    first = RELEASES.index(DEFINITIONS_SINCE)
    for number, (release, jar) in enumerate(zip(RELEASES, clients_jars(RELEASES), strict=True)):
        show(number, len(RELEASES))
        if number < first:
            old[release] = jar
        else:
            found[release] = facts_of_definitions(jar)
    declared = facts_of_classes(list(old.values()))
    for release, jar in old.items():
        found[release] = declared[jar.name]
    show(len(RELEASES), len(RELEASES))
    return format_table(RELEASES, found)


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar on standard error during the block."""
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


if __name__ == "__main__":
    sys.exit(main())
