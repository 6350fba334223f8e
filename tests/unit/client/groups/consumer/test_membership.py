"""Tests `ConsumerMembership` step by step and heartbeat by heartbeat, without an event loop."""

from __future__ import annotations

import re

import pytest

from kproto.client.core.group_errors import ErrorAction
from kproto.client.core.retry import TIMER_RESOLUTION_S
from kproto.client.groups.effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    MemberIdentity,
    PrepareHeartbeat,
    ResolveTopicNames,
    Revoke,
)
from kproto.client.groups.heartbeat_phases import Phase
from kproto.client.groups.subscription import Subscription, TopicPattern
from kproto.wire.errors import BrokerConnectionError, RequestTimeoutError
from kproto.wire.uuid import Uuid

from .walks import T0, T1, T2, Walk, answer_of, error

(
    UNSUBSCRIBED,
    JOINING,
    RECONCILING,
    ACKNOWLEDGING,
    STABLE,
    FENCED,
    PREPARE_LEAVING,
    LEAVING,
    STALE,
    FATAL,
) = Phase

NEW_ID = Uuid(b"a" * 16)


def test_first_assignment_is_applied_and_acknowledged() -> None:
    walk = Walk()
    assert walk.phase is JOINING
    assert walk.step() == PrepareHeartbeat(Subscription.to("t"))
    assert not walk.its.heartbeat_due(walk.now)  # not before the subscription is prepared
    walk.prepare()
    assert walk.its.identity(walk.now) is None
    walk.on_heartbeat_response(5, [T0, T1])
    assert walk.phase is RECONCILING
    identity = MemberIdentity("g", walk.its.member_id, 5, None, has_epoch=True)
    assert walk.its.identity(walk.now) == identity
    assert walk.apply() == ApplyAssignment(frozenset(), (T0, T1), 100 + 60 - 1)
    assert walk.phase is ACKNOWLEDGING
    walk.on_heartbeat_response(5)
    assert walk.phase is STABLE
    assert walk.step() is None
    assert walk.its.next_at(walk.now) == pytest.approx(walk.now - 0.1 + 1.0)


def test_member_without_partitions_is_stable() -> None:
    walk = Walk().to(STABLE)
    assert walk.its.identity(walk.now) is not None
    assert walk.its.watches_topics


def test_brokers_heartbeat_interval_is_capped_at_a_third_of_the_session() -> None:
    walk = Walk().to(STABLE)
    walk.on_heartbeat_response(5, interval_ms=2_000)
    assert walk.its.interval_ms == 2_000
    walk.on_heartbeat_response(5, interval_ms=9_000)
    assert walk.its.interval_ms == 3_333  # a third of the session


def test_short_max_poll_interval_shortens_the_heartbeat_interval() -> None:
    """The broker can count max_poll_interval_ms from a heartbeat whose response was lost."""
    walk = Walk(max_poll_interval_ms=3_000).to(STABLE, T0)
    for _ in range(5):
        walk.on_heartbeat_response(5, interval_ms=5_000)
        walk.its.tick(walk.its.next_at(walk.now) - TIMER_RESOLUTION_S)
        assert walk.phase is STABLE
    assert walk.its.interval_ms == 1_000


def test_partitions_are_revoked_before_others_are_added() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(6, [T1, T2])
    step = walk.apply()
    assert step[:2] == (frozenset([T0]), (T2,))
    assert walk.owned == {T1, T2}


def test_second_assignment_waits_until_the_first_is_acknowledged() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    transition_count = walk.its.transition_count
    walk.on_heartbeat_response(5, [])  # while a record of T1 is being processed
    assert (
        walk.its.transition_count == transition_count
    )  # the running revocation is not interrupted
    walk.carry_out(step)
    walk.on_heartbeat_response(6)
    assert walk.phase is RECONCILING
    assert walk.apply().revoked == {T0}


