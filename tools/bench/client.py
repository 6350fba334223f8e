"""Produce and consume against a real broker: our client beside its peers, in the same run.

    python -m tools.bench.client [--records 200000] [--repeat 3] [--bootstrap host:port]

One partition, 100-byte values, 8-byte keys; the same with six CloudEvents headers; and one
acknowledged send at a time. The clients take turns, each measurement in a process of its own, and
the median of the turns counts. Ratios carry from machine to machine, absolute rates do not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tools.kafka import KafkaNode
from tools.setup.peers import peers_python

ROOT: Final = Path(__file__).resolve().parents[2]
WORKER: Final = ROOT / "tools" / "bench" / "client_worker.py"
CLIENTS: Final = ("kproto", "aiokafka", "kafka_python", "confluent_kafka")
BROKER: Final = "4.4.0"

#: Row -> (what is done, with headers).
ROWS: Final = {
    "produce": ("produce", False),
    "produce, six headers": ("produce", True),
    "consume": ("consume", False),
    "consume, six headers": ("consume", True),
    "one send at a time": ("send", False),
}
#: Sends one by one are slow, so fewer will do.
SENDS: Final = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.client", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--bootstrap", help="a broker that runs; default: one of our own")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        bootstrap = options.bootstrap or stack.enter_context(KafkaNode(BROKER)).bootstrap
        rates = measure(bootstrap, options.records, options.repeat)
    print_table(rates)
    return 0


def measure(bootstrap: str, records: int, repeat: int) -> dict[str, dict[str, list[float]]]:
    """Rates a second, by row and client."""
    stamp = int(time.time())
    rates: dict[str, dict[str, list[float]]] = {
        row: {client: [] for client in CLIENTS} for row in ROWS
    }
    total = len(ROWS) * len(CLIENTS) * repeat
    done = 0
    for turn in range(repeat):
        for row, (work, headers) in ROWS.items():
            for client in CLIENTS:
                filled = f"bench-{stamp}-{turn}-kproto-{headers}"
                topic = filled if work == "consume" else f"bench-{stamp}-{turn}-{client}-{headers}"
                create_topic(bootstrap, topic)
                task = {
                    "client": client,
                    "work": work,
                    "bootstrap": bootstrap,
                    "topic": topic,
                    "count": SENDS if work == "send" else records,
                    "headers": headers,
                }
                rates[row][client].append(run_worker(task))
                done += 1
                print(f"\r{done}/{total} {row}, {client}".ljust(60), end="", file=sys.stderr)
    print(file=sys.stderr)
    return rates


def run_worker(task: dict[str, Any]) -> float:
    python = sys.executable if task["client"] == "kproto" else str(peers_python())
    finished = subprocess.run(
        [python, str(WORKER), json.dumps(task)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    if finished.returncode:
        raise SystemExit(f"{task['client']} could not {task['work']}:\n{finished.stderr}")
    return float(json.loads(finished.stdout)["rate"])


def create_topic(bootstrap: str, topic: str) -> None:
    import asyncio

    import kproto

    async def create() -> None:
        async with kproto.Client(bootstrap) as client:
            try:
                await client.create_topics(kproto.NewTopic(topic, 1, 1))
            except kproto.BrokerResponseError as error:
                if error.name != "TOPIC_ALREADY_EXISTS":
                    raise

    asyncio.run(create())


def print_table(rates: dict[str, dict[str, list[float]]]) -> None:
    """Thousand records a second, and what ours is to each peer's."""
    print("| median, thousand/s (ratio of kproto's to it) | " + " | ".join(CLIENTS) + " |")
    print("|---|" + "---|" * len(CLIENTS))
    for row, by_client in rates.items():
        ours = statistics.median(by_client["kproto"])
        cells = []
        for client in CLIENTS:
            theirs = statistics.median(by_client[client])
            ratio = "" if client == "kproto" else f" ({ours / theirs:.2f})"
            cells.append(f"{theirs / 1000:.1f}{ratio}")
        print(f"| {row} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main())
