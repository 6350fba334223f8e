"""Describes how brokers of Kafka releases with ZooKeeper run on a new Java, as plain data.

Releases before 3.3 need ZooKeeper. Their jars, and the options of the JVM, differ from release to
release; `KafkaNode` runs every later release as a broker that is also a controller (KRaft).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from .properties import HOST, Ports

__all__ = [
    "OLD_JVM_OPTIONS",
    "SESSION_TIMEOUT_MS",
    "OldRelease",
    "answers_api_versions",
    "has_headers",
    "has_topic_requests",
    "needs_zookeeper",
    "old_release",
    "old_server_properties",
    "write_log_settings",
    "zookeeper_properties",
]

#: The first release that runs without ZooKeeper in production (KIP-833).
_FIRST_KRAFT: Final = (3, 3)

#: Kafka and ZooKeeper of old releases access these packages of Java by reflection.
OLD_JVM_OPTIONS: Final = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
)

SESSION_TIMEOUT_MS: Final = 6_000
"""The session of a broker in ZooKeeper. A killed broker can register again after this time."""


class OldRelease(NamedTuple):
    """The artifacts that the jars of a release consist of, for its pom."""

    #: The Scala version in the name of the artifact `kafka_…`, the last that the release has.
    scala: str
    #: Artifacts besides Kafka's own dependencies, as `group:artifact:version`. They replace
    #: artifacts of the same name.
    further: tuple[str, ...]


_JAXB: Final = "javax.xml.bind:jaxb-api:2.3.1"
#: ZooKeeper's client 3.4.13 cannot resolve the name of its host on a new Java.
_ZOOKEEPER: Final = "org.apache.zookeeper:zookeeper:3.4.10"

#: Kafka 1.0 and 1.1 log by log4j, but do not depend on it.
_LOG4J_JAR: Final = "log4j:log4j:1.2.17"

#: The first release of each row, in ascending order.
_OLD_RELEASES: Final = (
    ((0, 8), OldRelease("2.11", ())),
    ((0, 10), OldRelease("2.11", (_JAXB,))),
    ((1, 0), OldRelease("2.11", (_JAXB, _LOG4J_JAR))),
    ((2, 0), OldRelease("2.12", (_JAXB, _ZOOKEEPER))),
    ((2, 4), OldRelease("2.13", (_JAXB,))),
)


def needs_zookeeper(version: str) -> bool:
    """Returns True if `KafkaNode` runs this release with ZooKeeper."""
    return _numbers(version) < _FIRST_KRAFT


def old_release(version: str) -> OldRelease:
    """Returns the artifacts of a release that needs ZooKeeper."""
    return [release for first, release in _OLD_RELEASES if _numbers(version) >= first][-1]


def answers_api_versions(version: str) -> bool:
    """Returns True if brokers of the release answer ApiVersions, which 0.10 introduced."""
    return _numbers(version) >= (0, 10)


def has_headers(version: str) -> bool:
    """Returns True if brokers of the release store headers, which 0.11 introduced."""
    return _numbers(version) >= (0, 11)


def has_topic_requests(version: str) -> bool:
    """Returns True if clients can create topics by CreateTopics, which 0.10.1 introduced."""
    return _numbers(version) >= (0, 10, 1)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


#: Settings that a release does not know are ignored by it.
_FIXED: Final = {
    "broker.id": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "delete.topic.enable": "true",
    # Ten years, because 0.8.2 refuses -1: test records have old timestamps.
    "log.retention.hours": "87600",
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "zookeeper.connection.timeout.ms": "30000",
}


def old_server_properties(
    version: str, folder: PurePath, ports: Ports, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Returns the settings of a broker with its data in `folder`; `overrides` take precedence.

    ZooKeeper listens on the port of the controller. A broker before 0.10.1 creates a topic when a
    client requests its metadata, because there is no other request that creates topics.
    """
    properties = dict(_FIXED)
    if _numbers(version) < (0, 9):
        properties |= {"host.name": HOST, "port": str(ports.broker)}
    else:
        properties["listeners"] = f"PLAINTEXT://{HOST}:{ports.broker}"
    properties |= {
        "auto.create.topics.enable": "false" if has_topic_requests(version) else "true",
        "zookeeper.connect": f"{HOST}:{ports.controller}",
        "log.dirs": str(folder / "data"),
    }
    return {**properties, **overrides}


def zookeeper_properties(folder: PurePath, ports: Ports) -> dict[str, str]:
    """Returns the settings of the ZooKeeper of a node with its data in `folder`."""
    return {
        "dataDir": str(folder / "zookeeper"),
        "clientPort": str(ports.controller),
        "clientPortAddress": HOST,
        "maxClientCnxns": "0",
        "tickTime": "1000",
        "admin.enableServer": "false",
    }


_LOG4J: Final = """\
log4j.rootLogger=INFO, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c - %m%n
"""


def write_log_settings(folder: Path) -> str:
    """Writes log4j's settings to `folder`; returns the option with which a JVM reads them.

    Brokers of old releases log by log4j itself, and without settings log4j logs nothing.
    """
    path = folder / "log4j.properties"
    path.write_text(_LOG4J, encoding="utf-8")
    return f"-Dlog4j.configuration={path.resolve().as_uri()}"