def test_response_to_an_earlier_heartbeat_acknowledges_nothing() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    beat = walk.beat()  # the request does not list the owned partitions
    walk.apply()
    walk.answered(beat, 5, T0)
    assert walk.phase is ACKNOWLEDGING
    assert walk.its.heartbeat_due(walk.now)  # at once
    walk.on_heartbeat_response(6)
    assert walk.phase is STABLE


def test_failed_heartbeat_acknowledges_nothing() -> None:
    walk = Walk().to(ACKNOWLEDGING, T0)
    assert walk.refused("COORDINATOR_LOAD_IN_PROGRESS") is ErrorAction.RETRY
    assert walk.phase is ACKNOWLEDGING
    assert not walk.its.heartbeat_due(walk.now)
    walk.on_heartbeat_response(5, [T0])
    assert walk.phase is STABLE


# Topic ids


def test_unknown_topic_id_is_resolved_by_a_metadata_refresh() -> None:
    walk = Walk(["t", "new"]).to(JOINING)
    walk.on_heartbeat_response(5, [T0, (NEW_ID, 0)])
    assert walk.step() == ResolveTopicNames(frozenset([NEW_ID]))
    walk.topics["new"] = NEW_ID
    walk.its.on_resolved(walk.now)
    assert set(walk.apply().added) == {T0, ("new", 0)}


def test_unresolved_topic_id_is_skipped_and_requested_again() -> None:
    walk = Walk(["t", "new"]).to(JOINING)
    walk.on_heartbeat_response(5, [T0, (NEW_ID, 0)])
    assert isinstance(walk.step(), ResolveTopicNames)
    walk.its.on_resolved(walk.now)
    assert walk.apply().added == (T0,)
    waits = walk.its.next_at(walk.now)
    assert walk.now < waits < walk.now + 0.2
    walk.answered(walk.beat(), 5, T0, (NEW_ID, 0), took=0)
    assert walk.phase is STABLE
    walk.now = waits
    walk.its.tick(walk.now)
    assert walk.step() == ResolveTopicNames(frozenset([NEW_ID]))
    walk.topics["new"] = NEW_ID
    walk.its.on_resolved(walk.now)
    assert walk.apply().added == (("new", 0),)


def test_revocation_does_not_wait_for_an_unresolved_topic_id() -> None:
    walk = Walk(["t", "new"]).to(STABLE, T0, T1)
    walk.on_heartbeat_response(6, [T0, (NEW_ID, 0)])
    step = walk.apply()
    assert step[:2] == (frozenset([T1]), ())


def test_topic_id_is_resolved_by_any_metadata_update() -> None:
    walk = Walk(["t", "new"]).to(JOINING)
    walk.on_heartbeat_response(5, [(NEW_ID, 0)])
    walk.step()
    walk.its.on_resolved(walk.now)
    walk.apply()
    walk.on_heartbeat_response(5)
    walk.topics["new"] = NEW_ID
    walk.its.tick(walk.now)
    assert walk.phase is RECONCILING
    assert walk.apply().added == (("new", 0),)


def test_deleted_topic_is_revoked_without_its_id() -> None:
    walk = Walk(["t", "u"]).to(STABLE, T0, ("u", 0))
    del walk.topics["u"]
    walk.on_heartbeat_response(6, [T0])
    assert walk.apply().revoked == {("u", 0)}


# Subscriptions


def test_unsubscribed_topic_is_revoked_before_the_next_assignment() -> None:
    walk = Walk(["t", "u"]).to(STABLE, T0, ("u", 0))
    walk.its.subscribe(Subscription.to("t"), walk.now)
    walk.its.tick(walk.now)
    assert walk.apply().revoked == {("u", 0)}
    request = walk.on_heartbeat_response(
        5, [T0, ("u", 0)]
    )  # the broker assigned u-0 before it received the new subscription
    assert request.subscribed_topic_names == ["t"]
    assert walk.phase is STABLE


