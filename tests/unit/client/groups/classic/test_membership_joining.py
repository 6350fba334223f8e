"""Tests how `ClassicMembership` joins, without an event loop: member ids, retries, fatal errors."""

from __future__ import annotations

import pytest

from kproto.client.core.group_errors import ErrorAction
from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.effects import (
    ApplyAssignment,
    ComputeAssignment,
    MemberIdentity,
    Revoke,
    SendJoinGroup,
    SendLeaveGroup,
    SendSyncGroup,
)
from kproto.client.groups.protocol_data import read_subscription
from kproto.messages import JoinGroupResponse, SyncGroupResponse
from kproto.wire.errors import BrokerConnectionError, BrokerResponseError, RequestTimeoutError

from ..memberships import MEMBER, OTHER, T0, T1, Walk

(
    UNSUBSCRIBED,
    REVOKING,
    JOINING,
    LEADING,
    SYNCING,
    ASSIGNING,
    STABLE,
    PREPARE_LEAVING,
    LEAVING,
    FATAL,
) = Phase


def test_first_join_gets_an_id_and_then_a_generation() -> None:
    walk = Walk()
    assert walk.revoke() == Revoke(frozenset(), False, walk.now)
    request = walk.join()
    assert (request.group_id, request.member_id, request.group_instance_id) == ("g", "", None)
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 60_000)
    assert request.protocol_type == "consumer"
    assert [each.name for each in request.protocols] == ["range"]
    subscription = read_subscription(request.protocols[0].metadata)
    assert (
        list(subscription.topics),
        subscription.owned,
        subscription.generation,
        subscription.rack,
    ) == (["t"], [], -1, "r1")
    assert walk.join_refused("MEMBER_ID_REQUIRED", MEMBER) is ErrorAction.USE_MEMBER_ID
    again = walk.join()  # at once
    assert again.member_id == MEMBER
    assert again.reason == request.reason == "the subscription is now t"
    walk.joined(7, leads=True)
    lead = walk.step()
    assert isinstance(lead, ComputeAssignment)
    assert [each.member_id for each in lead.members] == [MEMBER, OTHER]
    assert not lead.skip
    assert walk.its.identity(walk.now) is None
    walk.on_assignment_computed({MEMBER: [T0], OTHER: [T1]})
    sync = walk.step()
    assert isinstance(sync, SendSyncGroup)
    request_sent = sync.request
    assert (request_sent.generation_id, request_sent.member_id, request_sent.protocol_name) == (
        7,
        MEMBER,
        "range",
    )
    assert request_sent.protocol_type == "consumer"
    assert [each.member_id for each in request_sent.assignments] == [MEMBER, OTHER]
    walk.synced(T0)
    assert walk.apply() == ApplyAssignment(frozenset(), (T0,), 159.0)
    assert walk.phase is STABLE
    assert walk.its.identity(walk.now) == MemberIdentity("g", MEMBER, 7, None)
    assert walk.step() is None


def test_follower_sends_no_assignments() -> None:
    walk = Walk().to(SYNCING)
    step = walk.step()
    assert isinstance(step, SendSyncGroup)
    assert step.request.assignments == []


def test_static_leader_skips_the_assignment() -> None:
    """KIP-814: the leader computes no assignment, and still watches the topics."""
    walk = Walk(instance_id="i").to(JOINING)
    walk.joined(3, leads=True, skip=True)
    step = walk.step()
    assert isinstance(step, ComputeAssignment)
    assert step.skip
    walk.on_assignment_computed({})
    sync = walk.step()
    assert isinstance(sync, SendSyncGroup)
    assert sync.request.assignments == []
    assert sync.request.group_instance_id == "i"


@pytest.mark.parametrize(
    "name",
    [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "REBALANCE_IN_PROGRESS",
    ],
)
def test_retriable_error_makes_the_member_join_again(name: str) -> None:
    walk = Walk().to(JOINING)
    first = walk.join_sent
    assert walk.join_refused(name) in (ErrorAction.RETRY, ErrorAction.FIND_COORDINATOR)
    assert walk.step() is None  # not at once
    walk.now = walk.its.next_at(walk.now)
    assert walk.join() == first  # with the same reason


