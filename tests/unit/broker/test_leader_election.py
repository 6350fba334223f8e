"""Tests leaders and ISRs after nodes stop and start; the rules are those of Kafka's controller."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import BrokerResponseError
from kproto.broker.leader_and_isr import NO_LEADER, LeaderAndIsr
from kproto.broker.leader_election import (
    after_broker_start,
    after_broker_stop,
    alternate_racks,
    elect_leader,
    initial_leader_and_isr,
)

OF_THREE = LeaderAndIsr((1, 2, 3), 1, (1, 2, 3))


def test_the_first_replica_that_is_alive_leads_a_new_partition() -> None:
    assert initial_leader_and_isr((2, 3, 1), {1, 2, 3}) == LeaderAndIsr((2, 3, 1), 2, (2, 3, 1))
    assert initial_leader_and_isr((2, 3, 1), {1, 3}) == LeaderAndIsr((2, 3, 1), 3, (3, 1))
    assert initial_leader_and_isr((2, 3), {1}) == LeaderAndIsr((2, 3), NO_LEADER, (2,))


def test_the_next_in_sync_replica_takes_over() -> None:
    assert after_broker_stop(OF_THREE, 1, {2, 3}) == LeaderAndIsr((1, 2, 3), 2, (2, 3))
    lagging = LeaderAndIsr((1, 2, 3), 1, (1, 3))
    assert after_broker_stop(lagging, 1, {2, 3}) == LeaderAndIsr((1, 2, 3), 3, (3,))


def test_a_follower_that_stops_leaves_the_isr_alone() -> None:
    assert after_broker_stop(OF_THREE, 3, {1, 2}) == LeaderAndIsr((1, 2, 3), 1, (1, 2))
    assert after_broker_stop(OF_THREE, 9, {1, 2, 3}) is OF_THREE


def test_last_in_sync_replica_stays_in_isr_without_leader() -> None:
    alone = LeaderAndIsr((1, 2, 3), 3, (3,))
    gone = after_broker_stop(alone, 3, set())
    assert gone == LeaderAndIsr((1, 2, 3), NO_LEADER, (3,))
    assert after_broker_start(gone, 1, {1}) == gone, "it lacks records and must not lead"
    assert after_broker_start(gone, 3, {1, 3}) == LeaderAndIsr((1, 2, 3), 3, (1, 3))


def test_restarted_replica_joins_isr_and_does_not_lead() -> None:
    moved = after_broker_stop(OF_THREE, 1, {2, 3})
    assert after_broker_start(moved, 1, {1, 2, 3}) == LeaderAndIsr((1, 2, 3), 2, (1, 2, 3))
    assert after_broker_start(moved, 9, {2, 3, 9}) is moved


def test_another_replica_is_elected() -> None:
    assert elect_leader(OF_THREE, 3, {1, 2, 3}) == LeaderAndIsr((1, 2, 3), 3, (1, 2, 3))


@pytest.mark.parametrize(
    ("leader_and_isr", "node", "name"),
    [
        (OF_THREE, 4, "INVALID_REQUEST"),
        (OF_THREE, 3, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
        (LeaderAndIsr((1, 2), 1, (1,)), 2, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
    ],
)
def test_ineligible_replica_cannot_lead(leader_and_isr: LeaderAndIsr, node: int, name: str) -> None:
    with pytest.raises(BrokerResponseError, match=name):
        elect_leader(leader_and_isr, node, {1, 2, 4})


def test_adjacent_nodes_are_in_different_racks() -> None:
    assert alternate_racks([1, 2, 3], [None, None, None]) == [1, 2, 3]
    assert alternate_racks([1, 2, 3, 4, 5, 6], ["a", "a", "b", "b", "c", "c"]) == [1, 3, 5, 2, 4, 6]
    assert alternate_racks([1, 2, 3], ["a", "a", "b"]) == [1, 3, 2]
    assert alternate_racks([], []) == []


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=30))
def test_random_stops_and_starts_keep_invariants(steps: list[tuple[int, bool]]) -> None:
    alive, leader_and_isr = {1, 2, 3, 4}, LeaderAndIsr((1, 2, 3), 1, (1, 2, 3))
    for node, up in steps:
        before = leader_and_isr
        if up:
            alive = alive | {node}
            leader_and_isr = after_broker_start(leader_and_isr, node, alive)
        else:
            alive = alive - {node}
            leader_and_isr = after_broker_stop(leader_and_isr, node, alive)
        assert leader_and_isr.in_sync, "an in-sync replica has all records"
        assert set(leader_and_isr.in_sync) <= set(leader_and_isr.replicas) == {1, 2, 3}
        if leader_and_isr.leader == NO_LEADER:
            assert not alive & set(leader_and_isr.in_sync)
        else:
            assert set(leader_and_isr.in_sync) == alive & set(leader_and_isr.replicas)
            assert leader_and_isr.leader in leader_and_isr.in_sync
            assert leader_and_isr.leader in before.in_sync, (
                "a replica that lacks records must not lead"
            )
        if before.leader in alive:
            assert leader_and_isr.leader == before.leader, "the leader changes only if it must"
