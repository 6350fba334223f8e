"""A member of the consumer protocol, step by step and heartbeat by heartbeat; no loop."""

from __future__ import annotations

import re

import pytest

from kproto.client.core.retry import TICK_S
from kproto.client.groups.consumer.phases import Phase
from kproto.client.groups.effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    MemberIdentity,
    Prepare,
    Resolve,
    Revoke,
)
from kproto.client.groups.group_errors import Meaning
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

ANEW = Uuid(b"a" * 16)


def test_the_first_way_into_a_group() -> None:
    walk = Walk()
    assert walk.phase is JOINING
    assert walk.step() == Prepare(Subscription.to("t"))
    assert not walk.its.heartbeat_due(walk.now)  # before it is prepared
    walk.prepare()
    assert walk.its.identity(walk.now) is None
    walk.on_heartbeat_response(5, [T0, T1])
    assert walk.phase is RECONCILING
    identity = MemberIdentity("g", walk.its.member_id, 5, None, has_epoch=True)
    assert walk.its.identity(walk.now) == identity
    assert walk.take_on() == ApplyAssignment(frozenset(), (T0, T1), 100 + 60 - 1)
    assert walk.phase is ACKNOWLEDGING
    walk.on_heartbeat_response(5)
    assert walk.phase is STABLE
    assert walk.step() is None
    assert walk.its.next_at(walk.now) == pytest.approx(walk.now - 0.1 + 1.0)


def test_a_member_that_gets_nothing_is_one() -> None:
    walk = Walk().to(STABLE)
    assert walk.its.identity(walk.now) is not None
    assert walk.its.is_reading


def test_the_interval_is_the_brokers_but_for_a_short_session() -> None:
    walk = Walk().to(STABLE)
    walk.on_heartbeat_response(5, interval_ms=2_000)
    assert walk.its.interval_ms == 2_000
    walk.on_heartbeat_response(5, interval_ms=9_000)
    assert walk.its.interval_ms == 3_333  # a third of the session


def test_a_short_patience_with_the_user_does_not_cost_the_session() -> None:
    """The broker may wait for max_poll_interval_ms, from a heartbeat on whose answer was lost."""
    walk = Walk(max_poll_interval_ms=3_000).to(STABLE, T0)
    for _ in range(5):
        walk.on_heartbeat_response(5, interval_ms=5_000)
        walk.its.tick(walk.its.next_at(walk.now) - TICK_S)
        assert walk.phase is STABLE
    assert walk.its.interval_ms == 1_000


def test_what_goes_is_given_up_before_anything_is_begun() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(6, [T1, T2])
    step = walk.take_on()
    assert step[:2] == (frozenset([T0]), (T2,))
    assert walk.owned == {T1, T2}


def test_what_is_assigned_meanwhile_waits_until_the_first_is_acknowledged() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    turn = walk.its.turn
    walk.on_heartbeat_response(5, [])  # while the record of T1 is in hand
    assert walk.its.turn == turn  # what is under way goes on
    walk.carry_out(step)
    walk.on_heartbeat_response(6)
    assert walk.phase is RECONCILING
    assert walk.take_on().revoked == {T0}


def test_an_answer_to_what_was_sent_before_acknowledges_nothing() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    beat = walk.beat()  # it says nothing of what is held
    walk.take_on()
    walk.answered(beat, 5, T0)
    assert walk.phase is ACKNOWLEDGING
    assert walk.its.heartbeat_due(walk.now)  # at once
    walk.on_heartbeat_response(6)
    assert walk.phase is STABLE


def test_a_heartbeat_that_fails_does_not_acknowledge() -> None:
    walk = Walk().to(ACKNOWLEDGING, T0)
    assert walk.refused("COORDINATOR_LOAD_IN_PROGRESS") is Meaning.RETRY
    assert walk.phase is ACKNOWLEDGING
    assert not walk.its.heartbeat_due(walk.now)
    walk.on_heartbeat_response(5, [T0])
    assert walk.phase is STABLE


# Topics by their ids


def test_a_topic_that_metadata_does_not_know_yet() -> None:
    walk = Walk(["t", "new"]).to(JOINING)
    walk.on_heartbeat_response(5, [T0, (ANEW, 0)])
    assert walk.step() == Resolve(frozenset([ANEW]))
    walk.topics["new"] = ANEW
    walk.its.resolved(walk.now)
    assert set(walk.take_on().added) == {T0, ("new", 0)}


