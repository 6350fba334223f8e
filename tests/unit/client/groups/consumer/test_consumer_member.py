"""The shell of a member of the consumer protocol: heartbeats over sockets, by a clock of tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kproto import Client, TopicPattern
from kproto.client.groups.consumer.phases import Phase
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
)
from kproto.messages.base import Request
from kproto.testing.clock import ManualClock
from tests.support.suspensions import CancelAt, points
from tests.unit.client.groups.any_setting import PLACES
from tests.unit.client.groups.consumer.scripted_member import (
    Setting,
    a_setting,
)
from tests.unit.client.groups.ended import at_each_turn, ended_after
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick


async def test_a_member_joins_beats_and_leaves() -> None:
    async with a_setting() as its:
        before = its.member.identity
        assert before is None
        await its.joined()
        identity = its.member.identity
        assert identity is not None
        assert identity.generation == 1
        joining, acknowledging = its.heartbeat_due
        assert (joining.member_epoch, acknowledging.member_epoch) == (0, 1)
        for count in range(3, 6):
            await its.clock.advance(3_000)
            await its.until(lambda count=count: len(its.heartbeat_due) == count)
        await its.member.leave(True, "a test")
        left = its.heartbeat_due[-1]
        assert (left.member_id, left.member_epoch) == (identity.member_id, -1)
        assert its.its.names == ["assign", "revoke"]
        assert its.client.metrics()["groups"]["g"] == {
            "joins": 1,
            "rebalances": 1,
            "heartbeats": 5,
            "lost_partitions": 0,
            "late": 0,
        }


async def test_what_goes_is_given_up_and_acknowledged_at_once() -> None:
    async with a_setting() as its:
        await its.joined()
        its.its.held = asyncio.Event()
        its.group.assigned = [("t", 1)]
        await its.clock.advance(3_000)
        await its.until(lambda: "waits" in its.its.names)
        count = len(its.heartbeat_due)
        await its.clock.advance(3_000)  # a record is in hand, and heartbeats go on
        await its.until(lambda: len(its.heartbeat_due) == count + 1)
        assert its.heartbeat_due[-1] == ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=its.heartbeat_due[0].member_id, member_epoch=1
        )
        its.its.held.set()
        await its.until(lambda: len(its.heartbeat_due) == count + 2)
        told = its.heartbeat_due[-1].topic_partitions
        assert told is not None
        assert [each.partitions for each in told] == [[1]]
        assert its.its.places == {("t", 1)}


async def test_version_0_whose_broker_gives_the_id() -> None:
    async with a_setting(version=0) as its:
        await its.joined()
        assert [each.member_id for each in its.heartbeat_due] == ["", "member-1"]
        await its.member.leave(True)
        assert its.heartbeat_due[-1].member_id == "member-1"


@pytest.mark.parametrize(
    "name",
    ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", HANG_UP],
)
@pytest.mark.parametrize("joins", [True, False])
async def test_what_time_mends(joins: bool, name: str) -> None:
    async with a_setting() as its:
        if not joins:
            await its.joined()
            heartbeat_due = len(its.heartbeat_due)
        its.group.errors[ConsumerGroupHeartbeatRequest] = [name] * 2
        if joins:
            its.member.start()
            await its.pass_until(lambda: its.its.places == PLACES)
        else:
            await its.pass_until(lambda: len(its.heartbeat_due) >= heartbeat_due + 4)
        assert its.its.names == ["assign"]
        await its.pass_until(lambda: its.is_in(Phase.STABLE))


async def test_a_member_that_was_forgotten_joins_anew() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.member_id = "another"
        await its.pass_until(lambda: "lose" in its.its.names)
        await its.pass_until(lambda: its.its.places == PLACES)
        assert its.heartbeat_due[0].member_id == its.heartbeat_due[-1].member_id
        assert [each.member_epoch for each in its.heartbeat_due].count(0) == 2


async def lost_after(its: Setting) -> float:
    """How long a member whose heartbeats nobody answers keeps what it reads, in seconds."""
    its.group.hold(ConsumerGroupHeartbeatRequest)
    before = its.clock.monotonic()
    await its.pass_until(lambda: "lose" in its.its.names, 500)
    return its.clock.monotonic() - before


@pytest.mark.parametrize(
    ("session_ms", "interval_ms", "silent_s"),
    [
        pytest.param(45_000, 3_000, 45, id="as the broker tells"),
        pytest.param(12_000, 3_000, 12, id="a shorter one"),
        pytest.param(60_000, 3_000, 60, id="a longer one"),
        pytest.param(None, 3_000, 27, id="it does not tell: nine intervals"),
        pytest.param(None, 15_000, 45, id="the same, and they are long"),
    ],
)
async def test_a_silent_coordinator_costs_the_partitions_after_the_session(
    session_ms: int | None, interval_ms: int, silent_s: int
) -> None:
    async with a_setting() as its:
        its.group.session_ms, its.group.interval_ms = session_ms, interval_ms
        await its.joined()
        assert silent_s - 1 < await lost_after(its) < silent_s + 1
        assert its.member.identity is None


@pytest.mark.parametrize(("session_ms", "times"), [(45_000, 2), (None, 1), (0, 2)])
async def test_who_has_no_right_to_be_told_of_the_session_does_not_ask_again(
    session_ms: int | None, times: int
) -> None:
    async with a_setting() as its:
        its.group.session_ms = session_ms
        await its.joined()
        its.group.member_id = "another"
        await its.pass_until(lambda: its.its.names[-2:] == ["lose", "assign"])
        assert len(its.asked(DescribeConfigsRequest)) == times


async def test_a_session_that_is_made_shorter_meanwhile_counts() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.session_ms = 12_000
        await its.pass_until(lambda: len(its.asked(DescribeConfigsRequest)) == 2)
        assert 44 < its.clock.monotonic() < 50  # once a session
        heartbeat_due = len(its.heartbeat_due)
        await its.pass_until(lambda: len(its.heartbeat_due) > heartbeat_due + 1)
        assert await lost_after(its) < 13


async def test_a_session_that_is_not_told_again_stays_as_it_was_told() -> None:
    async with a_setting() as its:
        its.group.session_ms = 12_000
        await its.joined()
        its.group.session_ms = None
        await its.pass_until(lambda: len(its.asked(DescribeConfigsRequest)) == 2)
        assert 11 < its.clock.monotonic() < 17
        heartbeat_due = len(its.heartbeat_due)
        await its.pass_until(lambda: len(its.heartbeat_due) > heartbeat_due + 5)
        assert await lost_after(its) < 13
        assert len(its.asked(DescribeConfigsRequest)) == 2


@pytest.mark.parametrize("lost", [1, 3])
async def test_the_session_is_asked_for_again_when_its_answer_is_lost(lost: int) -> None:
    """It is shorter than a guess: who goes by that may read on while another has begun."""
    async with a_setting() as its:
        its.group.session_ms = 12_000
        its.loses_sessions(lost)
        its.member.start()
        await its.pass_until(lambda: its.its.places == PLACES)
        await its.until(lambda: its.phase is Phase.STABLE)
        assert await lost_after(its) < 13


async def test_a_coordinator_that_never_tells_the_session_is_joined_without() -> None:
    async with a_setting() as its:
        its.loses_sessions(99)
        its.member.start()
        await its.pass_until(lambda: its.its.places == PLACES)
        assert len(its.asked(DescribeConfigsRequest)) == 4


async def test_who_unsubscribes_as_all_is_lost_hears_of_the_loss_at_once() -> None:
    async with a_setting() as its:
        await its.unsubscribed_as_it_loses_all(ConsumerGroupHeartbeatRequest)


async def test_a_slow_user_is_out_until_he_asks() -> None:
    async with a_setting() as its:
        await its.joined()
        its.its.is_late = True
        await its.pass_until(lambda: its.is_in(Phase.STALE))
        assert its.heartbeat_due[-1].member_epoch == -1
        its.its.is_late = False
        its.member.on_poll()
        await its.until(lambda: its.its.places == PLACES)
        assert its.client.metrics()["groups"]["g"]["late"] == 1


async def test_a_static_member_is_expected_back() -> None:
    async with a_setting() as its:
        its.make(instance_id="i")
        await its.joined()
        await its.member.leave(False)
        assert (its.heartbeat_due[-1].member_epoch, its.heartbeat_due[-1].instance_id) == (-2, "i")


async def test_a_topic_that_is_asked_for_by_its_id() -> None:
    """Metadata knows what the member subscribes to, and not yet what it gets."""
    async with a_setting() as its:
        its.make(Subscription.to(TopicPattern("t|new")))
        its.group.assigned = [("new", 0)]
        its.member.start()
        await its.until(lambda: its.is_in(Phase.STABLE))
        assert its.its.places == set()
        its.broker.topics["new"] = 1
        await its.pass_until(lambda: its.its.places == {("new", 0)}, 5)


async def test_a_compiled_pattern_is_watched() -> None:
    async with a_setting() as its:
        its.make(Subscription.to(re.compile("t|new")))
        await its.joined()
        assert its.heartbeat_due[0].subscribed_topic_names == ["t"]
        its.broker.topics["new"] = 1
        await its.client.refresh()
        its.member.on_topics_changed()
        await its.until(lambda: its.heartbeat_due[-1].subscribed_topic_names == ["new", "t"])


async def test_a_topic_that_is_forgotten_just_now_stays_subscribed_to() -> None:
    """As when its leader has moved, while another topic that matches is heard of."""
    async with a_setting() as its:
        its.make(Subscription.to(re.compile("t|new")))
        await its.joined()
        its.broker.topics["new"] = 1
        its.client.cluster.forget(["t"])
        await its.client.refresh(["new"])
        its.member.on_topics_changed()
        await its.until(lambda: its.heartbeat_due[-1].subscribed_topic_names not in (None, ["t"]))
        assert its.heartbeat_due[-1].subscribed_topic_names == ["new", "t"]


async def test_leaving_has_an_end() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.hold(ConsumerGroupHeartbeatRequest)
        leaving = asyncio.create_task(its.member.leave(True))
        await its.pass_until(leaving.done)
        assert its.its.places == set()


# Ends


async def in_a_group(
    play: Callable[[Setting], Awaitable[None]],
    protocol: str,
    hold: type[Request[Any]] | None = None,
) -> None:
    """Have a member join whose assignment changes with each heartbeat, and play.

    With `hold` the coordinator does not answer that, and is waited for no longer than it takes.
    """
    async with ScriptedBroker({"t": 2}) as broker:
        settings = quick(metadata_wait_ms=1_000, delivery_timeout_ms=1_000)
        async with Client(broker.bootstrap, settings) as client:
            its = Setting(broker, client, ManualClock())
            its.group.interval_ms = 1
            its.make(group_protocol=protocol, leave_timeout_ms=5_000 if hold is None else 50)
            if hold is not None:
                its.group.hold(hold)

            def turn(name: str, places: object) -> None:
                its.group.assigned = [] if its.group.assigned else [("t", 0)]

            its.its.on_call = turn
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
def test_a_member_may_be_ended_at_any_turn_of_the_loop(
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
def test_who_ends_a_member_may_be_cancelled(
    call: str, hold: type[Request[Any]] | None, late: bool
) -> None:
    async def scene(cancel: CancelAt) -> None:
        async def play(its: Setting) -> None:
            its.member.start()
            reached = hold or ConsumerGroupHeartbeatRequest
            await its.until(lambda: its.asked(reached))
            await cancel.run(its.member.leave(True) if call == "leave" else its.member.close())

        await in_a_group(play, "auto", hold)

    assert points(scene, late=late) > 0
