"""The parts that the commands of both storms have: arguments, the progress bar and the logs."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

__all__ = ["StormProgress", "add_output_arguments", "add_plan_arguments", "log_folder", "shown"]

#: Called with the last action, the elapsed seconds, and the number of members.
StormProgress: TypeAlias = Callable[[str, float, int], None]


class _Plan(Protocol):
    """The fields that the plans of both storms have."""

    @property
    def minutes(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def partitions(self) -> int: ...
    @property
    def rate(self) -> int: ...
    @property
    def others(self) -> int: ...


def add_plan_arguments(parser: argparse.ArgumentParser, plan: _Plan, *, others: str) -> None:
    """Adds the arguments of a plan; `others` names the members that are not kproto's."""
    add = parser.add_argument
    add("--minutes", type=float, default=plan.minutes, help="default: %(default)s")
    add("--seed", type=int, default=plan.seed, help="default: %(default)s")
    add("--partitions", type=int, default=plan.partitions, help="default: %(default)s")
    add("--rate", type=int, default=plan.rate, help="records a second; default: %(default)s")
    add(
        "--others",
        type=int,
        default=plan.others,
        help=f"maximum number of {others} members; default: %(default)s",
    )


def add_output_arguments(parser: argparse.ArgumentParser, *, logs: str) -> None:
    """Adds the arguments of the output; `logs` names the logs that `--keep` keeps."""
    add = parser.add_argument
    add("--keep", type=Path, metavar="FOLDER", help=f"a new folder for the {logs}")
    add("--json", action="store_true", help="print plain data")
    add(
        "--write", action="store_true", help="also write the result to docs/evidence/reliability.md"
    )


@contextmanager
def shown(minutes: float) -> Iterator[StormProgress]:
    """Shows a progress bar for a storm of `minutes`; yields the function that moves the bar."""
    # Imported here: the peers' Python, which runs members, has no rich.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:40}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("the storm begins", total=minutes * 60)

        def progress(action: str, seconds: float, members: int) -> None:
            there = f", {members} members" if members else ""
            bar.update(task, completed=seconds, description=f"{action}{there}")

        yield progress


@contextmanager
def log_folder(keep: Path | None) -> Iterator[Path]:
    """Yields the new folder `keep`, or else a temporary folder, for the logs of a storm."""
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        yield Path(folder)
