"""By which protocol the members of a storm are in their group: the assignor says so."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "AUTO",
    "BROKERS_OWN",
    "BROKER_CONFIG",
    "MIXED",
    "assignor_of",
    "is_classic",
    "of_ours",
    "timed",
]

#: Assignors of the broker: who goes by one is of the consumer protocol (KIP-848).
BROKERS_OWN: Final = ("uniform",)

#: Members of both protocols, by turns: the group changes its own as they come and go.
MIXED: Final = "mixed"

#: Of ours: by the protocol that its group has, as is the default.
AUTO: Final = "auto"

#: They have no consumer protocol.
_CLASSIC: Final = ("aiokafka", "kafka-python")
#: They have it where ConsumerGroupHeartbeat has version 1, which Kafka 3.9 has not.
_SINCE_4: Final = ("confluent",)

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


def is_classic(kind: str, version: str) -> bool:
    """Whether members of that client are classic ones alone, with brokers of that release."""
    return kind in _CLASSIC or (kind in _SINCE_4 and version.startswith("3."))


def assignor_of(storm: str, kind: str, number: int, version: str) -> str:
    """By which assignor a member goes, of a client and a number, in a storm of that one."""
    if storm != MIXED:
        return storm
    if is_classic(kind, version):
        return "range"
    turns = (BROKERS_OWN[0], "range", AUTO) if kind == "kproto" else (BROKERS_OWN[0], "range")
    return turns[number % len(turns)]


def of_ours(assignor: str, session_ms: int, heartbeat_ms: int) -> dict[str, Any]:
    """Settings of a member of ours."""
    times = {"session_timeout_ms": session_ms, "heartbeat_interval_ms": heartbeat_ms}
    if assignor == AUTO:
        return times
    if assignor in BROKERS_OWN:
        return {"group_protocol": "consumer", "server_assignor": assignor}
    return {"group_protocol": "classic", "assignors": [assignor]} | times


def timed(protocol: dict[str, Any], session_ms: int, heartbeat_ms: int) -> dict[str, Any]:
    """Returns the same with its session, which in the consumer protocol is the broker's."""
    if protocol["group_protocol"] == "consumer":
        return protocol
    return protocol | {"session_timeout_ms": session_ms, "heartbeat_interval_ms": heartbeat_ms}