def test_compiled_pattern_is_matched_by_the_client() -> None:
    import re

    walk = Walk()
    walk.its.subscribe(Subscription.to(re.compile("[tu]")), walk.now)
    walk.prepare("t")
    assert walk.on_heartbeat_response(5, [T0]).subscribed_topic_names == ["t"]
    walk.apply()
    walk.on_heartbeat_response(5)
    walk.its.on_topics_matched(frozenset(["t", "u"]), walk.now)
    assert walk.on_heartbeat_response(5).subscribed_topic_names == ["t", "u"]


def test_pattern_without_matches_sends_no_heartbeat() -> None:
    """Kafka 3.9 rejects a member that subscribes to no topic."""
    import re

    walk = Walk()
    walk.its.subscribe(Subscription.to(re.compile("new.*")), walk.now)
    step = walk.step()
    assert isinstance(step, PrepareHeartbeat)
    walk.its.on_prepared(step, frozenset(), walk.now)
    assert not walk.its.heartbeat_due(walk.now)
    assert walk.its.watches_topics  # so that the client watches the topics in metadata
    walk.its.on_topics_matched(frozenset(["new"]), walk.now)
    assert walk.on_heartbeat_response(5, []).subscribed_topic_names == ["new"]


def test_subscription_changed_while_joining_is_sent_in_the_next_heartbeat() -> None:
    walk = Walk().to(JOINING)
    beat = walk.beat()
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.prepare()
    walk.answered(beat, 5, T0)
    assert walk.apply().added == ()
    assert walk.on_heartbeat_response(5).subscribed_topic_names == ["u"]


def test_request_rejoin_only_logs_that_the_broker_rebalances(capsys: object) -> None:
    walk = Walk().to(STABLE, T0)
    transition_count = walk.its.transition_count
    walk.its.request_rejoin("as you like", walk.now)
    assert walk.its.transition_count == transition_count
    (line,) = [text % values for _, text, values in walk.its.log_lines if "rebalance" in text]
    assert "as you like" in line


# Sessions


def test_member_without_responses_is_fenced_by_its_own_clock() -> None:
    walk = Walk().to(STABLE, T0)
    sent_at = walk.now - 0.1
    assert walk.its.assignment_valid_until == pytest.approx(sent_at + 10 - TIMER_RESOLUTION_S)
    while walk.now < walk.its.assignment_valid_until:
        walk.refused(BrokerConnectionError("gone"))
        assert walk.phase is STABLE
        walk.now = walk.its.next_at(walk.now)
    walk.its.tick(walk.now)
    assert walk.phase is FENCED
    assert walk.its.identity(walk.now) is None
    assert walk.its.assignment_valid_until == float("-inf")
    assert walk.step() == Revoke(frozenset([T0]), True, walk.now)
    assert "no heartbeat came through for 10000 ms" in str(walk.its.log_lines[-1])


def test_session_starts_when_the_heartbeat_is_sent() -> None:
    walk = Walk().to(STABLE, T0)
    beat = walk.beat()
    walk.now += 4
    walk.its.on_heartbeat_response(beat, answer_of(5), walk.now)
    assert walk.its.assignment_valid_until == pytest.approx(beat.sent_at + 10 - TIMER_RESOLUTION_S)


def test_revocation_has_the_time_that_the_broker_waits() -> None:
    """The deadline counts from the heartbeat whose response revoked T1.

    The broker's own timeout starts later, when the broker receives that heartbeat.
    """
    walk = Walk(max_poll_interval_ms=6_000).to(STABLE, T0, T1)
    beat = walk.beat()
    walk.answered(beat, 5, T0)
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    assert step.until == pytest.approx(beat.sent_at + 6 - 0.6)
    for _ in range(3):
        walk.on_heartbeat_response(5)  # heartbeats continue while the record is processed
    assert walk.its.assignment_valid_until == pytest.approx(beat.sent_at + 6 - TIMER_RESOLUTION_S)
    walk.carry_out(step)
    walk.on_heartbeat_response(6)
    assert walk.its.assignment_valid_until == pytest.approx(walk.now - 0.1 + 6 - TIMER_RESOLUTION_S)


