"""Runs the cases on Kafka 4.4.0: `python -m tools.spark_repeated_tasks`; see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.kafka import DEFAULT_VERSION, KafkaNode
from tools.setup.parts import write_part
from tools.spark.cluster import SparkCluster
from tools.spark.environments import NEWEST_PYSPARK, python_with_pyspark

from .run import CASES, WRITINGS, Result, run_case

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "reliability.md"
PART = "spark-repeated-tasks"


def main(arguments: list[str] | None = None) -> int:
    """Runs the cases; returns 1 if the sink breaks a promise, or if Spark repeats no task."""
    parser = argparse.ArgumentParser(prog="python -m tools.spark_repeated_tasks")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--writings", nargs="+", choices=WRITINGS, default=list(WRITINGS))
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    options = parser.parse_args(arguments)
    python = python_with_pyspark(NEWEST_PYSPARK)
    folder = Path(tempfile.mkdtemp(prefix="spark-repeated-tasks-"))
    results: list[Result] = []
    with KafkaNode(DEFAULT_VERSION) as kafka, SparkCluster(python, cores=2, own_hosts=True) as its:
        for case in options.cases:
            found = run_case(case, options.writings, its, kafka.bootstrap, folder / case)
            print(*found, sep="\n", flush=True)
            results += found
    print(table(results), end="")
    if options.write:
        write_part(PAGE, PART, table(results))
    print(f"the logs are in {folder}", file=sys.stderr)
    return 0 if all(each.is_right and each.is_disturbed for each in results) else 1


def table(results: Sequence[Result]) -> str:
    """Returns a Markdown table with a row for each result."""
    head = (
        "repetition",
        "writing",
        "rows",
        "stored before it",
        "tasks repeated",
        "speculative attempts",
        "stage retries",
        "query restarts",
        "lost",
        "doubled",
        "out of order",
        "aborted",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(map(str, _cells(each)))} |" for each in results]
    return "\n".join(lines) + "\n"


def _cells(result: Result) -> tuple[object, ...]:
    return (
        CASES[result.case],
        result.writing,
        f"{result.sent:,}",
        f"{result.stored_first:,}",
        len(result.attempts.repeated),
        result.attempts.speculative,
        result.attempts.stage_retries,
        len(result.failures),
        result.lost,
        sum(result.doubled.values()),
        "–" if result.case == "stage" else result.disordered,
        result.uncommitted,
    )


if __name__ == "__main__":
    sys.exit(main())
