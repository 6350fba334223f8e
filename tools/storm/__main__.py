"""Runs a storm: disturbs the members of a group at random; see the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tools.kafka import VERSIONS, KafkaJarsError, KafkaNode, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.setup.maven import MavenError
from tools.setup.parts import write_part

from .page import PAGE, facts, part_of, table
from .protocols import BROKER_CONFIG, MIXED
from .run import Plan, storm
from .running import KINDS
from .share.__main__ import main as share_main


def main(arguments: list[str] | None = None) -> int:
    """Runs a storm. The exit code is 1 if a check fails, and 2 if the storm cannot run."""
    words = sys.argv[1:] if arguments is None else arguments
    if "share" in words:  # also after options, as in `make storm ARGS=share`
        return share_main([each for each in words if each != "share"])
    options = _parser().parse_args(words)
    try:
        plan = Plan(
            minutes=options.minutes,
            seed=options.seed,
            partitions=options.partitions,
            rate=options.rate,
            ours=options.ours,
            others=options.others,
            kinds=tuple(options.kinds),
            assignor=options.assignor,
            version=options.version,
            harms=not options.gentle,
        )
    except ValueError as error:
        print(f"storm: {error}", file=sys.stderr)
        return 2
    logging.getLogger("kproto").setLevel(logging.ERROR)
    columns = (TextColumn("{task.description:40}"), BarColumn(), TimeElapsedColumn())
    try:
        with (
            KafkaNode(plan.version, config=BROKER_CONFIG) as node,
            Progress(*columns, console=Console(stderr=True)) as bar,
        ):
            task = bar.add_task("the storm begins", total=plan.minutes * 60)

            def progress(action: str, seconds: float, members: int) -> None:
                there = f", {members} members" if members else ""
                bar.update(task, completed=seconds, description=f"{action}{there}")

            try:
                result = asyncio.run(storm(plan, node.bootstrap, progress, options.keep))
            finally:
                if options.keep and options.keep.is_dir():
                    (options.keep / "broker.log").write_text(node.log, encoding="utf-8")
    except (KafkaStartError, KafkaJarsError, JavaNotFoundError, MavenError) as error:
        print(f"storm: {error}", file=sys.stderr)
        return 2
    print(json.dumps(facts(result), indent=2) if options.json else table(result))
    if options.write:
        write_part(PAGE, part_of(plan), table(result))
    return 0 if result.is_right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.storm", description=__doc__)
    plan = Plan()
    kinds = [kind for kind in KINDS if kind != "kproto"]
    add = parser.add_argument
    add("--minutes", type=float, default=plan.minutes, help="default: %(default)s")
    add("--seed", type=int, default=plan.seed, help="default: %(default)s")
    add("--partitions", type=int, default=plan.partitions, help="default: %(default)s")
    add("--rate", type=int, default=plan.rate, help="records a second; default: %(default)s")
    add(
        "--ours",
        type=int,
        default=plan.ours,
        help="maximum number of kproto members; default: %(default)s",
    )
    add(
        "--others",
        type=int,
        default=plan.others,
        help="maximum number of other members; default: %(default)s",
    )
    add(
        "--kinds",
        nargs="+",
        default=list(plan.kinds),
        choices=kinds,
        help="clients of the other members",
    )
    add(
        "--assignor",
        default=plan.assignor,
        help=f"uniform: the consumer protocol; {MIXED}: both protocols; default: %(default)s",
    )
    add("--version", default=plan.version, choices=VERSIONS, help="of Kafka; default: %(default)s")
    add("--gentle", action="store_true", help="no member is killed, stalled or slow")
    add(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="a new folder for the logs of members and broker",
    )
    add("--json", action="store_true", help="print plain data")
    add(
        "--write", action="store_true", help="also write the result to docs/evidence/reliability.md"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
