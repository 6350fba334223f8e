"""Tests which members and admins may commit and fetch offsets of a consumer protocol group."""

from __future__ import annotations

import pytest

from kproto.broker.groups.consumer.offset_checks import (
    validate_offset_commit,
    validate_offset_fetch,
    validate_transactional_commit,
)
from tests.unit.broker.groups.classic_group_driver import error_of

from .consumer_group_driver import ConsumerPlay


def shared() -> ConsumerPlay:
    """Returns a group of two members.

    Member `a` owns t-0 to t-2 since epoch 2, and member `b` owns t-3 to t-5 since epoch 3.
    """
    play = ConsumerPlay()
    play.join("a", "t")
    play.join("b", "t")
    play.share("a", "b")
    return play


@pytest.mark.parametrize(
    ("member_id", "epoch", "partitions", "version", "error"),
    [
        ("a", 3, [0], 9, "NONE"),
        ("a", 3, [5], 9, "NONE"),
        ("a", 2, [0, 2], 9, "NONE"),
        ("a", 2, [0, 3], 9, "STALE_MEMBER_EPOCH"),
        ("a", 1, [0], 9, "STALE_MEMBER_EPOCH"),
        ("a", 4, [0], 9, "STALE_MEMBER_EPOCH"),
        ("b", 2, [3], 9, "STALE_MEMBER_EPOCH"),
        ("a", 3, [0], 8, "UNSUPPORTED_VERSION"),
        ("c", 3, [0], 9, "UNKNOWN_MEMBER_ID"),
        ("", -1, [0], 9, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_commits_are_checked_by_member_and_epoch(
    member_id: str, epoch: int, partitions: list[int], version: int, error: str
) -> None:
    play = shared()
    topic_id = play.topics.named("t").topic_id
    places = [(topic_id, it) for it in partitions]
    assert (
        error_of(lambda: validate_offset_commit(play.group, member_id, epoch, version, places))
        == error
    )


@pytest.mark.parametrize(
    ("member_id", "epoch", "instance_id", "partitions", "error"),
    [
        ("a", 3, None, [0], "NONE"),
        ("a", 3, "i", [0], "NONE"),
        ("a", 2, None, [0, 2], "NONE"),
        ("a", 2, None, [0, 3], "STALE_MEMBER_EPOCH"),
        ("a", 4, None, [0], "STALE_MEMBER_EPOCH"),
        ("a", -1, None, [0], "STALE_MEMBER_EPOCH"),
        ("c", 3, None, [0], "UNKNOWN_MEMBER_ID"),
        ("", 3, None, [0], "UNKNOWN_MEMBER_ID"),
        ("", -1, None, [0], "NONE"),
        ("", -1, "i", [0], "UNKNOWN_MEMBER_ID"),
    ],
)
@pytest.mark.parametrize("version", [5, 6])
def test_transactions_are_checked_by_member_and_epoch(
    member_id: str,
    epoch: int,
    instance_id: str | None,
    partitions: list[int],
    error: str,
    version: int,
) -> None:
    play = shared()
    topic_id = play.topics.named("t").topic_id
    places = [(topic_id, it) for it in partitions]
    if error == "STALE_MEMBER_EPOCH" and version < 6:
        error = "ILLEGAL_GENERATION"
    found = error_of(
        lambda: validate_transactional_commit(
            play.group, member_id, epoch, instance_id, version, places
        )
    )
    assert found == error


def test_transactions_commit_for_an_empty_group() -> None:
    play = shared()
    play.leave("a")
    play.leave("b")
    found = error_of(lambda: validate_transactional_commit(play.group, "a", -1, "i", 6, []))
    assert found == "NONE"


def test_commit_for_revoking_partition_is_accepted() -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    play.join("b", "t")
    play.beat("a")
    places = [(play.topics.named("t").topic_id, 5)]
    assert error_of(lambda: validate_offset_commit(play.group, "a", 2, 9, places)) == "NONE"


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        ("a", 3, "NONE"),
        ("a", 2, "STALE_MEMBER_EPOCH"),
        ("a", -1, "STALE_MEMBER_EPOCH"),
        ("c", 3, "UNKNOWN_MEMBER_ID"),
        ("", -1, "UNKNOWN_MEMBER_ID"),
        (None, 3, "UNKNOWN_MEMBER_ID"),
        (None, -1, "NONE"),
    ],
)
def test_offset_fetches_are_checked_by_member_and_epoch(
    member_id: str | None, epoch: int, error: str
) -> None:
    play = shared()
    assert error_of(lambda: validate_offset_fetch(play.group, member_id, epoch)) == error


def test_admins_commit_for_empty_groups() -> None:
    play = shared()
    play.leave("a")
    play.leave("b")
    assert error_of(lambda: validate_offset_commit(play.group, "", -1, 5, [])) == "NONE"
    assert (
        error_of(lambda: validate_offset_commit(play.group, "a", 3, 9, [])) == "UNKNOWN_MEMBER_ID"
    )


def test_classic_members_have_a_generation() -> None:
    play = ConsumerPlay()
    play.join("b", "t")
    joined = play.join_classic("", "t")
    assert (
        error_of(lambda: validate_offset_commit(play.group, joined.member_id, 3, 2, [])) == "NONE"
    )
    stale = error_of(lambda: validate_offset_commit(play.group, joined.member_id, 4, 2, []))
    assert stale == "ILLEGAL_GENERATION"
