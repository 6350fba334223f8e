"""Prints the outcomes of kafka-python's tests on the embedded broker, and on a real one.

    python -m tools.client_suites --kafka 4.4.0

Ends with 1 if a test that passes on the real broker fails on the embedded broker.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tools.kafka import VERSIONS, KafkaNode
from tools.kafka.properties import HOST, VOTERS, Ports
from tools.setup.ports import free_ports

from .kafka_python import BROKER_CONFIG, RELEASE, Result, run_suite


def main() -> int:
    """Runs the tests, prints the counts and the differences, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.client_suites", description=__doc__)
    parser.add_argument("--kafka", choices=VERSIONS, help="compare with a real broker")
    options = parser.parse_args()
    embedded = _run("the embedded broker")
    for name, result in embedded.items():
        if result.outcome != "passed":
            print(f"  {name} {result.outcome}: {result.reason}")
    if options.kafka is None:
        return int(any(it.outcome == "failed" for it in embedded.values()))
    real = _on_real_broker(options.kafka)
    for name, result in real.items():
        if result.outcome != embedded[name].outcome:
            print(f"  {name} {result.outcome}: {result.reason}")
    return int(any(it.outcome == "passed" != embedded[name].outcome for name, it in real.items()))


def _on_real_broker(version: str) -> dict[str, Result]:
    broker, controller = free_ports(2)
    # kafka-python's tests assign replicas to the node id 0.
    config = {**BROKER_CONFIG, "node.id": "0", VOTERS: f"0@{HOST}:{controller}"}
    with KafkaNode(version, ports=Ports(broker, controller), config=config) as node:
        return _run(f"Kafka {version}", node.bootstrap)


def _run(broker: str, bootstrap: str = "") -> dict[str, Result]:
    """Runs the tests, and prints the number of tests by outcome, and the time."""
    started = time.monotonic()
    results = run_suite(bootstrap)
    took = time.monotonic() - started
    print(f"kafka-python {RELEASE} on {broker}: {_counts(results)}, in {took:.0f} s", flush=True)
    return results


def _counts(results: dict[str, Result]) -> str:
    counts = Counter(it.outcome for it in results.values())
    return ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped"))


if __name__ == "__main__":
    sys.exit(main())
