"""Shows which areas of the client take the CPU time of a record: `python -m tools.bench.areas`.

    python -m tools.bench.areas [--records 300000] [--partitions 1,1000] [--tree PATH …]

A program sends a list of records with keys by `send_many`, and reads them by `record_lists()`. A
timer interrupts it once per millisecond of CPU time. The area of the innermost function of kproto
that runs then gets this millisecond; functions that it calls, such as zlib's, count for it. With
`--tree`, the program runs with the kproto of another checkout, so that two states can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.bench.areas_sampler import AREAS, WORKS
from tools.kafka import KafkaNode

__all__ = ["main"]

BROKER: Final = "4.4.0"
ROOT: Final = Path(__file__).resolve().parents[2]
SAMPLER: Final = Path(__file__).with_name("areas_sampler.py")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table for each work and tree; the numbers are µs of CPU time a record."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.areas", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--partitions", default="1,12,100,1000", help="numbers of partitions")
    parser.add_argument("--tree", action="append", default=[], help="a checkout; may be repeated")
    parser.add_argument("--bootstrap", help="a running broker; without it, the command starts one")
    options = parser.parse_args(arguments)
    trees = [*map(Path, options.tree), ROOT]
    counts = [int(number) for number in options.partitions.split(",")]
    columns = [(tree, count) for count in counts for tree in trees]
    if options.bootstrap:
        found = [_sample(options.bootstrap, *column, options.records) for column in columns]
    else:
        with KafkaNode(BROKER) as node:
            found = [_sample(node.bootstrap, *column, options.records) for column in columns]
    for work in WORKS:
        heads = [
            f"{count:,}" + (f", {tree.name}" if options.tree else "") for tree, count in columns
        ]
        print(f"\n| {work}: CPU µs a record; partitions | {' | '.join(heads)} |")
        print("|---" * (len(columns) + 1) + "|")
        for area in [*AREAS, "all"]:
            cells = [f"{sampled[work].get(area, 0):.2f}" for sampled in found]
            print(f"| {area} | {' | '.join(cells)} |")
    return 0


def _sample(
    bootstrap: str, tree: Path, partitions: int, records: int
) -> dict[str, dict[str, float]]:
    """Runs the sampler with the kproto of `tree`; returns µs a record by work and area."""
    print(f"{tree.name}, {partitions:,} partitions", file=sys.stderr, flush=True)
    command = [sys.executable, "-P", str(SAMPLER), bootstrap, str(partitions), str(records)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    sampled: dict[str, dict[str, float]] = json.loads(run.stdout)
    return sampled


if __name__ == "__main__":
    sys.exit(main())
