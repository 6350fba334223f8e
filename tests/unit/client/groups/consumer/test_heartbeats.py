"""What a heartbeat says: all of it at first and behind an error, then what has changed."""

from __future__ import annotations

import pytest

from kproto.client.groups.consumer.phases import Phase
from kproto.client.groups.subscription import Subscription, TopicPattern
from kproto.messages import ConsumerGroupHeartbeatRequest
from kproto.wire.errors import RequestTimeoutError, UnsupportedVersionError
from kproto.wire.uuid import Uuid

from .walks import IDS, T0, T1, Walk

STABLE, JOINING = Phase.STABLE, Phase.JOINING


def held_in(request: ConsumerGroupHeartbeatRequest) -> list[tuple[Uuid, list[int]]] | None:
    if request.topic_partitions is None:
        return None
    return [(each.topic_id, each.partitions) for each in request.topic_partitions]


def test_the_first_one_says_all() -> None:
    walk = Walk(server_assignor="range").to(JOINING)
    request = walk.beat().request
    assert (request.group_id, request.member_epoch, request.rack_id) == ("g", 0, "r1")
    assert (request.instance_id, request.server_assignor) == (None, "range")
    assert request.rebalance_timeout_ms == 60_000
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["t"], None)
    assert held_in(request) == []


def test_then_it_says_who_it_is_and_nothing_else() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.on_heartbeat_response(5) == ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=walk.its.member_id, member_epoch=5
    )


def test_what_is_carried_out_is_acknowledged_at_once() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    walk.take_on()
    before = walk.now
    request = walk.beat().request
    assert walk.now == before
    assert held_in(request) == [(IDS["t"], [0])]
    assert request.subscribed_topic_names is None


def test_what_comes_to_the_same_as_before_is_acknowledged_too() -> None:
    """It was assigned and taken away before it was begun: the broker waits for that."""
    walk = Walk().to(Phase.RECONCILING)
    assert walk.its._known is not None
    step = walk.step()
    walk.on_heartbeat_response(5, [T0])
    walk.on_heartbeat_response(5, [])
    assert step is not None
    walk.take_on()
    assert held_in(walk.beat().request) == []


def test_what_is_being_given_up_is_held() -> None:
    """A member says so until it is given up: others may begin once it does not."""
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    assert held_in(walk.on_heartbeat_response(5)) is None  # as it was told
    walk.refused(RequestTimeoutError("late"))
    assert held_in(walk.on_heartbeat_response(5)) == [(IDS["t"], [0, 1])]


def test_behind_a_lost_answer_all_is_said_again() -> None:
    walk = Walk(server_assignor="uniform", instance_id="i").to(STABLE, T0)
    walk.refused(RequestTimeoutError("late"))
    request = walk.on_heartbeat_response(5, [T0])
    assert (request.member_epoch, request.rebalance_timeout_ms) == (5, 60_000)
    assert (request.rack_id, request.server_assignor, request.instance_id) == ("r1", "uniform", "i")
    assert request.subscribed_topic_names == ["t"]
    assert held_in(request) == [(IDS["t"], [0])]
    assert walk.phase is STABLE


def test_a_static_member_says_who_it_is_each_time() -> None:
    walk = Walk(instance_id="i").to(STABLE, T0)
    assert walk.on_heartbeat_response(5).instance_id == "i"


def test_another_subscription_is_said_at_once_and_once() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.subscribe(Subscription.to(["u", "t"]), walk.now)
    before = walk.now
    assert walk.on_heartbeat_response(5).subscribed_topic_names == ["t", "u"]
    assert walk.now - before < 0.2
    assert walk.on_heartbeat_response(5).subscribed_topic_names is None


def test_a_pattern_of_the_broker() -> None:
    walk = Walk(TopicPattern("t.*"))
    walk.prepare()
    request = walk.on_heartbeat_response(5, [])
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], "t.*")
    walk.take_on()
    assert walk.on_heartbeat_response(5).subscribed_topic_regex is None
    walk.its.subscribe(Subscription.to(TopicPattern("u.*")), walk.now)
    assert walk.on_heartbeat_response(5).subscribed_topic_regex == "u.*"
    walk.its.subscribe(Subscription.to("t"), walk.now)
    request = walk.on_heartbeat_response(5)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["t"], "")
    assert walk.on_heartbeat_response(5).subscribed_topic_regex is None


def test_a_pattern_of_the_broker_needs_version_1() -> None:
    walk = Walk(TopicPattern("t.*"), version=0)
    walk.prepare()
    with pytest.raises(UnsupportedVersionError, match=r"group 'g' .* v0, .* re\.compile"):
        walk.beat()


def test_the_member_id_is_its_own_from_version_1_on() -> None:
    """KIP-1082: so that an answer that was lost leaves no ghost."""
    walk = Walk().to(JOINING)
    member_id = walk.beat().request.member_id
    assert len(Uuid.parse(member_id)) == 16
    walk = Walk().to(JOINING)
    lost = walk.beat()
    walk.its.on_heartbeat_response(lost, RequestTimeoutError("late"), walk.now)
    assert walk.beat().request.member_id == lost.request.member_id
    assert Walk().to(STABLE).its.member_id != Walk().to(STABLE).its.member_id


def test_the_member_id_is_the_brokers_in_version_0() -> None:
    walk = Walk(version=0).to(JOINING)
    assert walk.on_heartbeat_response(1, [], member_id="given").member_id == ""
    walk.take_on()
    assert walk.on_heartbeat_response(1).member_id == "given"
    assert walk.its.member_id == "given"


def test_the_id_stays_through_lives() -> None:
    walk = Walk().to(STABLE)
    member_id = walk.its.member_id
    walk.refused("UNKNOWN_MEMBER_ID")
    walk.give_up()
    walk.prepare()
    request = walk.beat().request
    assert (request.member_id, request.member_epoch) == (member_id, 0)
    assert held_in(request) == []
