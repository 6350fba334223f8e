"""The brokers of a storm of share groups: three real brokers, or the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from kproto.broker import BrokerSettings, Cluster
from tools.kafka import KafkaCluster

__all__ = [
    "EMBEDDED_SETTINGS",
    "LIMIT",
    "LOCK_S",
    "NODES",
    "REAL_CONFIG",
    "EmbeddedBrokers",
    "RealBrokers",
    "StormBrokers",
]

NODES: Final = 3
#: The most deliveries of a record; Kafka's default of group.share.delivery.count.limit.
LIMIT: Final = 5
#: The duration of acquisition locks, in seconds.
LOCK_S: Final = 3.0

_LOCK_MS: Final = round(LOCK_S * 1000)
_SESSION_MS: Final = 6_000
_HEARTBEAT_MS: Final = 500

#: Settings of the real brokers. With one broker killed, each partition has two in-sync replicas, so
#: that no acknowledged write is lost. The share coordinator writes as few snapshots as it can (one
#: after 500 updates), and deletes nothing during a storm, so that its topic has most states.
REAL_CONFIG: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "500",
    "share.coordinator.state.topic.prune.interval.ms": "86400000",
    "share.coordinator.cold.partition.snapshot.interval.ms": "86400000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": str(_HEARTBEAT_MS),
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": str(_SESSION_MS),
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(_LOCK_MS),
    "group.share.delivery.count.limit": str(LIMIT),
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "5000",
}

#: The same settings of the embedded cluster.
EMBEDDED_SETTINGS: Final = BrokerSettings(
    offsets_topic_num_partitions=1,
    share_coordinator_state_topic_num_partitions=3,
    group_share_min_session_timeout_ms=1_000,
    group_share_session_timeout_ms=_SESSION_MS,
    group_share_min_heartbeat_interval_ms=100,
    group_share_heartbeat_interval_ms=_HEARTBEAT_MS,
    group_share_min_record_lock_duration_ms=1_000,
    group_share_record_lock_duration_ms=_LOCK_MS,
    group_share_delivery_count_limit=LIMIT,
)


class StormBrokers(Protocol):
    """Brokers that a storm kills and starts, by node id."""

    @property
    def title(self) -> str:
        """The brokers, for the table of the result."""
        ...

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        ...

    async def kill(self, node: int) -> None:
        """Kills a broker; its data stays."""
        ...

    async def start(self, node: int) -> None:
        """Starts a broker that was killed."""
        ...


class RealBrokers:
    """A cluster of real brokers."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster

    @property
    def title(self) -> str:
        """The brokers, for the table of the result."""
        return f"{len(self._cluster.nodes)} of Kafka {self._cluster.version}"

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return self._cluster.bootstrap

    async def kill(self, node: int) -> None:
        """Kills the process of a broker with SIGKILL."""
        await asyncio.to_thread(self._cluster.node(node).kill)

    async def start(self, node: int) -> None:
        """Starts the process of a broker again, with the same data."""
        await asyncio.to_thread(self._cluster.node(node).start)


class EmbeddedBrokers:
    """An embedded cluster. Its brokers stop as by a controlled shutdown, because none can crash."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def title(self) -> str:
        """The brokers, for the table of the result."""
        return f"{len(self._cluster.nodes)} of the embedded cluster"

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return self._cluster.bootstrap

    async def kill(self, node: int) -> None:
        """Stops a broker."""
        await self._cluster.stop_broker(node)

    async def start(self, node: int) -> None:
        """Starts a broker again."""
        await self._cluster.start_broker(node)