def test_lost_response_may_have_carried_the_revocation() -> None:
    walk = Walk(max_poll_interval_ms=6_000).to(STABLE, T0, T1)
    before = walk.beat()
    walk.its.on_heartbeat_response(before, answer_of(5), walk.now)
    walk.refused(RequestTimeoutError("late"))
    walk.answered(walk.beat(), 5, T0)
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    assert step.until == pytest.approx(before.sent_at + 6 - 0.6)


def test_member_fenced_during_revocation_loses_all_partitions() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    assert walk.refused("UNKNOWN_MEMBER_ID") is ErrorAction.MEMBER_UNKNOWN
    assert walk.phase is FENCED
    assert walk.step() == Revoke(frozenset([T0, T1]), True, walk.now)


def test_response_to_a_former_membership_is_ignored() -> None:
    walk = Walk().to(STABLE, T0)
    late = walk.beat()
    walk.its.on_commit_refused(error("UNKNOWN_MEMBER_ID"), identity(walk), walk.now)
    walk.revoke()
    walk.prepare()
    walk.on_heartbeat_response(9, [T1])
    assert walk.its.on_heartbeat_response(late, answer_of(6, []), walk.now) is None
    assert walk.its.on_heartbeat_response(late, error("FENCED_MEMBER_EPOCH"), walk.now) is None
    assert walk.its.epoch == 9
    assert walk.apply().added == (T1,)


# Commits


def identity(walk: Walk) -> MemberIdentity:
    found = walk.its.identity(walk.now)
    assert found is not None
    return found


def test_stale_epoch_of_a_commit_makes_a_heartbeat_due_at_once() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_commit_refused(error("STALE_MEMBER_EPOCH"), identity(walk), walk.now)
    assert walk.phase is STABLE
    assert walk.its.heartbeat_due(walk.now)
    walk.on_heartbeat_response(6)
    assert identity(walk).generation == 6


def test_refused_commit_of_an_older_epoch_is_ignored() -> None:
    walk = Walk().to(STABLE, T0)
    before = identity(walk)
    walk.on_heartbeat_response(6)
    walk.its.on_commit_refused(error("UNKNOWN_MEMBER_ID"), before, walk.now)
    assert walk.phase is STABLE


@pytest.mark.parametrize("name", ["UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"])
def test_commit_refused_as_unknown_member_fences_the_member(name: str) -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_commit_refused(error(name), identity(walk), walk.now)
    assert walk.phase is FENCED


def test_commit_fenced_by_another_instance_is_fatal() -> None:
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.its.on_commit_refused(error("FENCED_INSTANCE_ID"), identity(walk), walk.now)
    assert walk.revoke() == Revoke(frozenset([T0]), True, walk.now)
    assert walk.phase is FATAL  # another instance owns the id, so no leave request is sent


# Leaving


@pytest.mark.parametrize(
    ("instance_id", "leaves", "epoch"),
    [(None, True, -1), (None, False, None), ("i", True, -1), ("i", False, -2)],
)
def test_leave_epoch_depends_on_instance_id_and_leave_flag(
    instance_id: str | None, leaves: bool, epoch: int | None
) -> None:
    walk = Walk(instance_id=instance_id).to(STABLE, T0)
    member_id = walk.its.member_id
    walk.its.begin_leave("a test", walk.now, leaves=leaves, ends=True)
    assert walk.revoke().partitions == {T0}
    step = walk.step()
    if epoch is None:
        assert step is None
    else:
        assert isinstance(step, LeaveByHeartbeat)
        request = step.request("g")
        assert (request.group_id, request.member_id) == ("g", member_id)
        assert (request.member_epoch, request.instance_id) == (epoch, instance_id)
        walk.its.on_left(walk.now)
    assert walk.phase is FATAL


def test_heartbeats_continue_until_all_partitions_are_revoked() -> None:
    walk = Walk().to(PREPARE_LEAVING, T0)
    assert identity(walk).generation == 5
    assert walk.on_heartbeat_response(5).member_epoch == 5
    assert walk.phase is PREPARE_LEAVING
    walk.revoke()
    assert not walk.its.heartbeat_due(walk.now + 10)
    assert walk.its.identity(walk.now) is None


