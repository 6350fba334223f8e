"""Starts members of classic groups at real brokers, with short sessions."""

from __future__ import annotations

import re
from typing import Any, cast

from kproto.client.groups.classic.member import ClassicMember
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.messages import DescribeGroupsRequest
from kproto.messages.describe_groups_response import DescribedGroup
from tests.kafka.members_of_groups import Members
from tests.support.recording_listener import RecordingListener, new_classic_member

__all__ = ["Group"]


class Group(Members):
    """Members of a classic group, each with its own client."""

    async def member(
        self, *wanted: str | re.Pattern[str], start: bool = True, **settings: Any
    ) -> tuple[ClassicMember, RecordingListener]:
        """Adds a member with a short session, and starts it unless `start` is false."""
        its = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 100} | settings
        names = [each for each in wanted if isinstance(each, str)]
        subscription = Subscription.to(names or cast(re.Pattern[str], wanted[0]))
        member, listener = new_classic_member(
            await self.client(), GroupSettings(self.id, **its), subscription
        )
        self.members.append(member)
        if start:
            member.start()
        return member, listener

    async def described(self) -> DescribedGroup:
        answer = await self.clients[0].request(DescribeGroupsRequest(groups=[self.id]))
        return answer.groups[0]
