"""Tests errors that make `ConsumerMembership` rejoin, wait or end."""

from __future__ import annotations

import logging

import pytest

from kproto.client.core.group_errors import ErrorAction
from kproto.client.groups.effects import Revoke
from kproto.client.groups.group_protocol import GroupProtocolMismatchError
from kproto.client.groups.heartbeat_phases import Phase
from kproto.wire.errors import BrokerConnectionError, BrokerResponseError

from .walks import T0, T1, Walk, error

JOINING, RECONCILING, STABLE = Phase.JOINING, Phase.RECONCILING, Phase.STABLE
FENCED, FATAL = Phase.FENCED, Phase.FATAL


def test_member_waits_for_an_unreleased_instance_id() -> None:
    """A killed member keeps the instance id at the broker until the member's session expires."""
    walk = Walk(instance_id="i").to(JOINING)
    begun = walk.now
    while walk.now < begun + 8:  # the next attempt may be a second later
        assert walk.refused("UNRELEASED_INSTANCE_ID") is ErrorAction.UNRELEASED
        assert walk.phase is JOINING
    walk.on_heartbeat_response(1, [])
    assert walk.phase is RECONCILING


def test_instance_id_that_stays_unreleased_is_fatal() -> None:
    walk = Walk(instance_id="i").to(JOINING)
    while walk.phase is JOINING:
        walk.refused("UNRELEASED_INSTANCE_ID")
    assert 113 < walk.now < 115.5  # a session and the delay of a heartbeat
    assert walk.revoke().partitions == frozenset()
    assert walk.step() is None  # no leave request goes to the member that owns the id
    assert walk.phase is FATAL
    assert "instance i is still a member" in str(walk.its.error)


def test_member_releases_its_own_instance_id_before_rejoining() -> None:
    """The session has expired by the member's clock, and not yet at the broker.

    A leave request releases the id, so that the member need not wait for the broker.
    """
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.now += 11
    walk.its.tick(walk.now)
    walk.revoke()
    walk.prepare()
    assert walk.refused("UNRELEASED_INSTANCE_ID") is ErrorAction.UNRELEASED
    release = walk.beat()
    its = release.request
    assert (its.member_id, its.member_epoch, its.instance_id) == (walk.its.member_id, -2, "i")
    walk.answered(release, -2)
    assert walk.on_heartbeat_response(6, [T0]).member_epoch == 0
    assert walk.phase is RECONCILING


def test_instance_id_of_another_member_is_released_only_once() -> None:
    walk = Walk(instance_id="i").to(FENCED, T0)
    walk.revoke()
    walk.prepare()
    walk.refused("UNRELEASED_INSTANCE_ID")
    assert walk.refused("FENCED_INSTANCE_ID") is None
    while walk.phase is JOINING:
        assert walk.beat().request.member_epoch == 0
        walk.refused("UNRELEASED_INSTANCE_ID")
    assert "instance i is still a member" in str(walk.its.error)


def test_instance_id_taken_by_a_lost_join_is_released() -> None:
    walk = Walk(instance_id="i").to(JOINING)
    walk.refused(BrokerConnectionError("a test"))
    walk.refused("UNRELEASED_INSTANCE_ID")
    assert walk.refused(BrokerConnectionError("a test")) is ErrorAction.FIND_COORDINATOR
    assert walk.beat().request.member_epoch == -2
    walk.on_heartbeat_response(-2)
    assert walk.on_heartbeat_response(1, [T0]).member_epoch == 0


