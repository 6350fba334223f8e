"""Tests coordinator moves: the new coordinator loads groups, the old one answers requests."""

from __future__ import annotations

import pytest

from kproto.broker.groups import (
    ClassicGroup,
    ClassicGroupLimits,
    ClassicGroupState,
    ClockReading,
    GroupMetadataManager,
)
from kproto.broker.groups.committed_offsets import CommittedOffsets
from kproto.broker.groups.coordinator_records import StoredGroup

from .classic_group_driver import DATE_MS, SESSION_MS, Play, protocols

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState


def moved(play: Play) -> None:
    play.group.unload()
    play.restore()


def test_stable_group_is_restored_by_new_coordinator() -> None:
    play = Play()
    play.stable("a", protocols=protocols("range", "sticky"))
    play.stable("b", instance_id="i")
    since = play.group.state_since_ms
    play.wait(SESSION_MS - 1)
    moved(play)
    assert (play.state, play.members, play.group.generation) == (STABLE, ["a", "b"], 2)
    assert (play.group.leader, play.group.static_ids) == ("a", {"i": "b"})
    assert (play.group.protocol_type, play.group.protocol) == ("consumer", "range")
    assert play.group.state_since_ms == since
    play.wait(SESSION_MS - 1)
    assert play.heartbeat("a") == "NONE", "its session restarted"
    answer = play.sync("b", instance_id="i").answer
    assert answer is not None
    assert answer.assignment == b"b"
    assert play.group.members["a"].protocol_names == ("range",), "the move writes nothing"


def test_waiting_join_is_answered_on_unload() -> None:
    play = Play()
    play.stable("a", "b")
    play.join(new_id="id", requires_known_member_id=True)
    waits = play.join("a"), play.join(new_id="c")
    play.group.unload()
    assert [it.answer and (it.answer.error, it.answer.member_id) for it in waits] == [
        ("NOT_COORDINATOR", "a"),
        ("NOT_COORDINATOR", "c"),
    ]
    assert play.wakes
    play.restore()
    assert (play.state, play.members, play.group.generation) == (STABLE, ["a", "b"], 2)
    assert play.group.pending_ids == ()
    assert play.heartbeat("a") == "NONE"


def test_waiting_sync_is_answered_on_unload() -> None:
    play = Play()
    play.stable("a", "b")
    play.join("a")
    play.join("b")
    waits = play.sync("b")
    moved(play)
    assert waits.answer is not None
    assert waits.answer.error == "NOT_COORDINATOR"
    assert (play.state, play.group.generation) == (STABLE, 2), "the last stored state is loaded"


def test_group_without_stable_generation_is_restored_empty() -> None:
    play = Play(delay_ms=3_000)
    play.join(new_id="a")
    moved(play)
    assert (play.state, play.members, play.group.generation) == (EMPTY, [], 0)
    assert play.group.next_deadline_ms is None


def test_second_unload_has_no_effect() -> None:
    play = Play()
    play.stable("a")
    play.group.unload()
    play.group.unload()
    play.restore()
    assert play.members == ["a"]


def test_stored_metadata_is_a_snapshot() -> None:
    play = Play()
    play.stable("a")
    play.join("a", protocols=protocols("range", metadata=b"x"))
    play.sync("a", {"a": b"new"})
    play.join("a", protocols=protocols("range", metadata=b"y"))
    for _ in range(2):
        moved(play)
        member = play.group.members["a"]
        assert (member.assignment, member.metadata("range")) == (b"new", b"x")
        member.assignment = b"changed"
        member.protocols = ()


def test_restored_group_over_max_size_rebalances() -> None:
    play = Play()
    play.stable("a", "b")
    play.group.unload()
    play.limits = ClassicGroupLimits(0, 1, 1)
    play.restore()
    assert play.state is PREPARING
    play.join("a")
    answer = play.join("b").answer
    assert answer is not None
    assert answer.error == "GROUP_MAX_SIZE_REACHED"


@pytest.mark.parametrize("leader", [None, "nobody"])
def test_first_member_leads_if_record_has_no_leader(leader: str | None) -> None:
    play = Play()
    play.stable("a", "b")
    play.group.unload()
    assert play.kept is not None
    play.kept = play.kept._replace(leader=leader)
    play.restore()
    assert (play.state, play.group.leader) == (STABLE, "a"), "the first"
    play.join(new_id="c")
    play.rejoin("b")
    play.wait(SESSION_MS)
    assert (play.state, play.group.leader) == (COMPLETING, "b")


def now(ms: int) -> ClockReading:
    return ClockReading(ms, DATE_MS + ms)


def test_group_is_stored_when_first_member_joins() -> None:
    groups = GroupMetadataManager(ClassicGroupLimits(0, 1, 1))
    stored: list[str] = []
    groups.write = lambda group_id, records, now: stored.append(group_id)
    assert groups.find("g", now(0)) is None
    kept = groups.get_or_create("g", now(0), persist=True)
    groups.get_or_create("offsets", now(0), persist=False)
    assert groups.get_or_create("g", now(1), persist=True) is groups.find("g", now(1)) is kept
    assert stored == ["g"]
    assert [group.group_id for group in groups.all(now(1))] == ["g", "offsets"]
    groups.delete(kept)
    assert (kept.state, len(stored)) == (DEAD, 1), "the deletion is written"
    assert (groups.ids, len(groups)) == (("offsets",), 1)


def test_groups_from_the_log_are_restored() -> None:
    groups = GroupMetadataManager(ClassicGroupLimits(0, 300_000, 10))
    play = Play()
    play.stable("a")
    offsets = CommittedOffsets()
    groups.restore("g", StoredGroup(play.group.metadata, offsets=offsets), now(50_000))
    groups.restore("simple", StoredGroup(), now(50_000))
    found = groups.find("g", now(50_001))
    assert isinstance(found, ClassicGroup)
    assert (found.members["a"].deadline_ms, found.offsets) == (50_000 + SESSION_MS, offsets)
    groups.unload("g")
    assert found.next_deadline_ms is None
    assert [(it.group_id, it.protocol_type) for it in groups.all(now(1))] == [("simple", None)]
