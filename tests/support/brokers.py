"""Finds or starts real Kafka brokers, and provides them as fixtures.

The first available source is used: the addresses in `KPROTO_BOOTSTRAP` (host:port[,host:port...]),
a running Docker engine, or the JVM broker of tools/kafka. Each version starts once per test run,
when a test first needs it.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pytest

from tools.kafka import (
    VERSIONS,
    KafkaCluster,
    KafkaJarsError,
    KafkaNode,
    KafkaStartError,
    resolve_jars,
)
from tools.setup.java import JavaNotFoundError, java_home

from .availability import not_available
from .docker_kafka import DockerKafka, DockerKafkaError, engine_answers
from .environment import ROOT

__all__ = ["Brokers", "RunningKafka", "StartCluster", "StartKafka", "kafka_command"]

EXTERNAL = "external"
"""The version reported for a broker that the test run did not start."""

CANNOT_START = (KafkaStartError, KafkaJarsError, JavaNotFoundError)


@dataclass(frozen=True)
class RunningKafka:
    """A real broker: its bootstrap servers, its version, and its source."""

    bootstrap: str
    version: str
    origin: Literal["external", "docker", "jvm"]

    @property
    def address(self) -> tuple[str, int]:
        """Returns host and port of the first bootstrap server."""
        host, _, port = self.bootstrap.partition(",")[0].rpartition(":")
        return host.strip("[]"), int(port)


class StartKafka(Protocol):
    """The type of the fixture `start_kafka`."""

    def __call__(self, version: str = ..., config: Mapping[str, str] | None = None) -> KafkaNode:
        """Starts a node and waits until it answers."""


class StartCluster(Protocol):
    """The type of the fixture `start_cluster`."""

    def __call__(
        self,
        version: str = ...,
        *,
        nodes: int = ...,
        racks: Sequence[str] = ...,
        config: Mapping[str, str] | None = None,
    ) -> KafkaCluster:
        """Starts a cluster and waits until its nodes know each other."""


class Brokers:
    """The brokers of one test run; each starts on its first use."""

    def __init__(self) -> None:
        self._running: dict[str, RunningKafka | Exception] = {}
        self._closing = contextlib.ExitStack()
        self._docker: bool | None = None

    def get(self, version: str) -> RunningKafka:
        """Returns the broker of this version, and starts it if this is the first call.

        If the start failed in an earlier call, raises the error of that start again.

        If `KPROTO_BOOTSTRAP` is set, ignores `version` and returns the broker at this address.
        """
        external = os.environ.get("KPROTO_BOOTSTRAP")
        if external:
            return RunningKafka(external, EXTERNAL, "external")
        if version not in self._running:
            try:
                self._running[version] = self._start(version)
            except CANNOT_START as error:
                self._running[version] = error
        found = self._running[version]
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """Stops the brokers that this object started."""
        self._closing.close()

    def _start(self, version: str) -> RunningKafka:
        if self._docker is None:
            self._docker = engine_answers()
        if self._docker:
            # If the engine can get no image, the JVM broker is used.
            with contextlib.suppress(DockerKafkaError):
                container = DockerKafka(version)
                self._closing.callback(container.close)
                return RunningKafka(container.bootstrap, version, "docker")
        node = self._closing.enter_context(KafkaNode(version))
        return RunningKafka(node.bootstrap, version, "jvm")


def versions() -> tuple[str, ...]:
    """Returns the Kafka versions on which tests with a broker run."""
    return (EXTERNAL,) if os.environ.get("KPROTO_BOOTSTRAP") else VERSIONS


@pytest.fixture(scope="session")
def kafka_brokers() -> Iterator[Brokers]:
    """Yields all real brokers of this run, by version: `kafka_brokers.get("3.9.2")`."""
    brokers = Brokers()
    yield brokers
    brokers.close()


@pytest.fixture(scope="session", params=versions())
def kafka(request: pytest.FixtureRequest, kafka_brokers: Brokers) -> RunningKafka:
    """Returns a real broker of each version in turn. Mark the test `kafka`."""
    return _broker(kafka_brokers, request.param)


@pytest.fixture(scope="session")
def newest_kafka(kafka_brokers: Brokers) -> RunningKafka:
    """Returns a real broker of the newest version. Mark the test `kafka`."""
    return _broker(kafka_brokers, VERSIONS[0])


def _broker(brokers: Brokers, version: str) -> RunningKafka:
    try:
        return brokers.get(version)
    except CANNOT_START as error:
        not_available(f"a real Kafka {version}", error)


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """Fetches Java and the jars of every version, for tests that start JVM nodes themselves."""
    try:
        java_home()
        for version in VERSIONS:
            resolve_jars(version)
    except CANNOT_START as error:
        not_available("Kafka nodes of a test's own", error)


@pytest.fixture
def start_kafka(kafka_jars: None) -> Iterator[StartKafka]:
    """Starts JVM nodes for one test: `start_kafka("4.4.0", {"num.partitions": "3"})`.

    The test may kill a node and start it again. All nodes stop after the test.
    """
    with contextlib.ExitStack() as nodes:

        def start(version: str = VERSIONS[0], config: Mapping[str, str] | None = None) -> KafkaNode:
            return nodes.enter_context(KafkaNode(version, config=config))

        yield start


@pytest.fixture
def start_cluster(kafka_jars: None) -> Iterator[StartCluster]:
    """Starts clusters for one test: `start_cluster("4.4.0", racks=("a", "b", "c"))`.

    The test may kill nodes and start them again. All clusters stop after the test.
    """
    with contextlib.ExitStack() as clusters:

        def start(
            version: str = VERSIONS[0],
            *,
            nodes: int = 3,
            racks: Sequence[str] = (),
            config: Mapping[str, str] | None = None,
        ) -> KafkaCluster:
            cluster = KafkaCluster(version, nodes=nodes, racks=racks, config=config)
            return clusters.enter_context(cluster)

        yield start


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """Returns a topic name that no other test and no earlier run has used."""
    test = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name).strip("-")
    return f"{test[:80]}-{uuid.uuid4().hex[:8]}"


def kafka_command(*arguments: str) -> str:
    """Returns the output of `python -m tools.kafka ARGUMENTS`; raises an error if it fails."""
    return subprocess.run(
        [sys.executable, "-m", "tools.kafka", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
