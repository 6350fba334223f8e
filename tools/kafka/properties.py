"""Creates the server.properties of combined broker and controller nodes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tools.setup.ports import LOOPBACK

__all__ = ["HOST", "VOTERS", "Ports", "cluster_properties", "render", "server_properties"]

HOST = LOOPBACK
"""The loopback address by number, because `localhost` may resolve differently."""

VOTERS = "controller.quorum.voters"
"""The property with the controllers of a cluster."""

FIXED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # A single node has the only replica of every partition.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Few internal partitions, because each costs start-up time and file handles.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    # A test waits until its members have joined; a delay would only cost time.
    "group.initial.rebalance.delay.ms": "0",
    # Test records have old timestamps; a broker must not delete them.
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
}
INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
RACK_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
CONSUMER_PROTOCOL = {"group.coordinator.rebalance.protocols": "classic,consumer"}
"""Releases 3.7 to 3.9 disable KIP-848 by default; later releases enable it."""

OLDER_THAN_4 = ("3.7", "3.8", "3.9")


@dataclass(frozen=True)
class Ports:
    """The TCP ports of a node on `HOST`."""

    broker: int
    controller: int


def server_properties(
    version: str, folder: PurePath, ports: Ports, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Returns the settings of a node with its data in `folder`; `overrides` take precedence."""
    properties = dict(FIXED)
    if version.rpartition(".")[0] in OLDER_THAN_4:
        properties |= CONSUMER_PROTOCOL
    properties |= {
        "listeners": f"PLAINTEXT://{HOST}:{ports.broker},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.broker}",
        VOTERS: f"1@{HOST}:{ports.controller}",
        "log.dirs": str(folder / "data"),
    }
    return {**properties, **overrides}


def cluster_properties(node: int, ports: Sequence[Ports], racks: Sequence[str]) -> dict[str, str]:
    """Returns the settings that a node of a cluster has besides `server_properties`.

    `node` is the node's number, from 1; `ports` has the ports of all nodes. If there are three
    nodes or more, each partition has three replicas, and two of them must be in sync. With `racks`,
    one per node, a leader directs a consumer to the replica in the consumer's rack (KIP-392).
    """
    voters = (f"{at}@{HOST}:{one.controller}" for at, one in enumerate(ports, 1))
    replicas = min(3, len(ports))
    in_sync = min(2, replicas)
    properties = {
        "node.id": str(node),
        VOTERS: ",".join(voters),
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        **{f"{name}.replication.factor": str(replicas) for name in INTERNAL_TOPICS},
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }
    if racks:
        properties |= {"broker.rack": racks[node - 1], "replica.selector.class": RACK_SELECTOR}
    return properties


def render(properties: Mapping[str, str]) -> str:
    """Returns the properties as text for java.util.Properties.

    Escapes backslashes and line feeds in values, but nothing else.
    """
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
