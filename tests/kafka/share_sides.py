"""Sends requests of share group members to a real or embedded broker, and compares responses.

Members generate their own ids, so both brokers get the same member ids. The embedded broker uses
the topic ids of the real broker, because assignments depend on the ids.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
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
from kproto.messages.share_group_describe_request import ShareGroupDescribeRequest
from kproto.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kproto.protocol.error_codes import error_code
from kproto.records import encode_batch, read_batches
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

    def produce(self, topic: str, partition: int, count: int) -> int:
        """Produces one batch of `count` records; returns its base offset."""
        records = encode_batch(
            [(None, b"v%d" % at, (), 1_700_000_000_000 + at) for at in range(count)]
        )
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
