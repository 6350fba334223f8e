"""Where the tests find a real Kafka broker, and the fixtures that hand it to them.

Looked for in this order: `KPROTO_BOOTSTRAP` (host:port[,host:port...]); a Docker engine that
answers; the JVM broker of tools/kafka. Each version is started once for the whole run, when the
first test asks for it.
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
"""The version of a broker that was running already."""

CANNOT_START = (KafkaStartError, KafkaJarsError, JavaNotFoundError)


@dataclass(frozen=True)
class RunningKafka:
    """A real broker: its bootstrap servers, its version, and where it comes from."""

    bootstrap: str
    version: str
    origin: Literal["external", "docker", "jvm"]

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first bootstrap server."""
        host, _, port = self.bootstrap.partition(",")[0].rpartition(":")
        return host.strip("[]"), int(port)


class StartKafka(Protocol):
    """What the fixture `start_kafka` gives."""

    def __call__(self, version: str = ..., config: Mapping[str, str] | None = None) -> KafkaNode:
        """Start a node and wait until it answers."""


class StartCluster(Protocol):
    """What the fixture `start_cluster` gives."""

    def __call__(
        self,
        version: str = ...,
        *,
        nodes: int = ...,
        racks: Sequence[str] = ...,
        config: Mapping[str, str] | None = None,
    ) -> KafkaCluster:
        """Start a cluster and wait until its nodes know each other."""


class Brokers:
    """The brokers of one test run, each started when it is first asked for."""

    def __init__(self) -> None:
        self._running: dict[str, RunningKafka | Exception] = {}
        self._closing = contextlib.ExitStack()
        self._docker: bool | None = None

    def get(self, version: str) -> RunningKafka:
        """Return the broker of this version; a failed start is remembered and raised again."""
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
        """Stop what was started."""
        self._closing.close()

    def _start(self, version: str) -> RunningKafka:
        if self._docker is None:
            self._docker = engine_answers()
        if self._docker:
            # An engine without the image, and without a way to it, is not the end.
            with contextlib.suppress(DockerKafkaError):
                container = DockerKafka(version)
                self._closing.callback(container.close)
                return RunningKafka(container.bootstrap, version, "docker")
        node = self._closing.enter_context(KafkaNode(version))
        return RunningKafka(node.bootstrap, version, "jvm")


def versions() -> tuple[str, ...]:
    """Return the versions that tests with a broker run against."""
    return (EXTERNAL,) if os.environ.get("KPROTO_BOOTSTRAP") else VERSIONS


@pytest.fixture(scope="session")
def kafka_brokers() -> Iterator[Brokers]:
    """All real brokers of this run, by version: `kafka_brokers.get("3.9.2")`."""
    brokers = Brokers()
    yield brokers
    brokers.close()


@pytest.fixture(scope="session", params=versions())
def kafka(request: pytest.FixtureRequest, kafka_brokers: Brokers) -> RunningKafka:
    """A real broker, once for each version; mark the test `kafka`."""
    return _broker(kafka_brokers, request.param)


@pytest.fixture(scope="session")
def newest_kafka(kafka_brokers: Brokers) -> RunningKafka:
    """The newest real broker only, for tests that need one and not each."""
    return _broker(kafka_brokers, VERSIONS[0])


def _broker(brokers: Brokers, version: str) -> RunningKafka:
    try:
        return brokers.get(version)
    except CANNOT_START as error:
        not_available(f"a real Kafka {version}", error)


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """What a test needs that starts JVM nodes itself: Java, and the jars of every version."""
    try:
        java_home()
        for version in VERSIONS:
            resolve_jars(version)
    except CANNOT_START as error:
        not_available("Kafka nodes of a test's own", error)


@pytest.fixture
def start_kafka(kafka_jars: None) -> Iterator[StartKafka]:
    """Start a JVM node of the test's own: `start_kafka("4.4.0", {"num.partitions": "3"})`.

    It may be killed and started again, and is gone after the test.
    """
    with contextlib.ExitStack() as nodes:

        def start(version: str = VERSIONS[0], config: Mapping[str, str] | None = None) -> KafkaNode:
            return nodes.enter_context(KafkaNode(version, config=config))

        yield start


@pytest.fixture
def start_cluster(kafka_jars: None) -> Iterator[StartCluster]:
    """Start a cluster of the test's own: `start_cluster("4.4.0", racks=("a", "b", "c"))`.

    Its nodes may be killed and started again, and are gone after the test.
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
    """A topic name that no other test and no earlier run has used."""
    test = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name).strip("-")
    return f"{test[:80]}-{uuid.uuid4().hex[:8]}"


def kafka_command(*arguments: str) -> str:
    """What `python -m tools.kafka ARGUMENTS` prints. Raises where it fails."""
    return subprocess.run(
        [sys.executable, "-m", "tools.kafka", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