def test_backoff_grows_until_a_join_succeeds() -> None:
    walk = Walk().to(JOINING)
    waits = []
    for _ in range(6):
        walk.join_refused("COORDINATOR_LOAD_IN_PROGRESS")
        before, walk.now = walk.now, walk.its.next_at(walk.now)
        waits.append(walk.now - before)
        walk.join()
    assert waits[0] < 0.13
    assert 0.7 < waits[-1] < 1.3
    walk.joined()
    walk.synced()
    walk.apply()
    walk.its.request_rejoin("a test", walk.now)
    walk.revoke()
    walk.join()
    walk.join_refused("COORDINATOR_LOAD_IN_PROGRESS")
    assert walk.its.next_at(walk.now) - walk.now < 0.13


@pytest.mark.parametrize("lost", [RequestTimeoutError("late"), BrokerConnectionError("gone")])
def test_lost_response_leaves_no_abandoned_member(lost: Exception) -> None:
    """The member gets its id before it joins (KIP-394), so a repeated JoinGroup has the same id."""
    walk = Walk().to(JOINING)
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    walk.join()
    assert isinstance(lost, RequestTimeoutError | BrokerConnectionError)
    assert walk.its.failed(lost, walk.now) is ErrorAction.FIND_COORDINATOR
    walk.now = walk.its.next_at(walk.now)
    assert walk.join().member_id == MEMBER


def test_unknown_id_while_joining_is_replaced() -> None:
    walk = Walk().to(JOINING)
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    walk.join()
    assert walk.join_refused("UNKNOWN_MEMBER_ID") is ErrorAction.MEMBER_UNKNOWN
    assert walk.revoke().partitions == frozenset()
    assert walk.join().member_id == ""  # at once
    walk.join_refused("UNKNOWN_MEMBER_ID")
    walk.revoke()
    assert (
        walk.step() is None
    )  # a broker that repeats the error gets the next request after a backoff
    walk.now = walk.its.next_at(walk.now)
    assert isinstance(walk.step(), SendJoinGroup)


FATAL_ERRORS = [
    "INCONSISTENT_GROUP_PROTOCOL",
    "GROUP_AUTHORIZATION_FAILED",
    "GROUP_MAX_SIZE_REACHED",
    "INVALID_GROUP_ID",
    "INVALID_SESSION_TIMEOUT",
]


@pytest.mark.parametrize("name", [*FATAL_ERRORS, "FENCED_INSTANCE_ID", "UNSUPPORTED_VERSION"])
def test_fatal_error_ends_a_joining_member(name: str) -> None:
    walk = Walk().to(JOINING)
    walk.join_refused(name)
    assert walk.phase is PREPARE_LEAVING
    walk.revoke()
    assert walk.phase is FATAL
    assert isinstance(walk.its.error, BrokerResponseError)
    assert walk.its.error.name == name


def test_failed_member_with_an_id_leaves_the_group() -> None:
    """Otherwise the other members would wait until the session of this member expires."""
    walk = Walk().to(JOINING)
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    walk.join()
    walk.join_refused("INCONSISTENT_GROUP_PROTOCOL")
    walk.revoke()
    assert walk.leave().member_id == MEMBER
    assert walk.phase is FATAL
    assert "has range" in str(walk.its.error)


def test_fenced_static_member_sends_no_leavegroup() -> None:
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.on_heartbeat_response("FENCED_INSTANCE_ID")
    assert walk.its.identity(walk.now) is None
    assert walk.revoke()[:2] == (frozenset({T0}), True)
    assert walk.phase is FATAL
    assert "as instance i" in str(walk.its.error)


@pytest.mark.parametrize(
    ("protocol_type", "protocol"), [("connect", "range"), ("consumer", "sticky"), (None, None)]
)
def test_group_with_another_protocol_is_refused(
    protocol_type: str | None, protocol: str | None
) -> None:
    """The JoinGroup response names the protocol type and the protocol (KIP-559)."""
    walk = Walk().to(JOINING)
    answer = JoinGroupResponse(
        generation_id=1, protocol_type=protocol_type, protocol_name=protocol, member_id=MEMBER
    )
    walk.its.on_join_response(answer, walk.now, walk.now)
    assert isinstance(walk.its.error, BrokerResponseError)
    assert walk.its.error.name == "INCONSISTENT_GROUP_PROTOCOL"
    walk.revoke()
    assert isinstance(walk.step(), SendLeaveGroup)


def test_assignment_of_another_protocol_is_refused() -> None:
    walk = Walk().to(SYNCING)
    answer = SyncGroupResponse(protocol_type="consumer", protocol_name="sticky")
    walk.its.on_sync_response(answer, walk.now, walk.now)
    assert isinstance(walk.its.error, BrokerResponseError)
    assert walk.its.error.name == "INCONSISTENT_GROUP_PROTOCOL"
