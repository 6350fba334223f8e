"""Tests the real brokers of the tests: release, settings, restart, stop, and start errors."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from tests.support.brokers import Brokers, RunningKafka, StartKafka, kafka_command
from tests.support.environment import ROOT
from tools.kafka import KafkaNode, KafkaStartError, running_nodes
from tools.kafka.__main__ import main
from tools.kafka.probe import accepts, answers_api_versions
from tools.setup.ports import LOOPBACK, free_ports

CONSUMER_GROUP_HEARTBEAT = 68
SHARE_FETCH = 78


def advertised(kafka: RunningKafka) -> dict[int, tuple[int, int]]:
    """Sends a hand-written ApiVersions v0; returns the broker's version ranges by api key."""
    request = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    with (
        socket.create_connection(kafka.address, 10) as connection,
        connection.makefile("rb") as answer,
    ):
        connection.sendall(request)
        (size,) = struct.unpack(">i", answer.read(4))
        body = answer.read(size)
    _, error, count = struct.unpack_from(">ihi", body)
    assert error == 0
    ranges = struct.iter_unpack(">hhh", body[10 : 10 + 6 * count])
    return {key: (lowest, highest) for key, lowest, highest in ranges}


def test_the_broker_answers(kafka: RunningKafka) -> None:
    assert advertised(kafka)[18][1] >= 3


def test_broker_has_the_requested_version(kafka: RunningKafka) -> None:
    apis = advertised(kafka)
    if kafka.version == "4.4.0":
        assert apis[1] == (4, 18), "Fetch of 4.4"
        assert SHARE_FETCH in apis
    elif kafka.version == "3.9.2":
        assert apis[1] == (0, 17), "Fetch of 3.9"
        assert CONSUMER_GROUP_HEARTBEAT in apis, "the consumer protocol must be switched on"
    else:
        assert kafka.origin == "external"


def test_a_broker_is_started_once(kafka: RunningKafka, kafka_brokers: Brokers) -> None:
    assert kafka_brokers.get(kafka.version) is kafka or kafka.origin == "external"


def test_topic_names_are_valid_and_unique(topic_name: str, request: pytest.FixtureRequest) -> None:
    assert topic_name.startswith("test_topic_names_are_valid_and_unique-")
    assert len(topic_name) <= 249


@pytest.mark.exhaustive
def test_killed_node_restarts_at_the_same_address(start_kafka: StartKafka) -> None:
    # With a longer session the controller would keep the killed broker registered for nine seconds.
    node = start_kafka(config={"broker.session.timeout.ms": "1000"})
    before = node.bootstrap
    node.kill()
    assert not answers_api_versions("127.0.0.1", node.ports.broker, 1.0)
    node.start()
    assert node.bootstrap == before
    assert answers_api_versions("127.0.0.1", node.ports.broker, 20.0)
    assert "archive" not in node.log.partition("INFO")[0]  # the JVM accepts the class archive


@pytest.mark.exhaustive
@pytest.mark.usefixtures("kafka_jars")
def test_node_ends_with_the_process_that_started_it() -> None:
    program = (
        "import os; from tools.kafka import KafkaNode\n"
        "node = KafkaNode('4.4.0'); node.start(); print(node.bootstrap, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    bootstrap = done.stdout.strip()
    deadline = time.monotonic() + 30
    while any(node.bootstrap == bootstrap for node in running_nodes()):
        assert time.monotonic() < deadline, f"{bootstrap} still runs"
        time.sleep(0.1)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("kafka_jars")
def test_a_detached_node_is_found_and_stopped_from_another_process() -> None:
    bootstrap = kafka_command("start", "--config", "num.partitions=3").strip()
    port = bootstrap.rpartition(":")[2]
    try:
        assert answers_api_versions("127.0.0.1", int(port), 20.0)
        assert f"{bootstrap}  Kafka 4.4.0" in kafka_command("status")
    finally:
        assert f"stopped Kafka 4.4.0 at {bootstrap}" in kafka_command("stop", "--port", port)
    assert not answers_api_versions("127.0.0.1", int(port), 1.0)
    assert bootstrap not in kafka_command("status")


@pytest.mark.usefixtures("kafka_jars")
def test_start_error_names_the_invalid_config() -> None:
    with pytest.raises(KafkaStartError, match=r"log\.retention\.ms"):
        KafkaNode("4.4.0", config={"log.retention.ms": "soon"}).start()


def test_port_in_use_raises_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(KafkaStartError, match=f"port {port} .* cannot be used"):
            KafkaNode("4.4.0", port=port)


def test_probe_rejects_a_port_that_is_not_kafka() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not answers_api_versions("127.0.0.1", silent.getsockname()[1], 0.2)


def test_stop_requires_a_port_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["stop"])
    assert ended.value.code == 2
    assert "--port --all" in capsys.readouterr().err


def test_open_listener_is_detected() -> None:
    (port,) = free_ports(1)  # stays free after the server closes
    with socket.create_server((LOOPBACK, port)):
        assert accepts(LOOPBACK, port, timeout_s=20.0)
    assert not accepts(LOOPBACK, port, timeout_s=1.0)
