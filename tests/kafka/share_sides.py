"""Sends requests of share group members to a real or embedded broker, and compares responses.

Members generate their own ids, so both brokers get the same member ids. The embedded broker uses
the topic ids of the real broker, because assignments depend on the ids.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kproto import Client
from kproto.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kproto.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kproto.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.share_acknowledge_request import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kproto.messages.share_fetch_request import (
    AcknowledgementBatch as FetchAcknowledgementBatch,
)
from kproto.messages.share_fetch_request import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from kproto.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from kproto.messages.share_group_describe_request import ShareGroupDescribeRequest
from kproto.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kproto.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
)
from kproto.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from kproto.messages.share_snapshot_key import ShareSnapshotKey
from kproto.messages.share_update_key import ShareUpdateKey
from kproto.protocol.error_codes import error_code
from kproto.records import encode_batch, read_batches
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record
from kproto.wire.uuid import Uuid

from .group_sides import PATIENCE_S, Side

__all__ = ["Acks", "ShareSide"]

#: The config resource type of a group.
_GROUP: Final = 32

Acks = Mapping[tuple[str, int], Sequence[tuple[int, int, Sequence[int]]]]
"""By topic and partition: first offset, last offset and acknowledge types of each batch."""


def _named(code: int) -> str:
    return error_code(code).name


class ShareSide(Side):
    """A broker, and the members of its share group `group_id`."""

    def __init__(self, bootstrap: str, group_id: str, topics: Mapping[str, Uuid]) -> None:
        super().__init__(bootstrap, group_id)
        self.topics = dict(topics)
        self._topic_names = {topic_id: name for name, topic_id in topics.items()}
        #: The names of the topics on the brokers, by the names that the scripts use.
        self.real = {name: name for name in topics}
        #: The last member epoch, and the next share session epoch, of each member.
        self.epochs: dict[str, int] = {}
        self.sessions: dict[str, int] = {}
        self.assigned: dict[str, list[tuple[str, int]]] = {}

    def drop(self, member: str) -> None:
        """Closes the connection of a member, as if the member was killed."""
        self._connections.pop(member).__exit__(None, None, None)

    # Membership

    def heartbeat(
        self,
        member: str,
        epoch: int | None = None,
        topics: Iterable[str] | None = None,
        **fields: Any,
    ) -> Any:
        """Sends ShareGroupHeartbeat, by default with the last member epoch received."""
        request = ShareGroupHeartbeatRequest(
            group_id=fields.pop("group_id", self.group_id),
            member_id=member,
            member_epoch=self.epochs.get(member, 0) if epoch is None else epoch,
            subscribed_topic_names=None
            if topics is None
            else [self.real.get(it, it) for it in topics],
            **fields,
        )
        answer = self.ask(member, request, 1)
        if answer.error_code:
            return _named(answer.error_code), answer.error_message
        if answer.member_epoch > 0:
            self.epochs[member] = answer.member_epoch
        assigned = None
        if answer.assignment is not None:
            assigned = sorted(
                (self._topic_names[it.topic_id], index)
                for it in answer.assignment.topic_partitions
                for index in it.partitions
            )
            self.assigned[member] = assigned
        return answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms, assigned

    def settle(self, *topics: str) -> None:
        """Waits until the share states of topics exist, by describing their offsets."""
        deadline = time.monotonic() + PATIENCE_S
        while any(
            "NONE" not in partition or partition[1] == -2
            for topic in topics
            for partition in self.describe_offsets(topic)[1]
        ):
            assert time.monotonic() < deadline, self.describe_offsets(*topics)
            time.sleep(0.05)

    def describe_share(self) -> Any:
        request = ShareGroupDescribeRequest(group_ids=[self.group_id])
        (group,) = self.ask("nobody", request, 1).groups
        if group.error_code:
            return _named(group.error_code), group.error_message
        members = sorted(
            (
                it.member_id,
                it.rack_id,
                it.member_epoch,
                it.client_id,
                it.client_host,
                sorted(it.subscribed_topic_names),
                sorted(
                    (topic.topic_name, sorted(topic.partitions))
                    for topic in it.assignment.topic_partitions
                ),
            )
            for it in group.members
        )
        return (
            group.group_state,
            group.group_epoch,
            group.assignment_epoch,
            group.assignor_name,
            members,
        )

    # Records

    def produce(self, topic: str, partition: int, count: int, age_ms: int = 0) -> int:
        """Produces one batch of `count` records that are `age_ms` old; returns its base offset."""
        now_ms = int(time.time() * 1000) - age_ms
        records = encode_batch([(None, b"v%d" % at, (), now_ms) for at in range(count)])
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    topic_id=self.topics[topic],
                    partition_data=[PartitionProduceData(index=partition, records=records)],
                )
            ],
        )
        deadline = time.monotonic() + PATIENCE_S
        while True:  # a new topic may have no leader yet
            (part,) = self.ask("producer", request, 13).responses[0].partition_responses
            if not part.error_code:
                return int(part.base_offset)
            assert time.monotonic() < deadline, _named(part.error_code)
            time.sleep(0.05)

    def transact(self, topic: str, partition: int, count: int, *, commits: bool) -> None:
        """Produces `count` records in a transaction, and commits or aborts the transaction."""
        now_ms = int(time.time() * 1000)
        name = f"{self.group_id}-producer"
        init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=30_000)
        deadline = time.monotonic() + PATIENCE_S
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        while True:
            self.ask("producer", find, 4)  # the first lookup creates the topic of the coordinator
            identity = self.ask("producer", init, 5)
            if not identity.error_code:
                break
            assert time.monotonic() < deadline, _named(identity.error_code)
            time.sleep(0.05)
        records = encode_batch(
            [(None, b"t%d" % at, (), now_ms) for at in range(count)],
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = PartitionProduceData(index=partition, records=records)
        topic_data = TopicProduceData(topic_id=self.topics[topic], partition_data=[data])
        request = ProduceRequest(
            transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=[topic_data]
        )
        (part,) = self.ask("producer", request, 13).responses[0].partition_responses
        assert not part.error_code, _named(part.error_code)
        end = EndTxnRequest(
            transactional_id=name,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=commits,
        )
        answer = self.ask("producer", end, 5)
        assert not answer.error_code, _named(answer.error_code)
        time.sleep(0.3)  # a real broker writes the marker after it responds

    def fetch(
        self,
        member: str,
        partitions: Iterable[tuple[str, int]] = (),
        *,
        epoch: int | None = None,
        acks: Acks | None = None,
        forgotten: Iterable[tuple[str, int]] = (),
        version: int = 2,
        **fields: Any,
    ) -> Any:
        """Sends ShareFetch; returns the error name, the lock timeout and the partitions."""
        acks = acks or {}
        sent = self.sessions.get(member, 0) if epoch is None else epoch
        topics: dict[str, list[FetchPartition]] = {}
        for name, index in dict.fromkeys((*partitions, *acks)):
            batches = [
                FetchAcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=list(c))
                for a, b, c in acks.get((name, index), ())
            ]
            topics.setdefault(name, []).append(
                FetchPartition(partition_index=index, acknowledgement_batches=batches)
            )
        values = {
            "max_wait_ms": 400,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **fields,
        }
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=member,
            share_session_epoch=sent,
            topics=[FetchTopic(topic_id=self.topics[it], partitions=v) for it, v in topics.items()],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=self.topics[name], partitions=[index])
                for name, index in forgotten
            ],
            **values,
        )
        answer = self.ask(member, request, version)
        if not answer.error_code:
            self.sessions[member] = 0 if sent == -1 else sent + 1
        parts = sorted(
            (
                self._topic_names[topic.topic_id],
                it.partition_index,
                _named(it.error_code),
                _named(it.acknowledge_error_code),
                [(a.first_offset, a.last_offset, a.delivery_count) for a in it.acquired_records],
                [
                    record.value
                    for batch in read_batches(it.records or b"")
                    for record in batch.records()
                ],
            )
            for topic in answer.responses
            for it in topic.partitions
        )
        return _named(answer.error_code), answer.acquisition_lock_timeout_ms, parts

    def acknowledge(
        self, member: str, acks: Acks, *, epoch: int | None = None, version: int = 2, **fields: Any
    ) -> Any:
        """Sends ShareAcknowledge; returns the error name, the lock timeout and the partitions."""
        sent = self.sessions.get(member, 0) if epoch is None else epoch
        topics: dict[str, list[AcknowledgePartition]] = {}
        for (name, index), batches in acks.items():
            topics.setdefault(name, []).append(
                AcknowledgePartition(
                    partition_index=index,
                    acknowledgement_batches=[
                        AcknowledgementBatch(
                            first_offset=a, last_offset=b, acknowledge_types=list(c)
                        )
                        for a, b, c in batches
                    ],
                )
            )
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=member,
            share_session_epoch=sent,
            topics=[
                AcknowledgeTopic(topic_id=self.topics[it], partitions=v) for it, v in topics.items()
            ],
            **fields,
        )
        answer = self.ask(member, request, version)
        if not answer.error_code:
            self.sessions[member] = 0 if sent == -1 else sent + 1
        parts = sorted(
            (self._topic_names[topic.topic_id], it.partition_index, _named(it.error_code))
            for topic in answer.responses
            for it in topic.partitions
        )
        return _named(answer.error_code), answer.acquisition_lock_timeout_ms, parts

    # The share coordinator

    def ask_state(self, request: Any, version: int = 0) -> Any:
        """Sends a request of the share coordinator; returns its results as text."""
        answer = self.ask("nobody", request, version)
        return sorted(
            [repr(part) for result in answer.results for part in result.partitions], key=str
        )

    def records(self) -> list[tuple[object, ...]]:
        """Returns the group's records in `__consumer_offsets` and `__share_group_state`.

        A hash or a timestamp is not shown. Topics in a record are sorted, and so are records of
        different share partitions, because a real broker writes them in any order.
        """

        async def read() -> list[CoordinatorRecord]:
            found = []
            async with Client(self.bootstrap) as client:
                for topic in ("__consumer_offsets", "__share_group_state"):
                    async for record in client.consumer(topic, stop_at_end=True):
                        it = decode_coordinator_record(record)
                        if isinstance(it, CoordinatorRecord) and (
                            getattr(it.key, "group_id", None) == self.group_id
                        ):
                            found.append(it)
            return found

        shown = [self._record(it) for it in asyncio.run(read())]
        runs = itertools.groupby(shown, key=lambda it: it[-1] == "tombstone")
        # Tombstones have the order of a hash map over ids.
        ordered = [it for gone, run in runs for it in (sorted(run, key=str) if gone else run)]
        return sorted(ordered, key=lambda it: str(it[1]) if "Share" in str(it[0]) else "")

    def _record(self, record: CoordinatorRecord) -> tuple[object, ...]:
        key, value = record.key, record.value
        place = ""
        if isinstance(key, ShareSnapshotKey | ShareUpdateKey):
            place = f"{self._topic_names[key.topic_id]}-{key.partition}"
        member = getattr(key, "member_id", "")
        if value is None:
            return type(key).__name__, place, member, "tombstone"
        if isinstance(value, ShareGroupStatePartitionMetadataValue):
            for topics in (value.initializing_topics, value.initialized_topics):
                topics.sort(key=lambda it: it.topic_name)
            value.deleting_topics.sort(key=lambda it: it.topic_name)
        elif isinstance(value, ShareGroupTargetAssignmentMemberValue):
            # A real broker also writes the topics of which a member has lost all partitions.
            targets = [it for it in value.topic_partitions if it.partitions]
            value.topic_partitions = sorted(targets, key=lambda it: it.topic_id)
        elif isinstance(value, ShareGroupCurrentMemberAssignmentValue):
            value.assigned_partitions.sort(key=lambda it: it.topic_id)
        text = repr(value)
        for name in (
            "metadata_hash",
            "assignment_timestamp",
            "create_timestamp",
            "write_timestamp",
        ):
            text = re.sub(rf"{name}=(-?\d+)", rf"{name}", text)
        return type(key).__name__, place, member, text

    # Offsets and configs

    def describe_offsets(self, *topics: str, partitions: Sequence[int] = (0, 1, 2)) -> Any:
        wanted = DescribeShareGroupOffsetsRequestGroup(
            group_id=self.group_id,
            topics=[
                DescribeShareGroupOffsetsRequestTopic(
                    topic_name=self.real.get(name, name), partitions=list(partitions)
                )
                for name in topics
            ]
            or None,
        )
        (group,) = self.ask("nobody", DescribeShareGroupOffsetsRequest(groups=[wanted]), 1).groups
        return _named(group.error_code), sorted(
            (
                topic.topic_name,
                it.partition_index,
                it.start_offset,
                it.leader_epoch,
                it.lag,
                _named(it.error_code),
            )
            for topic in group.topics
            for it in topic.partitions
        )

    def alter_offsets(self, *offsets: tuple[str, int, int]) -> Any:
        request = AlterShareGroupOffsetsRequest(
            group_id=self.group_id,
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=self.real.get(name, name),
                    partitions=[
                        AlterShareGroupOffsetsRequestPartition(
                            partition_index=index, start_offset=offset
                        )
                    ],
                )
                for name, index, offset in offsets
            ],
        )
        answer = self.ask("nobody", request, 0)
        return _named(answer.error_code), sorted(
            (topic.topic_name, it.partition_index, _named(it.error_code), it.error_message)
            for topic in answer.responses
            for it in topic.partitions
        )

    def delete_offsets(self, *topics: str) -> Any:
        request = DeleteShareGroupOffsetsRequest(
            group_id=self.group_id,
            topics=[
                DeleteShareGroupOffsetsRequestTopic(topic_name=self.real.get(name, name))
                for name in topics
            ],
        )
        answer = self.ask("nobody", request, 0)
        return _named(answer.error_code), sorted(
            (it.topic_name, _named(it.error_code), it.error_message) for it in answer.responses
        )

    def set_config(self, **configs: str) -> Any:
        """Sets configs of the group; underscores in the names stand for dots."""
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=_GROUP,
                    resource_name=self.group_id,
                    configs=[
                        AlterableConfig(
                            name=name.replace("_", "."), config_operation=0, value=value
                        )
                        for name, value in configs.items()
                    ],
                )
            ]
        )
        (result,) = self.ask("nobody", request, 1).responses
        return _named(result.error_code), result.error_message
