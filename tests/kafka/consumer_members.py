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
from tests.kafka.members_of_groups import Members, until
from tests.support.group_owner import Reading, made_as
from tools.kafka import VERSIONS

__all__ = ["BRIEF_MS", "NEWEST", "SHORT", "Group", "config_of", "failed"]

#: Ten heartbeats a second, with sessions longer than any pause of a busy machine. Kafka 3.9 has the
#: consumer protocol off by default. Members of classic groups may set any session timeout.
SHORT = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "15000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.max.size": "3",
    "group.min.session.timeout.ms": "100",
}

#: The session timeout of a group whose test waits until a session expires.
BRIEF_MS = 2_000

NEWEST = VERSIONS[0]

_GROUP = 32
_SESSION = "consumer.session.timeout.ms"
_SET = 0


def config_of(version: str) -> dict[str, str]:
    """Returns `SHORT` for a release; older brokers give all groups sessions of `BRIEF_MS`.

    Older brokers have no group configs. There a member assumes a session of nine heartbeat
    intervals, so the interval must not be too short.
    """
    old = {
        "group.consumer.session.timeout.ms": str(BRIEF_MS),
        "group.consumer.heartbeat.interval.ms": "200",
    }
    return SHORT if version == NEWEST else SHORT | old


class Group(Members):
    """Members of one group, each with its own client."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.owners: dict[tuple[str, int], Reading] = {}

    async def member(
        self, *wanted: str | re.Pattern[str] | TopicPattern, **settings: Any
    ) -> tuple[GroupMember, Reading]:
        """Adds and starts a member, by default of the consumer protocol."""
        its: dict[str, Any] = {
            "group_protocol": "consumer",
            "session_timeout_ms": BRIEF_MS,
            "heartbeat_interval_ms": 100,
        } | settings
        names = [each for each in wanted if isinstance(each, str)]
        subscription = Subscription.to(names or wanted[0])
        member, reading = made_as(
            GroupMember, await self.client(), GroupSettings(self.id, **its), subscription
        )
        reading.on_call = partial(self._owned, reading)
        self.members.append(member)
        member.start()
        return member, reading

    async def brief(self, version: str) -> None:
        """Sets the group's session timeout to `BRIEF_MS` and waits until the broker applies it."""
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

    def _owned(self, reading: Reading, name: str, places: Collection[tuple[str, int]]) -> None:
        """Checks that a member revokes a partition before another member is assigned it."""
        for partition in places:
            if name == "assign":
                assert partition not in self.owners
                self.owners[partition] = reading
            else:
                assert self.owners.pop(partition) is reading

    async def described(self) -> DescribedGroup:
        """Returns the group's description by ConsumerGroupDescribe."""
        answer = await self.clients[0].request(ConsumerGroupDescribeRequest(group_ids=[self.id]))
        return answer.groups[0]

    async def classic_state(self) -> str:
        answer = await self.clients[0].request(DescribeGroupsRequest(groups=[self.id]))
        return answer.groups[0].group_state


async def failed(reading: Reading) -> str:
    """Returns the error with which a member failed, after it has lost its partitions."""
    await until(lambda: reading.error is not None)
    assert reading.places == set()
    return str(reading.error)
