"""Tests SyncGroup, Heartbeat and LeaveGroup in a generation, and member timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker.groups import ClassicGroupState, LeavingMember

from .classic_group_driver import DATE_MS, REBALANCE_MS, SESSION_MS, Play, protocols, received

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState


def test_every_member_gets_its_assignment_of_the_leader() -> None:
    play = Play(delay_ms=1_000)
    for name in "abc":
        play.join(new_id=name)
    play.wait(2_000)
    waiting = [play.sync("b"), play.sync("c")]
    assert [it.answer for it in waiting] == [None, None]
    leads = play.sync("a", {"a": b"A", "b": b"B", "nobody": b"N"}, protocol_type="consumer")
    answers = [it.answer for it in (leads, *waiting)]
    assert [it and (it.error, it.assignment) for it in answers] == [
        ("NONE", b"A"),
        ("NONE", b"B"),
        ("NONE", b""),  # the leader assigns nothing to this member
    ]
    assert [it and (it.protocol_type, it.protocol) for it in answers] == [("consumer", "range")] * 3
    assert play.state is STABLE
    assert play.stored == ["Stable 1 a b c"]


def test_member_without_assignment_loses_the_former_one() -> None:
    play = Play()
    play.stable("a", "b")
    for name in "ab":
        play.join(name)
    play.sync("a", {"a": b"A"})
    answer = play.sync("b").answer
    assert answer is not None
    assert (answer.error, answer.assignment) == ("NONE", b"")


def test_repeated_sync_shares_the_result() -> None:
    play = Play()
    play.stable("a", "b")
    play.join("a")
    play.join("b")
    first, second = play.sync("b"), play.sync("b")
    play.sync("a", {"b": b"B"})
    assert first.answer is second.answer is not None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"generation": 0}, "ILLEGAL_GENERATION"),
        ({"generation": 2}, "ILLEGAL_GENERATION"),
        ({"instance_id": "i"}, "UNKNOWN_MEMBER_ID"),
        ({"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol": "sticky"}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol": "range", "protocol_type": "consumer"}, "NONE"),
        ({"protocol": "sticky", "generation": 0}, "ILLEGAL_GENERATION"),
    ],
)
def test_invalid_sync_is_rejected(fields: dict[str, Any], error: str) -> None:
    play = Play()
    play.stable("a")
    answer = play.sync("a", **fields).answer
    assert answer is not None
    assert answer.error == error


def test_unknown_member_is_rejected() -> None:
    play = Play()
    play.stable("a")
    answer = play.sync("b").answer
    assert answer is not None
    assert answer.error == "UNKNOWN_MEMBER_ID"
    assert play.heartbeat("b") == "UNKNOWN_MEMBER_ID"
    assert play.heartbeat("a", generation=0) == "ILLEGAL_GENERATION"
    assert play.heartbeat("b", generation=0) == "UNKNOWN_MEMBER_ID", (
        "the instance id is checked first"
    )


def test_rebalance_answers_waiting_syncs() -> None:
    play = Play()
    play.stable("a", "b")
    play.join("a")
    play.join("b")
    waits = play.sync("b")
    play.join(new_id="c")
    assert waits.answer is not None
    assert (waits.answer.error, waits.answer.assignment) == ("REBALANCE_IN_PROGRESS", b"")
    assert waits.answer.protocol is None


def test_leader_without_sync_is_removed() -> None:
    play = Play()
    play.stable("a", "b", session_timeout_ms=600_000)
    for name in "ab":
        play.join(name, session_timeout_ms=600_000)
    waits = play.sync("b")
    play.wait(REBALANCE_MS)
    assert waits.answer is not None
    assert waits.answer.error == "REBALANCE_IN_PROGRESS"
    assert (play.members, play.group.leader, play.state) == (["b"], "b", PREPARING)


def test_member_without_sync_is_removed() -> None:
    play = Play()
    play.stable("a", "b", session_timeout_ms=600_000)
    for name in "ab":
        play.join(name, session_timeout_ms=600_000)
    play.sync("a")
    play.wait(REBALANCE_MS - 1)
    assert (play.members, play.state) == (["a", "b"], STABLE)
    play.wait(1)
    assert (play.members, play.state) == (["a"], PREPARING)


def test_waiting_sync_keeps_session_alive() -> None:
    play = Play()
    play.stable("a", "b")
    for name in "ab":
        play.join(name)
    waits = play.sync("b")
    for _ in range(3):
        play.wait(SESSION_MS - 1)
        play.heartbeat("a")
    assert received(waits) is None
    play.sync("a", {"b": b"B"})
    assert waits.answer is not None
    play.wait(SESSION_MS - 1)
    assert "b" in play.members, "its session restarts with the response"
    play.wait(1)
    assert "b" not in play.members


def test_heartbeats_keep_session_alive() -> None:
    play = Play()
    play.stable("a", "b")
    for _ in range(3):
        play.wait(SESSION_MS - 1)
        assert play.heartbeat("a") == "NONE" or play.state is PREPARING
    assert play.members == ["a"]


def test_last_expired_session_empties_the_group() -> None:
    play = Play()
    play.stable("a")
    play.wait(SESSION_MS - 1)
    assert (play.state, play.group.last_empty_at) == (STABLE, None)
    play.wait(100_000)
    assert (play.state, play.members, play.group.generation) == (EMPTY, [], 2)
    assert play.group.last_empty_at == DATE_MS + SESSION_MS, (
        "the deadline counts, not the time of the call"
    )
    assert play.group.next_deadline_ms is None
    assert play.stored == ["Stable 1 a", "Empty 2"]


def test_late_advance_runs_deadlines_in_order() -> None:
    play, late = Play(), Play()
    for it in (play, late):
        it.stable("a", "b", "c", session_timeout_ms=20_000)
        it.join("b", session_timeout_ms=20_000)
    for _ in range(200_000 // 500):
        play.wait(500)
    late.wait(200_000)
    for seen in (play, late):
        assert (seen.state, seen.members) == (EMPTY, [])
    assert late.group.generation == play.group.generation
    assert late.group.last_empty_at == play.group.last_empty_at
    assert late.stored == play.stored


def test_leave_returns_an_error_per_member() -> None:
    play = Play()
    play.stable("a", "b")
    play.stable("c", instance_id="i")
    by_instance = LeavingMember("", "i")
    errors = play.leave(
        "a", "x", by_instance, by_instance, LeavingMember("", None), LeavingMember("b", "i")
    )
    assert errors == ["NONE", "UNKNOWN_MEMBER_ID", "NONE", *["UNKNOWN_MEMBER_ID"] * 3]
    assert (play.members, play.state) == (["b"], PREPARING)
    assert play.group.static_ids == {}


def test_waiting_member_that_leaves_is_answered() -> None:
    play = Play()
    play.stable("a", "b")
    pending_join = play.join("b", protocols=protocols("range", metadata=b"x"))
    play.leave("b")
    assert pending_join.answer is not None
    assert pending_join.answer.error == "UNKNOWN_MEMBER_ID"
    play.join("a")
    play.stable("c")
    play.join("a")
    play.join("c")
    pending_sync = play.sync("c")
    play.leave("c")
    assert pending_sync.answer is not None
    assert pending_sync.answer.error == "UNKNOWN_MEMBER_ID"


def test_last_leaving_member_empties_the_group() -> None:
    play = Play()
    play.stable("a", "b")
    play.leave("a", "b")
    assert (play.state, play.group.generation, play.group.leader) == (EMPTY, 3, None)
    assert play.stored[-1] == "Empty 3"
    play.stable("c")
    assert play.group.generation == 4


def test_watchers_are_notified_of_results_and_earlier_deadlines() -> None:
    play = Play(delay_ms=3_000)
    play.join(new_id="a", rebalance_timeout_ms=0)
    assert play.wakes == 1, "the first deadline wakes the coordinator"
    play.join(new_id="b")
    assert play.wakes == 1, "no deadline is earlier"
    play.wait(3_000)
    assert play.wakes == 2, "responses wake the coordinator"
    play.heartbeat("a")
    assert play.wakes == 2


def test_heartbeat_with_shorter_session_notifies_watchers() -> None:
    play = Play()
    play.stable("a", "b", "c", session_timeout_ms=30_000)
    play.join("a")
    play.join("b", session_timeout_ms=1_000)
    wakes, before = play.wakes, play.group.next_deadline_ms
    play.heartbeat("b")
    assert before is not None
    assert (play.group.next_deadline_ms, play.wakes) == (1_000, wakes + 1)
    assert before > 1_000


def test_zero_rebalance_timeout_waits_for_no_member() -> None:
    play = Play()
    play.join(new_id="a", rebalance_timeout_ms=-5)
    assert (play.state, play.members) == (EMPTY, []), "it sent no SyncGroup within 0 ms"


def test_subscribed_topics_of_members() -> None:
    def metadata(*topics: str, version: int = 1) -> bytes:
        names = b"".join(len(it).to_bytes(2) + it.encode() for it in topics)
        return version.to_bytes(2, signed=True) + len(topics).to_bytes(4) + names + b"\xff" * 4

    play = Play(delay_ms=1_000)
    play.join(new_id="a", protocols=protocols("range", metadata=metadata("t", "u")))
    play.join(new_id="b", protocols=protocols("range", metadata=metadata("v", version=9)))
    assert play.group.is_subscribed_to("x"), "the topics are unknown before the first generation"
    play.wait(2_000)
    group = play.group
    assert [group.is_subscribed_to(it) for it in "tuvx"] == [True, True, True, False]
    play.leave("a", "b")
    assert not group.is_subscribed_to("t")
    for broken in (b"", b"\xff\xff\0\0\0\0", metadata("t")[:-5], b"\0\0\0\0\0\7t"):
        play.join(new_id="c", protocols=protocols("range", metadata=broken))
        play.wait(1_000)
        assert group.is_subscribed_to("x")
        play.leave("c")
    play.join(new_id="d", protocol_type="connect")
    play.wait(1_000)
    assert not group.is_subscribed_to("x")


def test_commit_of_new_member_starts_session_timeout() -> None:
    play = Play()
    play.stable("a", session_timeout_ms=600_000)
    play.join(new_id="b")
    assert play.group.next_deadline_ms == REBALANCE_MS, "a new member has a longer timeout"
    wakes = play.wakes
    play.group.reset_session("b", play.now)
    assert play.group.next_deadline_ms == SESSION_MS
    assert play.wakes == wakes + 1, "the earlier deadline wakes the coordinator"


def test_generation_is_stored_with_time_of_completing_rebalance() -> None:
    play = Play()
    play.join(new_id="a")
    play.wait(500)
    play.sync("a")
    assert play.kept is not None
    assert play.kept.state_ms == DATE_MS
    assert play.group.state_since_ms == DATE_MS + 500
