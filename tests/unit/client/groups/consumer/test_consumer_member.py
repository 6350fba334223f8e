"""Tests `ConsumerMember`: its heartbeats over sockets, by a manual clock."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kproto import Client, TopicPattern
from kproto.client.groups.heartbeat_phases import Phase
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
)
from kproto.messages.base import Request
from kproto.testing.clock import ManualClock
from tests.support.suspensions import CancelAt, points
from tests.unit.client.groups.any_setting import PARTITIONS
from tests.unit.client.groups.consumer.scripted_member import (
    Setting,
    a_setting,
)
from tests.unit.client.groups.ended import at_each_turn, ended_after
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick


async def test_member_joins_sends_heartbeats_and_leaves() -> None:
    async with a_setting() as its:
        before = its.member.identity
        assert before is None
        await its.joined()
        identity = its.member.identity
        assert identity is not None
        assert identity.generation == 1
        joining, acknowledging = its.heartbeats
        assert (joining.member_epoch, acknowledging.member_epoch) == (0, 1)
        for count in range(3, 6):
            await its.clock.advance(3_000)
            await its.until(lambda count=count: len(its.heartbeats) == count)
        await its.member.leave(True, "a test")
        left = its.heartbeats[-1]
        assert (left.member_id, left.member_epoch) == (identity.member_id, -1)
        assert its.its.names == ["assign", "revoke"]
        assert its.client.metrics()["groups"]["g"] == {
            "joins": 1,
            "rebalances": 1,
            "heartbeats": 5,
            "lost_partitions": 0,
            "late": 0,
        }


async def test_revocation_is_acknowledged_at_once() -> None:
    async with a_setting() as its:
        await its.joined()
        its.its.revoke_gate = asyncio.Event()
        its.group.assigned = [("t", 1)]
        await its.clock.advance(3_000)
        await its.until(lambda: "waits" in its.its.names)
        count = len(its.heartbeats)
        await its.clock.advance(3_000)  # a record is being processed, and heartbeats continue
        await its.until(lambda: len(its.heartbeats) == count + 1)
        assert its.heartbeats[-1] == ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=its.heartbeats[0].member_id, member_epoch=1
        )
        its.its.revoke_gate.set()
        await its.until(lambda: len(its.heartbeats) == count + 2)
        owned = its.heartbeats[-1].topic_partitions
        assert owned is not None
        assert [each.partitions for each in owned] == [[1]]
        assert its.its.partitions == {("t", 1)}


async def test_version_0_uses_the_id_that_the_broker_assigns() -> None:
    async with a_setting(version=0) as its:
        await its.joined()
        assert [each.member_id for each in its.heartbeats] == ["", "member-1"]
        await its.member.leave(True)
        assert its.heartbeats[-1].member_id == "member-1"


@pytest.mark.parametrize(
    "name",
    ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", HANG_UP],
)
@pytest.mark.parametrize("joins", [True, False])
async def test_retriable_error_is_retried(joins: bool, name: str) -> None:
    async with a_setting() as its:
        if not joins:
            await its.joined()
            heartbeats = len(its.heartbeats)
        its.group.errors[ConsumerGroupHeartbeatRequest] = [name] * 2
        if joins:
            its.member.start()
            await its.pass_until(lambda: its.its.partitions == PARTITIONS)
        else:
            await its.pass_until(lambda: len(its.heartbeats) >= heartbeats + 4)
        assert its.its.names == ["assign"]
        await its.pass_until(lambda: its.is_in(Phase.STABLE))


async def test_unknown_member_rejoins_with_its_id() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.member_id = "another"
        await its.pass_until(lambda: "lose" in its.its.names)
        await its.pass_until(lambda: its.its.partitions == PARTITIONS)
        assert its.heartbeats[0].member_id == its.heartbeats[-1].member_id
        assert [each.member_epoch for each in its.heartbeats].count(0) == 2


async def lost_after(its: Setting) -> float:
    """Returns how many seconds a member keeps its partitions without heartbeat responses."""
    its.group.hold(ConsumerGroupHeartbeatRequest)
    before = its.clock.monotonic()
    await its.pass_until(lambda: "lose" in its.its.names, 500)
    return its.clock.monotonic() - before


@pytest.mark.parametrize(
    ("session_ms", "interval_ms", "session_s"),
    [
        pytest.param(45_000, 3_000, 45, id="the broker's session timeout"),
        pytest.param(12_000, 3_000, 12, id="a shorter timeout"),
        pytest.param(60_000, 3_000, 60, id="a longer timeout"),
        pytest.param(None, 3_000, 27, id="unknown timeout: nine intervals"),
        pytest.param(None, 15_000, 45, id="unknown timeout, long intervals"),
    ],
)
async def test_partitions_are_lost_when_the_session_expires_without_responses(
    session_ms: int | None, interval_ms: int, session_s: int
) -> None:
    async with a_setting() as its:
        its.group.session_ms, its.group.interval_ms = session_ms, interval_ms
        await its.joined()
        assert session_s - 1 < await lost_after(its) < session_s + 1
        assert its.member.identity is None


@pytest.mark.parametrize(("session_ms", "times"), [(45_000, 2), (None, 1), (0, 2)])
async def test_refused_session_timeout_is_not_requested_again(
    session_ms: int | None, times: int
) -> None:
    async with a_setting() as its:
        its.group.session_ms = session_ms
        await its.joined()
        its.group.member_id = "another"
        await its.pass_until(lambda: its.its.names[-2:] == ["lose", "assign"])
        assert len(its.requests(DescribeConfigsRequest)) == times


@pytest.mark.slow
async def test_shortened_session_timeout_is_applied() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.session_ms = 12_000
        await its.pass_until(lambda: len(its.requests(DescribeConfigsRequest)) == 2)
        assert 44 < its.clock.monotonic() < 50  # one request a session
        heartbeats = len(its.heartbeats)
        await its.pass_until(lambda: len(its.heartbeats) > heartbeats + 1)
        assert await lost_after(its) < 13


@pytest.mark.slow
async def test_refused_refresh_keeps_the_known_session_timeout() -> None:
    async with a_setting() as its:
        its.group.session_ms = 12_000
        await its.joined()
        its.group.session_ms = None
        await its.pass_until(lambda: len(its.requests(DescribeConfigsRequest)) == 2)
        assert 11 < its.clock.monotonic() < 17
        heartbeats = len(its.heartbeats)
        await its.pass_until(lambda: len(its.heartbeats) > heartbeats + 5)
        assert await lost_after(its) < 13
        assert len(its.requests(DescribeConfigsRequest)) == 2


@pytest.mark.parametrize("lost", [1, 3])
async def test_session_timeout_is_requested_again_after_a_lost_response(lost: int) -> None:
    """The group's session timeout is shorter than the default.

    With the default, the member would still consume after another member got its partitions.
    """
    async with a_setting() as its:
        its.group.session_ms = 12_000
        its.loses_sessions(lost)
        its.member.start()
        await its.pass_until(lambda: its.its.partitions == PARTITIONS)
        await its.until(lambda: its.phase is Phase.STABLE)
        assert await lost_after(its) < 13


async def test_member_joins_without_a_known_session_timeout() -> None:
    async with a_setting() as its:
        its.loses_sessions(99)
        its.member.start()
        await its.pass_until(lambda: its.its.partitions == PARTITIONS)
        assert len(its.requests(DescribeConfigsRequest)) == 4


async def test_unsubscribe_during_partitions_lost_repeats_the_loss_at_once() -> None:
    async with a_setting() as its:
        await its.unsubscribe_while_partitions_are_lost(ConsumerGroupHeartbeatRequest)


async def test_late_member_stays_out_until_the_next_poll() -> None:
    async with a_setting() as its:
        await its.joined()
        its.its.is_late = True
        await its.pass_until(lambda: its.is_in(Phase.STALE))
        assert its.heartbeats[-1].member_epoch == -1
        its.its.is_late = False
        its.member.on_poll()
        await its.until(lambda: its.its.partitions == PARTITIONS)
        assert its.client.metrics()["groups"]["g"]["late"] == 1


async def test_static_member_leaves_temporarily() -> None:
    async with a_setting() as its:
        its.make(instance_id="i")
        await its.joined()
        await its.member.leave(False)
        assert (its.heartbeats[-1].member_epoch, its.heartbeats[-1].instance_id) == (-2, "i")


async def test_unknown_topic_id_is_resolved_by_metadata() -> None:
    """The client's metadata has the subscribed topics, but not yet the assigned topic."""
    async with a_setting() as its:
        its.make(Subscription.to(TopicPattern("t|new")))
        its.group.assigned = [("new", 0)]
        its.member.start()
        await its.until(lambda: its.is_in(Phase.STABLE))
        assert its.its.partitions == set()
        its.broker.topics["new"] = 1
        await its.pass_until(lambda: its.its.partitions == {("new", 0)}, 5)


