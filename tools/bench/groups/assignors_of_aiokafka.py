"""Measures an assignor of aiokafka: `python -m tools.bench.groups.assignors_of_aiokafka CASE`.

CASE is a key of `cases.CASES`. For each line of its input, the program computes one assignment and
prints the CPU seconds.
"""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tools.bench.groups.cases import CASES, TOPICS, members

ASSIGNORS: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

name, equal = CASES[sys.argv[1]]
assignor = ASSIGNORS[name]
cluster: Any = SimpleNamespace(
    partitions_for_topic=lambda topic: set(range(TOPICS[topic])),
    topics=lambda: set(TOPICS),
)
wanted = {}
for member, topics in members(equal=equal).items():
    if name == "sticky":
        assignor.member_assignment = None
    wanted[member] = assignor.metadata(topics)
for _ in sys.stdin:
    began = time.process_time()
    found = assignor.assign(cluster, wanted)
    took = time.process_time() - began
    given = sum(len(places) for each in found.values() for _, places in each.assignment)
    assert given == sum(TOPICS.values())
    print(took, flush=True)
