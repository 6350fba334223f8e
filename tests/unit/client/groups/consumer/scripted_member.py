"""Defines `Setting`: a consumer protocol member at a scripted broker, with a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kproto import Client
from kproto.client.groups.consumer.member import ConsumerMember
from kproto.client.groups.group_protocol import GroupProtocol
from kproto.client.groups.heartbeat_phases import Phase
from kproto.client.groups.protocol_selection import GroupMember
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConsumerGroupHeartbeatRequest,
    DescribeConfigsRequest,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.support.recording_listener import RecordingListener, new_member
from tests.unit.client.groups.any_setting import PARTITIONS, AnySetting
from tests.unit.client.groups.scripted_consumer_group import ScriptedConsumerGroup
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, api_versions, quick

__all__ = ["Setting", "a_setting", "protocol_with", "versions_up_to"]


class Setting(AnySetting):
    """A scripted broker with its group, a client and one group member."""

    def __init__(self, broker: ScriptedBroker, client: Client, clock: ManualClock) -> None:
        self.broker, self.client, self.clock = broker, client, clock
        self.group = ScriptedConsumerGroup(broker)
        self.member: GroupMember
        self.its: RecordingListener

    def make(self, wanted: str | Subscription = "t", **settings: Any) -> None:
        its: dict[str, Any] = {"group_protocol": "consumer"} | settings
        made = new_member(GroupMember, self.client, GroupSettings("g", **its), wanted)
        self.member, self.its = made

    @property
    def phase(self) -> Phase:
        member = self.member._member
        assert isinstance(member, ConsumerMember)
        return member._membership.phase

    @property
    def heartbeats(self) -> list[ConsumerGroupHeartbeatRequest]:
        return self.requests(ConsumerGroupHeartbeatRequest)

    def loses_sessions(self, count: int) -> None:
        """Closes the connection at the first `count` requests for the group's session timeout."""
        left = [HANG_UP] * count

        def answer(asked: ReceivedRequest) -> Any:
            return left.pop() if left else self.group.configs(asked)

        self.broker.answers[DescribeConfigsRequest] = answer

    async def failed(self) -> Exception:
        await self.until(lambda: self.its.error is not None)
        assert self.its.error is not None
        return self.its.error


def versions_up_to(version: int) -> ApiVersionsResponse:
    """Returns an ApiVersions response with ConsumerGroupHeartbeat up to `version`.

    Omits ConsumerGroupHeartbeat if `version` is -1.
    """
    answer = api_versions()
    for each in list(answer.api_keys):
        if each.api_key == ConsumerGroupHeartbeatRequest.API_KEY:
            each.max_version = version
            if version < 0:
                answer.api_keys.remove(each)
    return answer


@asynccontextmanager
async def a_setting(version: int | None = None) -> AsyncIterator[Setting]:
    """Yields a setting whose broker has ConsumerGroupHeartbeat up to `version`.

    If `version` is None, the broker has every version. If `version` is -1, the broker does not have
    ConsumerGroupHeartbeat.
    """
    clock = ManualClock()
    async with ScriptedBroker({"t": 2}) as broker:
        if version is not None:
            answer = versions_up_to(version)
            broker.answers[ApiVersionsRequest] = lambda asked: answer
        its = quick(metadata_wait_ms=1_000, delivery_timeout_ms=120_000)
        async with Client(broker.bootstrap, its, clock=clock) as using:
            setting = Setting(broker, using, clock)
            setting.make()
            try:
                yield setting
            finally:
                await setting.member.close()


async def protocol_with(its: Setting, **settings: Any) -> GroupProtocol:
    """Returns the group protocol that a member with these settings joins with."""
    its.make(**settings)
    its.member.start()
    await its.pass_until(lambda: its.its.partitions == PARTITIONS, 1)
    return its.member.protocol
