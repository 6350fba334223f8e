"""What leads a member of the consumer protocol to another one, or to its end."""

from __future__ import annotations

import logging

import pytest

from kproto.client.groups.consumer.phases import Phase
from kproto.client.groups.effects import Revoke
from kproto.client.groups.group_errors import Meaning
from kproto.client.groups.group_protocol import GroupProtocolMismatchError
from kproto.wire.errors import BrokerConnectionError, BrokerResponseError

from .walks import T0, T1, Walk, error

JOINING, RECONCILING, STABLE = Phase.JOINING, Phase.RECONCILING, Phase.STABLE
FENCED, FATAL = Phase.FENCED, Phase.FATAL


def test_an_instance_id_that_is_not_released_is_waited_for() -> None:
    """Who had it was killed, and is a member for a session yet."""
    walk = Walk(instance_id="i").to(JOINING)
    begun = walk.now
    while walk.now < begun + 8:  # another try may be a second later
        assert walk.refused("UNRELEASED_INSTANCE_ID") is Meaning.UNRELEASED
        assert walk.phase is JOINING
    walk.on_heartbeat_response(1, [])
    assert walk.phase is RECONCILING


def test_an_instance_id_that_is_never_released() -> None:
    walk = Walk(instance_id="i").to(JOINING)
    while walk.phase is JOINING:
        walk.refused("UNRELEASED_INSTANCE_ID")
    assert 113 < walk.now < 115.5  # a session, and what a heartbeat may be late by
    assert walk.revoke().partitions == frozenset()
    assert walk.step() is None  # who has it is not told to go
    assert walk.phase is FATAL
    assert "instance i is a member yet" in str(walk.its.error)


def test_an_instance_id_that_is_its_own_is_released_first() -> None:
    """It gave up by its own clock before its session was over: it need not wait for that."""
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.now += 11
    walk.its.tick(walk.now)
    walk.revoke()
    walk.prepare()
    assert walk.refused("UNRELEASED_INSTANCE_ID") is Meaning.UNRELEASED
    release = walk.beat()
    its = release.request
    assert (its.member_id, its.member_epoch, its.instance_id) == (walk.its.member_id, -2, "i")
    walk.answered(release, -2)
    assert walk.on_heartbeat_response(6, [T0]).member_epoch == 0
    assert walk.phase is RECONCILING


def test_an_instance_id_is_released_once_where_another_has_it() -> None:
    walk = Walk(instance_id="i").to(FENCED, T0)
    walk.revoke()
    walk.prepare()
    walk.refused("UNRELEASED_INSTANCE_ID")
    assert walk.refused("FENCED_INSTANCE_ID") is None
    while walk.phase is JOINING:
        assert walk.beat().request.member_epoch == 0
        walk.refused("UNRELEASED_INSTANCE_ID")
    assert "instance i is a member yet" in str(walk.its.error)


def test_an_instance_id_that_a_lost_answer_gave() -> None:
    walk = Walk(instance_id="i").to(JOINING)
    walk.refused(BrokerConnectionError("a test"))
    walk.refused("UNRELEASED_INSTANCE_ID")
    assert walk.refused(BrokerConnectionError("a test")) is Meaning.FIND_COORDINATOR
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
def test_a_group_of_the_other_kind(name: str, is_certain: bool) -> None:
    walk = Walk(may_change=True).to(JOINING)
    assert walk.refused(name) is Meaning.OTHER_PROTOCOL
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
def test_a_group_of_the_other_kind_for_who_wants_this_one(name: str, words: str) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    walk.refused(name)
    assert isinstance(walk.its.error, BrokerResponseError)
    assert words in str(walk.its.error)
    assert "why" in str(walk.its.error)  # in the broker's words, too


#: As Kafka 3.9.2 and 4.4 say it of a group that may be converted later, and of others.
MALFORMED = (
    "Cannot upgrade the classic group g to consumer group because the embedded consumer protocol "
    "is malformed."
)
NEVER = [
    "Group g is not a consumer group.",
    "Cannot upgrade classic group g to consumer group because online upgrade is disabled.",
]


#: Kafka 3.9, and Kafka 4 in fewer cases, with no words.
IN_A_REBALANCE = pytest.mark.parametrize(
    ("name", "words"), [("GROUP_ID_NOT_FOUND", MALFORMED), ("UNKNOWN_SERVER_ERROR", "")]
)


@IN_A_REBALANCE
def test_a_classic_group_in_a_rebalance_is_converted_later(name: str, words: str) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    begun = walk.now
    for _ in range(5):
        assert walk.refused(name, words) is Meaning.UNCONVERTED
        assert walk.phase is JOINING
    assert walk.now > begun + 1.5  # with a wait that grows
    told = [level for level, text, _ in walk.its.news if "can be converted" in text]
    assert told == [logging.WARNING]
    walk.on_heartbeat_response(1, [])
    assert walk.phase is RECONCILING


@IN_A_REBALANCE
def test_a_classic_group_that_is_never_converted(name: str, words: str) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    begun = walk.now
    while walk.phase is JOINING:
        walk.refused(name, words)
    assert 120 < walk.now - begun < 122.5  # delivery_timeout_ms, and the wait before
    assert walk.revoke().partitions == frozenset()
    assert walk.step() is None
    assert words in str(walk.its.error)
    explains = {"GROUP_ID_NOT_FOUND": "group.consumer.migration.policy"}.get(name, "log says why")
    assert explains in str(walk.its.error)


@pytest.mark.parametrize("words", NEVER)
def test_a_group_that_may_not_be_converted_is_told_at_once(words: str) -> None:
    walk = Walk(group_protocol="consumer").to(JOINING)
    assert walk.refused("GROUP_ID_NOT_FOUND", words) is Meaning.OTHER_PROTOCOL
    assert isinstance(walk.its.error, BrokerResponseError)
    assert words in str(walk.its.error)


@IN_A_REBALANCE
def test_who_takes_any_kind_does_not_wait_for_a_conversion(name: str, words: str) -> None:
    walk = Walk(may_change=True).to(JOINING)
    walk.refused(name, words)
    assert isinstance(walk.its.error, GroupProtocolMismatchError)


def test_what_was_read_is_lost_when_the_protocol_is_turned_off() -> None:
    walk = Walk(may_change=True).to(STABLE, T0)
    walk.refused("UNSUPPORTED_VERSION")
    assert walk.revoke() == Revoke(frozenset([T0]), True, walk.now)
    assert walk.step() is None
    assert walk.phase is FATAL


def test_a_fault_while_it_gives_up_has_it_lose_that() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    walk.step()
    walk.its.fail(error("INVALID_REQUEST"), walk.now, leaves=True)
    assert walk.revoke() == Revoke(frozenset([T0, T1]), True, walk.now)
    assert walk.leave().epoch == -1
    assert walk.phase is FATAL
