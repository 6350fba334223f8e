"""Tests group members on real connections: rebalances, lost connections, and coordinator moves.

The tests of timeouts use a manual clock in the broker. The tests of a restart and of a moved
coordinator use the system clock.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import BrokerConnectionError, Client
from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.broker.groups.classic_group import ClassicGroup
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.protocol.error_codes import error_code
from kproto.testing.clock import ManualClock
from tests.support.patience import until


def error(answer: Any) -> str:
    return error_code(answer.error_code).name


class Member:
    """A member of group g with its own connection."""

    def __init__(self, bootstrap: str) -> None:
        self.client = Client(bootstrap)
        self.member_id = ""
        self.joined: Any = None

    async def join(self) -> Any:
        while True:
            request = JoinGroupRequest(
                group_id="g",
                member_id=self.member_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
            )
            self.joined = await self.client.request(request)
            self.member_id = self.joined.member_id
            if error(self.joined) != "MEMBER_ID_REQUIRED":
                return self.joined

    async def sync(self) -> Any:
        assignments = [
            SyncGroupRequestAssignment(member_id=it.member_id, assignment=it.member_id.encode())
            for it in self.joined.members
        ]
        return await self.client.request(
            SyncGroupRequest(
                group_id="g",
                generation_id=self.joined.generation_id,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
            )
        )

    async def beat(self) -> str:
        request = HeartbeatRequest(
            group_id="g", generation_id=self.joined.generation_id, member_id=self.member_id
        )
        return error(await self.client.request(request))

    async def leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id)
        await self.client.request(LeaveGroupRequest(group_id="g", members=[identity]))

    async def state(self) -> str:
        answer = await self.client.request(DescribeGroupsRequest(groups=["g"]))
        return str(answer.groups[0].group_state)


def waiting(broker: Broker | Cluster) -> int:
    """Returns how many requests wait in group g."""
    group = broker._cluster.groups._groups.get("g")
    return len(group.watchers) if isinstance(group, ClassicGroup) else 0


async def test_members_join_together_rebalance_and_leave() -> None:
    clock = ManualClock()
    settings = BrokerSettings(group_initial_rebalance_delay_ms=3_000)
    async with Broker(settings, clock=clock) as broker:
        one, two, three = (Member(broker.bootstrap) for _ in range(3))
        async with one.client, two.client, three.client:
            joining = [asyncio.create_task(it.join()) for it in (one, two)]
            await until(lambda: waiting(broker) == 2)
            await clock.advance(6_000)
            joined = await asyncio.gather(*joining)
            assert {it.generation_id for it in joined} == {1}
            assert sorted(len(it.members) for it in joined) == [0, 2]
            synced = await asyncio.gather(one.sync(), two.sync())
            assert [it.assignment.decode() for it in synced] == [one.member_id, two.member_id]
            assert await one.state() == "Stable"
            third = asyncio.create_task(three.join())
            await until(lambda: waiting(broker) == 1)
            assert await one.beat() == await two.beat() == "REBALANCE_IN_PROGRESS"
            again = await asyncio.gather(one.join(), two.join())
            assert {it.generation_id for it in (await third, *again)} == {2}
            for member in (one, two, three):
                await member.leave()
            assert await one.state() == "Empty"
        assert waiting(broker) == 0


async def test_member_with_lost_connection_is_removed() -> None:
    clock = ManualClock()
    settings = BrokerSettings(group_initial_rebalance_delay_ms=3_000)
    async with Broker(settings, clock=clock) as broker:
        one, lost = Member(broker.bootstrap), Member(broker.bootstrap)
        async with one.client:
            joining = asyncio.create_task(one.join())
            await until(lambda: waiting(broker) == 1)
            losing = asyncio.create_task(lost.join())
            await until(lambda: waiting(broker) == 2)
            losing.cancel()
            await lost.client.close()
            await until(lambda: waiting(broker) == 1)
            await clock.advance(6_000)
            told = (await joining).members
            assert [it.member_id for it in told] == [one.member_id, lost.member_id]
            assert error(await one.sync()) == "NONE"
            await clock.advance(9_999)
            assert await one.beat() == "NONE"
            await clock.advance(1)
            assert await one.beat() == "REBALANCE_IN_PROGRESS", "its session is over"


async def test_delayed_join_ends_with_its_broker() -> None:
    clock = ManualClock()
    settings = BrokerSettings(group_initial_rebalance_delay_ms=3_000)
    broker = Broker(settings, clock=clock)
    async with broker:
        one = Member(broker.bootstrap)
        joining = asyncio.create_task(one.join())
        await until(lambda: waiting(broker) == 1)
        joining.cancel()
        await one.client.close()
    assert waiting(broker) == 0


async def test_group_survives_restart_of_broker() -> None:
    broker = Broker()
    async with broker:
        one = Member(broker.bootstrap)
        async with one.client:
            await one.join()
            await one.sync()
    async with broker:
        again = Member(broker.bootstrap)
        again.member_id, again.joined = one.member_id, one.joined
        async with again.client:
            assert await again.state() == "Stable"
            assert await again.beat() == "NONE"
            assert (await again.sync()).assignment.decode() == one.member_id


async def test_groups_move_when_coordinator_stops() -> None:
    async with Cluster(3) as cluster:
        one = Member(cluster.bootstrap)
        async with one.client:
            await one.join()
            await one.sync()
            coordinator = cluster.coordinator("g")
            await cluster.stop_broker(coordinator)
            assert cluster.coordinator("g") != coordinator
            with pytest.raises(BrokerConnectionError):  # it has stopped
                await one.beat()
            assert await one.beat() == "NONE"
            assert await one.state() == "Stable"
