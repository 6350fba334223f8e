"""Provides share groups on real brokers, with short locks, for tests of share consumers."""

from __future__ import annotations

import uuid
from typing import Any

import kproto
from kproto import NewTopic, ProducerRecord, ShareConsumer
from kproto.client.admin.configs import ConfigResource, ConfigResourceType

__all__ = ["SHARE_CONFIG", "SHARE_VERSION", "ShareQueue"]

#: The release whose brokers have share groups by default.
SHARE_VERSION = "4.4.0"

#: Frequent heartbeats, and locks that tests may wait for.
SHARE_CONFIG = {
    "group.share.min.heartbeat.interval.ms": "50",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "15000",
    "group.share.partition.max.record.locks": "2000",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class ShareQueue:
    """A topic and a share group with new names; the group begins at the start of the topic."""

    def __init__(self, client: kproto.Client, partitions: int = 1) -> None:
        name = uuid.uuid4().hex[:8]
        self.client = client
        self.topic, self.group = f"jobs-{name}", f"workers-{name}"
        self.partitions = partitions

    async def create(self, **configs: str) -> ShareQueue:
        """Creates the topic, and sets configs of the group, with `_` for `.`."""
        await self.client.create_topics(NewTopic(self.topic, self.partitions))
        await self.configure(**configs)
        await self.client.topic(self.topic)
        return self

    async def configure(self, **configs: str) -> None:
        """Sets configs of the group, with `_` for `.`."""
        its = {"share.auto.offset.reset": "earliest"}
        its |= {name.replace("_", "."): value for name, value in configs.items()}
        resource = ConfigResource(ConfigResourceType.GROUP, self.group)
        await self.client.admin.incremental_alter_configs({resource: its})

    async def produce(self, first: int, count: int = 1) -> None:
        """Appends records with the numbers from `first` on as values."""
        await self.send(*[b"%d" % at for at in range(first, first + count)])

    async def send(self, *values: bytes) -> None:
        """Appends records with `values`, to the partitions in turn."""
        async with self.client.producer() as producer:
            await producer.send_many(
                self.topic,
                [
                    ProducerRecord(value, partition=at % self.partitions)
                    for at, value in enumerate(values)
                ],
            )

    async def lag(self) -> int:
        """Returns the number of records that are neither accepted nor archived."""
        found = await self.client.admin.list_share_group_offsets({self.group: None})
        ends = await self.client.list_offsets(
            {(self.topic, partition): "latest" for partition in range(self.partitions)}
        )
        lags = {tp: each.lag for tp, each in found[self.group].items() if each is not None}
        return sum(lags.get(tp) or (0 if tp in lags else end) for tp, end in ends.items())

    def consumer(self, *, explicit: bool = True, **settings: Any) -> ShareConsumer[Any, Any, Any]:
        """Creates a consumer of the queue."""
        mode: Any = "explicit" if explicit else "implicit"
        settings = {"max_wait_ms": 200, **settings}
        return self.client.share_consumer(
            self.topic, group=self.group, acknowledgement=mode, **settings
        )
