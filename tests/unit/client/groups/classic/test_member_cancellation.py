"""Tests that a member that ends at any time leaves no task, even if its end is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kproto import Client
from kproto.client.groups.classic.member import ClassicMember
from kproto.client.groups.settings import GroupSettings
from kproto.messages import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from kproto.messages.base import Request
from tests.support.recording_listener import RecordingListener, new_classic_member
from tests.support.suspensions import CancelAt, points
from tests.unit.client.scripted_broker import ScriptedBroker, quick

from ..ended import at_each_turn, ended_after
from ..scripted_group import ScriptedGroup

COOPERATIVE = ("cooperative-sticky",)


async def in_a_group(
    play: Callable[[ScriptedGroup, ClassicMember, RecordingListener], Awaitable[None]],
    hold: type[Request[Any]] | None = None,
) -> None:
    """Runs `play` with a member that rebalances again and again, and closes the member.

    The coordinator never answers requests of class `hold`. If `hold` is given, leaving waits at
    most 50 ms.
    """
    async with ScriptedBroker({"t": 2}) as broker:
        group = ScriptedGroup(broker)
        if hold is not None:
            group.hold(hold)
        settings = quick(metadata_wait_ms=1_000, delivery_timeout_ms=1_000)
        async with Client(broker.bootstrap, settings) as client:
            leave_ms = 5_000 if hold is None else 50
            its = GroupSettings(
                "g", heartbeat_interval_ms=1, leave_timeout_ms=leave_ms, assignors=COOPERATIVE
            )
            member, listener = new_classic_member(client, its, "t")
            listener.on_call = lambda name, partitions: member.request_rejoin("again")
            try:
                await play(group, member, listener)
            finally:
                await member.close()


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["close", "leave"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(range(0, 120, 8), id="some"),
        pytest.param(range(0, 120, 2), id="all", marks=pytest.mark.exhaustive),
    ],
)
def test_member_may_be_ended_at_any_turn_of_the_loop(ends: str, steps: range) -> None:
    async def scene(turns: int) -> None:
        async def play(
            group: ScriptedGroup, member: ClassicMember, listener: RecordingListener
        ) -> None:
            await ended_after(turns, ends, group, member, listener)

        await in_a_group(play)

    at_each_turn(scene, steps)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("hold", [None, JoinGroupRequest, SyncGroupRequest, HeartbeatRequest])
@pytest.mark.parametrize("call", ["leave", "close"])
def test_ending_a_member_may_be_cancelled(
    call: str, hold: type[Request[Any]] | None, late: bool
) -> None:
    async def scene(cancel: CancelAt) -> None:
        async def play(
            group: ScriptedGroup, member: ClassicMember, listener: RecordingListener
        ) -> None:
            member.start()
            reached = hold or SyncGroupRequest
            await group.broker.until(lambda: group.broker.count(reached) > 0)
            await cancel.run(member.leave(True) if call == "leave" else member.close())

        await in_a_group(play, hold)

    assert points(scene, late=late) > 0


def test_close_ends_a_callback_that_a_leave_waits_for() -> None:
    """The revoke callback waits for records in process, and ends when the member is closed."""
    ended: list[str] = []

    async def scene(cancel: CancelAt) -> None:
        async def play(
            group: ScriptedGroup, member: ClassicMember, listener: RecordingListener
        ) -> None:
            listener.on_call = lambda name, partitions: None
            listener.revoke_gate = asyncio.Event()
            member.start()
            await group.broker.until(lambda: bool(listener.partitions))
            leaving = asyncio.create_task(member.leave(True))
            await group.broker.until(lambda: "waits" in listener.names)
            await member.close()
            await leaving
            ended.append(listener.names[-1])

        await in_a_group(play)

    assert points(scene, late=False) == 0
    assert ended == ["waits"]
