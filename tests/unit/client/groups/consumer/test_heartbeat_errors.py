"""Tests the table of actions for errors of the consumer protocol (KIP-848), row by row."""

from __future__ import annotations

import pytest

from kproto.client.core.group_errors import ErrorAction, GroupRequest
from kproto.client.groups.consumer.heartbeat_errors import action_for
from kproto.client.groups.heartbeat_phases import Phase
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
    ("sent", "name", "action"),
    [
        (HEARTBEAT, "UNKNOWN_MEMBER_ID", ErrorAction.MEMBER_UNKNOWN),
        (HEARTBEAT, "FENCED_MEMBER_EPOCH", ErrorAction.MEMBER_UNKNOWN),
        (HEARTBEAT, "GROUP_ID_NOT_FOUND", ErrorAction.MEMBER_UNKNOWN),
        (HEARTBEAT, "UNSUPPORTED_VERSION", ErrorAction.OTHER_PROTOCOL),
        (JOIN, "UNKNOWN_MEMBER_ID", ErrorAction.MEMBER_UNKNOWN),
        (JOIN, "FENCED_MEMBER_EPOCH", ErrorAction.MEMBER_UNKNOWN),
        (JOIN, "UNRELEASED_INSTANCE_ID", ErrorAction.UNRELEASED),
        (JOIN, "GROUP_ID_NOT_FOUND", ErrorAction.OTHER_PROTOCOL),
        (JOIN, "INCONSISTENT_GROUP_PROTOCOL", ErrorAction.OTHER_PROTOCOL),
        (JOIN, "UNSUPPORTED_VERSION", ErrorAction.OTHER_PROTOCOL),
        (COMMIT, "STALE_MEMBER_EPOCH", ErrorAction.STALE),
        (COMMIT, "UNKNOWN_MEMBER_ID", ErrorAction.MEMBER_UNKNOWN),
        (COMMIT, "FENCED_MEMBER_EPOCH", ErrorAction.MEMBER_UNKNOWN),
        (LEAVE, "UNKNOWN_MEMBER_ID", ErrorAction.HAS_LEFT),
    ],
)
def test_error_of_a_request_has_its_meaning(
    sent: GroupRequest, name: str, action: ErrorAction
) -> None:
    assert action_for(sent, error(name)) is action


@pytest.mark.parametrize("sent", [JOIN, HEARTBEAT])
@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("COORDINATOR_LOAD_IN_PROGRESS", ErrorAction.RETRY),
        ("COORDINATOR_NOT_AVAILABLE", ErrorAction.FIND_COORDINATOR),
        ("NOT_COORDINATOR", ErrorAction.FIND_COORDINATOR),
        ("FENCED_INSTANCE_ID", ErrorAction.FENCED),
        ("GROUP_AUTHORIZATION_FAILED", ErrorAction.FAIL),
        ("GROUP_MAX_SIZE_REACHED", ErrorAction.FAIL),
        ("INVALID_GROUP_ID", ErrorAction.FAIL),
        ("INVALID_REGULAR_EXPRESSION", ErrorAction.FAIL),
        ("INVALID_REQUEST", ErrorAction.FAIL),
        ("TOPIC_AUTHORIZATION_FAILED", ErrorAction.FAIL),
        ("UNSUPPORTED_ASSIGNOR", ErrorAction.FAIL),
        ("REQUEST_TIMED_OUT", ErrorAction.RETRY),
    ],
)
def test_error_of_any_heartbeat_has_its_meaning(
    sent: GroupRequest, name: str, action: ErrorAction
) -> None:
    assert action_for(sent, error(name)) is action


@pytest.mark.parametrize(
    ("lost", "action"),
    [
        (RequestTimeoutError("late"), ErrorAction.FIND_COORDINATOR),
        (BrokerConnectionError("gone"), ErrorAction.FIND_COORDINATOR),
        (UnsupportedVersionError("old"), ErrorAction.FAIL),
    ],
)
def test_lost_heartbeat_has_its_meaning(lost: KprotoError, action: ErrorAction) -> None:
    assert action_for(HEARTBEAT, lost) is action


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
