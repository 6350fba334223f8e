"""Tests the fields of ConsumerGroupHeartbeat requests.

The first request, and each request after an error, has all fields. Other requests have the member
id, the epoch and the instance id, and any other field only if the field changed.
"""

from __future__ import annotations

import pytest

from kproto.client.groups.heartbeat_phases import Phase
from kproto.client.groups.subscription import Subscription, TopicPattern
from kproto.messages import ConsumerGroupHeartbeatRequest
from kproto.wire.errors import RequestTimeoutError, UnsupportedVersionError
from kproto.wire.uuid import Uuid

from .walks import IDS, T0, T1, Walk

STABLE, JOINING = Phase.STABLE, Phase.JOINING


def owned_in(request: ConsumerGroupHeartbeatRequest) -> list[tuple[Uuid, list[int]]] | None:
    if request.topic_partitions is None:
        return None
    return [(each.topic_id, each.partitions) for each in request.topic_partitions]


def test_first_heartbeat_has_all_fields() -> None:
    walk = Walk(server_assignor="range").to(JOINING)
    request = walk.beat().request
    assert (request.group_id, request.member_epoch, request.rack_id) == ("g", 0, "r1")
    assert (request.instance_id, request.server_assignor) == (None, "range")
    assert request.rebalance_timeout_ms == 60_000
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["t"], None)
    assert owned_in(request) == []


def test_later_heartbeat_has_the_member_id_and_epoch_only() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.on_heartbeat_response(5) == ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=walk.its.member_id, member_epoch=5
    )


def test_applied_assignment_is_acknowledged_at_once() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    walk.apply()
    before = walk.now
    request = walk.beat().request
    assert walk.now == before
    assert owned_in(request) == [(IDS["t"], [0])]
    assert request.subscribed_topic_names is None


def test_unchanged_assignment_is_acknowledged_too() -> None:
    """The broker assigns a partition, and revokes it before the member applies the assignment.

    The broker then waits for the member's acknowledgement, although no owned partition has changed.
    """
    walk = Walk().to(Phase.RECONCILING)
    assert walk.its._known_fields is not None
    step = walk.step()
    walk.on_heartbeat_response(5, [T0])
    walk.on_heartbeat_response(5, [])
    assert step is not None
    walk.apply()
    assert owned_in(walk.beat().request) == []


def test_partitions_are_owned_until_they_are_revoked() -> None:
    """If a member stops reporting a partition, the broker can assign it to another member."""
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    assert owned_in(walk.on_heartbeat_response(5)) is None  # unchanged, so not sent
    walk.refused(RequestTimeoutError("late"))
    assert owned_in(walk.on_heartbeat_response(5)) == [(IDS["t"], [0, 1])]


def test_heartbeat_after_a_lost_response_has_all_fields() -> None:
    walk = Walk(server_assignor="uniform", instance_id="i").to(STABLE, T0)
    walk.refused(RequestTimeoutError("late"))
    request = walk.on_heartbeat_response(5, [T0])
    assert (request.member_epoch, request.rebalance_timeout_ms) == (5, 60_000)
    assert (request.rack_id, request.server_assignor, request.instance_id) == ("r1", "uniform", "i")
    assert request.subscribed_topic_names == ["t"]
    assert owned_in(request) == [(IDS["t"], [0])]
    assert walk.phase is STABLE


def test_static_member_sends_its_instance_id_each_time() -> None:
    walk = Walk(instance_id="i").to(STABLE, T0)
    assert walk.on_heartbeat_response(5).instance_id == "i"


def test_changed_subscription_is_sent_once_and_at_once() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.subscribe(Subscription.to(["u", "t"]), walk.now)
    before = walk.now
    assert walk.on_heartbeat_response(5).subscribed_topic_names == ["t", "u"]
    assert walk.now - before < 0.2
    assert walk.on_heartbeat_response(5).subscribed_topic_names is None


def test_topic_pattern_is_sent_when_it_changes() -> None:
    walk = Walk(TopicPattern("t.*"))
    walk.prepare()
    request = walk.on_heartbeat_response(5, [])
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], "t.*")
    walk.apply()
    assert walk.on_heartbeat_response(5).subscribed_topic_regex is None
    walk.its.subscribe(Subscription.to(TopicPattern("u.*")), walk.now)
    assert walk.on_heartbeat_response(5).subscribed_topic_regex == "u.*"
    walk.its.subscribe(Subscription.to("t"), walk.now)
    request = walk.on_heartbeat_response(5)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["t"], "")
    assert walk.on_heartbeat_response(5).subscribed_topic_regex is None


def test_topic_pattern_needs_version_1() -> None:
    walk = Walk(TopicPattern("t.*"), version=0)
    walk.prepare()
    with pytest.raises(UnsupportedVersionError, match=r"group 'g' .* v0, .* re\.compile"):
        walk.beat()


def test_member_chooses_its_id_from_version_1_on() -> None:
    """After a lost response the member joins again with the same id (KIP-1082)."""
    walk = Walk().to(JOINING)
    member_id = walk.beat().request.member_id
    assert len(Uuid.parse(member_id)) == 16
    walk = Walk().to(JOINING)
    lost = walk.beat()
    walk.its.on_heartbeat_response(lost, RequestTimeoutError("late"), walk.now)
    assert walk.beat().request.member_id == lost.request.member_id
    assert Walk().to(STABLE).its.member_id != Walk().to(STABLE).its.member_id


def test_broker_assigns_the_member_id_in_version_0() -> None:
    walk = Walk(version=0).to(JOINING)
    assert walk.on_heartbeat_response(1, [], member_id="given").member_id == ""
    walk.apply()
    assert walk.on_heartbeat_response(1).member_id == "given"
    assert walk.its.member_id == "given"


def test_rejoining_member_keeps_its_id() -> None:
    walk = Walk().to(STABLE)
    member_id = walk.its.member_id
    walk.refused("UNKNOWN_MEMBER_ID")
    walk.revoke()
    walk.prepare()
    request = walk.beat().request
    assert (request.member_id, request.member_epoch) == (member_id, 0)
    assert owned_in(request) == []
