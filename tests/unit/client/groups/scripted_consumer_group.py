"""Defines `ScriptedConsumerGroup`: the coordinator of a group of either protocol with one member.

The coordinator counts epochs, and assigns the partitions in `assigned` by topic id. DescribeGroups
returns the classic group state `state`, from which the client sees whether the group is live.
"""

from __future__ import annotations

from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kproto.messages.consumer_group_heartbeat_response import Assignment, TopicPartitions
from kproto.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from kproto.messages.describe_groups_response import DescribedGroup
from kproto.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of
from kproto.wire.uuid import Uuid
from tests.unit.client.groups.scripted_group import ScriptedGroup
from tests.unit.client.scripted_broker import ScriptedBroker

__all__ = ["ScriptedConsumerGroup", "id_of"]

#: The member epoch of a leaving member; a static member may send -2.
LEAVES = -1


def id_of(topic: str) -> Uuid:
    """Returns the scripted id of a topic."""
    return Uuid(topic.encode().ljust(16, b"\x01"))


class ScriptedConsumerGroup(ScriptedGroup):
    """Answers each heartbeat; the answer depends on the heartbeat's member epoch.

    With epoch 0 the member joins the group, and with -1 or -2 the member leaves. The coordinator
    accepts an epoch up to `epoch`, the current epoch of the group, and answers a higher epoch with
    FENCED_MEMBER_EPOCH.
    """

    def __init__(self, broker: ScriptedBroker) -> None:
        super().__init__(broker)
        self.epoch = 0
        self.state = "Dead"
        self.interval_ms = 3_000
        self.session_ms: int | None = 45_000  # None: not authorized to describe the group
        self.assigned = [(name, at) for name, count in broker.topics.items() for at in range(count)]
        self._sent: list[tuple[str, int]] | None = None
        broker.answers[MetadataRequest] = self.metadata
        broker.answers[ConsumerGroupHeartbeatRequest] = self.answering(
            ConsumerGroupHeartbeatRequest, self.consumer_beat
        )
        broker.answers[DescribeConfigsRequest] = self.configs
        broker.answers[DescribeGroupsRequest] = self.answering(DescribeGroupsRequest, self.describe)

    def metadata(self, asked: ReceivedRequest) -> MetadataResponse:
        """Returns topics by name or by id, or all topics."""
        request = asked.message
        assert isinstance(request, MetadataRequest)
        topics = self.broker.topics
        names = list(topics)
        if request.topics is not None:
            by_id = {id_of(name): name for name in topics}
            names = [each.name or by_id.get(each.topic_id, "?") for each in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=0, host="127.0.0.1", port=self.port)],
            controller_id=0,
            cluster_id="scripted",
            topics=[
                MetadataResponseTopic(
                    name=name,
                    topic_id=id_of(name),
                    error_code=0 if name in topics else code_of("UNKNOWN_TOPIC_OR_PARTITION"),
                    partitions=[
                        MetadataResponsePartition(partition_index=at, leader_id=0)
                        for at in range(topics.get(name, 0))
                    ],
                )
                for name in names
            ],
        )

    def configs(self, asked: ReceivedRequest) -> DescribeConfigsResponse:
        """Returns the session timeout of the group, or an authorization error."""
        result = DescribeConfigsResult(resource_type=32, resource_name="g")
        if self.session_ms is None:
            result.error_code = code_of("GROUP_AUTHORIZATION_FAILED")
        else:
            config = DescribeConfigsResourceResult(
                name="consumer.session.timeout.ms", value=str(self.session_ms)
            )
            result.configs = [config]
        return DescribeConfigsResponse(results=[result])

    def describe(self, asked: ReceivedRequest, code: int) -> DescribeGroupsResponse:
        group = DescribedGroup(group_id="g", error_code=code, group_state=self.state)
        return DescribeGroupsResponse(groups=[group])

    def consumer_beat(self, asked: ReceivedRequest, code: int) -> ConsumerGroupHeartbeatResponse:
        request = asked.message
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        if not code and request.member_epoch <= LEAVES:
            self.member_id = None
            return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)
        if not code and request.member_epoch:
            if request.member_id != self.member_id:
                code = code_of("UNKNOWN_MEMBER_ID")
            elif request.member_epoch > self.epoch:
                code = code_of("FENCED_MEMBER_EPOCH")
        if code:
            return ConsumerGroupHeartbeatResponse(error_code=code, error_message="so it is")
        if not request.member_epoch:
            self.ids += 1
            self.member_id = request.member_id or f"member-{self.ids}"
            self.epoch += 1
            self._sent = None
        is_whole = request.rebalance_timeout_ms >= 0
        sends_assignment = is_whole or self._sent != self.assigned
        self._sent = list(self.assigned)
        by_topic: dict[str, list[int]] = {}
        for topic, partition in self.assigned:
            by_topic.setdefault(topic, []).append(partition)
        its = [
            TopicPartitions(topic_id=id_of(name), partitions=of) for name, of in by_topic.items()
        ]
        return ConsumerGroupHeartbeatResponse(
            member_id=self.member_id,
            member_epoch=self.epoch,
            heartbeat_interval_ms=self.interval_ms,
            assignment=Assignment(topic_partitions=its) if sends_assignment else None,
        )