@pytest.mark.parametrize(
    ("name", "is_certain"),
    [
        ("GROUP_ID_NOT_FOUND", False),
        ("INCONSISTENT_GROUP_PROTOCOL", False),
        ("UNSUPPORTED_VERSION", True),
    ],
)
def test_group_of_the_other_protocol_ends_the_membership(name: str, is_certain: bool) -> None:
    walk = Walk(may_change_protocol=True).to(JOINING)
    assert walk.refused(name) is ErrorAction.OTHER_PROTOCOL
    walk.revoke()
    assert walk.step() is None
    assert walk.phase is FATAL
    assert isinstance(walk.its.error, GroupProtocolMismatchError)
    assert walk.its.error.is_certain is is_certain


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("GROUP_ID_NOT_FOUND", "group.consumer.migration.policy"),
        ("INCONSISTENT_GROUP_PROTOCOL", "no group of consumers"),
        ("UNSUPPORTED_VERSION", 'group_protocol="classic"'),
    ],
)
def test_group_of_the_other_protocol_is_an_error_with_group_protocol_consumer(
    name: str, words: str
) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    walk.refused(name)
    assert isinstance(walk.its.error, BrokerResponseError)
    assert words in str(walk.its.error)
    assert "why" in str(walk.its.error)  # the broker's message is included


#: Error messages of Kafka 3.9.2 and 4.4. After MALFORMED, a later conversion may succeed.
MALFORMED = (
    "Cannot upgrade the classic group g to consumer group because the embedded consumer protocol "
    "is malformed."
)
NOT_CONVERTIBLE = [
    "Group g is not a consumer group.",
    "Cannot upgrade classic group g to consumer group because online upgrade is disabled.",
]


#: Kafka 3.9 answers with an error without a message; Kafka 4 seldom does.
IN_A_REBALANCE = pytest.mark.parametrize(
    ("name", "words"), [("GROUP_ID_NOT_FOUND", MALFORMED), ("UNKNOWN_SERVER_ERROR", "")]
)


@IN_A_REBALANCE
def test_join_is_retried_until_a_rebalancing_classic_group_is_converted(
    name: str, words: str
) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    begun = walk.now
    for _ in range(5):
        assert walk.refused(name, words) is ErrorAction.UNCONVERTED
        assert walk.phase is JOINING
    assert walk.now > begun + 1.5  # the backoff grows
    warnings = [level for level, text, _ in walk.its.log_lines if "can be converted" in text]
    assert warnings == [logging.WARNING]
    walk.on_heartbeat_response(1, [])
    assert walk.phase is RECONCILING


@IN_A_REBALANCE
def test_classic_group_that_is_never_converted_is_fatal(name: str, words: str) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    begun = walk.now
    while walk.phase is JOINING:
        walk.refused(name, words)
    assert 120 < walk.now - begun < 122.5  # delivery_timeout_ms and the last backoff
    assert walk.revoke().partitions == frozenset()
    assert walk.step() is None
    assert words in str(walk.its.error)
    explains = {"GROUP_ID_NOT_FOUND": "group.consumer.migration.policy"}.get(
        name, "log has the cause"
    )
    assert explains in str(walk.its.error)


@pytest.mark.parametrize("words", NOT_CONVERTIBLE)
def test_group_that_cannot_be_converted_is_fatal_at_once(words: str) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    assert walk.refused("GROUP_ID_NOT_FOUND", words) is ErrorAction.OTHER_PROTOCOL
    assert isinstance(walk.its.error, BrokerResponseError)
    assert words in str(walk.its.error)


@IN_A_REBALANCE
def test_member_of_any_protocol_does_not_wait_for_a_conversion(name: str, words: str) -> None:
    walk = Walk(may_change_protocol=True).to(JOINING)
    walk.refused(name, words)
    assert isinstance(walk.its.error, GroupProtocolMismatchError)


def test_partitions_are_lost_when_the_broker_disables_the_protocol() -> None:
    walk = Walk(may_change_protocol=True).to(STABLE, T0)
    walk.refused("UNSUPPORTED_VERSION")
    assert walk.revoke() == Revoke(frozenset([T0]), True, walk.now)
    assert walk.step() is None
    assert walk.phase is FATAL


def test_fatal_error_during_revocation_loses_the_partitions() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    walk.step()
    walk.its.fail(error("INVALID_REQUEST"), walk.now, leaves=True)
    assert walk.revoke() == Revoke(frozenset([T0, T1]), True, walk.now)
    assert walk.leave().epoch == -1
    assert walk.phase is FATAL
