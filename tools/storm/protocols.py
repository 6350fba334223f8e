"""By which protocol the members of a storm are in their group: the assignor says so."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["BROKERS_OWN", "BROKER_CONFIG", "MIXED", "assignor_of", "of_ours", "timed"]

#: Assignors of the broker: who goes by one is of the consumer protocol (KIP-848).
BROKERS_OWN: Final = ("uniform",)

#: Members of both protocols, by turns: the group changes its own as they come and go.
MIXED: Final = "mixed"

#: They have no consumer protocol.
_CLASSIC: Final = ("aiokafka", "kafka-python")

#: Of the broker: members begin at once, only two partitions hold what is committed, and those of
#: the consumer protocol have sessions as short as those of classic ones.
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


def assignor_of(storm: str, kind: str, number: int) -> str:
    """By which assignor a member goes, of a client and a number, in a storm of that one."""
    if storm != MIXED:
        return storm
    return "range" if kind in _CLASSIC or number % 2 else BROKERS_OWN[0]


def of_ours(assignor: str, session_ms: int, heartbeat_ms: int) -> dict[str, Any]:
    """Settings of a member of ours."""
    if assignor in BROKERS_OWN:
        return {"group_protocol": "consumer", "server_assignor": assignor}
    return timed({"group_protocol": "classic", "assignors": [assignor]}, session_ms, heartbeat_ms)


def timed(protocol: dict[str, Any], session_ms: int, heartbeat_ms: int) -> dict[str, Any]:
    """The same with its session, which in the consumer protocol is the broker's."""
    if protocol["group_protocol"] == "consumer":
        return protocol
    return protocol | {"session_timeout_ms": session_ms, "heartbeat_interval_ms": heartbeat_ms}
