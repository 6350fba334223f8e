"""Starts members of the consumer protocol (KIP-848) on real brokers, with short sessions."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial
from typing import Any

from kproto import TopicPattern
from kproto.client.groups.protocol_selection import GroupMember
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ConsumerGroupDescribeRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.consumer_group_describe_response import DescribedGroup
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
)
from tests.kafka.members_of_groups import Members, all_of, until
from tests.support.recording_listener import RecordingListener, new_member
from tools.kafka import VERSIONS

__all__ = ["BRIEF_MS", "NEWEST", "SHORT", "Group", "config_of", "failed"]

#: Ten heartbeats a second, with sessions longer than any pause of a busy machine. Kafka 3.9 has the
#: consumer protocol off by default. Members of classic groups may set session timeouts from 100 ms.
SHORT = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "15000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.max.size": "3",
    "group.max.size": "3",
    "group.min.session.timeout.ms": "100",
}

#: The session timeout of a group whose test waits until a session expires.
BRIEF_MS = 2_000

NEWEST = VERSIONS[0]

_GROUP = 32
_SESSION = "consumer.session.timeout.ms"
_SET = 0


def config_of(version: str) -> dict[str, str]:
    """Returns the broker config `SHORT`; for older releases, with a longer session and interval.

    Older brokers have no group configs, so their values apply to all groups: sessions of 4 s, and
    heartbeats every 400 ms. A member of an older broker assumes that a session lasts nine heartbeat
    intervals, so the interval must not be too short. A pause of a busy machine must not end a
    session: the broker would assign the member's partitions to other members before the member
    notices that its session has ended.
    """
    old = {
        "group.consumer.session.timeout.ms": "4000",
        "group.consumer.heartbeat.interval.ms": "400",
    }
    return SHORT if version == NEWEST else SHORT | old


class Group(Members):
    """Members of one group, each with its own client."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.owners: dict[tuple[str, int], RecordingListener] = {}

    async def member(
        self, *wanted: str | re.Pattern[str] | TopicPattern, **settings: Any
    ) -> tuple[GroupMember, RecordingListener]:
        """Adds and starts a member, by default of the consumer protocol."""
        its: dict[str, Any] = {
            "group_protocol": "consumer",
            "session_timeout_ms": BRIEF_MS,
            "heartbeat_interval_ms": 100,
        } | settings
        names = [each for each in wanted if isinstance(each, str)]
        subscription = Subscription.to(names or wanted[0])
        member, listener = new_member(
            GroupMember, await self.client(), GroupSettings(self.id, **its), subscription
        )
        listener.on_call = partial(self._owned, listener)
        self.members.append(member)
        member.start()
        return member, listener

    async def known_topic(self, partitions: int) -> str:
        """Creates a topic that the group's coordinator knows already, and returns its name.

        The coordinator of Kafka 3.9.2 learns of a new topic after the other parts of the broker. If
        it converts a classic group before that, it regards the topic's partitions as free, although
        the classic members still own them.
        """
        topic = await self.topic(partitions)
        member, listener = await self.member(topic)
        await until(lambda: listener.partitions == all_of(topic, partitions))
        await member.leave(True)
        return topic

    async def brief(self, version: str) -> None:
        """Sets the group's session timeout to `BRIEF_MS` and waits until the broker applies it.

        Does nothing on older releases, which have no group configs.
        """
        if version != NEWEST:
            return
        client = await self.client()
        change = AlterableConfig(name=_SESSION, config_operation=_SET, value=str(BRIEF_MS))
        altered = AlterConfigsResource(
            resource_type=_GROUP, resource_name=self.id, configs=[change]
        )
        answer = await client.request(IncrementalAlterConfigsRequest(resources=[altered]))
        assert [it.error_code for it in answer.responses] == [0]
        wanted = DescribeConfigsResource(
            resource_type=_GROUP, resource_name=self.id, configuration_keys=[_SESSION]
        )
        value: str | None = None
        while value != str(BRIEF_MS):
            found = await client.request(DescribeConfigsRequest(resources=[wanted]))
            value = found.results[0].configs[0].value

    def _owned(
        self, listener: RecordingListener, name: str, partitions: Collection[tuple[str, int]]
    ) -> None:
        """Checks that no partition is assigned before its former owner has revoked or lost it."""
        for partition in partitions:
            owner = self.owners.pop(partition, None)
            calls = f"{name} {partition}: {listener.calls}; owner: {owner and owner.calls}"
            if name == "assign":
                assert owner is None, calls
                self.owners[partition] = listener
            else:
                assert owner is listener, calls

    async def described(self) -> DescribedGroup:
        """Returns the group's description by ConsumerGroupDescribe."""
        answer = await self.clients[0].request(ConsumerGroupDescribeRequest(group_ids=[self.id]))
        return answer.groups[0]

    async def classic_state(self) -> str:
        answer = await self.clients[0].request(DescribeGroupsRequest(groups=[self.id]))
        return answer.groups[0].group_state


async def failed(listener: RecordingListener) -> str:
    """Waits until a member has failed; checks that it has no partitions; returns its error."""
    await until(lambda: listener.error is not None)
    assert listener.partitions == set()
    return str(listener.error)
