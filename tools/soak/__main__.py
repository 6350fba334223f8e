"""Runs the soak test: `python -m tools.soak [SECONDS]`; see the package."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tools.setup.parts import write_part

from .plot import svg
from .run import Outcome, soak
from .samples import verdicts

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURE = DOCS / "pictures" / "soak.svg"


def main(arguments: list[str] | None = None) -> int:
    """Runs the test. The exit code is 1 if memory, files or tasks grew, or a record was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--svg", type=Path, help="draw the samples into this file")
    parser.add_argument(
        "--write", action="store_true", help="write the result into docs/evidence/reliability.md"
    )
    options = parser.parse_args(arguments)
    # The client logs every fault of a broker, which is not part of the result.
    logging.getLogger("kproto").setLevel(logging.CRITICAL)
    columns = (TextColumn("soaking"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("soak", total=options.seconds)
        outcome = asyncio.run(
            soak(options.seconds, options.seed, lambda at: bar.update(task, completed=at))
        )
    text, is_right = table(outcome)
    print(text)
    picture = svg(outcome.samples, "memory, open files and tasks of a soak")
    if options.svg is not None:
        options.svg.write_text(picture, encoding="utf-8")
    if options.write:
        PICTURE.write_text(picture, encoding="utf-8")
        write_part(DOCS / "evidence" / "reliability.md", "soak", text)
    return 0 if is_right else 1


def table(outcome: Outcome) -> tuple[str, bool]:
    """Returns the numbers as a Markdown table, and True if all are as expected."""
    found = verdicts(outcome.samples)
    is_right = all(flat for _, _, flat in found.values()) and not outcome.wrong
    faults = ", ".join(f"{name} {times}x" for name, times in sorted(outcome.faults.items()))
    lines = [
        "Flat, and every record once." if is_right else "NOT RIGHT.",
        "",
        "| | second third | last third |",
        "|---|---|---|",
        *(f"| {name} | {middle:.1f} | {last:.1f} |" for name, (middle, last, _) in found.items()),
        "",
        (
            f"{outcome.seconds:.0f} s, seed {outcome.seed}; {outcome.acknowledged:,} records "
            f"acknowledged, {outcome.seen:,} read; {outcome.visits:,} short-lived clients, "
            f"{outcome.cancelled:,} of them cancelled; faults: {faults}."
        ),
        *(f"\n{each}" for each in outcome.wrong[:20]),
    ]
    return "\n".join(lines), is_right


if __name__ == "__main__":
    sys.exit(main())
