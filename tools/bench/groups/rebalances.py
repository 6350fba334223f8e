"""Measures the CPU time of the rebalances of a group with 100 members and 1,000 partitions.

All members of a client run in one process, each with connections of its own. The clients run in
turn on a real broker; every second round has the reverse order.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import kproto
from tools.bench.groups.many_members import HEARTBEAT_MS
from tools.kafka import DEFAULT_VERSION, SMALL_INDEXES, KafkaNode
from tools.setup.peers import peers_python

__all__ = ["table"]

ROOT: Final = Path(__file__).resolve().parents[3]
#: By group protocol and assignor: the clients that support them.
CLIENTS: Final = {
    ("classic", "range"): ("kproto", "aiokafka", "confluent_kafka"),
    ("classic", "sticky"): ("kproto", "aiokafka"),
    ("classic", "cooperative-sticky"): ("kproto", "confluent_kafka"),
    ("consumer", "uniform"): ("kproto", "confluent_kafka"),
}
WORKS: Final = {
    "start": "start of the group",
    "join": "another member joins",
    "leave": "a member leaves",
    "idle": "a second without a rebalance",
}
CONFIG: Final = {
    "group.initial.rebalance.delay.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    **SMALL_INDEXES,
}
TOPIC: Final = "shared"
LIMIT_S: Final = 300


async def _prepare(bootstrap: str, partitions: int) -> None:
    """Creates the topic, with a record in each partition."""
    async with kproto.Client(bootstrap) as client:
        await client.create_topics(kproto.NewTopic(TOPIC, partitions=partitions))
        async with client.producer() as producer:
            sends = (producer.send(TOPIC, b"value", partition=at) for at in range(partitions))
            await asyncio.gather(*sends)


def _run(client: str, words: list[str], byte_code: str) -> dict[str, float]:
    python = sys.executable if client == "kproto" else str(peers_python())
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": byte_code}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [python, "-m", "tools.bench.groups.many_members", client, *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr[-2000:]}")
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def table(rounds: int, members: int, partitions: int) -> None:
    """Prints the medians of the rounds."""
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    with (
        KafkaNode(DEFAULT_VERSION, config=CONFIG, heap="1g") as node,
        TemporaryDirectory() as byte_code,
    ):
        asyncio.run(_prepare(node.bootstrap, partitions))
        for turn in range(rounds):
            for (protocol, assignor), clients in CLIENTS.items():
                for client in clients if turn % 2 else reversed(clients):
                    group = f"{client}-{protocol}-{assignor}-{turn}"
                    words = [node.bootstrap, TOPIC, group, str(members), str(partitions)]
                    told = _run(client, [*words, protocol, assignor], byte_code)
                    found.setdefault((protocol, assignor, client), []).append(told)
                    print(f"\rround {turn + 1}, {group}\033[K", end="", file=sys.stderr)
    print("\r\033[K", end="", file=sys.stderr)
    print(f"{members} members, {partitions} partitions: medians of {rounds} rounds.\n")
    heads = [*WORKS.values(), "seconds of start, join, leave"]
    print(f"| ms of CPU per member | | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}")
    for (protocol, assignor, client), results in found.items():
        medians = {key: statistics.median(each[key] for each in results) for key in results[0]}
        cells = [f"{medians[work] * 1000:.1f}" for work in WORKS]
        times = ", ".join(f"{medians[f'{work}_s']:.1f}" for work in ("start", "join", "leave"))
        print(f"| {protocol}, {assignor} | {client} | {' | '.join(cells)} | {times} |")
    print()