def test_a_topic_that_nobody_knows_is_left_out_and_asked_for_again() -> None:
    walk = Walk(["t", "new"]).to(JOINING)
    walk.on_heartbeat_response(5, [T0, (ANEW, 0)])
    assert isinstance(walk.step(), Resolve)
    walk.its.resolved(walk.now)
    assert walk.take_on().added == (T0,)
    waits = walk.its.next_at(walk.now)
    assert walk.now < waits < walk.now + 0.2
    walk.answered(walk.beat(), 5, T0, (ANEW, 0), took=0)
    assert walk.phase is STABLE
    walk.now = waits
    walk.its.tick(walk.now)
    assert walk.step() == Resolve(frozenset([ANEW]))
    walk.topics["new"] = ANEW
    walk.its.resolved(walk.now)
    assert walk.take_on().added == (("new", 0),)


def test_what_is_taken_away_does_not_wait_for_a_name() -> None:
    walk = Walk(["t", "new"]).to(STABLE, T0, T1)
    walk.on_heartbeat_response(6, [T0, (ANEW, 0)])
    step = walk.take_on()
    assert step[:2] == (frozenset([T1]), ())


def test_metadata_that_comes_by_itself_is_enough() -> None:
    walk = Walk(["t", "new"]).to(JOINING)
    walk.on_heartbeat_response(5, [(ANEW, 0)])
    walk.step()
    walk.its.resolved(walk.now)
    walk.take_on()
    walk.on_heartbeat_response(5)
    walk.topics["new"] = ANEW
    walk.its.tick(walk.now)
    assert walk.phase is RECONCILING
    assert walk.take_on().added == (("new", 0),)


def test_a_topic_that_is_deleted_goes_without_a_name() -> None:
    walk = Walk(["t", "u"]).to(STABLE, T0, ("u", 0))
    del walk.topics["u"]
    walk.on_heartbeat_response(6, [T0])
    assert walk.take_on().revoked == {("u", 0)}


# Subscriptions


def test_what_is_not_wanted_any_more_is_given_up_before_the_broker_says_so() -> None:
    walk = Walk(["t", "u"]).to(STABLE, T0, ("u", 0))
    walk.its.subscribe(Subscription.to("t"), walk.now)
    walk.its.tick(walk.now)
    assert walk.take_on().revoked == {("u", 0)}
    request = walk.on_heartbeat_response(5, [T0, ("u", 0)])  # the broker had assigned it meanwhile
    assert request.subscribed_topic_names == ["t"]
    assert walk.phase is STABLE


def test_a_compiled_pattern_is_matched_here() -> None:
    import re

    walk = Walk()
    walk.its.subscribe(Subscription.to(re.compile("[tu]")), walk.now)
    walk.prepare("t")
    assert walk.on_heartbeat_response(5, [T0]).subscribed_topic_names == ["t"]
    walk.take_on()
    walk.on_heartbeat_response(5)
    walk.its.matched(frozenset(["t", "u"]), walk.now)
    assert walk.on_heartbeat_response(5).subscribed_topic_names == ["t", "u"]


def test_a_pattern_that_matches_nothing_waits() -> None:
    """Kafka 3.9 takes no member that subscribes to nothing."""
    import re

    walk = Walk()
    walk.its.subscribe(Subscription.to(re.compile("new.*")), walk.now)
    step = walk.step()
    assert isinstance(step, Prepare)
    walk.its.prepared(step, frozenset(), walk.now)
    assert not walk.its.heartbeat_due(walk.now)
    assert walk.its.is_reading  # so that topics are watched
    walk.its.matched(frozenset(["new"]), walk.now)
    assert walk.on_heartbeat_response(5, []).subscribed_topic_names == ["new"]


def test_a_subscription_that_changes_while_it_joins() -> None:
    walk = Walk().to(JOINING)
    beat = walk.beat()
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.prepare()
    walk.answered(beat, 5, T0)
    assert walk.take_on().added == ()
    assert walk.on_heartbeat_response(5).subscribed_topic_names == ["u"]


def test_rebalancing_is_the_brokers_to_do(capsys: object) -> None:
    walk = Walk().to(STABLE, T0)
    turn = walk.its.turn
    walk.its.request_rejoin("as you like", walk.now)
    assert walk.its.turn == turn
    (line,) = [text % values for _, text, values in walk.its.news if "rebalance" in text]
    assert "as you like" in line


# Sessions


def test_silence_costs_all_by_the_members_own_clock() -> None:
    walk = Walk().to(STABLE, T0)
    sent_at = walk.now - 0.1
    assert walk.its.assignment_valid_until == pytest.approx(sent_at + 10 - TICK_S)
    while walk.now < walk.its.assignment_valid_until:
        walk.refused(BrokerConnectionError("gone"))
        assert walk.phase is STABLE
        walk.now = walk.its.next_at(walk.now)
    walk.its.tick(walk.now)
    assert walk.phase is FENCED
    assert walk.its.identity(walk.now) is None
    assert walk.its.assignment_valid_until == float("-inf")
    assert walk.step() == Revoke(frozenset([T0]), True, walk.now)
    assert "no heartbeat came through for 10000 ms" in str(walk.its.news[-1])


