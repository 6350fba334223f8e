"""Runs the kill test: acknowledged records are kept while leaders are killed; see the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.kafka import KafkaCluster, KafkaJarsError, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.setup.parts import write_part

from .page import PAGE, PART, facts, table
from .run import QUICK_SESSIONS, Plan, kill_test


def main(arguments: list[str] | None = None) -> int:
    """Runs the test. The exit code is 1 if a check fails, and 2 if the test cannot run.

    The checks: every record is acknowledged, and both readers see each record once and in order.
    """
    options = _parser().parse_args(arguments)
    plan = Plan(options.records, options.kills, options.partitions, options.seed, options.version)
    # Brokers are killed on purpose: the client's warnings would break the progress bar.
    logging.getLogger("kproto").setLevel(logging.ERROR)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    try:
        with (
            KafkaCluster(plan.version, racks=("a", "b", "c"), config=QUICK_SESSIONS) as cluster,
            Progress(*columns, console=Console(stderr=True)) as bar,
        ):
            records = bar.add_task("acknowledged", total=plan.records)
            kills = bar.add_task("leaders killed", total=plan.kills)

            def progress(acknowledged: int, killed: int) -> None:
                bar.update(records, completed=acknowledged)
                bar.update(kills, completed=killed)

            result = asyncio.run(kill_test(plan, cluster, progress))
    except (KafkaStartError, KafkaJarsError, JavaNotFoundError) as error:
        print(f"kill-test: {error}", file=sys.stderr)
        return 2
    print(json.dumps(facts(result), indent=2) if options.json else table(result), end="\n")
    if options.write:
        write_part(PAGE, PART, table(result))
    return 0 if result.is_right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.kill_test", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--kills", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--partitions", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--version", default="4.4.0", help="of Kafka; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print plain data")
    parser.add_argument(
        "--write", action="store_true", help="also into docs/evidence/reliability.md"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