async def test_compiled_pattern_follows_new_topics() -> None:
    async with a_setting() as its:
        its.make(Subscription.to(re.compile("t|new")))
        await its.joined()
        assert its.heartbeats[0].subscribed_topic_names == ["t"]
        its.broker.topics["new"] = 1
        await its.client.refresh()
        its.member.on_topics_changed()
        await its.until(lambda: its.heartbeats[-1].subscribed_topic_names == ["new", "t"])


async def test_topic_missing_in_metadata_stays_subscribed() -> None:
    """Metadata may lack the topic while its leader moves.

    Meanwhile a new topic matches the pattern, so the member sends the subscribed topics again.
    """
    async with a_setting() as its:
        its.make(Subscription.to(re.compile("t|new")))
        await its.joined()
        its.broker.topics["new"] = 1
        its.client.cluster.forget(["t"])
        await its.client.refresh(["new"])
        its.member.on_topics_changed()
        await its.until(lambda: its.heartbeats[-1].subscribed_topic_names not in (None, ["t"]))
        assert its.heartbeats[-1].subscribed_topic_names == ["new", "t"]


async def test_leave_ends_without_a_response() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.hold(ConsumerGroupHeartbeatRequest)
        leaving = asyncio.create_task(its.member.leave(True))
        await its.pass_until(leaving.done)
        assert its.its.partitions == set()


