"""One partition of one topic over a blocking connection: create, append, read, at any version.

Speaks to a real broker and the embedded one alike. Owns the requests; what the records of an answer
mean is the test's to say.
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
    """The answer to a produce: Kafka's name of the error, and in ms when the broker stamps."""

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
        """Create a topic of one partition, and wait until it can be read.

        A setting is written with underscores in place of the dots in its name.
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
        """Append, whatever comes of it."""
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
        """Append, which must succeed; the base offset."""
        produced = self.produce(records)
        assert produced.error == "NONE", produced
        return produced.base_offset

    def fetch(
        self, offset: int, version: int = _FETCH_VERSION, max_bytes: int = _MAX_BYTES
    ) -> PartitionData:
        """What a fetch from `offset` answers."""
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
        """The bytes of the records that a fetch from `offset` answers with."""
        return self.fetch(offset, version, max_bytes).records or b""
