"""Creates, writes and reads partition 0 of a topic over a blocking connection.

A test can send Produce and Fetch in any version up to v12; later versions have topic ids only.

`RawTopic` works with real brokers and the embedded broker, and does not decode the records of a
response.
"""

from __future__ import annotations

import time
from typing import NamedTuple, Self

from kproto.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from kproto.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.fetch_response import PartitionData
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.protocol.error_codes import error_code

from .raw_connection import RawConnection

__all__ = ["Produced", "RawTopic"]

PATIENCE_S = 20.0
_CREATE_VERSION = 4
_PRODUCE_VERSION = 9
_FETCH_VERSION = 12
_MAX_BYTES = 4 << 20


class Produced(NamedTuple):
    """The response to a produce request: error name, base offset and append time in ms."""

    error: str
    base_offset: int
    log_append_time: int


class RawTopic:
    """Partition 0 of a topic."""

    def __init__(self, connection: RawConnection, name: str) -> None:
        self.connection = connection
        self.name = name

    @classmethod
    def create(cls, connection: RawConnection, name: str, **configs: str) -> Self:
        """Creates a topic of one partition and waits until it is readable.

        Names of configs have underscores instead of dots.
        """
        wanted = CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        (made,) = connection.exchange(CreateTopicsRequest(topics=[wanted]), _CREATE_VERSION).topics
        assert made.error_code == 0, made
        topic = cls(connection, name)
        deadline = time.monotonic() + PATIENCE_S
        while topic.fetch(0).error_code:
            assert time.monotonic() < deadline, f"topic {name} does not become readable"
            time.sleep(0.05)
        return topic

    def produce(self, records: bytes, version: int = _PRODUCE_VERSION) -> Produced:
        """Produces `records`; returns the response, even if it has an error."""
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=self.name, partition_data=[data])],
        )
        (answer,) = self.connection.exchange(request, version).responses[0].partition_responses
        name = error_code(answer.error_code).name
        return Produced(name, answer.base_offset, answer.log_append_time_ms)

    def append(self, records: bytes) -> int:
        """Produces `records`, which must succeed; returns the base offset."""
        produced = self.produce(records)
        assert produced.error == "NONE", produced
        return produced.base_offset

    def fetch(
        self, offset: int, version: int = _FETCH_VERSION, max_bytes: int = _MAX_BYTES
    ) -> PartitionData:
        """Returns the partition's data in the response to a fetch from `offset`."""
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=_MAX_BYTES,
            topics=[FetchTopic(topic=self.name, partitions=[wanted])],
        )
        (answer,) = self.connection.exchange(request, version).responses[0].partitions
        return answer

    def read(
        self, offset: int, version: int = _FETCH_VERSION, max_bytes: int = _MAX_BYTES
    ) -> bytes:
        """Returns the bytes of the records in a fetch from `offset`."""
        return self.fetch(offset, version, max_bytes).records or b""
