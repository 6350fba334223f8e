"""Members of the consumer protocol (KIP-848) at real brokers, and brokers with short sessions."""

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

#: Heartbeats ten times a second, in sessions that outlast a pause of a busy machine; 3.9 has the
#: protocol turned off. Members of classic groups may have any session.
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

#: Sessions of a group whose test waits for the end of one.
BRIEF_MS = 2_000

NEWEST = VERSIONS[0]

_GROUP = 32
_SESSION = "consumer.session.timeout.ms"
_SET = 0


def config_of(version: str) -> dict[str, str]:
    """`SHORT` for a release: an old one has no settings of groups, and all are brief there.

    Members go by nine intervals of heartbeats there, which are not to be over in a moment.
    """
    old = {
        "group.consumer.session.timeout.ms": str(BRIEF_MS),
        "group.consumer.heartbeat.interval.ms": "200",
    }
    return SHORT if version == NEWEST else SHORT | old


class Group(Members):
    """Some members, each of a client of its own as in a process of its own."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.owners: dict[tuple[str, int], Reading] = {}

    async def member(
        self, *wanted: str | re.Pattern[str] | TopicPattern, **settings: Any
    ) -> tuple[GroupMember, Reading]:
        """One more, of the consumer protocol unless it says otherwise."""
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
        """Let its sessions end after `BRIEF_MS`; wait until its broker, of that release, knows."""
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
        told: str | None = None
        while told != str(BRIEF_MS):
            found = await client.request(DescribeConfigsRequest(resources=[wanted]))
            told = found.results[0].configs[0].value

    def _owned(self, reading: Reading, name: str, places: Collection[tuple[str, int]]) -> None:
        """What is given up is given up before anybody else begins with it."""
        for place in places:
            if name == "assign":
                assert place not in self.owners
                self.owners[place] = reading
            else:
                assert self.owners.pop(place) is reading

    async def described(self) -> DescribedGroup:
        """The group as one of the consumer protocol."""
        answer = await self.clients[0].request(ConsumerGroupDescribeRequest(group_ids=[self.id]))
        return answer.groups[0]

    async def classic_state(self) -> str:
        answer = await self.clients[0].request(DescribeGroupsRequest(groups=[self.id]))
        return answer.groups[0].group_state


async def failed(reading: Reading) -> str:
    """What a member is at its end for; what it had is gone then."""
    await until(lambda: reading.error is not None)
    assert reading.places == set()
    return str(reading.error)
