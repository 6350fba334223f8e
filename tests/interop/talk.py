"""Sends requests to a real or embedded broker, in versions that both brokers support."""

from __future__ import annotations

import time
import uuid
from typing import Any

from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.base import Request
from kproto.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.produce_response import PartitionProduceResponse
from kproto.protocol.error_codes import error_code
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

__all__ = ["PATIENCE_S", "Talk", "error", "ranges"]

#: How long a new topic or coordinator of the real broker may take, in seconds.
PATIENCE_S = 20.0


class Talk:
    """A broker, and the versions of each API in which requests are sent to it.

    Names end with `run`; if `run` is empty, with a random text.
    """

    def __init__(self, bootstrap: str, ranges: dict[int, range], run: str = "") -> None:
        self.bootstrap = bootstrap
        self._ranges = ranges
        self._run = run or uuid.uuid4().hex[:6]

    def name(self, start: str) -> str:
        """Returns a name that begins with `start` and is unique to this run."""
        return f"{start}-{self._run}"

    def versions(self, request: type[Request[Any]], first: int = 0) -> range:
        """Returns the stable versions of an API, from `first` on, that both brokers support."""
        both = self._ranges[request.API_KEY]
        return range(max(first, both.start), min(both.stop, request.LATEST_STABLE + 1))

    def ask(self, request: Request[Any], version: int) -> Any:
        """Sends a request on a new connection.

        Returns the response, or None if the broker closed the connection.
        """
        with RawConnection(self.bootstrap) as connection:
            try:
                return connection.exchange(request, version)
            except ClosedByBrokerError:
                return None

    def create(self, start: str, partitions: int = 1, **configs: str) -> str:
        """Creates a topic and waits until its partitions have leaders; returns its name."""
        name = self.name(start)
        # The records of these tests have old timestamps: a real broker would soon delete them.
        settings = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in {"retention_ms": "-1", **configs}.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=settings
        )
        self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        self.topic_id(name, partitions)
        return name

    def topic_id(self, name: str, partitions: int = 1) -> Uuid:
        """Returns the id of a topic, once it has the partitions and their leaders answer.

        A controller answers before brokers learn of the partitions it created.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            (found,) = self.ask(wanted, 12).topics
            count = len(found.partitions)
            if not found.error_code and count >= partitions and self._has_leaders(name, count):
                return Uuid(found.topic_id)
            time.sleep(0.05)
        raise AssertionError(f"topic {name} did not get {partitions} partitions with leaders")

    def _has_leaders(self, name: str, partitions: int) -> bool:
        """Returns whether all leaders answer ListOffsets.

        Metadata names a leader before the leader itself is ready.
        """
        wanted = [
            ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)
        ]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=wanted)])
        (found,) = self.ask(request, 7).topics
        return not any(partition.error_code for partition in found.partitions)

    def append(self, name: str, records: bytes, version: int = 9) -> PartitionProduceResponse:
        """Produces to partition 0 and returns its response."""
        return self.produce(name, ZERO_UUID, records, version=version)

    def produce(
        self,
        name: str,
        topic_id: Uuid,
        records: bytes,
        *,
        version: int,
        partition: int = 0,
        acks: int = -1,
    ) -> PartitionProduceResponse:
        """Produces to one partition and returns its response."""
        data = PartitionProduceData(index=partition, records=records)
        topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])
        (answered,) = self.ask(request, version).responses
        (found,) = answered.partition_responses
        assert isinstance(found, PartitionProduceResponse)
        return found


def error(code: int) -> str:
    return error_code(code).name


def ranges(bootstrap: str) -> dict[int, range]:
    """Returns the versions that a broker supports, by api key."""
    with RawConnection(bootstrap) as connection:
        keys = connection.exchange(ApiVersionsRequest(), 0).api_keys
    return {key.api_key: range(key.min_version, key.max_version + 1) for key in keys}
