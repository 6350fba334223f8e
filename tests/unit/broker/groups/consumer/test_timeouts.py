"""Tests session and rebalance timeouts of the consumer protocol, and coordinator moves."""

from __future__ import annotations

import logging

import pytest

from tests.unit.broker.groups.classic_group_driver import error_of

from .consumer_group_driver import REBALANCE_MS, SESSION_MS, ConsumerPlay

ALL_OF_T = {"t": [0, 1, 2, 3, 4, 5]}


def test_session_expires_without_heartbeats() -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    play.wait(SESSION_MS - 1)
    play.beat("a")
    play.wait(SESSION_MS - 1)
    assert list(play.group.members) == ["a"]
    play.wait(1)
    assert (list(play.group.members), play.group.next_deadline_ms) == ([], None)
    assert error_of(lambda: play.beat("a", 2)) == "UNKNOWN_MEMBER_ID"


def test_member_that_does_not_revoke_in_time_is_fenced() -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    play.join("b", "t")
    play.beat("a")
    for _ in range(REBALANCE_MS // 10_000):
        assert list(play.group.members) == ["a", "b"]
        play.beat("b")
        play.beat("a")
        play.wait(10_000)
    assert play.beat("b") == ALL_OF_T
    assert error_of(lambda: play.beat("a")) == "UNKNOWN_MEMBER_ID"


def test_member_that_revokes_in_time_stays() -> None:
    play = ConsumerPlay(session_timeout_ms=REBALANCE_MS * 3)
    play.join("a", "t")
    play.join("b", "t")
    play.beat("a")
    play.own("a")
    play.wait(REBALANCE_MS * 2)
    assert list(play.group.members) == ["a", "b"]


def test_timeout_that_cannot_be_stored_is_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    play.refuses = "NOT_COORDINATOR"
    play.wait(SESSION_MS)
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        assert list(play.group.members) == ["a"]
    assert any("is not stored" in message for message in caplog.messages)
    play.refuses = ""
    play.wait(1_000)
    assert list(play.group.members) == []


def test_new_coordinator_restores_group_from_log() -> None:
    play = ConsumerPlay()
    play.join("a", "t", "u", instance_id="i", rack="r", assignor="range")
    play.join("b", topics=None, regex="[tv]")
    play.beat("a", instance_id="i")
    before = play.group.persisted
    play.move()
    assert play.group.persisted == before
    assert str(play.group.state) == "Reconciling"
    play.share("a", "b")
    assert str(play.group.state) == "Stable"
    play.move()
    play.wait(SESSION_MS - 1)
    assert len(play.group.members) == 2, "sessions begin anew"
    play.wait(1)
    assert len(play.group.members) == 0


def test_rebalance_continues_on_new_coordinator() -> None:
    play = ConsumerPlay(session_timeout_ms=REBALANCE_MS * 3)
    play.join("a", "t")
    play.join("b", "t")
    play.beat("a")
    play.move()
    play.wait(REBALANCE_MS)
    assert list(play.group.members) == ["b"]


def test_deleted_group_leaves_no_records() -> None:
    play = ConsumerPlay()
    play.join("a", topics=["t"], regex="u")
    play.move()
    play.leave("a")
    play.groups.get_or_create_classic_group("g", play.now)
    play.move()
    assert play.any_group.type == "classic"
