"""Sends a million random events through the sink and the source of Spark, in both modes.

    python -m tools.spark_round_trip [--rows 1000000] [--seed 1]

Writes the events to a topic of a real broker, and reads them again. Each event must be read exactly
once, with all attributes, data and key unchanged; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from tools.setup.java import java_home

from .compare import MODES, RoundTripResult, round_trip, write_events

BROKER = "4.4.0"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.spark_round_trip",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args(arguments)
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    right = True
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="round-trip-")))
        bar = closing.enter_context(Progress(console=Console(stderr=True)))
        drawn = bar.add_task("events drawn", total=options.rows)
        write_events(
            folder, options.rows, options.seed, lambda done: bar.update(drawn, completed=done)
        )
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP")
        if not bootstrap:
            from tools.kafka import KafkaNode

            bootstrap = closing.enter_context(KafkaNode(BROKER)).bootstrap
        modes = bar.add_task("modes", total=len(MODES))
        for mode in MODES:
            began = time.monotonic()
            result = _in_spark(bootstrap, folder, mode)
            bar.advance(modes)
            print(_line(result, options.seed, time.monotonic() - began), flush=True)
            right &= result.is_right
    return 0 if right else 1


def _in_spark(bootstrap: str, folder: Path, mode: str) -> RoundTripResult:
    from kproto_pipeline import register
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return round_trip(spark, bootstrap, folder, mode)


def _line(result: RoundTripResult, seed: int, took_s: float) -> str:
    told = (
        f"{result.mode}: {result.sent:,} sent, {result.read:,} read, {result.differing:,} differ, "
        f"{result.invalid:,} are no events; seed {seed}, {took_s:.0f} s"
    )
    return "\n".join([told, *(f"  {example}" for example in result.examples)])


if __name__ == "__main__":
    sys.exit(main())