def test_a_session_counts_from_when_a_heartbeat_was_sent() -> None:
    walk = Walk().to(STABLE, T0)
    beat = walk.beat()
    walk.now += 4
    walk.its.on_heartbeat_response(beat, answer_of(5), walk.now)
    assert walk.its.assignment_valid_until == pytest.approx(beat.sent_at + 10 - TICK_S)


def test_giving_up_has_as_long_as_the_broker_waits() -> None:
    """From the heartbeat on whose answer told of it: the broker began no earlier."""
    walk = Walk(max_poll_interval_ms=6_000).to(STABLE, T0, T1)
    beat = walk.beat()
    walk.answered(beat, 5, T0)
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    assert step.until == pytest.approx(beat.sent_at + 6 - 0.6)
    for _ in range(3):
        walk.on_heartbeat_response(5)  # the record is in hand, and heartbeats go on
    assert walk.its.assignment_valid_until == pytest.approx(beat.sent_at + 6 - TICK_S)
    walk.carry_out(step)
    walk.on_heartbeat_response(6)
    assert walk.its.assignment_valid_until == pytest.approx(walk.now - 0.1 + 6 - TICK_S)


def test_an_answer_that_was_lost_may_have_told_of_it() -> None:
    walk = Walk(max_poll_interval_ms=6_000).to(STABLE, T0, T1)
    before = walk.beat()
    walk.its.on_heartbeat_response(before, answer_of(5), walk.now)
    walk.refused(RequestTimeoutError("late"))
    walk.answered(walk.beat(), 5, T0)
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    assert step.until == pytest.approx(before.sent_at + 6 - 0.6)


def test_who_is_put_out_while_it_gives_up_loses_all() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response(5, [T0])
    step = walk.step()
    assert isinstance(step, ApplyAssignment)
    assert walk.refused("UNKNOWN_MEMBER_ID") is Meaning.MEMBER_UNKNOWN
    assert walk.phase is FENCED
    assert walk.step() == Revoke(frozenset([T0, T1]), True, walk.now)


def test_an_answer_to_another_life_counts_for_nothing() -> None:
    walk = Walk().to(STABLE, T0)
    late = walk.beat()
    walk.its.on_commit_refused(error("UNKNOWN_MEMBER_ID"), identity(walk), walk.now)
    walk.give_up()
    walk.prepare()
    walk.on_heartbeat_response(9, [T1])
    assert walk.its.on_heartbeat_response(late, answer_of(6, []), walk.now) is None
    assert walk.its.on_heartbeat_response(late, error("FENCED_MEMBER_EPOCH"), walk.now) is None
    assert walk.its.epoch == 9
    assert walk.take_on().added == (T1,)


# Commits


def identity(walk: Walk) -> MemberIdentity:
    found = walk.its.identity(walk.now)
    assert found is not None
    return found


def test_a_stale_commit_has_it_ask_for_its_epoch_at_once() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_commit_refused(error("STALE_MEMBER_EPOCH"), identity(walk), walk.now)
    assert walk.phase is STABLE
    assert walk.its.heartbeat_due(walk.now)
    walk.on_heartbeat_response(6)
    assert identity(walk).generation == 6


def test_a_commit_of_another_epoch_tells_nothing() -> None:
    walk = Walk().to(STABLE, T0)
    before = identity(walk)
    walk.on_heartbeat_response(6)
    walk.its.on_commit_refused(error("UNKNOWN_MEMBER_ID"), before, walk.now)
    assert walk.phase is STABLE


@pytest.mark.parametrize("name", ["UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"])
def test_a_commit_of_no_member_costs_all(name: str) -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_commit_refused(error(name), identity(walk), walk.now)
    assert walk.phase is FENCED


def test_a_commit_that_another_instance_has_fenced_is_the_end() -> None:
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.its.on_commit_refused(error("FENCED_INSTANCE_ID"), identity(walk), walk.now)
    assert walk.give_up() == Revoke(frozenset([T0]), True, walk.now)
    assert walk.phase is FATAL  # its place is another's, who is not told to go


# Leaving


@pytest.mark.parametrize(
    ("instance_id", "leaves", "epoch"),
    [(None, True, -1), (None, False, None), ("i", True, -1), ("i", False, -2)],
)
def test_how_it_leaves(instance_id: str | None, leaves: bool, epoch: int | None) -> None:
    walk = Walk(instance_id=instance_id).to(STABLE, T0)
    member_id = walk.its.member_id
    walk.its.begin_leave("a test", walk.now, leaves=leaves, ends=True)
    assert walk.give_up().partitions == {T0}
    step = walk.step()
    if epoch is None:
        assert step is None
    else:
        assert isinstance(step, LeaveByHeartbeat)
        request = step.request("g")
        assert (request.group_id, request.member_id) == ("g", member_id)
        assert (request.member_epoch, request.instance_id) == (epoch, instance_id)
        walk.its.left(walk.now)
    assert walk.phase is FATAL


