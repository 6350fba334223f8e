"""Measures how fast a member starts, and how fast a member takes over another's partitions.

Each client has a program (`with_…`), which prints a line of JSON with the seconds of its rounds.
The programs run in turn on a real broker without an initial rebalance delay.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import kproto
from tools.kafka import DEFAULT_VERSION, KafkaNode
from tools.setup.peers import peers_python

__all__ = ["table"]

ROOT: Final = Path(__file__).resolve().parents[3]
#: By group protocol: the clients that support it.
CLIENTS: Final = {
    "classic": ("kproto", "aiokafka", "kafka_python", "confluent_kafka"),
    "consumer": ("kproto", "confluent_kafka"),
}
#: The maximum ratio of kproto's time to the time of the fastest other client, by group protocol.
ALLOWED: Final = {"classic": 1.0, "consumer": 1.2}
WORKS: Final = {
    "first": "from the start of a member to its first record",
    "handover": "from leaving the group to the next owner's first record",
}
TOPIC: Final = "shared"
#: The number of rounds that a client runs before the next client runs. Before these rounds, its
#: program runs one more round, which loads the modules and is not measured.
AT_A_TIME: Final = 3
LIMIT_S: Final = 120


async def _prepare(bootstrap: str) -> None:
    async with kproto.Client(bootstrap) as client:
        await client.create_topics(kproto.NewTopic(TOPIC, partitions=2))
        async with client.producer() as producer:
            for partition in range(2):
                for _ in range(10):
                    await producer.send(TOPIC, b"value", partition=partition)
        # The first commit makes the coordinator create the topic of committed offsets.
        async with client.consumer([(TOPIC, 0)], group="first") as consumer:
            await consumer.commit({(TOPIC, 0): 0})


def _run(
    client: str, bootstrap: str, group: str, heartbeat_ms: int, protocol: str
) -> dict[str, Any]:
    python = sys.executable if client == "kproto" else str(peers_python())
    words = [bootstrap, TOPIC, group, str(heartbeat_ms), str(1 + AT_A_TIME), protocol]
    done = subprocess.run(
        [python, "-m", f"tools.bench.groups.with_{client}", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def table(rounds: int, heartbeat_ms: int) -> bool:
    """Prints a table per group protocol; returns True if kproto stays within the limits."""
    found = [_table(rounds, heartbeat_ms, protocol) for protocol in CLIENTS]
    return all(found)


def _table(rounds: int, heartbeat_ms: int, protocol: str) -> bool:
    clients = CLIENTS[protocol]
    seconds: dict[str, dict[str, list[float]]] = {
        work: {client: [] for client in clients} for work in WORKS
    }
    # In the consumer protocol (KIP-848), the coordinator sets the heartbeat interval.
    config = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "group.consumer.min.heartbeat.interval.ms": str(heartbeat_ms),
        "group.consumer.heartbeat.interval.ms": str(heartbeat_ms),
        "group.consumer.assignment.interval.ms": "0",
    }
    with KafkaNode(DEFAULT_VERSION, config=config) as node:
        asyncio.run(_prepare(node.bootstrap))
        for turn in range(-(-rounds // AT_A_TIME)):
            for client in clients if turn % 2 else reversed(clients):
                told = _run(client, node.bootstrap, f"{client}-{turn}", heartbeat_ms, protocol)
                for work in WORKS:
                    seconds[work][client] += told[work][1:]
            print(f"\rturn {turn + 1}", end="", file=sys.stderr)
    print("\r\033[K", end="", file=sys.stderr)
    print(f"{protocol}: medians of {rounds} rounds, ms; a heartbeat every {heartbeat_ms} ms.\n")
    print(f"| | {' | '.join(clients)} |\n|---|{'---|' * len(clients)}")
    is_good = True
    for work, name in WORKS.items():
        medians = {client: statistics.median(its) for client, its in seconds[work].items()}
        print(f"| {name} | {' | '.join(f'{medians[each] * 1000:.0f}' for each in clients)} |")
        fastest = min(medians[client] for client in clients[1:])
        if medians["kproto"] > fastest * ALLOWED[protocol]:
            print(f"{work}: {medians['kproto'] / fastest:.2f} times the fastest", file=sys.stderr)
            is_good = False
    print()
    return is_good
