"""Runs the kill test of Spark and brokers: `python -m tools.spark_kill_test`; see the package."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.kafka import KafkaCluster, KafkaJarsError, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.setup.parts import write_part

from .page import EXACTLY_ONCE_PART, PAGE, PART, table
from .run import QUICK_SESSIONS, Plan, Result, spark_kill_test


def main(arguments: list[str] | None = None) -> int:
    """Runs the test. Returns 1 if a check of kproto fails, and 2 if the test cannot run."""
    options = _parser().parse_args(arguments)
    logging.getLogger("kproto").setLevel(logging.ERROR)
    results = []
    try:
        for engine in options.engines:
            beside = len(options.engines) > 1 or engine == "kafka"
            is_once = options.exactly_once and engine == "kproto"
            results.append(_run(Plan(engine, options.rounds, options.seed, beside, is_once)))
    except (KafkaStartError, KafkaJarsError, JavaNotFoundError) as error:
        print(f"spark-kill-test: {error}", file=sys.stderr)
        return 2
    print(table(results), end="")
    for result in results:
        for note in result.notes:
            print(f"{result.plan.engine}: {note}")
    if options.write:
        write_part(PAGE, EXACTLY_ONCE_PART if options.exactly_once else PART, table(results))
    return 0 if all(each.is_right for each in results if each.plan.engine == "kproto") else 1


def _run(plan: Plan) -> Result:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    folder = Path(tempfile.mkdtemp(prefix="spark-kill-test-"))
    with (
        KafkaCluster("4.4.0", racks=("a", "b", "c"), config=QUICK_SESSIONS) as cluster,
        Progress(*columns, console=Console(stderr=True)) as bar,
    ):
        task = bar.add_task(plan.engine, total=plan.rounds)

        def progress(done: int, victim: str) -> None:
            bar.update(task, completed=done, description=f"{plan.engine}, {victim}")

        result = asyncio.run(spark_kill_test(plan, cluster, folder, progress))
    if result.is_right:
        shutil.rmtree(folder)
    else:
        print(f"the files of the failed run stay in {folder}", file=sys.stderr)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.spark_kill_test", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="kills (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=("kproto", "kafka"),
        default=["kproto"],
        help="both: one after the other, on the PySpark of the JVM connector",
    )
    parser.add_argument(
        "--exactly-once",
        action="store_true",
        help="the stream to the topic has exactlyOnce; also kills leaders and coordinators",
    )
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
