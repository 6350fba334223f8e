"""Makes Java's VerifiableConsumer a member: fetches its jars, and converts its output to log lines.

The caller runs the command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools.kafka.jars import CACHE, SLF4J_VERSION
from tools.setup.java import java_home
from tools.setup.maven import fetch_jars

from .protocols import BROKERS_OWN

__all__ = ["RELEASE", "command", "lines_of", "resolve_tools"]

#: The newest release of Kafka's tools on Maven Central; it works with brokers of 4.4.0.
RELEASE: Final = "4.3.0"

_CLASSES: Final = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
_WORDS: Final = {"partitions_assigned": "assigned", "partitions_revoked": "revoked"}


def resolve_tools() -> Path:
    """Returns the folder with the jars of Kafka's tools; fetches it if it is missing.

    Raises MavenError.
    """
    return fetch_jars(
        CACHE.parent / "kafka-tools" / RELEASE,
        Path(__file__).with_name("pom.xml.template"),
        name=f"Kafka's tools {RELEASE}",
        sign="kafka-tools-*.jar",
        otherwise="leave Java out",
        version=RELEASE,
        slf4j_version=SLF4J_VERSION,
    )


def command(
    bootstrap: str, topic: str, group: str, assignor: str, config: Path, session_ms: int
) -> list[str]:
    """Returns the command of a member, and writes its client properties to the file `config`.

    `session_ms` is the session timeout of a classic member in ms.

    Raises MavenError and JavaNotFoundError.
    """
    if assignor in BROKERS_OWN:
        lines = ["max.poll.records=50"]
        protocol = ["--group-protocol", "consumer", "--group-remote-assignor", assignor]
    else:
        lines = [
            f"session.timeout.ms={session_ms}",
            "heartbeat.interval.ms=500",
            "max.poll.records=50",
        ]
        protocol = [
            "--session-timeout",
            str(session_ms),
            "--assignment-strategy",
            _CLASSES[assignor],
        ]
    lines.append(f"client.id={config.stem}")
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [
        str(java_home() / "bin" / "java"),
        "-Xmx96m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        str(resolve_tools() / "*"),
        "org.apache.kafka.tools.VerifiableConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group),
        *("--reset-policy", "earliest", *protocol, "--command-config", str(config)),
    ]


def lines_of(line: str) -> Iterator[str]:
    """Yields the log lines (see `members.lines`) for one line of VerifiableConsumer's output.

    Yields none if the line is not an event that a member logs.
    """
    if not line.startswith("{"):
        return
    said: dict[str, Any] = json.loads(line)
    at = f"{said['timestamp'] / 1000:.6f}"
    name = said["name"]
    if name in _WORDS:
        partitions = ",".join(str(each["partition"]) for each in said["partitions"])
        yield f"{_WORDS[name]} {at} {partitions}"
    elif name == "records_consumed":
        for each in said["partitions"]:
            for offset in range(each["minOffset"], each["maxOffset"] + 1):
                yield f"read {at} {each['partition']} {offset}"
    elif name == "offsets_committed" and not said["success"]:
        yield f"error {at} {said.get('error')}"
    elif name == "shutdown_complete":
        yield f"left {at}"
