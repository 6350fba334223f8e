"""Provides a broker with one share group and one topic, over the scripted broker.

The broker checks session epochs as Kafka does, locks records, and counts deliveries. It has one
partition, whose leader is node 0. A lock lasts until the record is acknowledged, the session is
closed or `expire` is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Self

from kproto.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataResponse,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kproto.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.share_acknowledge_response import (
    PartitionData as AcknowledgedPartition,
)
from kproto.messages.share_acknowledge_response import ShareAcknowledgeTopicResponse
from kproto.messages.share_fetch_response import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
)
from kproto.messages.share_group_heartbeat_response import Assignment, TopicPartitions
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of
from kproto.records import encode_batch
from kproto.wire.uuid import Uuid
from tests.unit.client.scripted_broker import ScriptedBroker

__all__ = ["TOPIC", "TOPIC_ID", "ShareBroker"]

TOPIC, TOPIC_ID = "jobs", Uuid(b"j" * 16)

_NO_SESSION = code_of("SHARE_SESSION_NOT_FOUND")
_WRONG_EPOCH = code_of("INVALID_SHARE_SESSION_EPOCH")
_RECORD_LIMIT = 1  # KIP-1206

_WRONG_STATE = code_of("INVALID_RECORD_STATE")


class ShareBroker(ScriptedBroker):
    """The broker; `acks` has the acknowledgements in order, as offset and type.

    `states` has the state of each offset: "available", the id of the member with the lock, or
    "archived" and "acknowledged".
    """

    def __init__(self, *, lock_ms: int = 30_000, batch: int = 3) -> None:
        super().__init__({TOPIC: 1})
        self.lock_ms = lock_ms
        self.batch = batch  # records of a batch, and of an acquired range
        self.waits: list[int] = []  # the longest waits of fetches, in ms
        self.states: dict[int, str] = {}
        self.deliveries: dict[int, int] = {}
        self.acks: list[tuple[int, int]] = []
        self.sessions: dict[str, int] = {}
        self.left: list[str] = []
        self.delay_s = 0.0  # between the acquisition or renewal of records and the response
        self.fault = 0  # the error code of the next fetch or acknowledgement as a whole
        self.delivery_limit: int | None = 5  # None: the broker does not have the config
        self.corrupt: set[int] = set()  # the first offsets of the corrupt batches
        self.ack_fault = 0  # the error code of the next acknowledgements
        self.answers |= {
            FindCoordinatorRequest: self.coordinator,
            ShareGroupHeartbeatRequest: self.heartbeat,
            ShareFetchRequest: self.fetch,
            ShareAcknowledgeRequest: self.acknowledge,
            DescribeConfigsRequest: self.describe_configs,
        }

    async def __aenter__(self) -> Self:
        return await super().__aenter__()

    def produce(self, count: int) -> None:
        """Appends records; the value of a record is its offset."""
        begin = len(self.states)
        self.states |= dict.fromkeys(range(begin, begin + count), "available")

    def expire(self) -> None:
        """Ends all locks."""
        for offset, state in self.states.items():
            if state not in ("available", "archived", "acknowledged"):
                self.states[offset] = "available"

    def metadata(self, asked: ReceivedRequest) -> MetadataResponse:
        found = super().metadata(asked)
        for topic in found.topics:
            topic.name = TOPIC if topic.name in (None, "") else topic.name
            if topic.name == TOPIC:
                topic.topic_id = TOPIC_ID
        return found

    def coordinator(self, asked: ReceivedRequest) -> FindCoordinatorResponse:
        request = asked.message
        assert isinstance(request, FindCoordinatorRequest)
        its: dict[str, Any] = {"node_id": 0, "host": "127.0.0.1", "port": self.port}
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key=key, **its) for key in request.coordinator_keys]
        )

    def heartbeat(self, asked: ReceivedRequest) -> ShareGroupHeartbeatResponse:
        request = asked.message
        assert isinstance(request, ShareGroupHeartbeatRequest)
        if request.member_epoch < 0:
            self.left.append(request.member_id)
            return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=-1)
        its = TopicPartitions(topic_id=TOPIC_ID, partitions=[0])
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=1,
            heartbeat_interval_ms=200,
            assignment=Assignment(topic_partitions=[its]) if not request.member_epoch else None,
        )

    def describe_configs(self, asked: ReceivedRequest) -> DescribeConfigsResponse:
        found = DescribeConfigsResult(resource_type=32, resource_name="g")
        if self.delivery_limit is not None:
            found.configs = [
                DescribeConfigsResourceResult(
                    name="share.delivery.count.limit", value=str(self.delivery_limit)
                )
            ]
        return DescribeConfigsResponse(results=[found])

    def _session_error(self, member_id: str, epoch: int) -> int:
        fault, self.fault = self.fault, 0
        if fault:
            self.sessions.pop(member_id, None)
            return fault
        if epoch == 0:
            self.sessions[member_id] = 1
            return 0
        if member_id not in self.sessions:
            return _NO_SESSION
        if epoch == -1:
            return 0
        if self.sessions[member_id] != epoch:
            return _WRONG_EPOCH
        self.sessions[member_id] += 1
        return 0

    def _apply(self, member_id: str, batches: Iterable[Any]) -> int:
        fault, self.ack_fault = self.ack_fault, 0
        for batch in batches:
            if fault:
                continue
            offsets = range(batch.first_offset, batch.last_offset + 1)
            types = batch.acknowledge_types
            types = types * len(offsets) if len(types) == 1 else types
            for offset, kind in zip(offsets, types, strict=True):
                if self.states[offset] != member_id:
                    fault = _WRONG_STATE
                    continue
                self.acks.append((offset, kind))
                states = {0: "archived", 1: "acknowledged", 2: "available", 3: "archived"}
                self.states[offset] = states.get(kind, member_id)
        return fault

    def fetch(self, asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, ShareFetchRequest)
        member_id = request.member_id or ""
        self.waits.append(request.max_wait_ms)
        code = self._session_error(member_id, request.share_session_epoch)
        if code:
            return ShareFetchResponse(error_code=code)
        batches = [
            each
            for topic in request.topics
            for part in topic.partitions
            for each in part.acknowledgement_batches
        ]
        ack_code = self._apply(member_id, batches)
        return self._later(request, member_id, ack_code)

    async def _later(
        self, request: ShareFetchRequest, member_id: str, ack_code: int
    ) -> ShareFetchResponse:
        end = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
        while "available" not in self.states.values():
            if asyncio.get_running_loop().time() >= end:
                break
            await asyncio.sleep(0.002)
        data = PartitionData(partition_index=0, acknowledge_error_code=ack_code)
        data.records = b""
        free = [each for each, its in self.states.items() if its == "available"]
        for first in sorted({each // self.batch * self.batch for each in free}):
            its = [each for each in free if first <= each < first + self.batch]
            if request.share_acquire_mode == _RECORD_LIMIT:
                its = its[: request.max_records - len(data.acquired_records)]
            batch = encode_batch(
                [(None, b"%d" % at, (), at) for at in range(first, first + self.batch)],
                base_offset=first,
            )
            if first in self.corrupt:
                batch = batch[:-1] + bytes([batch[-1] ^ 1])
            data.records += batch
            for offset in its:
                self.states[offset] = member_id
                self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
                data.acquired_records.append(
                    AcquiredRecords(
                        first_offset=offset,
                        last_offset=offset,
                        delivery_count=self.deliveries[offset],
                    )
                )
            if len(data.acquired_records) >= request.max_records:
                break
        if data.acquired_records:
            await asyncio.sleep(self.delay_s)
        topic = ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
        return ShareFetchResponse(acquisition_lock_timeout_ms=self.lock_ms, responses=[topic])

    def acknowledge(self, asked: ReceivedRequest) -> Any:
        return self._delayed(self._acknowledged(asked))

    async def _delayed(self, response: ShareAcknowledgeResponse) -> ShareAcknowledgeResponse:
        await asyncio.sleep(self.delay_s)
        return response

    def _acknowledged(self, asked: ReceivedRequest) -> ShareAcknowledgeResponse:
        request = asked.message
        assert isinstance(request, ShareAcknowledgeRequest)
        member_id = request.member_id or ""
        code = self._session_error(member_id, request.share_session_epoch)
        if code:
            return ShareAcknowledgeResponse(error_code=code)
        topics = []
        for topic in request.topics:
            for part in topic.partitions:
                fault = self._apply(member_id, part.acknowledgement_batches)
                topics.append(
                    ShareAcknowledgeTopicResponse(
                        topic_id=topic.topic_id,
                        partitions=[AcknowledgedPartition(partition_index=0, error_code=fault)],
                    )
                )
        if request.share_session_epoch == -1:
            del self.sessions[member_id]
            self.expire()
        return ShareAcknowledgeResponse(responses=topics, acquisition_lock_timeout_ms=self.lock_ms)
