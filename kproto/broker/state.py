"""All that the broker knows, as plain objects: who it is, its topics, the ids it gave away.

Apart from asyncio and from the protocol; handlers decide on it, `Broker` owns it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ..wire.uuid import Uuid
from .settings import BrokerSettings
from .topic_configs import TopicConfig
from .topics import Topic, Topics, partition_count

__all__ = ["BrokerState"]


class BrokerState:
    """The state of one broker, which is its cluster's only one."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings
        self.node_id = settings.node_id
        self.cluster_id = settings.cluster_id or str(Uuid.random())
        #: What clients are told to connect to; the port is known once the broker listens.
        self.host = settings.advertised_host or settings.host
        self.port = settings.port
        self.topics = Topics()
        self._next_producer_id = 0

    def now_ms(self) -> int:
        """Wall clock, in ms since the epoch."""
        return time.time_ns() // 1_000_000

    def new_producer_id(self) -> int:
        """A producer id that nobody has."""
        given = self._next_producer_id
        self._next_producer_id += 1
        return given

    def plan_topic(
        self,
        name: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        assignments: Mapping[int, Iterable[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """A topic that could be added; -1 stands for the broker's default.

        Raises BrokerResponseError with what Kafka's controller would answer.
        """
        self.topics.check_new_name(name)
        count = partition_count(
            num_partitions,
            replication_factor,
            assignments or {},
            node_id=self.node_id,
            default=self.settings.num_partitions,
            most=self.settings.max_partitions,
        )
        config = TopicConfig(configs or {}, self.settings.message_max_bytes)
        return Topic(name, count, config)