# Close and leave


async def in_a_group(
    play: Callable[[Setting], Awaitable[None]],
    protocol: str,
    hold: type[Request[Any]] | None = None,
) -> None:
    """Runs `play` with a member; each listener call changes the coordinator's assignment.

    The coordinator never answers requests of class `hold`. If `hold` is given, leaving waits at
    most 50 ms.
    """
    async with ScriptedBroker({"t": 2}) as broker:
        settings = quick(metadata_wait_ms=1_000, delivery_timeout_ms=1_000)
        async with Client(broker.bootstrap, settings) as client:
            its = Setting(broker, client, ManualClock())
            its.group.interval_ms = 1
            its.make(group_protocol=protocol, leave_timeout_ms=5_000 if hold is None else 50)
            if hold is not None:
                its.group.hold(hold)

            def change_assignment(name: str, partitions: object) -> None:
                its.group.assigned = [] if its.group.assigned else [("t", 0)]

            its.its.on_call = change_assignment
            try:
                await play(its)
            finally:
                await its.member.close()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["auto", "consumer"])
@pytest.mark.parametrize("ends", ["close", "leave"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(range(0, 100, 12), id="some"),
        pytest.param(range(0, 100, 4), id="all", marks=pytest.mark.exhaustive),
    ],
)
def test_member_may_be_ended_at_any_turn_of_the_loop(
    ends: str, protocol: str, steps: range
) -> None:
    async def scene(turns: int) -> None:
        async def play(its: Setting) -> None:
            await ended_after(turns, ends, its.group, its.member, its.its)

        await in_a_group(play, protocol)

    at_each_turn(scene, steps)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("hold", [None, ConsumerGroupHeartbeatRequest, DescribeGroupsRequest])
@pytest.mark.parametrize("call", ["leave", "close"])
def test_ending_a_member_may_be_cancelled(
    call: str, hold: type[Request[Any]] | None, late: bool
) -> None:
    async def scene(cancel: CancelAt) -> None:
        async def play(its: Setting) -> None:
            its.member.start()
            reached = hold or ConsumerGroupHeartbeatRequest
            await its.until(lambda: its.requests(reached))
            await cancel.run(its.member.leave(True) if call == "leave" else its.member.close())

        await in_a_group(play, "auto", hold)

    assert points(scene, late=late) > 0
