"""Tests `KPROTO_BOOTSTRAP=docker` without an engine: the container's settings, and the skips."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from kproto.broker import running
from kproto.pytest_plugin import broker_source
from kproto.pytest_plugin.docker_broker import DockerBroker, DockerBrokerError, kafka_environment

from .conftest import RunTests

TESTS = """
import pytest

def test_broker(kafka_broker):
    kafka_broker.create_topic("orders")

@pytest.mark.kafka(release="3.9.2")
def test_release(kafka_broker): ...

def test_second_test_of_a_release(kafka_broker): ...

def test_cluster(kafka_cluster): ...
"""


class FakeContainer:
    """Records what the plugin asks of testcontainers."""

    made: ClassVar[list[FakeContainer]] = []
    fails = False

    def __init__(self, image: str) -> None:
        self.image = image
        self.ports: dict[int, int] = {}
        self.environment: dict[str, str] = {}
        self.is_running = False
        FakeContainer.made.append(self)

    def get_docker_client(self) -> Any:
        return SimpleNamespace(host=lambda: "engine.test")

    def with_bind_ports(self, container: int, host: int) -> None:
        self.ports[container] = host

    def with_env(self, name: str, value: str) -> None:
        self.environment[name] = value

    def waiting_for(self, strategy: object) -> None:
        self.strategy = strategy

    def start(self) -> None:
        if FakeContainer.fails:
            raise RuntimeError("no space left")
        self.is_running = True

    def stop(self) -> None:
        self.is_running = False


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> type[FakeContainer]:
    pytest.importorskip("testcontainers")
    monkeypatch.setattr("testcontainers.core.container.DockerContainer", FakeContainer)
    monkeypatch.setattr(FakeContainer, "made", [])
    return FakeContainer


def test_container_has_one_node_that_clients_reach(container: type[FakeContainer]) -> None:
    with DockerBroker("4.4.0") as broker:
        (made,) = container.made
        assert made.is_running
        host, _, port = broker.bootstrap.partition(":")
        assert (made.image, host, made.ports) == (
            "apache/kafka:4.4.0",
            "engine.test",
            {9092: int(port)},
        )
        assert made.environment == kafka_environment(host, int(port))
    assert not made.is_running


def test_container_that_does_not_start_is_removed_and_says_why(
    container: type[FakeContainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeContainer, "fails", True)
    with pytest.raises(DockerBrokerError, match=r"4\.4\.0 does not start.*no space left"):
        DockerBroker("4.4.0").__enter__()
    assert not container.made[0].is_running


def test_missing_testcontainers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "testcontainers.core.container", None)
    with pytest.raises(DockerBrokerError, match="needs testcontainers"):
        DockerBroker("4.4.0")


def test_tests_are_skipped_if_docker_runs_no_broker(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(release: str) -> None:
        raise DockerBrokerError("no Docker engine answers: connection refused")

    monkeypatch.setenv("KPROTO_BOOTSTRAP", "docker")
    monkeypatch.setattr(broker_source, "DockerBroker", refuse)
    result = run_tests(TESTS, "-rs")
    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*no Docker engine answers: connection refused*"])
    result.stdout.fnmatch_lines(["*Docker runs one broker, and the test needs 3*"])


@pytest.mark.slow
def test_container_of_a_release_serves_all_tests_of_a_session(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    with running() as external:

        @contextmanager
        def started(release: str) -> Iterator[Any]:
            opened.append(release)
            yield external

        monkeypatch.setenv("KPROTO_BOOTSTRAP", "docker")
        monkeypatch.setattr(broker_source, "DockerBroker", started)
        run_tests(TESTS).assert_outcomes(passed=3, skipped=1)
    assert opened == [broker_source.NEWEST, "3.9.2"]
