"""Tests `ClassicMember`: its requests over sockets, and its heartbeats by a manual clock."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kproto import Client, ClientSettings, ConfigurationError, KprotoError
from kproto.client.core.retry import TIMER_RESOLUTION_S
from kproto.client.groups.classic.member import ClassicMember
from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kproto.messages.base import Request
from kproto.testing.clock import ManualClock
from tests.support.recording_listener import RecordingListener, new_classic_member
from tests.unit.client.groups.any_setting import PARTITIONS
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, api_versions, quick
from tests.unit.client.scripted_cluster import scripted_cluster

from ..scripted_group import ScriptedGroup
from .scripted_member import a_member


async def test_member_joins_sends_heartbeats_and_leaves() -> None:
    async with a_member() as its:
        before = its.member.identity
        assert before is None
        await its.joined()
        identity = its.member.identity
        assert identity is not None
        assert (identity.member_id, identity.generation) == ("member-1", 1)
        assert its.its.calls == [("assign", tuple(sorted(PARTITIONS)))]
        assert its.requests(HeartbeatRequest) == []
        for count in range(1, 6):
            await its.clock.advance(3_000)
            await its.until(lambda count=count: len(its.requests(HeartbeatRequest)) == count)
        assert {each.generation_id for each in its.requests(HeartbeatRequest)} == {1}
        await its.member.leave(True, "a test")
        (left,) = its.requests(LeaveGroupRequest)
        assert left.members[0].member_id == "member-1"
        assert left.members[0].reason == "a test"
        assert its.its.names == ["assign", "revoke"]
        counts = its.client.metrics()["groups"]["g"]
        assert counts == {
            "joins": 2,
            "rebalances": 1,
            "heartbeats": 5,
            "lost_partitions": 0,
            "late": 0,
        }


async def test_unsubscribe_during_partitions_lost_repeats_the_loss_at_once() -> None:
    async with a_member() as its:
        await its.unsubscribe_while_partitions_are_lost(HeartbeatRequest)


async def test_first_join_sends_no_request_twice() -> None:
    async with a_member() as its:
        await its.joined()
        for request, count in ((JoinGroupRequest, 2), (SyncGroupRequest, 1)):
            assert len(its.requests(request)) == count
        assert len(its.requests(FindCoordinatorRequest)) == 1
        first, second = its.requests(JoinGroupRequest)
        assert (first.member_id, second.member_id) == ("", "member-1")


@pytest.mark.parametrize("highest", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
async def test_member_joins_at_each_version(highest: int) -> None:
    """The versions begin with Kafka 0.9; the client omits the fields that a version lacks."""
    async with a_member() as its:
        limits: dict[type[Request[Any]], int] = {
            JoinGroupRequest: highest,
            SyncGroupRequest: min(highest, 5),
            HeartbeatRequest: min(highest, 4),
            LeaveGroupRequest: min(highest, 5),
            FindCoordinatorRequest: min(highest, 6),
        }
        answer = api_versions()
        for request, most in limits.items():
            for row in answer.api_keys:
                if row.api_key == request.API_KEY:
                    row.max_version = most
        its.broker.answers[ApiVersionsRequest] = lambda asked: answer
        await its.client.close()
        async with Client(its.broker.bootstrap, clock=its.clock) as client:
            its.member, its.its = new_classic_member(client, its.member.settings, "t")
            await its.joined()
            await its.clock.advance(3_000)
            await its.until(lambda: its.requests(HeartbeatRequest))
            await its.member.leave(True, "a test")
            assert its.group.member_id is None
            await its.member.close()


async def test_instance_id_is_refused_by_a_broker_without_static_members() -> None:
    async with a_member(instance_id="i") as its:
        answer = api_versions()
        for row in answer.api_keys:
            if row.api_key == JoinGroupRequest.API_KEY:
                row.max_version = 4
        its.broker.answers[ApiVersionsRequest] = lambda asked: answer
        its.broker.hang_up()
        its.member.start()
        await its.until(lambda: its.its.error is not None)
        assert "group_instance_id" in str(its.its.error)


async def test_lost_joingroup_response_leaves_no_abandoned_member() -> None:
    async with a_member() as its:
        its.group.errors[JoinGroupRequest] = ["NONE", HANG_UP]
        its.member.start()
        await its.pass_until(lambda: its.its.partitions == PARTITIONS, 5)
        asked = [each.member_id for each in its.requests(JoinGroupRequest)]
        assert asked == ["", "member-1", "member-1"]
        assert its.group.ids == 1


@pytest.mark.parametrize(
    ("request_class", "name"),
    [
        (request, name)
        for request in (JoinGroupRequest, SyncGroupRequest)
        for name in (
            "COORDINATOR_LOAD_IN_PROGRESS",
            "COORDINATOR_NOT_AVAILABLE",
            "NOT_COORDINATOR",
            "REBALANCE_IN_PROGRESS",
            "UNKNOWN_MEMBER_ID",
            HANG_UP,
        )
    ]
    + [(SyncGroupRequest, "ILLEGAL_GENERATION"), (FindCoordinatorRequest, HANG_UP)]
    + [(FindCoordinatorRequest, "COORDINATOR_NOT_AVAILABLE")],
)
async def test_retriable_error_is_retried_until_the_member_joins(
    request_class: type[Request[Any]], name: str
) -> None:
    async with a_member() as its:
        its.group.errors[request_class] = [name, name]
        its.member.start()
        await its.pass_until(lambda: its.its.partitions == PARTITIONS, 5)
        assert its.its.error is None
        if name in ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
            assert len(its.requests(FindCoordinatorRequest)) >= 2


@pytest.mark.parametrize("name", ["GROUP_AUTHORIZATION_FAILED", "INVALID_GROUP_ID"])
@pytest.mark.parametrize(
    "request_class", [FindCoordinatorRequest, JoinGroupRequest, SyncGroupRequest]
)
async def test_fatal_error_ends_the_member(request_class: type[Request[Any]], name: str) -> None:
    async with a_member() as its:
        its.group.errors[request_class] = [name] * 9
        its.member.start()
        await its.until(lambda: its.its.error is not None)
        assert name in str(its.its.error)
        assert its.its.partitions == set()
        await its.member.leave(True)  # the member has already ended


# Requests that the broker delays


async def test_heartbeats_continue_while_joingroup_is_delayed() -> None:
    """A cooperative member consumes during the delay, so its session must outlast the delay."""
    async with a_member(assignors=("cooperative-sticky",)) as its:
        await its.joined()
        held = its.group.hold(JoinGroupRequest)
        its.group.rebalances = True
        await its.pass_until(lambda: len(its.requests(JoinGroupRequest)) == 3, 1_000)
        before = len(its.requests(HeartbeatRequest))
        for count in range(1, 41):  # two minutes
            await its.clock.advance(3_000)
            await its.until(
                lambda count=count: len(its.requests(HeartbeatRequest)) == before + count
            )
        assert its.is_in(Phase.JOINING)
        assert its.member.identity is not None
        held.set()
        await its.until(lambda: its.phase is Phase.STABLE)
        assert its.its.partitions == PARTITIONS
        assert "lose" not in its.its.names


async def test_heartbeat_that_waited_for_the_coordinator_does_not_queue_after_joingroup() -> None:
    async with a_member(assignors=("cooperative-sticky",)) as its:
        await its.joined()
        joins = len(its.requests(JoinGroupRequest))
        found = its.group.hold(FindCoordinatorRequest)
        its.group.hold(JoinGroupRequest)
        its.client._view.forget_group_coordinator("g")
        its.member.request_rejoin("a test")
        await its.until(lambda: len(its.requests(FindCoordinatorRequest)) == 2)
        await its.clock.advance(3_001)
        found.set()
        await its.until(lambda: len(its.requests(JoinGroupRequest)) > joins)
        await its.until(lambda: its.requests(HeartbeatRequest))  # no time passes


async def test_joingroup_moves_to_the_next_coordinator() -> None:
    """A heartbeat finds the new coordinator; the member then abandons its first JoinGroup."""
    clock = ManualClock()
    async with scripted_cluster(2) as cluster:
        cluster.topic("t", [0, 1])
        old, new = (ScriptedGroup(broker, at) for at, broker in enumerate(cluster.brokers))
        settings = quick(metadata_wait_ms=1_000, delivery_timeout_ms=120_000)
        async with Client(cluster.bootstrap, settings, clock=clock) as client:
            member, its = new_classic_member(
                client, GroupSettings("g", assignors=("cooperative-sticky",)), "t"
            )
            for group in (old, new):
                group.node, group.port = 0, old.broker.port
            member.start()
            await its.until_true(lambda: its.partitions == PARTITIONS)
            old.hold(JoinGroupRequest)
            old.rebalances = True
            while old.broker.count(JoinGroupRequest) < 3:
                await clock.advance(1_000)
                await asyncio.sleep(0.001)
            new.member_id, new.generation, new.ids = old.member_id, old.generation, 1
            for group in (old, new):
                group.node, group.port = 1, new.broker.port
            old.errors[HeartbeatRequest] = ["NOT_COORDINATOR"]
            moved_at = clock.monotonic()
            while not new.broker.count(SyncGroupRequest):
                await clock.advance(100)
                await asyncio.sleep(0.001)
            await its.until_true(lambda: member._membership.phase is Phase.STABLE)
            assert its.partitions == PARTITIONS
            assert "lose" not in its.names
            assert clock.monotonic() - moved_at < 10.0
            await member.leave(True)
            assert new.member_id is None
            await member.close()


async def test_joingroup_without_a_response_is_sent_again() -> None:
    """The broker has removed the member without an answer to its JoinGroup."""
    async with a_member() as its:
        held = its.group.hold(JoinGroupRequest)
        its.member.start()
        await its.until(lambda: len(its.requests(JoinGroupRequest)) == 1)
        its.group.held[JoinGroupRequest] = asyncio.Event()
        held.set()
        await its.until(lambda: len(its.requests(JoinGroupRequest)) == 2)
        its.group.member_id = None
        del its.group.held[JoinGroupRequest]
        await its.pass_until(lambda: its.its.partitions == PARTITIONS, 500)
        assert its.clock.monotonic() < 5.0
        assert [each.member_id for each in its.requests(JoinGroupRequest)] == [
            *("", "member-1", "member-1", "", "member-2")
        ]


async def test_partitions_are_lost_when_the_session_expires_without_responses() -> None:
    async with a_member(session_timeout_ms=10_000, heartbeat_interval_ms=1_000) as its:
        await its.joined()
        its.group.hold(HeartbeatRequest)
        since = its.clock.monotonic()
        until = its.member.assignment_valid_until
        await its.pass_until(lambda: "lose" in its.its.names, 50)
        lost_at = its.clock.monotonic()
        assert until - 0.01 <= lost_at <= until + 0.1
        assert until == pytest.approx(since + 10.0 - TIMER_RESOLUTION_S)
        # Each heartbeat times out after a third of the session.
        assert len(its.requests(HeartbeatRequest)) >= 2
        assert its.client.metrics()["groups"]["g"]["lost_partitions"] == 2


async def test_unknown_member_rejoins_with_a_new_id() -> None:
    async with a_member() as its:
        await its.joined()
        its.group.member_id = None
        await its.pass_until(lambda: its.its.names == ["assign", "lose", "assign"], 500)
        assert its.group.ids == 2


async def test_rebalance_waits_for_records_in_process() -> None:
    async with a_member(session_timeout_ms=10_000, heartbeat_interval_ms=1_000) as its:
        await its.joined()
        its.its.revoke_gate = asyncio.Event()
        its.group.rebalances = True
        await its.pass_until(lambda: "waits" in its.its.names, 500)
        assert its.its.until == pytest.approx(its.clock.monotonic() + 299.0, abs=1.5)
        for _ in range(30):
            before = len(its.requests(HeartbeatRequest))
            await its.pass_until(
                lambda before=before: len(its.requests(HeartbeatRequest)) > before, 200
            )
        assert len(its.requests(JoinGroupRequest)) == 2
        its.its.revoke_gate.set()
        await its.until(lambda: its.its.names == ["assign", "waits", "revoke", "assign"])


async def test_partitions_are_lost_during_their_revocation() -> None:
    async with a_member() as its:
        await its.joined()
        its.its.revoke_gate = asyncio.Event()
        its.group.rebalances = True
        await its.pass_until(lambda: "waits" in its.its.names, 500)
        its.group.member_id = None
        await its.pass_until(lambda: "lose" in its.its.names, 500)
        await its.until(lambda: its.its.partitions == PARTITIONS)
        assert its.its.names == ["assign", "waits", "lose", "assign"]


async def test_cancelled_revoke_callback_finishes_its_cleanup_before_the_loss() -> None:
    async with a_member() as its:
        await its.joined()
        held, cleans_up, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def revoke(tps: object, until: float) -> None:
            try:
                await held.wait()
            finally:
                cleans_up.set()
                await cleaned.wait()
                its.its.calls.append(("cleaned up", ()))

        its.its.revoke = revoke  # type: ignore[method-assign]  # like a user's rebalance listener
        its.member.request_rejoin("a test")
        its.group.errors[HeartbeatRequest] = ["UNKNOWN_MEMBER_ID"]
        await its.pass_until(cleans_up.is_set, 500)
        for _ in range(3):
            its.member.on_topics_changed()  # the member checks for its next step
            await asyncio.sleep(0.002)
        cleaned.set()
        await its.until(lambda: its.its.names == ["assign", "cleaned up", "lose", "assign"])


async def test_late_member_stays_out_until_the_next_poll(caplog: pytest.LogCaptureFixture) -> None:
    async with a_member() as its:
        await its.joined()
        its.its.is_late = True
        await its.pass_until(lambda: its.phase is Phase.UNSUBSCRIBED, 500)
        (left,) = its.requests(LeaveGroupRequest)
        assert "longer than 300000 ms" in left.members[0].reason
        assert "max_poll_interval_ms" in caplog.text
        assert its.its.names == ["assign", "lose"]
        joins = len(its.requests(JoinGroupRequest))
        await its.clock.advance(600_000)
        assert len(its.requests(JoinGroupRequest)) == joins
        its.its.is_late = False
        its.member.on_poll()
        await its.until(lambda: its.its.partitions == PARTITIONS)
        assert its.client.metrics()["groups"]["g"]["late"] == 1


async def test_poll_while_a_late_member_leaves_makes_it_rejoin() -> None:
    async with a_member() as its:
        await its.joined()
        leaving = its.group.hold(LeaveGroupRequest)
        its.its.is_late = True
        await its.pass_until(lambda: its.requests(LeaveGroupRequest), 500)
        its.its.is_late = False
        its.member.on_poll()
        leaving.set()
        await its.until(lambda: its.its.partitions == PARTITIONS)


# Leaving


@pytest.mark.parametrize(
    "silent", [FindCoordinatorRequest, JoinGroupRequest, SyncGroupRequest, LeaveGroupRequest]
)
async def test_leave_ends_without_a_response(silent: type[Request[Any]]) -> None:
    async with a_member() as its:
        its.group.hold(silent)
        its.member.start()
        reached = silent if silent is not LeaveGroupRequest else SyncGroupRequest
        await its.until(lambda: its.requests(reached))
        if silent is LeaveGroupRequest:
            await its.until(lambda: its.phase is Phase.STABLE)
        since = its.clock.monotonic()
        leaving = asyncio.create_task(its.member.leave(True))
        await its.pass_until(leaving.done, 50)
        # The member waits for its first JoinGroup response; leaving has the same timeout again.
        assert its.clock.monotonic() - since <= 10.5
        assert its.its.error is None


async def test_leave_does_not_wait_for_a_delayed_joingroup() -> None:
    """A LeaveGroup on the same connection would wait, too, so the client closes the connection."""
    async with a_member() as its:
        await its.joined()
        its.group.hold(JoinGroupRequest)
        its.member.request_rejoin("a test")
        await its.until(lambda: len(its.requests(JoinGroupRequest)) == 3)
        await its.member.leave(True)  # no time passes
        assert its.group.member_id is None


async def test_leavegroup_is_retried_at_the_next_coordinator() -> None:
    async with a_member() as its:
        await its.joined()
        its.group.errors[LeaveGroupRequest] = ["NOT_COORDINATOR", HANG_UP]
        leaving = asyncio.create_task(its.member.leave(True))
        await its.pass_until(leaving.done, 5)
        assert its.group.member_id is None
        assert len(its.requests(LeaveGroupRequest)) == 3


async def test_refused_leavegroup_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with a_member() as its:
        await its.joined()
        its.group.errors[LeaveGroupRequest] = ["GROUP_AUTHORIZATION_FAILED"]
        with caplog.at_level(logging.INFO):
            await its.member.leave(True)
        assert len(its.requests(LeaveGroupRequest)) == 1
        assert "failed to send the leave request: GROUP_AUTHORIZATION_FAILED" in caplog.text
        assert "has left" not in caplog.text


async def test_ended_member_sends_no_leavegroup_if_leaves_is_false() -> None:
    async with a_member() as its:
        await its.joined()
        await its.member.leave(False)
        assert its.requests(LeaveGroupRequest) == []
        assert its.its.names == ["assign", "revoke"]
        await its.member.leave(True)  # the member has already ended


async def test_close_sends_no_leavegroup_and_revokes_nothing() -> None:
    async with a_member() as its:
        await its.joined()
        await its.member.close()
        assert its.its.names == ["assign"]
        assert its.requests(LeaveGroupRequest) == []
        await its.member.close()


async def test_second_start_is_refused() -> None:
    async with a_member() as its:
        await its.joined()
        with pytest.raises(ConfigurationError, match="started already"):
            its.member.start()


# Callbacks


class Faulty(RecordingListener):
    """Raises an error in the callbacks named in its arguments."""

    def __init__(self, error: BaseException, *names: str) -> None:
        super().__init__()
        self.fault = error
        self.on_call = lambda name, partitions: self._raise() if name in names else None

    def _raise(self) -> None:
        raise self.fault


@pytest.mark.parametrize(
    "error", [ValueError("mine"), asyncio.CancelledError("mine"), KprotoError("mine")]
)
@pytest.mark.parametrize(
    "names", [("assign",), ("revoke",), ("revoke", "lose"), ("assign", "lose")]
)
async def test_callback_that_raises_ends_the_member(
    error: BaseException, names: tuple[str, ...]
) -> None:
    async with a_member() as its:
        faulty = Faulty(error, *names)
        its.its = faulty
        its.member = ClassicMember(its.client._view, its.member.settings, faulty)
        its.member.subscribe(Subscription.to("t"))
        its.member.start()
        if names[0] == "revoke":
            await its.until(lambda: its.phase is Phase.STABLE)
            its.member.request_rejoin("a test")
        await its.until(lambda: faulty.error is not None)
        assert "mine" in str(faulty.error)
        assert its.group.member_id is None  # it has left


@pytest.mark.parametrize("name", ["assign", "revoke"])
async def test_callback_that_cancels_its_own_task_ends_the_member(name: str) -> None:
    """The listener gets an error, so that the caller learns why no records arrive."""

    def cancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async with a_member() as its:
        listener = RecordingListener()
        listener.on_call = lambda called, partitions: cancel() if called == name else None
        its.member = ClassicMember(its.client._view, its.member.settings, listener)
        its.member.subscribe(Subscription.to("t"))
        its.member.start()
        if name == "revoke":
            await its.until(lambda: its.phase is Phase.STABLE)
            its.member.request_rejoin("a test")
        await its.until(lambda: its.member._task is not None and its.member._task.done())
        assert "cancelled itself" in str(listener.error)
        assert its.group.member_id is None  # it has left


async def test_leave_within_a_callback_is_refused() -> None:
    """The call would wait for its own end."""
    async with a_member() as its:

        class Closing(RecordingListener):
            async def assign(self, partitions: Any) -> None:
                await its.member.leave(True)

        listener = Closing()
        its.member = ClassicMember(its.client._view, its.member.settings, listener)
        its.member.subscribe(Subscription.to("t"))
        its.member.start()
        await its.until(lambda: listener.error is not None)
        assert "own callbacks" in str(listener.error)


async def test_close_within_a_callback_ends_the_callback() -> None:
    async with a_member() as its:

        class Closing(RecordingListener):
            async def assign(self, partitions: Any) -> None:
                await its.member.close()
                self.calls.append(("closed", ()))
                await asyncio.sleep(0)
                self.calls.append(("goes on", ()))

        listener = Closing()
        its.member = ClassicMember(its.client._view, its.member.settings, listener)
        its.member.subscribe(Subscription.to("t"))
        its.member.start()
        await its.until(lambda: its.member._task is not None and its.member._task.done())
        assert listener.names == ["closed"]


# Logs and settings


async def test_membership_changes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kproto.client")
    async with a_member() as its:
        await its.joined()
        its.group.member_id = None
        await its.pass_until(lambda: its.its.names == ["assign", "lose", "assign"], 500)
        await its.member.leave(True, "a test")
    lines = [each.getMessage() for each in caplog.records if "group g" in each.getMessage()]
    assert lines == [
        "group g: joined generation 1 as its leader, with range",
        "group g: is assigned t[0], t[1]",
        "group g: out of generation 1: UNKNOWN_MEMBER_ID (25): heartbeat: group 'g'",
        "group g: loses t[0], t[1]",
        "group g: joined generation 2 as its leader, with range",
        "group g: is assigned t[0], t[1]",
        "group g: revokes t[0], t[1]",
        "group g: left: a test",
    ]


async def test_rack_of_the_client_is_sent_by_its_members() -> None:
    """Assignors prefer replicas in the member's rack (KIP-881)."""
    async with (
        ScriptedBroker({"t": 2}) as broker,
        Client(broker.bootstrap, ClientSettings(rack="r7")) as client,
    ):
        group = ScriptedGroup(broker)
        member, its = new_classic_member(client, GroupSettings("g"), "t")
        member.start()
        await its.until_true(lambda: its.partitions == PARTITIONS)
        joins = [each.message for each in broker.asked]
        (_, join) = [each for each in joins if isinstance(each, JoinGroupRequest)]
        assert [each.name for each in join.protocols] == ["range", "cooperative-sticky"]
        assert all(each.metadata.endswith(b"\0\2r7") for each in join.protocols)
        await member.leave(True)
        assert group.member_id is None
        await member.close()
