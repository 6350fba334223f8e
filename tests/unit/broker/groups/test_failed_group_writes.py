"""Tests failed writes of a group: members receive an error, and the change is reverted.

There is one exception: a group that loses its last member becomes Empty even if the write fails.
"""

from __future__ import annotations

import logging

import pytest

from kproto import BrokerResponseError
from kproto.broker.api_error import api_error
from kproto.broker.groups import (
    ClassicGroupLimits,
    ClassicGroupState,
    GroupMetadataManager,
    LeavingMember,
)

from .classic_group_driver import SESSION_MS, Play, protocols

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState
TOO_LARGE = "UNKNOWN_SERVER_ERROR"
NO_ROOM = "NOT_COORDINATOR"


@pytest.mark.parametrize("error", [TOO_LARGE, NO_ROOM])
def test_assignment_is_not_sent_if_its_write_fails(error: str) -> None:
    play = Play()
    play.stable("a", "b")
    play.rejoin("a")
    play.rejoin("b")
    waits = play.sync("b")
    play.refuses = error
    leads = play.sync("a", {"a": b"A", "b": b"B"})
    for response in (waits.answer, leads.answer):
        assert response is not None
        assert (response.error, response.assignment, response.protocol) == (error, b"", None)
    assert play.state is PREPARING, "the members must join again"
    assert [it.assignment for it in play.group.members.values()] == [b"", b""]
    assert play.stored == ["Stable 2 a b"]
    play.refuses = ""
    play.rejoin("a")
    play.rejoin("b")
    assert (play.state, play.group.generation) == (COMPLETING, 4)
    leads = play.sync("a", {"a": b"A"})
    assert leads.answer is not None
    assert (leads.answer.error, leads.answer.assignment) == ("NONE", b"A")


def test_session_restarts_after_a_failed_assignment() -> None:
    play = Play()
    play.stable("a", "b")
    play.rejoin("a")
    play.rejoin("b")
    play.sync("b")
    play.wait(SESSION_MS - 1)
    play.heartbeat("a")
    play.refuses = TOO_LARGE
    play.sync("a")
    play.wait(SESSION_MS - 1)
    assert play.members == ["a", "b"]
    play.wait(1)
    assert play.members == []


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("supports_skipping_assignment", [True, False])
def test_static_member_is_not_replaced_if_the_write_fails(
    leads: bool, supports_skipping_assignment: bool
) -> None:
    play = Play()
    if leads:
        play.stable("s", instance_id="i", protocols=protocols("range", "sticky"))
        play.stable("a")
    else:
        play.stable("a")
        play.stable("s", instance_id="i", protocols=protocols("range", "sticky"))
    leader = play.group.leader
    before = play.stored[:]
    play.refuses = TOO_LARGE
    response = play.join(
        "",
        "range",
        new_id="s2",
        instance_id="i",
        supports_skipping_assignment=supports_skipping_assignment,
        session_timeout_ms=1,
    ).answer
    assert response is not None
    assert (response.error, response.member_id, response.generation) == (TOO_LARGE, "", 2)
    assert (response.protocol_type, response.protocol) == ("consumer", "range")
    assert (response.leader, response.members, response.skip_assignment) == (leader, (), False)
    assert (play.state, play.group.leader, play.group.static_ids) == (STABLE, leader, {"i": "s"})
    assert set(play.members) == {"a", "s"}
    assert play.stored == before
    assert play.heartbeat("s", instance_id="i") == "NONE"
    assert play.heartbeat("s2") == "UNKNOWN_MEMBER_ID"
    member = play.group.members["s"]
    assert (member.protocol_names, member.session_timeout_ms) == (("range", "sticky"), SESSION_MS)
    assert member.deadline_ms == play.ms + SESSION_MS
    play.refuses = ""
    again = play.join(new_id="s3", instance_id="i").answer
    assert again is not None
    assert (again.error, again.member_id) == ("NONE", "s3")


def test_unreplaced_static_member_must_still_sync() -> None:
    play = Play()
    play.stable("a")
    play.stable("s", instance_id="i")
    play.rejoin("a")
    play.rejoin("s")
    play.sync("a")
    play.refuses = NO_ROOM
    play.join(new_id="s2", instance_id="i", session_timeout_ms=600_000)
    play.refuses = ""
    while play.state is STABLE:
        play.heartbeat("a")
        play.heartbeat("s", instance_id="i")
        play.wait(SESSION_MS - 1)
    assert play.members == ["a"], "it sent no SyncGroup within the rebalance timeout"


def test_empty_group_is_kept_if_its_write_fails(caplog: pytest.LogCaptureFixture) -> None:
    play = Play()
    play.stable("a")
    play.refuses = TOO_LARGE
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        assert play.leave(LeavingMember("a")) == ["NONE"]
    assert any("group g is not stored" in message for message in caplog.messages)
    assert (play.state, play.stored) == (EMPTY, ["Stable 1 a"])


def test_group_is_not_created_if_its_write_fails() -> None:
    groups = GroupMetadataManager(ClassicGroupLimits(0, 1, 1))
    play = Play()
    with_room = groups.write

    def full(*_: object) -> None:
        raise api_error(NO_ROOM, "there is no room")

    groups.write = full
    with pytest.raises(BrokerResponseError, match=NO_ROOM):
        groups.get_or_create("g", play.now, persist=True)
    assert not groups.ids
    groups.get_or_create("offsets", play.now, persist=False)
    groups.write = with_room
    groups.get_or_create("g", play.now, persist=True)
    assert groups.ids == ("offsets", "g")
