"""Tests librdkafka on embedded brokers that stop and start, while partition leaders move."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from kproto.broker import Cluster
from tests.support.embedded import threaded_cluster

pytestmark = pytest.mark.peers

SCRIPT = Path(__file__).parent / "peer_scripts" / "moving_confluent_kafka.py"
PARTITIONS, COUNT, TIMEOUT_S = 4, 1_000, 110


async def move(cluster: Cluster) -> None:
    """Restarts the nodes one by one, and makes each restarted node the leader of all partitions."""
    for node in cluster.nodes:
        await cluster.stop_broker(node)
        await asyncio.sleep(0.3)
        await cluster.start_broker(node)
        for partition in range(PARTITIONS):
            cluster.move_leader("t", partition, node)
        await asyncio.sleep(0.2)


def test_nothing_is_lost_or_doubled(peers_python: Path) -> None:
    with threaded_cluster(3, racks=("a", "b", "c")) as cluster:
        cluster.call(lambda it: it.create_topic("t", PARTITIONS, {"min.insync.replicas": "2"}))
        arguments = [cluster.bootstrap, "t", str(PARTITIONS), str(COUNT)]
        with subprocess.Popen([peers_python, SCRIPT, *arguments], stdout=subprocess.PIPE) as peer:
            cluster.until(lambda it: it.end_offset("t") > 5)
            cluster.wait_for(move)
            out, _ = peer.communicate(timeout=TIMEOUT_S)
        told = json.loads(out)
        stored = cluster.call(
            lambda it: [
                [int(record.value or b"") for record in it.records("t", index)]
                for index in range(PARTITIONS)
            ]
        )
    assert told["refused"] == []
    assert stored == [list(range(index, COUNT, PARTITIONS)) for index in range(PARTITIONS)]
    assert sorted(told["read"]) == list(range(COUNT))
