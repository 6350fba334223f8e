"""The server.properties of one combined broker and controller node. Plain data in, text out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from tools.setup.ports import LOOPBACK

__all__ = ["HOST", "Ports", "render", "server_properties"]

HOST = LOOPBACK
"""Loopback only, by number: no test depends on how `localhost` resolves."""

FIXED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # One node holds the only replica of everything.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Fewer internal partitions: each costs start-up time and file handles.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    # A test's group is complete when its members have joined; waiting for more only costs time.
    "group.initial.rebalance.delay.ms": "0",
    # Records of tests carry fixed, old timestamps; a broker must not delete them for their age.
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
}
CONSUMER_PROTOCOL = {"group.coordinator.rebalance.protocols": "classic,consumer"}
"""KIP-848 is there in 3.7 to 3.9 but off; from 4.0 on the default has it."""

OLDER_THAN_4 = ("3.7", "3.8", "3.9")


@dataclass(frozen=True)
class Ports:
    """The TCP ports of a node, on `HOST`."""

    broker: int
    controller: int


def server_properties(
    version: str, folder: PurePath, ports: Ports, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of a node that keeps its data below `folder`; `overrides` win."""
    properties = dict(FIXED)
    if version.rpartition(".")[0] in OLDER_THAN_4:
        properties |= CONSUMER_PROTOCOL
    properties |= {
        "listeners": f"PLAINTEXT://{HOST}:{ports.broker},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.broker}",
        "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
        "log.dirs": str(folder / "data"),
    }
    return {**properties, **overrides}


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a properties file, escaped as java.util.Properties reads it."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
