"""Tests JoinGroup of a classic group: member ids, protocols, leaders and the size limit."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker.groups import ClassicGroupState, JoinRequest, LeavingMember
from kproto.broker.groups.classic_members import JoinResultMember

from .classic_group_driver import NEW_MEMBER_MS, REBALANCE_MS, SESSION_MS, Play, protocols, received

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState


def test_first_member_leads_and_gets_all_members() -> None:
    play = Play(delay_ms=3_000)
    one, two = play.join(new_id="a"), play.join(new_id="b", instance_id="i")
    assert received(one) is received(two) is None
    play.wait(3_000 + 3_000)
    assert one.answer is not None
    assert two.answer is not None
    assert (one.answer.error, one.answer.member_id, one.answer.leader) == ("NONE", "a", "a")
    assert (one.answer.generation, one.answer.protocol) == (1, "range")
    assert one.answer.protocol_type == "consumer"
    assert one.answer.members == (
        JoinResultMember("a", None, b"m"),
        JoinResultMember("b", "i", b"m"),
    )
    assert (two.answer.leader, two.answer.members) == ("a", ())
    assert play.state is COMPLETING


def test_new_dynamic_member_gets_member_id_required() -> None:
    play = Play()
    given = play.join(new_id="a", requires_known_member_id=True).answer
    assert given is not None
    assert (given.error, given.member_id) == ("MEMBER_ID_REQUIRED", "a")
    assert (play.members, play.group.pending_ids, play.state) == ([], ("a",), EMPTY)
    joined = play.join("a", requires_known_member_id=True).answer
    assert joined is not None
    assert (joined.error, play.members, play.group.pending_ids) == ("NONE", ["a"], ())


def test_static_member_joins_without_member_id() -> None:
    play = Play()
    joined = play.join(new_id="a", instance_id="i", requires_known_member_id=True).answer
    assert joined is not None
    assert (joined.error, play.group.static_ids) == ("NONE", {"i": "a"})


def test_pending_member_id_rejects_static_member() -> None:
    play = Play()
    play.join(new_id="a", requires_known_member_id=True)
    answer = play.join("a", instance_id="i").answer
    assert answer is not None
    assert answer.error == "UNKNOWN_SERVER_ERROR"
    assert play.members == []


def test_pending_member_id_delays_rebalance() -> None:
    play = Play()
    play.stable("a")
    play.join(new_id="b", requires_known_member_id=True)
    again = play.join("a")
    assert received(again) is None
    later = play.join("b")
    assert again.answer is not None
    assert later.answer is not None
    assert (again.answer.generation, later.answer.generation) == (2, 2)


def test_pending_member_id_can_leave() -> None:
    play = Play()
    play.join(new_id="a", requires_known_member_id=True)
    assert play.leave("a") == ["NONE"]
    assert play.group.pending_ids == ()
    assert play.leave("a") == ["UNKNOWN_MEMBER_ID"]


@pytest.mark.parametrize(("protocol_type", "names"), [("", ("range",)), ("consumer", ()), ("", ())])
def test_first_member_without_protocol_is_rejected(
    protocol_type: str, names: tuple[str, ...]
) -> None:
    play = Play()
    request = JoinRequest("", protocol_type, protocols(*names), SESSION_MS, REBALANCE_MS)
    answer = play.group.join(request, "a", play.now).answer
    assert answer is not None
    assert (answer.error, play.members) == ("INCONSISTENT_GROUP_PROTOCOL", [])


@pytest.mark.parametrize("member_id", ["", "b"])
@pytest.mark.parametrize(("protocol_type", "name"), [("connect", "range"), ("consumer", "other")])
def test_member_without_common_protocol_is_rejected(
    member_id: str, protocol_type: str, name: str
) -> None:
    play = Play()
    play.stable("a", "b")
    answer = play.join(member_id, name, protocol_type=protocol_type).answer
    assert answer is not None
    assert (answer.error, answer.member_id) == ("INCONSISTENT_GROUP_PROTOCOL", member_id)
    assert (play.members, play.state) == (["a", "b"], STABLE)


def test_emptied_group_can_change_protocol_type() -> None:
    play = Play()
    play.stable("a")
    play.leave("a")
    assert (play.state, play.group.protocol_type, play.group.protocol) == (EMPTY, "consumer", None)
    play.stable("b", protocol_type="connect")
    assert play.group.protocol_type == "connect"


def test_selected_protocol_is_supported_by_all() -> None:
    play = Play(delay_ms=1_000)
    one = play.join("", "sticky", "range", new_id="a")
    play.join("", "range", "roundrobin", new_id="b")
    play.wait(2_000)
    assert one.answer is not None
    assert one.answer.protocol == "range"
    assert [member.metadata for member in one.answer.members] == [b"m", b"m"]


def test_votes_decide_between_common_protocols() -> None:
    play = Play(delay_ms=1_000)
    for name, wanted in (("a", "range"), ("b", "sticky"), ("c", "sticky")):
        other = "sticky" if wanted == "range" else "range"
        play.join("", wanted, other, new_id=name)
    play.wait(2_000)
    assert play.group.protocol == "sticky"


def test_repeated_join_shares_the_result() -> None:
    play = Play(delay_ms=1_000)
    first = play.join(new_id="a")
    second = play.join("a")
    play.wait(1_000)
    assert first.answer is not None
    assert first.answer is second.answer


def test_oldest_member_leads_after_leader_left() -> None:
    play = Play()
    play.stable("a", "b", "c")
    play.leave("a")
    assert play.group.leader == "b"
    for name in ("b", "c"):
        play.join(name)
    assert play.group.leader == "b"


def test_leader_that_does_not_rejoin_is_replaced() -> None:
    play = Play()
    play.stable("a", "b", "c", session_timeout_ms=600_000)
    later = play.join("c", protocols=protocols("range", metadata=b"x"))
    play.wait(REBALANCE_MS)
    assert later.answer is not None
    assert (later.answer.leader, play.members) == ("c", ["c"])


@pytest.mark.parametrize("member_id", ["", "c"])
def test_full_group_rejects_join(member_id: str) -> None:
    play = Play(max_size=2)
    play.stable("a", "b")
    if member_id:
        refused = play.join(new_id="c", requires_known_member_id=True)
    else:
        refused = play.join()
    assert refused.answer is not None
    assert (refused.answer.error, refused.answer.member_id) == ("GROUP_MAX_SIZE_REACHED", "")
    assert (play.members, play.state) == (["a", "b"], STABLE)


def test_rebalancing_group_is_full_by_its_joined_members() -> None:
    play = Play(max_size=2)
    play.stable("a", "b")
    play.join("a")
    late = play.join(new_id="c")
    assert late.answer is None, "b may not rejoin"
    refused = play.join("b")
    assert refused.answer is not None
    assert refused.answer.error == "GROUP_MAX_SIZE_REACHED"
    again = play.join("a")
    assert again.answer is not None, "a waiting member may join again, and all members have joined"
    assert (again.answer.error, play.members) == ("NONE", ["a", "c"])


def test_waiting_new_member_expires_after_join_timeout() -> None:
    play = Play()
    play.stable("a", session_timeout_ms=1_000_000, rebalance_timeout_ms=1_000_000)
    new = play.join(new_id="b")
    play.wait(NEW_MEMBER_MS)
    assert new.answer is not None
    assert (new.answer.error, new.answer.member_id) == ("UNKNOWN_MEMBER_ID", "")
    assert play.members == ["a"]


def test_waiting_member_needs_no_heartbeats() -> None:
    play = Play()
    play.stable("a", "b")
    play.heartbeat("b")
    again = play.join("a")
    for _ in range(10):
        play.wait(SESSION_MS - 1)
        play.heartbeat("b")
        if again.answer is not None:
            break
    assert again.answer is not None, "the rebalance timeout ends it"
    assert (play.members, play.ms) == (["a"], 7 * (SESSION_MS - 1))


def test_restarted_static_member_keeps_generation() -> None:
    play = Play()
    play.stable("a")
    play.stable("b", instance_id="i")
    received = play.join(new_id="b2", instance_id="i", supports_skipping_assignment=True).answer
    assert received is not None
    assert (received.error, received.member_id, received.generation) == ("NONE", "b2", 2)
    assert (received.leader, received.skip_assignment, received.members) == ("a", False, ())
    assert (play.state, play.members) == (STABLE, ["a", "b2"])
    assert play.stored[-1] == "Stable 2 a b2"
    assigned = play.sync("b2", instance_id="i").answer
    assert assigned is not None
    assert assigned.assignment == b"b"
    assert play.heartbeat("b", instance_id="i") == "FENCED_INSTANCE_ID"
    assert play.heartbeat("b") == "UNKNOWN_MEMBER_ID"
    assert play.heartbeat("b2", instance_id="j") == "UNKNOWN_MEMBER_ID"
    assert play.leave(LeavingMember("b", "i")) == ["FENCED_INSTANCE_ID"]


@pytest.mark.parametrize("supports_skipping_assignment", [True, False])
def test_restarted_static_leader_skips_assignment(supports_skipping_assignment: bool) -> None:
    play = Play()
    play.stable("a", instance_id="i")
    received = play.join(
        new_id="a2", instance_id="i", supports_skipping_assignment=supports_skipping_assignment
    ).answer
    assert received is not None
    assert received.skip_assignment is supports_skipping_assignment
    if supports_skipping_assignment:
        assert (received.leader, received.members) == ("a2", (JoinResultMember("a2", "i", b"m"),))
    else:
        assert (received.leader, received.members) == ("a", ()), "the leader must not assign"
    assert (play.group.leader, play.state) == ("a2", STABLE)


def test_waiting_replaced_static_member_is_fenced() -> None:
    play = Play()
    play.stable("a")
    play.stable("b", instance_id="i")
    play.join("a")
    waits = play.join("b", instance_id="i")
    assert waits.answer is not None, "all have joined"
    pending_sync = play.sync("b", instance_id="i")
    play.join(new_id="b2", instance_id="i")
    assert pending_sync.answer is not None
    assert pending_sync.answer.error == "FENCED_INSTANCE_ID"
    assert play.state is PREPARING, "the leader would use the former member id"
    pending_join = play.group.members["b2"].pending_join
    assert pending_join is not None
    again = play.join(new_id="b3", instance_id="i")
    assert pending_join.answer is not None
    assert pending_join.answer.error == "FENCED_INSTANCE_ID"
    assert again.answer is None


def test_static_members_stay_without_rejoining() -> None:
    play = Play()
    play.stable("a")
    play.stable("b", instance_id="i", session_timeout_ms=600_000)
    play.join("a")
    play.wait(REBALANCE_MS)
    assert (play.members, play.state) == (["a", "b"], COMPLETING)
    play.sync("a", {"a": b"A", "b": b"B"})
    received = play.sync("b", instance_id="i").answer
    assert received is not None
    assert received.assignment == b"B", "its assignment is kept for it"


def test_absent_static_members_do_not_block_rebalance() -> None:
    play = Play()
    play.stable("a")
    play.stable("b", instance_id="i", session_timeout_ms=200_000)
    play.leave("a")
    assert play.state is PREPARING
    play.wait(REBALANCE_MS)
    assert (play.state, play.members) == (PREPARING, ["b"]), "its session has not expired"
    play.wait(200_000)
    assert (play.state, play.members, play.group.generation) == (EMPTY, [], 3)


def test_initial_rebalance_is_delayed_while_members_join() -> None:
    play = Play(delay_ms=3_000)
    one = play.join(new_id="a", rebalance_timeout_ms=7_000)
    joined_at = []
    for name in "bcdefgh":
        play.wait(1_500)
        if one.answer is None:
            play.join(new_id=name, rebalance_timeout_ms=7_000)
            joined_at.append(play.ms)
    # 3 s, 3 s more because b joined, and 1 s up to the limit of 7 s because d joined.
    assert joined_at == [1_500, 3_000, 4_500, 6_000]
    assert one.answer is not None
    assert [member.member_id for member in one.answer.members] == list("abcde")


def test_initial_rebalance_is_not_extended_without_new_members() -> None:
    play = Play(delay_ms=3_000)
    one = play.join(new_id="a")
    play.wait(2_999)
    assert one.answer is None
    play.wait(1)
    assert one.answer is not None


@pytest.mark.parametrize("syncs", [True, False])
def test_restarted_static_member_syncs_former_assignment(syncs: bool) -> None:
    play = Play()
    long: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    play.stable("a", **long)
    play.stable("s", instance_id="i", **long)
    for name in ("a", "s"):
        play.rejoin(name)
    play.sync("a", {"s": b"S"})
    play.join(new_id="s2", instance_id="i", **long)
    if syncs:
        answer = play.sync("s2", instance_id="i").answer
        assert answer is not None
        assert answer.assignment == b"S"
    play.wait(REBALANCE_MS)
    expected = (STABLE, ["a", "s2"]) if syncs else (PREPARING, ["a"])
    assert (play.state, play.members) == expected, (
        "Kafka still waits for the SyncGroup of `s`: it rebalances in both cases, and keeps `s2`"
    )
