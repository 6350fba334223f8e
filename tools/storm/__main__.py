"""Runs a storm: disturbs the members of a group at random; see the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys

from tools.kafka import VERSIONS, KafkaJarsError, KafkaNode, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.setup.maven import MavenError
from tools.setup.parts import write_part

from .command import add_output_arguments, add_plan_arguments, shown
from .page import PAGE, facts, part_of, table
from .protocols import BROKER_CONFIG, MIXED
from .run import Plan, storm
from .running import KINDS
from .share.__main__ import main as share_main
from .termination import interrupt_at_sigterm


def main(arguments: list[str] | None = None) -> int:
    """Runs a storm. The exit code is 1 if a check fails, and 2 if the storm cannot run."""
    words = sys.argv[1:] if arguments is None else arguments
    if "share" in words:  # also after options, as in `make storm ARGS=share`
        return share_main([each for each in words if each != "share"])
    options = _parser().parse_args(words)
    interrupt_at_sigterm()
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
    try:
        with (
            KafkaNode(plan.version, config=BROKER_CONFIG) as node,
            shown(plan.minutes) as progress,
        ):
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
    add_plan_arguments(parser, plan, others="other")
    add = parser.add_argument
    add(
        "--ours",
        type=int,
        default=plan.ours,
        help="maximum number of kproto members; default: %(default)s",
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
    add_output_arguments(parser, logs="logs of members and broker")
    return parser


if __name__ == "__main__":
    sys.exit(main())
