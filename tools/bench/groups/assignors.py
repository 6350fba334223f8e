"""Measures the assignment of 1,000 partitions to 100 members, compared with aiokafka."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from kproto.client.groups.assignors.ranges import assign_ranges
from kproto.client.groups.assignors.roundrobin import assign_round_robin
from kproto.client.groups.assignors.sticky import assign_sticky
from kproto.client.groups.assignors.subscriptions import Assign, Subscription
from tools.setup.peers import peers_python

from .cases import CASES, TOPICS, members

__all__ = ["table"]

ROOT: Final = Path(__file__).resolve().parents[3]
ASSIGNORS: Final[dict[str, Assign]] = {
    "range": assign_ranges,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
}
#: The maximum ratio of kproto's time to aiokafka's time, by case; 1.0 for all other cases.
WANTED: Final = {"sticky, equal subscriptions": 0.5}


def ours(case: str) -> float:
    """Returns the CPU seconds of one assignment by kproto."""
    name, equal = CASES[case]
    no_racks: frozenset[str] = frozenset()
    topics = {topic: [no_racks] * count for topic, count in TOPICS.items()}
    wanted = {each: Subscription(its) for each, its in members(equal=equal).items()}
    began = time.process_time()
    found = ASSIGNORS[name](topics, wanted)
    took = time.process_time() - began
    assert sum(len(list(places)) for places in found.values()) == sum(TOPICS.values())
    return took


def table(rounds: int) -> bool:
    """Prints the table; returns True if kproto's assignors stay within the limits."""
    is_good = True
    print("| assigning, ms of CPU | kproto | aiokafka | ratio |\n|---|---|---|---|")
    for case in CASES:
        command = [str(peers_python()), "-m", "tools.bench.groups.assignors_of_aiokafka", case]
        pairs = []
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None
            for number in range(rounds + 1):
                mine = ours(case) if number % 2 else 0.0
                peer.stdin.write("\n")
                peer.stdin.flush()
                its = float(peer.stdout.readline())
                pairs.append((mine or ours(case), its))
            peer.stdin.close()
        pairs = pairs[1:]  # the first pair is the warm-up
        mine, its = (statistics.median(each) * 1000 for each in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"| {case} | {mine:.1f} | {its:.1f} | {ratio:.2f} |", flush=True)
        if ratio > WANTED.get(case, 1.0):
            print(f"{case}: {ratio:.2f}; the limit is {WANTED.get(case, 1.0)}", file=sys.stderr)
            is_good = False
    return is_good
