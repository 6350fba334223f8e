"""Runs a storm of share groups: kills and stops members and brokers at random; see the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from kproto.broker import Cluster
from tools.kafka import KafkaCluster, KafkaJarsError, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError
from tools.setup.parts import write_part

from ..command import StormProgress, add_output_arguments, add_plan_arguments, shown
from ..page import PAGE
from ..termination import interrupt_at_sigterm
from .brokers import (
    EMBEDDED_SETTINGS,
    NODES,
    REAL_CONFIG,
    EmbeddedBrokers,
    RealBrokers,
    StormBrokers,
)
from .page import PART, facts, table
from .run import SharePlan, ShareResult, share_storm

__all__ = ["main"]

_VERSION = "4.4.0"
_CANNOT_RUN = (KafkaStartError, KafkaJarsError, JavaNotFoundError, MavenError, CompilerError)


def main(arguments: list[str] | None = None) -> int:
    """Runs a storm. The exit code is 1 if a check fails, and 2 if the storm cannot run."""
    options = _parser().parse_args(arguments)
    interrupt_at_sigterm()
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
    try:
        with shown(plan.minutes) as progress:
            result = asyncio.run(_storm(plan, options, progress))
    except _CANNOT_RUN as error:
        print(f"storm: {error}", file=sys.stderr)
        return 2
    print(json.dumps(facts(result), indent=2) if options.json else table(result))
    if options.write:
        write_part(PAGE, PART, table(result))
    return 0 if result.is_right else 1


async def _storm(
    plan: SharePlan, options: argparse.Namespace, progress: StormProgress
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
    add_plan_arguments(parser, plan, others="Java")
    add = parser.add_argument
    add(
        "--members",
        type=int,
        default=plan.members,
        help="maximum number of kproto members; default: %(default)s",
    )
    add("--embedded", action="store_true", help="the embedded cluster instead of real brokers")
    add_output_arguments(parser, logs="logs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
