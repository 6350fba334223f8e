"""Tests `kproto proxy --rewrite` between other clients and brokers, and its recording."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kproto import Client
from tests.support.embedded import threaded_broker
from tests.support.proxy_command import capture, proxy
from tests.support.selection import rest_slow

pytestmark = pytest.mark.peers

SCRIPTS = Path(__file__).parent / "peer_scripts"
TIMEOUT_S = 60


def run(python: Path, script: str, *arguments: str) -> Any:
    done = subprocess.run(
        [python, SCRIPTS / script, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("peer", rest_slow(["aiokafka", "confluent_kafka", "kafka_python"], 1, 1))
def test_a_peer_writes_and_reads_through_the_proxy(
    peer: str, peers_python: Path, tmp_path: Path
) -> None:
    script, recording = f"with_{peer}.py", tmp_path / "recording"
    with threaded_broker() as broker, proxy(broker.bootstrap, recording) as running:
        written = run(peers_python, script, running.address, peer, "write")
        read = run(peers_python, script, running.address, peer, "read", "200")
        running.end()
    assert sorted(written) == list(range(200))
    assert len(read) == 200
    seen = running.seen()
    assert {kind for _, _, kind in seen} <= {"message", "unanswered"}
    for api in ("ApiVersions", "Metadata", "Produce", "Fetch", "CreateTopics"):
        assert seen["client", api, "message"] >= seen["broker", api, "message"] > 0
    sums = json.loads(capture(str(recording), "--stats", "--json"))
    assert sums["Produce"]["count"] == seen["client", "Produce", "message"]
    listed = [json.loads(line) for line in capture(str(recording), "--json").splitlines()]
    assert Counter(line["api"] for line in listed) == {
        api: count for (side, api, _), count in seen.items() if side == "client"
    }


async def test_a_cluster_of_several_brokers_behind_one_proxy(
    peers_python: Path, tmp_path: Path
) -> None:
    """Clients reach the brokers of librdkafka's mock cluster only through the proxy's ports."""
    cluster = subprocess.Popen(  # noqa: ASYNC220 - nothing else waits meanwhile
        [peers_python, SCRIPTS / "mock_cluster.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with cluster:
        try:
            assert cluster.stdout is not None
            brokers = json.loads(cluster.stdout.readline())
            with proxy(brokers[0], tmp_path / "recording") as running:
                found = run(peers_python, "through_mock_cluster.py", running.address, "seen")
                async with Client(running.address) as client, client.producer() as producer:
                    partitions = (await client.refresh(["seen"]))[0].partitions
                    for node in client.cluster.brokers:  # may lead no partition
                        await client.connection(node)
                    for partition in range(len(partitions)):
                        ack = await producer.send("seen", b"ours", partition=partition)
                        assert ack.offset == 10
                running.end()
        finally:
            cluster.kill()
    partitions_count = found["partitions"]
    assert found == {
        "partitions": partitions_count,
        "left": 0,
        "failed": [],
        "read": 10 * partitions_count,
    }
    assert partitions_count > 1
    notices = [line["notice"] for line in running.told if "notice" in line]
    met = [notice for notice in notices if " is advertised as 127.0.0.1:" in notice]
    assert len(met) == len(brokers) == 3
    assert {notice.split()[3] for notice in met} == set(brokers)
    # Each broker was reached by its own port.
    assert {n.split()[-1] for n in notices if " connected, to " in n} == set(brokers)
    seen = running.seen()
    assert seen["broker", "Produce", "message"] == seen["client", "Produce", "message"] > 0
