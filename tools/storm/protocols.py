"""The group protocol of a storm's members, which depends on the assignor."""

from __future__ import annotations

import os
from typing import Any, Final

__all__ = [
    "AUTO",
    "BROKERS_OWN",
    "BROKER_CONFIG",
    "MIXED",
    "SESSION_MS",
    "SESSION_VARIABLE",
    "UNHARMED_SESSION_MS",
    "assignor_of",
    "is_classic",
    "of_ours",
    "timed",
]

#: Server-side assignors; their members use the consumer protocol (KIP-848).
BROKERS_OWN: Final = ("uniform",)

#: Members of both protocols: the group changes its protocol when members join or leave.
MIXED: Final = "mixed"

#: kproto's default: a member uses the protocol that the group has when the member joins.
AUTO: Final = "auto"

#: Clients that lack the consumer protocol.
_CLASSIC: Final = ("aiokafka", "kafka-python")
#: Clients that need ConsumerGroupHeartbeat version 1, which Kafka 3.9 lacks.
_SINCE_4: Final = ("confluent",)

#: The environment variable with the session timeout of classic members in ms.
SESSION_VARIABLE: Final = "STORM_SESSION_MS"

#: The session timeout of classic members in ms. In a storm without harm the timeout is longer than
#: any pause of a busy machine, because a session that expires in a pause looks like a fault of the
#: member.
SESSION_MS: Final = int(os.environ.get(SESSION_VARIABLE, "6000"))
UNHARMED_SESSION_MS: Final = 45_000

#: Broker settings: no initial rebalance delay, only two partitions for committed offsets, and
#: session timeouts of the consumer protocol that are as short as those of classic members.
BROKER_CONFIG: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


def is_classic(kind: str, version: str) -> bool:
    """Returns True if members of the client `kind` only use the classic protocol.

    `version` is the release of the broker.
    """
    return kind in _CLASSIC or (kind in _SINCE_4 and version.startswith("3."))


def assignor_of(storm: str, kind: str, number: int, version: str) -> str:
    """Returns the assignor of a member in a storm with assignor `storm`.

    `kind` is the member's client, `number` the member's number, and `version` Kafka's release.
    """
    if storm != MIXED:
        return storm
    if is_classic(kind, version):
        return "range"
    turns = (BROKERS_OWN[0], "range", AUTO) if kind == "kproto" else (BROKERS_OWN[0], "range")
    return turns[number % len(turns)]


def of_ours(assignor: str, session_ms: int, heartbeat_ms: int) -> dict[str, Any]:
    """Returns the consumer settings of a kproto member for an assignor."""
    times = {"session_timeout_ms": session_ms, "heartbeat_interval_ms": heartbeat_ms}
    if assignor == AUTO:
        return times
    if assignor in BROKERS_OWN:
        return {"group_protocol": "consumer", "server_assignor": assignor}
    return {"group_protocol": "classic", "assignors": [assignor]} | times


def timed(protocol: dict[str, Any], session_ms: int, heartbeat_ms: int) -> dict[str, Any]:
    """Returns the settings `protocol` with session timeout and heartbeat interval.

    If the member can only use the consumer protocol, in which the broker sets both, returns
    `protocol` unchanged.
    """
    if protocol["group_protocol"] == "consumer":
        return protocol
    return protocol | {"session_timeout_ms": session_ms, "heartbeat_interval_ms": heartbeat_ms}
