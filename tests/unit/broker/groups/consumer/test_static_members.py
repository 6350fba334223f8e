"""Tests static members that leave temporarily and rejoin with a new member id (KIP-848)."""

from __future__ import annotations

from tests.unit.broker.groups.classic_group_driver import error_of

from .consumer_group_driver import SESSION_MS, ConsumerPlay

ALL_OF_T = {"t": [0, 1, 2, 3, 4, 5]}


def two() -> ConsumerPlay:
    play = ConsumerPlay()
    play.join("a", "t", instance_id="i")
    play.join("b", "t")
    play.share("a", "b")
    return play


def test_restarted_static_member_keeps_its_assignment() -> None:
    play = two()
    before = play.group.persisted.epoch
    play.leave("a", -2, instance_id="i")
    assert play.own("b") is None
    assert play.join("c", "t", instance_id="i") == {"t": [0, 1, 2]}
    assert (play.group.persisted.epoch, list(play.group.members)) == (before, ["b", "c"])
    assert error_of(lambda: play.beat("a", 3)) == "UNKNOWN_MEMBER_ID"
    assert error_of(lambda: play.beat("a", 3, instance_id="i")) == "FENCED_INSTANCE_ID"
    assert error_of(lambda: play.beat("c", 3, instance_id="k")) == "UNKNOWN_MEMBER_ID"
    assert play.beat("c", instance_id="i") is None


def test_instance_id_belongs_to_one_member() -> None:
    play = two()
    assert error_of(lambda: play.join("c", "t", instance_id="i")) == "UNRELEASED_INSTANCE_ID"
    assert error_of(lambda: play.beat("c", -2, instance_id="i")) == "FENCED_INSTANCE_ID"
    assert error_of(lambda: play.beat("c", -1, instance_id="j")) == "UNKNOWN_MEMBER_ID"


def test_absent_static_member_is_fenced_after_session_timeout() -> None:
    play = two()
    play.leave("a", -2, instance_id="i")
    play.wait(SESSION_MS - 1)
    play.own("b")
    play.wait(1)
    assert play.own("b") == ALL_OF_T
    assert play.join("c", "t", instance_id="i") == {}, "as a new one"


def test_static_member_that_leaves_for_good_loses_its_assignment() -> None:
    play = two()
    play.leave("a", instance_id="i")
    assert play.own("b") == ALL_OF_T


def test_restarted_static_member_changes_its_subscription() -> None:
    play = two()
    play.leave("a", -2, instance_id="i")
    before = play.group.persisted.epoch
    play.join("c", "t", "u", instance_id="i")
    assert play.group.persisted.epoch == before + 1
