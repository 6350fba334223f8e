"""Builds requests to topic t, and counts the fetches that wait at the broker."""

from __future__ import annotations

from kproto.broker import Broker
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.batches import batch_bytes

__all__ = ["fetch_request", "produce_request", "watchers"]


def produce_request(
    *, acks: int = -1, topic: str = "t", records: bytes | None = None
) -> ProduceRequest:
    data = PartitionProduceData(records=batch_bytes() if records is None else records)
    return ProduceRequest(
        acks=acks, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def fetch_request(
    offset: int = 0, *, max_wait_ms: int = 10_000, min_bytes: int = 1
) -> FetchRequest:
    wanted = FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )


def watchers(broker: Broker) -> int:
    """Returns how many fetches wait for records of t-0."""
    return len(broker.topics["t"].partitions[0].log.watchers)
