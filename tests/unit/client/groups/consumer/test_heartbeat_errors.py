"""Tests the meaning of each error in the consumer protocol, row by row of the table."""

from __future__ import annotations

import pytest

from kproto.client.groups.consumer.heartbeat_errors import meaning_of
from kproto.client.groups.consumer.phases import Phase
from kproto.client.groups.group_errors import GroupRequest, Meaning
from kproto.wire.errors import (
    BrokerConnectionError,
    KprotoError,
    RequestTimeoutError,
    UnsupportedVersionError,
)

from .walks import T0, Walk, error

JOIN, HEARTBEAT, COMMIT, LEAVE = (
    GroupRequest.JOIN,
    GroupRequest.HEARTBEAT,
    GroupRequest.COMMIT,
    GroupRequest.LEAVE,
)


@pytest.mark.parametrize(
    ("sent", "name", "meaning"),
    [
        (HEARTBEAT, "UNKNOWN_MEMBER_ID", Meaning.MEMBER_UNKNOWN),
        (HEARTBEAT, "FENCED_MEMBER_EPOCH", Meaning.MEMBER_UNKNOWN),
        (HEARTBEAT, "GROUP_ID_NOT_FOUND", Meaning.MEMBER_UNKNOWN),
        (HEARTBEAT, "UNSUPPORTED_VERSION", Meaning.OTHER_PROTOCOL),
        (JOIN, "UNKNOWN_MEMBER_ID", Meaning.MEMBER_UNKNOWN),
        (JOIN, "FENCED_MEMBER_EPOCH", Meaning.MEMBER_UNKNOWN),
        (JOIN, "UNRELEASED_INSTANCE_ID", Meaning.UNRELEASED),
        (JOIN, "GROUP_ID_NOT_FOUND", Meaning.OTHER_PROTOCOL),
        (JOIN, "INCONSISTENT_GROUP_PROTOCOL", Meaning.OTHER_PROTOCOL),
        (JOIN, "UNSUPPORTED_VERSION", Meaning.OTHER_PROTOCOL),
        (COMMIT, "STALE_MEMBER_EPOCH", Meaning.STALE),
        (COMMIT, "UNKNOWN_MEMBER_ID", Meaning.MEMBER_UNKNOWN),
        (COMMIT, "FENCED_MEMBER_EPOCH", Meaning.MEMBER_UNKNOWN),
        (LEAVE, "UNKNOWN_MEMBER_ID", Meaning.FAIL),
    ],
)
def test_error_of_a_request_has_its_meaning(
    sent: GroupRequest, name: str, meaning: Meaning
) -> None:
    assert meaning_of(sent, error(name)) is meaning


@pytest.mark.parametrize("sent", [JOIN, HEARTBEAT])
@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("COORDINATOR_LOAD_IN_PROGRESS", Meaning.RETRY),
        ("COORDINATOR_NOT_AVAILABLE", Meaning.FIND_COORDINATOR),
        ("NOT_COORDINATOR", Meaning.FIND_COORDINATOR),
        ("FENCED_INSTANCE_ID", Meaning.FENCED),
        ("GROUP_AUTHORIZATION_FAILED", Meaning.FAIL),
        ("GROUP_MAX_SIZE_REACHED", Meaning.FAIL),
        ("INVALID_GROUP_ID", Meaning.FAIL),
        ("INVALID_REGULAR_EXPRESSION", Meaning.FAIL),
        ("INVALID_REQUEST", Meaning.FAIL),
        ("TOPIC_AUTHORIZATION_FAILED", Meaning.FAIL),
        ("UNSUPPORTED_ASSIGNOR", Meaning.FAIL),
        ("REQUEST_TIMED_OUT", Meaning.RETRY),
    ],
)
def test_error_of_any_heartbeat_has_its_meaning(
    sent: GroupRequest, name: str, meaning: Meaning
) -> None:
    assert meaning_of(sent, error(name)) is meaning


@pytest.mark.parametrize(
    ("lost", "meaning"),
    [
        (RequestTimeoutError("late"), Meaning.FIND_COORDINATOR),
        (BrokerConnectionError("gone"), Meaning.FIND_COORDINATOR),
        (UnsupportedVersionError("old"), Meaning.FAIL),
    ],
)
def test_lost_heartbeat_has_its_meaning(lost: KprotoError, meaning: Meaning) -> None:
    assert meaning_of(HEARTBEAT, lost) is meaning


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("FENCED_INSTANCE_ID", "another member has joined as instance i"),
        ("GROUP_AUTHORIZATION_FAILED", "READ on the group"),
        ("GROUP_MAX_SIZE_REACHED", "group.consumer.max.size"),
        ("INVALID_REGULAR_EXPRESSION", "RE2"),
        ("INVALID_REQUEST", "why"),
        ("TOPIC_AUTHORIZATION_FAILED", "READ on all subscribed topics: t"),
        ("UNSUPPORTED_ASSIGNOR", "no assignor 'best' (group.consumer.assignors)"),
    ],
)
def test_fatal_error_explains_its_cause(name: str, words: str) -> None:
    walk = Walk(instance_id="i", server_assignor="best").to(Phase.STABLE, T0)
    walk.refused(name)
    assert words in str(walk.its.error)
    assert walk.revoke().lost
