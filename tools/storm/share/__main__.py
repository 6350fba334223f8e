"""Runs a storm of share groups: kills and stops members and brokers at random; see the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kproto.broker import Cluster
from tools.kafka import KafkaCluster, KafkaJarsError, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError
from tools.setup.parts import write_part

from ..page import PAGE
from .brokers import (
    EMBEDDED_SETTINGS,
    NODES,
    REAL_CONFIG,
    EmbeddedBrokers,
    RealBrokers,
    StormBrokers,
)
from .page import PART, facts, table
from .run import SharePlan, ShareProgress, ShareResult, share_storm

__all__ = ["main"]

_VERSION = "4.4.0"
_CANNOT_RUN = (KafkaStartError, KafkaJarsError, JavaNotFoundError, MavenError, CompilerError)


def main(arguments: list[str] | None = None) -> int:
    """Runs a storm. The exit code is 1 if a check fails, and 2 if the storm cannot run."""
    options = _parser().parse_args(arguments)
    plan = SharePlan(
        minutes=options.minutes,
        seed=options.seed,
        partitions=options.partitions,
        rate=options.rate,
        members=options.members,
        others=options.others,
    )
    for name in ("kproto", "asyncio"):  # the storm causes the errors on purpose
        logging.getLogger(name).setLevel(logging.ERROR)
    columns = (TextColumn("{task.description:40}"), BarColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("the storm begins", total=plan.minutes * 60)

            def progress(action: str, seconds: float, members: int) -> None:
                there = f", {members} members" if members else ""
                bar.update(task, completed=seconds, description=f"{action}{there}")

            result = asyncio.run(_storm(plan, options, progress))
    except _CANNOT_RUN as error:
        print(f"storm: {error}", file=sys.stderr)
        return 2
    print(json.dumps(facts(result), indent=2) if options.json else table(result))
    if options.write:
        write_part(PAGE, PART, table(result))
    return 0 if result.is_right else 1


async def _storm(
    plan: SharePlan, options: argparse.Namespace, progress: ShareProgress
) -> ShareResult:
    async with AsyncExitStack() as stack:
        brokers: StormBrokers
        if options.embedded:
            cluster = Cluster(NODES, settings=EMBEDDED_SETTINGS)
            brokers = EmbeddedBrokers(await stack.enter_async_context(cluster))
        else:
            real = KafkaCluster(_VERSION, nodes=NODES, config=REAL_CONFIG)
            brokers = RealBrokers(stack.enter_context(real))
            if options.keep:
                stack.callback(_keep_logs, real, options.keep)
        return await share_storm(plan, brokers, progress, options.keep)


def _keep_logs(cluster: KafkaCluster, folder: Path) -> None:
    if folder.is_dir():
        for number, node in cluster.nodes.items():
            (folder / f"broker-{number}.log").write_text(node.log, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.storm share", description=__doc__)
    plan = SharePlan()
    add = parser.add_argument
    add("--minutes", type=float, default=plan.minutes, help="default: %(default)s")
    add("--seed", type=int, default=plan.seed, help="default: %(default)s")
    add("--partitions", type=int, default=plan.partitions, help="default: %(default)s")
    add("--rate", type=int, default=plan.rate, help="records a second; default: %(default)s")
    add(
        "--members",
        type=int,
        default=plan.members,
        help="maximum number of kproto members; default: %(default)s",
    )
    add(
        "--others",
        type=int,
        default=plan.others,
        help="maximum number of Java members; default: %(default)s",
    )
    add("--embedded", action="store_true", help="the embedded cluster instead of real brokers")
    add("--keep", type=Path, metavar="FOLDER", help="a new folder for the logs")
    add("--json", action="store_true", help="print plain data")
    add(
        "--write", action="store_true", help="also write the result to docs/evidence/reliability.md"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
