"""Tests how brokers of old releases are set up: jars, settings, ZooKeeper."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path, PurePosixPath

import pytest

from tools.kafka import OLD_VERSIONS, KafkaCluster, KafkaStartError
from tools.kafka.old_releases import (
    has_topic_requests,
    needs_zookeeper,
    old_release,
    old_server_properties,
    zookeeper_properties,
)
from tools.kafka.properties import Ports
from tools.setup.ports import free_ports

PORTS = Ports(broker=1, controller=2)
SCRIPT = Path(__file__).parents[3] / "tools" / "kafka" / "with_zookeeper.py"


@pytest.mark.parametrize(
    ("version", "needed"), [("0.8.2.2", True), ("2.8.2", True), ("3.9.2", False), ("4.4.0", False)]
)
def test_releases_before_kraft_need_zookeeper(version: str, needed: bool) -> None:
    assert needs_zookeeper(version) == needed
    assert all(map(needs_zookeeper, OLD_VERSIONS))


@pytest.mark.parametrize(
    ("version", "scala", "further"),
    [("0.8.2.2", "2.11", 0), ("0.10.2.2", "2.11", 1), ("2.0.1", "2.12", 2), ("2.8.2", "2.13", 1)],
)
def test_jars_follow_from_the_release(version: str, scala: str, further: int) -> None:
    found = old_release(version)
    assert (found.scala, len(found.further)) == (scala, further)


def test_settings_name_the_ports_of_broker_and_zookeeper() -> None:
    folder = PurePosixPath("/node")
    oldest = old_server_properties("0.8.2.2", folder, PORTS, {})
    assert (oldest["port"], oldest["host.name"]) == ("1", "127.0.0.1")
    later = old_server_properties("0.9.0.1", folder, PORTS, {"broker.id": "7"})
    assert (later["listeners"], later["broker.id"]) == ("PLAINTEXT://127.0.0.1:1", "7")
    assert later["zookeeper.connect"] == "127.0.0.1:2"
    assert zookeeper_properties(folder, PORTS)["clientPort"] == "2"


def test_brokers_create_topics_by_metadata_if_clients_have_no_request_for_it() -> None:
    for version, automatic in (("0.10.0.1", "true"), ("0.10.2.2", "false")):
        assert has_topic_requests(version) == (automatic == "false")
        found = old_server_properties(version, PurePosixPath("/node"), PORTS, {})
        assert found["auto.create.topics.enable"] == automatic


def test_a_cluster_of_an_old_release_is_refused() -> None:
    with pytest.raises(KafkaStartError, match=r"0\.9\.0\.1 runs with ZooKeeper, as one broker"):
        KafkaCluster("0.9.0.1")


def listener(port: int, path: Path) -> list[str]:
    """Returns a command that listens on the port, and writes to `path` when it is stopped."""
    program = (
        "import signal, socket, sys, time\n"
        f"s = socket.create_server(('127.0.0.1', {port}))\n"
        "def stop(*_):\n"
        f"    open({str(path)!r}, 'a').write('zookeeper\\n')\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "time.sleep(60)\n"
    )
    return [sys.executable, "-c", program]


def broker(path: Path) -> list[str]:
    program = (
        "import signal, sys, time\n"
        "def stop(*_):\n"
        "    time.sleep(0.2)\n"
        f"    open({str(path)!r}, 'a').write('broker\\n')\n"
        "    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        f"open({str(path)!r}, 'a').write('started\\n')\n"
        "time.sleep(60)\n"
    )
    return [sys.executable, "-c", program]


def wait_for(path: Path, line: str) -> None:
    deadline = time.monotonic() + 30
    while not path.exists() or line not in path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_zookeeper_stops_after_the_broker(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (port,) = free_ports(1)
    command = [sys.executable, str(SCRIPT), "127.0.0.1", str(port), "0"]
    with subprocess.Popen([*command, *listener(port, log), "--", *broker(log)]) as running:
        wait_for(log, "started")
        running.terminate()
        assert running.wait(30) == 3
    assert log.read_text().split() == ["started", "broker", "zookeeper"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the broker")
def test_zookeeper_and_broker_end_with_a_killed_script(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (port,) = free_ports(1)
    command = [sys.executable, str(SCRIPT), "127.0.0.1", str(port), "0"]
    with subprocess.Popen([*command, *listener(port, log), "--", *broker(log)]) as running:
        wait_for(log, "started")
        running.kill()
        running.wait(30)
        wait_for(log, "zookeeper")
    deadline = time.monotonic() + 30
    while subprocess.run(["pgrep", "-f", str(log)], check=False).returncode == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