def test_heartbeats_go_on_until_all_is_given_up() -> None:
    walk = Walk().to(PREPARE_LEAVING, T0)
    assert identity(walk).generation == 5
    assert walk.on_heartbeat_response(5).member_epoch == 5
    assert walk.phase is PREPARE_LEAVING
    walk.give_up()
    assert not walk.its.heartbeat_due(walk.now + 10)
    assert walk.its.identity(walk.now) is None


def test_a_static_member_that_unsubscribes_is_expected_back() -> None:
    walk = Walk(instance_id="i").to(PREPARE_LEAVING, T0)
    walk.give_up()
    assert walk.leave().epoch == -2
    assert walk.phase is UNSUBSCRIBED


def test_who_leaves_before_it_has_joined_says_so_if_it_may_be_known() -> None:
    walk = Walk()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.give_up()
    assert walk.step() is None  # nothing was sent
    assert walk.phase is FATAL
    walk = Walk().to(JOINING)
    beat = walk.beat()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.give_up()
    assert walk.leave().member_id == beat.request.member_id


def test_who_has_no_id_yet_waits_for_it_to_leave_by() -> None:
    walk = Walk(version=0).to(JOINING)
    beat = walk.beat()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.give_up()
    assert walk.step() is None
    assert walk.phase is LEAVING
    assert walk.its.next_at(walk.now) == walk.now + 5
    walk.its.on_heartbeat_response(beat, answer_of(1, [], member_id="given"), walk.now)
    assert walk.leave().member_id == "given"


def test_who_never_gets_an_id_leaves_without() -> None:
    walk = Walk(version=0).to(JOINING)
    walk.beat()
    walk.its.begin_leave("a test", walk.now, leaves=True, ends=True)
    walk.give_up()
    walk.now += 5
    walk.its.tick(walk.now)
    assert walk.phase is FATAL


def test_who_is_slow_leaves_and_comes_back_when_it_asks() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.on_poll_timeout(walk.now)
    assert not walk.its.on_poll_timeout(walk.now)
    assert walk.give_up() == Revoke(frozenset([T0]), True, walk.now + 58.9)
    assert walk.leave().epoch == -1
    assert walk.phase is STALE
    assert walk.its.awaits_poll
    walk.its.on_poll(walk.now)
    assert walk.phase is JOINING
    walk.prepare()
    assert walk.beat().request.member_epoch == 0


def test_who_asks_while_it_leaves_as_slow_comes_back_at_once() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_poll_timeout(walk.now)
    walk.its.on_poll(walk.now)
    walk.give_up()
    walk.leave()
    assert walk.phase is JOINING


def test_who_subscribes_while_it_leaves_comes_back() -> None:
    walk = Walk().to(LEAVING, T0)
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.leave()
    assert walk.step() == Prepare(Subscription.to("u"))


def test_what_is_lost_while_it_leaves() -> None:
    walk = Walk().to(PREPARE_LEAVING, T0)
    turn = walk.its.turn
    walk.refused("UNKNOWN_MEMBER_ID")
    assert walk.its.turn == turn + 1
    assert walk.give_up() == Revoke(frozenset([T0]), True, walk.its._until)
    assert walk.step() is None  # no member, who could leave
    assert walk.phase is UNSUBSCRIBED


def test_what_it_wanted_is_wanted_until_it_is_known_what_matches() -> None:
    """Else the coordinator would take all away, and give it back."""
    walk = Walk(TopicPattern("t.*")).to(STABLE, T0)
    walk.its.subscribe(Subscription.to(re.compile("t|u")), walk.now)
    request = walk.on_heartbeat_response(5)
    assert request.subscribed_topic_names is None
    assert request.subscribed_topic_regex is None
    walk.prepare("t", "u")
    request = walk.on_heartbeat_response(5)
    assert request.subscribed_topic_names == ["t", "u"]
    assert request.subscribed_topic_regex == ""


def test_what_it_holds_it_holds_by_the_ids_of_topics() -> None:
    walk = Walk().to(RECONCILING, T0)
    assert not walk.its.is_assigned(T0, walk.topics["t"])
    walk.step()
    assert walk.its.is_assigned(T0, walk.topics["t"]), "it is being taken on"
    walk.take_on()
    assert walk.its.is_assigned(T0, walk.topics["t"])
    assert not walk.its.is_assigned(T0, walk.topics["u"])
    assert not walk.its.is_assigned(T1, walk.topics["t"])