def test_static_member_that_unsubscribes_leaves_temporarily() -> None:
    walk = Walk(instance_id="i").to(PREPARE_LEAVING, T0)
    walk.revoke()
    assert walk.leave().epoch == -2
    assert walk.phase is UNSUBSCRIBED


def test_joining_member_leaves_only_if_a_heartbeat_was_sent() -> None:
    walk = Walk()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.revoke()
    assert walk.step() is None  # nothing was sent
    assert walk.phase is FATAL
    walk = Walk().to(JOINING)
    beat = walk.beat()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.revoke()
    assert walk.leave().member_id == beat.request.member_id


def test_member_without_an_id_waits_for_it_before_leaving() -> None:
    walk = Walk(version=0).to(JOINING)
    beat = walk.beat()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.revoke()
    assert walk.step() is None
    assert walk.phase is LEAVING
    assert walk.its.next_at(walk.now) == walk.now + 5
    walk.its.on_heartbeat_response(beat, answer_of(1, [], member_id="given"), walk.now)
    assert walk.leave().member_id == "given"


def test_member_that_never_gets_an_id_ends_without_a_leave_request() -> None:
    walk = Walk(version=0).to(JOINING)
    walk.beat()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.revoke()
    walk.now += 5
    walk.its.tick(walk.now)
    assert walk.phase is FATAL


def test_late_member_leaves_and_rejoins_on_the_next_poll() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.on_poll_timeout(walk.now)
    assert not walk.its.on_poll_timeout(walk.now)
    assert walk.revoke() == Revoke(frozenset([T0]), True, walk.now + 58.9)
    assert walk.leave().epoch == -1
    assert walk.phase is STALE
    assert walk.its.awaits_poll
    walk.its.on_poll(walk.now)
    assert walk.phase is JOINING
    walk.prepare()
    assert walk.beat().request.member_epoch == 0


def test_poll_while_a_late_member_leaves_makes_it_rejoin() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_poll_timeout(walk.now)
    walk.its.on_poll(walk.now)
    walk.revoke()
    walk.leave()
    assert walk.phase is JOINING


def test_subscription_during_leave_makes_the_member_rejoin() -> None:
    walk = Walk().to(LEAVING, T0)
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.leave()
    assert walk.step() == PrepareHeartbeat(Subscription.to("u"))


def test_member_fenced_while_leaving_loses_its_partitions() -> None:
    walk = Walk().to(PREPARE_LEAVING, T0)
    transition_count = walk.its.transition_count
    walk.refused("UNKNOWN_MEMBER_ID")
    assert walk.its.transition_count == transition_count + 1
    assert walk.revoke() == Revoke(frozenset([T0]), True, walk.its._revoke_until)
    assert walk.step() is None  # a fenced member has nothing to leave
    assert walk.phase is UNSUBSCRIBED


def test_old_subscription_is_sent_until_the_new_pattern_is_matched() -> None:
    """An empty subscription would make the coordinator revoke and reassign all partitions."""
    walk = Walk(TopicPattern("t.*")).to(STABLE, T0)
    walk.its.subscribe(Subscription.to(re.compile("t|u")), walk.now)
    request = walk.on_heartbeat_response(5)
    assert request.subscribed_topic_names is None
    assert request.subscribed_topic_regex is None
    walk.prepare("t", "u")
    request = walk.on_heartbeat_response(5)
    assert request.subscribed_topic_names == ["t", "u"]
    assert request.subscribed_topic_regex == ""


def test_assigned_partitions_are_known_by_topic_id() -> None:
    walk = Walk().to(RECONCILING, T0)
    assert not walk.its.is_assigned(T0, walk.topics["t"])
    walk.step()
    assert walk.its.is_assigned(T0, walk.topics["t"]), "the assignment is being applied"
    walk.apply()
    assert walk.its.is_assigned(T0, walk.topics["t"])
    assert not walk.its.is_assigned(T0, walk.topics["u"])
    assert not walk.its.is_assigned(T1, walk.topics["t"])
