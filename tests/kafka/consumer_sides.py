"""Sends requests of KIP-848 members to a real or embedded broker, and compares responses.

Members generate their own ids, so both brokers get the same member ids. The embedded broker uses
the topic ids of the real broker. The ids must be equal, because assignments depend on member ids
and topic ids.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kproto import Client
from kproto.messages.base import Request
from kproto.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kproto.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kproto.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kproto.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kproto.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kproto.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from kproto.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kproto.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.group_metadata_value import GroupMetadataValue
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kproto.protocol.error_codes import error_code
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record
from kproto.wire.uuid import Uuid

from .group_sides import PATIENCE_S, Side

__all__ = ["ConsumerSide", "is_uuid"]

#: The config resource type of a group.
_GROUP: Final = 32

#: The length of a Uuid as Kafka writes it, in characters.
_GIVEN_CHARS: Final = 22


def is_uuid(member_id: str) -> bool:
    """Returns whether a coordinator of the consumer protocol generated the member id."""
    return len(member_id) == _GIVEN_CHARS


class ConsumerSide(Side):
    """A broker, and the members of its group `group_id`; members may use both group protocols.

    `topics` maps topic names to topic ids. An old broker's group epochs are lower than a new
    broker's by a constant; `behind` is this difference.
    """

    def __init__(
        self, bootstrap: str, group_id: str, topics: Mapping[str, Uuid], behind: int = 0
    ) -> None:
        super().__init__(bootstrap, group_id)
        self.topics = dict(topics)
        self.epochs: dict[str, int] = {}
        #: The last assignment that each member received, by topic name.
        self.assigned: dict[str, dict[str, list[int]]] = {}
        self.version = 0 if behind else 1
        self._behind = behind

    def heartbeat(
        self,
        member: str,
        epoch: int | None = None,
        *,
        topics: Iterable[str] | None = None,
        regex: str | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        rebalance_ms: int = -1,
        version: int | None = None,
        **fields: Any,
    ) -> Any:
        """Sends ConsumerGroupHeartbeat, by default with the last member epoch received.

        Returns the error name if the response has an error. Otherwise returns member id, member
        epoch, heartbeat interval in ms, and assignment. The assignment maps topics to partitions,
        or is None if the response has no assignment.
        """
        version = self.version if version is None else version
        sent = self.epochs.get(member, 0) if epoch is None else epoch
        request = ConsumerGroupHeartbeatRequest(
            group_id=fields.pop("group_id", self.group_id),
            member_id=fields.pop("member_id", member),
            member_epoch=sent - self._behind if sent > 0 else sent,
            rebalance_timeout_ms=rebalance_ms,
            subscribed_topic_names=None if topics is None else list(topics),
            topic_partitions=None
            if owned is None
            else [
                TopicPartitions(topic_id=self.topics[name], partitions=list(its))
                for name, its in owned.items()
            ],
            **fields,
        )
        if version:
            request.subscribed_topic_regex = regex
        answer = self.ask(member, request, version)
        if answer.error_code:
            return error_code(answer.error_code).name
        assigned = None
        if answer.assignment is not None:
            assigned = self._by_name(answer.assignment.topic_partitions)
            self.assigned[member] = assigned
        received = answer.member_epoch
        if received > 0:
            received += self._behind
            self.epochs[member] = received
        return answer.member_id, received, answer.heartbeat_interval_ms, assigned

    def enter(self, member: str, *topics: str, **fields: Any) -> Any:
        """Joins, or joins again, by a ConsumerGroupHeartbeat with member epoch 0."""
        given = {"topics": topics, "owned": {}, "rebalance_ms": 30_000, **fields}
        return self.heartbeat(member, 0, **given)

    def own(self, member: str, **fields: Any) -> Any:
        """Sends a heartbeat that reports exactly the assigned partitions as owned."""
        return self.heartbeat(member, owned=self.assigned.get(member, {}), **fields)

    def go(self, member: str, epoch: int = -1, **fields: Any) -> Any:
        received = self.heartbeat(member, epoch, **fields)
        self.assigned.pop(member, None)
        return received

    def until(self, member: str, wanted: Any, **fields: Any) -> Any:
        """Sends heartbeats until `member` is assigned exactly `wanted`."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            received = self.own(member, **fields)
            if self.assigned.get(member) == wanted:
                return received
            assert time.monotonic() < deadline, (received, self.assigned.get(member))
            time.sleep(0.05)

    def describe_consumers(self, version: int | None = None) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group_id])
        version = self.version if version is None else version
        (group,) = self.ask("nobody", request, version).groups
        if group.error_code:
            return error_code(group.error_code).name
        members = [
            (
                self.name_of(it.member_id),
                it.instance_id,
                it.rack_id,
                self._epoch(it.member_epoch),
                it.client_id,
                it.client_host,
                sorted(it.subscribed_topic_names),
                it.subscribed_topic_regex or None,
                self._by_name(it.assignment.topic_partitions),
                self._by_name(it.target_assignment.topic_partitions),
                it.member_type if version else None,
            )
            for it in group.members
        ]
        return (
            group.group_state,
            self._epoch(group.group_epoch),
            self._epoch(group.assignment_epoch),
            group.assignor_name,
            sorted(members),
        )

    def name_of(self, member_id: str) -> str:
        """Returns "generated" for a random member id, which a KIP-848 coordinator generates.

        For other ids, returns the name that `Side.name_of` returns.
        """
        return "generated" if is_uuid(member_id) else super().name_of(member_id)

    def _epoch(self, epoch: int) -> int:
        return epoch + self._behind if epoch > 0 else epoch

    def _by_name(self, listed: Iterable[Any]) -> dict[str, list[int]]:
        names = {topic_id: name for name, topic_id in self.topics.items()}
        return {names[it.topic_id]: sorted(it.partitions) for it in listed if it.partitions}

    # Offsets

    def commit(
        self,
        member: str,
        epoch: int | None,
        *listed: tuple[str, int],
        version: int = 9,
        instance_id: str | None = None,
    ) -> Any:
        sent = self.epochs.get(member, 0) if epoch is None else epoch
        request = OffsetCommitRequest(
            group_id=self.group_id,
            member_id=self.ids.get(member, member),
            generation_id_or_member_epoch=sent - self._behind if sent > 0 else sent,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=index, committed_offset=7)
                    ],
                )
                for name, index in listed
            ],
        )
        if version >= 7:
            request.group_instance_id = instance_id
        answer = self.ask(member or "nobody", request, version)
        return [
            error_code(partition.error_code).name
            for topic in answer.topics
            for partition in topic.partitions
        ]

    def fetch(self, member: str | None, epoch: int | None, name: str, version: int = 9) -> Any:
        sent = self.epochs.get(member or "", 0) if epoch is None else epoch
        wanted = OffsetFetchRequestGroup(
            group_id=self.group_id,
            topics=[OffsetFetchRequestTopics(name=name, partition_indexes=[0])],
        )
        if version >= 9:
            wanted.member_id = member
            wanted.member_epoch = sent - self._behind if sent > 0 else sent
        (group,) = self.ask(member or "nobody", OffsetFetchRequest(groups=[wanted]), version).groups
        offsets = [it.committed_offset for topic in group.topics for it in topic.partitions]
        return error_code(group.error_code).name, offsets

    def delete_offsets(self, name: str) -> Any:
        partition = OffsetDeleteRequestPartition(partition_index=0)
        topics = [OffsetDeleteRequestTopic(name=name, partitions=[partition])]
        request: Request[Any] = OffsetDeleteRequest(group_id=self.group_id, topics=topics)
        answer = self.ask("nobody", request, 0)
        return error_code(answer.error_code).name, [
            error_code(it.error_code).name for topic in answer.topics for it in topic.partitions
        ]

    # Configs of the group

    def configs(self, *names: str, group_id: str | None = None) -> Any:
        """Returns the group's consumer configs `names`, each with its config source.

        Without `names`, returns all consumer configs except the one that moves assignors to a
        separate thread, because the embedded broker does not have this config. If the broker
        refuses the request, returns the error name and the error message.
        """
        wanted = DescribeConfigsResource(
            resource_type=_GROUP,
            resource_name=self.group_id if group_id is None else group_id,
            configuration_keys=list(names) or None,
        )
        request = DescribeConfigsRequest(resources=[wanted], include_synonyms=True)
        (result,) = self.ask("nobody", request, 4).results
        if result.error_code:
            return error_code(result.error_code).name, result.error_message
        return sorted(
            (
                *(it.name, it.value, it.config_source, it.config_type, it.read_only),
                [(each.name, each.value, each.source) for each in it.synonyms],
            )
            for it in result.configs
            if it.name.startswith("consumer.") and it.name != "consumer.assignor.offload.enable"
        )

    def alter(
        self,
        *changes: tuple[str, int, str | None],
        group_id: str | None = None,
        resource_type: int = _GROUP,
        validate_only: bool = False,
        times: int = 1,
    ) -> Any:
        """Sends IncrementalAlterConfigs for one resource, by default for the group.

        A change is a config name, an operation and a value. The request contains the resource
        `times` times. Returns the error name and the error message of each of these times.
        """
        wanted = AlterConfigsResource(
            resource_type=resource_type,
            resource_name=self.group_id if group_id is None else group_id,
            configs=[
                AlterableConfig(name=name, config_operation=operation, value=value)
                for name, operation, value in changes
            ],
        )
        request = IncrementalAlterConfigsRequest(
            resources=[wanted] * times, validate_only=validate_only
        )
        return [
            (error_code(it.error_code).name, it.error_message)
            for it in self.ask("nobody", request, 1).responses
        ]

    # Records of __consumer_offsets

    def records(self) -> list[tuple[object, ...]]:
        """Returns the group's records in `__consumer_offsets`.

        Shows a hash or a timestamp only as whether it is set.
        """

        async def read() -> list[CoordinatorRecord]:
            async with Client(self.bootstrap) as client:
                found = []
                async for record in client.consumer("__consumer_offsets", stop_at_end=True):
                    it = decode_coordinator_record(record)
                    assert isinstance(it, CoordinatorRecord)
                    if self.group_id in (
                        getattr(it.key, "group_id", None),
                        getattr(it.key, "group", None),
                    ):
                        found.append(it)
                return found

        said = [self._record(it) for it in asyncio.run(read())]
        runs = itertools.groupby(said, key=lambda it: it[-1] == "tombstone")
        # Tombstones have the order of a hash map over ids, some of which are random.
        return [it for gone, run in runs for it in (sorted(run, key=str) if gone else run)]

    def _record(self, record: CoordinatorRecord) -> tuple[object, ...]:
        key, value = record.key, record.value
        what = type(key).__name__, self.name_of(getattr(key, "member_id", ""))
        if value is None:
            return *what, "tombstone"
        said: object
        if isinstance(value, ConsumerGroupMetadataValue):
            said = value.epoch, bool(value.metadata_hash)
        elif isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
            said = value.assignment_epoch, bool(value.assignment_timestamp)
        elif isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            said = self._by_name(value.topic_partitions), len(value.topic_partitions)
        elif isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            said = (
                value.member_epoch,
                value.previous_member_epoch,
                value.state,
                self._with_epochs(value.assigned_partitions),
                self._with_epochs(value.partitions_pending_revocation),
            )
        elif isinstance(value, ConsumerGroupRegularExpressionValue):
            said = sorted(value.topics)
        elif isinstance(value, ConsumerGroupMemberMetadataValue):
            classic = value.classic_member_metadata
            said = (
                value.instance_id,
                value.rack_id,
                value.client_id,
                sorted(value.subscribed_topic_names),
                value.subscribed_topic_regex,
                value.rebalance_timeout_ms,
                value.server_assignor,
                classic
                and (
                    classic.session_timeout_ms,
                    [(it.name, it.metadata) for it in classic.supported_protocols],
                ),
            )
        elif isinstance(value, GroupMetadataValue):
            said = (
                value.protocol_type,
                value.generation,
                value.protocol,
                self.name_of(value.leader or ""),
                sorted(
                    (
                        self.name_of(it.member_id),
                        it.group_instance_id,
                        it.client_id,
                        it.rebalance_timeout,
                        it.session_timeout,
                        it.subscription,
                        it.assignment,
                    )
                    for it in value.members
                ),
            )
        else:
            said = "an offset"
        return *what, said

    def _with_epochs(self, listed: Iterable[Any]) -> dict[str, list[tuple[int, int]]]:
        names = {topic_id: name for name, topic_id in self.topics.items()}
        return {
            names[it.topic_id]: sorted(zip(it.partitions, it.assignment_epochs, strict=True))
            for it in listed
        }
