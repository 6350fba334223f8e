"""What members of a generation do: assignments, heartbeats, leaving, and what time does to them."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker.groups import ClassicGroupState, LeaveRequest

from .classic_group_driver import DATE_MS, REBALANCE_MS, SESSION_MS, Play, heard, protocols

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState


def test_every_member_gets_what_the_leader_assigned() -> None:
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
        ("NONE", b""),  # whom the leader does not name
    ]
    assert [it and (it.protocol_type, it.protocol) for it in answers] == [("consumer", "range")] * 3
    assert play.state is STABLE
    assert play.stored == ["Stable 1 a b c"]


def test_whom_the_leader_leaves_out_keeps_nothing_of_the_generation_before() -> None:
    play = Play()
    play.stable("a", "b")
    for name in "ab":
        play.join(name)
    play.sync("a", {"a": b"A"})
    answer = play.sync("b").answer
    assert answer is not None
    assert (answer.error, answer.assignment) == ("NONE", b"")


def test_who_asks_twice_for_its_assignment_is_answered_twice() -> None:
    play = Play()
    play.stable("a", "b")
    play.join("a")
    play.join("b")
    first, second = play.sync("b"), play.sync("b")
    play.sync("a", {"b": b"B"})
    assert first.answer is second.answer is not None


@pytest.mark.parametrize(
    ("asked", "error"),
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
def test_a_sync_that_is_refused(asked: dict[str, Any], error: str) -> None:
    play = Play()
    play.stable("a")
    answer = play.sync("a", **asked).answer
    assert answer is not None
    assert answer.error == error


def test_a_member_that_is_not_there() -> None:
    play = Play()
    play.stable("a")
    answer = play.sync("b").answer
    assert answer is not None
    assert answer.error == "UNKNOWN_MEMBER_ID"
    assert play.heartbeat("b") == "UNKNOWN_MEMBER_ID"
    assert play.heartbeat("a", generation=0) == "ILLEGAL_GENERATION"
    assert play.heartbeat("b", generation=0) == "UNKNOWN_MEMBER_ID", "which is looked at first"


def test_a_rebalance_answers_who_waits_for_an_assignment() -> None:
    play = Play()
    play.stable("a", "b")
    play.join("a")
    play.join("b")
    waits = play.sync("b")
    play.join(new_id="c")
    assert waits.answer is not None
    assert (waits.answer.error, waits.answer.assignment) == ("REBALANCE_IN_PROGRESS", b"")
    assert waits.answer.protocol is None


def test_a_leader_that_does_not_assign() -> None:
    play = Play()
    play.stable("a", "b", session_timeout_ms=600_000)
    for name in "ab":
        play.join(name, session_timeout_ms=600_000)
    waits = play.sync("b")
    play.wait(REBALANCE_MS)
    assert waits.answer is not None
    assert waits.answer.error == "REBALANCE_IN_PROGRESS"
    assert (play.members, play.group.leader, play.state) == (["b"], "b", PREPARING)


def test_a_member_that_asks_for_no_assignment() -> None:
    play = Play()
    play.stable("a", "b", session_timeout_ms=600_000)
    for name in "ab":
        play.join(name, session_timeout_ms=600_000)
    play.sync("a")
    play.wait(REBALANCE_MS - 1)
    assert (play.members, play.state) == (["a", "b"], STABLE)
    play.wait(1)
    assert (play.members, play.state) == (["a"], PREPARING)


def test_who_waits_for_an_assignment_lives_on_without_heartbeats() -> None:
    play = Play()
    play.stable("a", "b")
    for name in "ab":
        play.join(name)
    waits = play.sync("b")
    for _ in range(3):
        play.wait(SESSION_MS - 1)
        play.heartbeat("a")
    assert heard(waits) is None
    play.sync("a", {"b": b"B"})
    assert waits.answer is not None
    play.wait(SESSION_MS - 1)
    assert "b" in play.members, "its session began anew with the answer"
    play.wait(1)
    assert "b" not in play.members


def test_a_session_goes_on_by_heartbeats_alone() -> None:
    play = Play()
    play.stable("a", "b")
    for _ in range(3):
        play.wait(SESSION_MS - 1)
        assert play.heartbeat("a") == "NONE" or play.state is PREPARING
    assert play.members == ["a"]


def test_the_last_session_empties_the_group() -> None:
    play = Play()
    play.stable("a")
    play.wait(SESSION_MS - 1)
    assert (play.state, play.group.last_empty_at) == (STABLE, None)
    play.wait(100_000)
    assert (play.state, play.members, play.group.generation) == (EMPTY, [], 2)
    assert play.group.last_empty_at == DATE_MS + SESSION_MS, "when it was, not when it was seen"
    assert play.group.next_deadline_ms is None
    assert play.stored == ["Stable 1 a", "Empty 2"]


def test_what_is_seen_late_happened_in_its_order() -> None:
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


def test_leaving() -> None:
    play = Play()
    play.stable("a", "b")
    play.stable("c", instance_id="i")
    by_instance = LeaveRequest("", "i")
    errors = play.leave(
        "a", "x", by_instance, by_instance, LeaveRequest("", None), LeaveRequest("b", "i")
    )
    assert errors == ["NONE", "UNKNOWN_MEMBER_ID", "NONE", *["UNKNOWN_MEMBER_ID"] * 3]
    assert (play.members, play.state) == (["b"], PREPARING)
    assert play.group.static_ids == {}


def test_who_leaves_while_it_waits_hears_so() -> None:
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


def test_the_last_to_leave_empties_the_group() -> None:
    play = Play()
    play.stable("a", "b")
    play.leave("a", "b")
    assert (play.state, play.group.generation, play.group.leader) == (EMPTY, 3, None)
    assert play.stored[-1] == "Empty 3"
    play.stable("c")
    assert play.group.generation == 4


def test_who_waits_is_woken_by_an_answer_and_by_what_comes_earlier() -> None:
    play = Play(delay_ms=3_000)
    play.join(new_id="a", rebalance_timeout_ms=0)
    assert play.wakes == 1, "there is something to wait for"
    play.join(new_id="b")
    assert play.wakes == 1, "nothing has come nearer"
    play.wait(3_000)
    assert play.wakes == 2, "the answers are there"
    play.heartbeat("a")
    assert play.wakes == 2


def test_a_heartbeat_of_a_shorter_session_wakes_who_waits() -> None:
    play = Play()
    play.stable("a", "b", "c", session_timeout_ms=30_000)
    play.join("a")
    play.join("b", session_timeout_ms=1_000)
    wakes, before = play.wakes, play.group.next_deadline_ms
    play.heartbeat("b")
    assert before is not None
    assert (play.group.next_deadline_ms, play.wakes) == (1_000, wakes + 1)
    assert before > 1_000


def test_without_a_rebalance_timeout_nobody_is_waited_for() -> None:
    play = Play()
    play.join(new_id="a", rebalance_timeout_ms=-5)
    assert (play.state, play.members) == (EMPTY, []), "it sent no SyncGroup within 0 ms"


def test_topics_that_members_read() -> None:
    def metadata(*topics: str, version: int = 1) -> bytes:
        names = b"".join(len(it).to_bytes(2) + it.encode() for it in topics)
        return version.to_bytes(2, signed=True) + len(topics).to_bytes(4) + names + b"\xff" * 4

    play = Play(delay_ms=1_000)
    play.join(new_id="a", protocols=protocols("range", metadata=metadata("t", "u")))
    play.join(new_id="b", protocols=protocols("range", metadata=metadata("v", version=9)))
    assert play.group.is_subscribed_to("x"), "which cannot be known before there is a generation"
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


def test_a_commit_of_a_new_member_lets_its_session_be_over_sooner() -> None:
    play = Play()
    play.stable("a", session_timeout_ms=600_000)
    play.join(new_id="b")
    assert play.group.next_deadline_ms == REBALANCE_MS, "a new member has longer than that"
    wakes = play.wakes
    play.group.reset_session("b", play.now)
    assert play.group.next_deadline_ms == SESSION_MS
    assert play.wakes == wakes + 1, "who waits has to look sooner"


def test_a_generation_is_stored_with_the_time_at_which_its_leader_began_to_assign() -> None:
    play = Play()
    play.join(new_id="a")
    play.wait(500)
    play.sync("a")
    assert play.kept is not None
    assert play.kept.state_ms == DATE_MS
    assert play.group.state_since_ms == DATE_MS + 500
