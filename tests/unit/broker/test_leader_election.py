"""Who leads when nodes come and go, as Kafka's controller decides it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import BrokerResponseError
from kproto.broker.leader_and_isr import NO_LEADER, Leadership
from kproto.broker.leader_election import after_start, after_stop, first_led, led_by, striped

OF_THREE = Leadership((1, 2, 3), 1, (1, 2, 3))


def test_the_first_replica_that_is_alive_leads_a_new_partition() -> None:
    assert first_led((2, 3, 1), {1, 2, 3}) == Leadership((2, 3, 1), 2, (2, 3, 1))
    assert first_led((2, 3, 1), {1, 3}) == Leadership((2, 3, 1), 3, (3, 1))
    assert first_led((2, 3), {1}) == Leadership((2, 3), NO_LEADER, (2,))


def test_the_next_in_sync_replica_takes_over() -> None:
    assert after_stop(OF_THREE, 1, {2, 3}) == Leadership((1, 2, 3), 2, (2, 3))
    lagging = Leadership((1, 2, 3), 1, (1, 3))
    assert after_stop(lagging, 1, {2, 3}) == Leadership((1, 2, 3), 3, (3,))


def test_a_follower_that_stops_leaves_the_isr_alone() -> None:
    assert after_stop(OF_THREE, 3, {1, 2}) == Leadership((1, 2, 3), 1, (1, 2))
    assert after_stop(OF_THREE, 9, {1, 2, 3}) is OF_THREE


def test_the_last_one_stays_in_the_isr_and_nobody_leads() -> None:
    alone = Leadership((1, 2, 3), 3, (3,))
    gone = after_stop(alone, 3, set())
    assert gone == Leadership((1, 2, 3), NO_LEADER, (3,))
    assert after_start(gone, 1, {1}) == gone, "it lacks records, and cannot lead"
    assert after_start(gone, 3, {1, 3}) == Leadership((1, 2, 3), 3, (1, 3))


def test_who_comes_back_is_in_sync_and_does_not_lead_again() -> None:
    moved = after_stop(OF_THREE, 1, {2, 3})
    assert after_start(moved, 1, {1, 2, 3}) == Leadership((1, 2, 3), 2, (1, 2, 3))
    assert after_start(moved, 9, {2, 3, 9}) is moved


def test_another_leader() -> None:
    assert led_by(OF_THREE, 3, {1, 2, 3}) == Leadership((1, 2, 3), 3, (1, 2, 3))


@pytest.mark.parametrize(
    ("led", "node", "name"),
    [
        (OF_THREE, 4, "INVALID_REQUEST"),
        (OF_THREE, 3, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
        (Leadership((1, 2), 1, (1,)), 2, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
    ],
)
def test_who_cannot_lead(led: Leadership, node: int, name: str) -> None:
    with pytest.raises(BrokerResponseError, match=name):
        led_by(led, node, {1, 2, 4})


def test_neighbours_stand_in_different_racks() -> None:
    assert striped([1, 2, 3], [None, None, None]) == [1, 2, 3]
    assert striped([1, 2, 3, 4, 5, 6], ["a", "a", "b", "b", "c", "c"]) == [1, 3, 5, 2, 4, 6]
    assert striped([1, 2, 3], ["a", "a", "b"]) == [1, 3, 2]
    assert striped([], []) == []


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=30))
def test_whatever_comes_and_goes(steps: list[tuple[int, bool]]) -> None:
    alive, led = {1, 2, 3, 4}, Leadership((1, 2, 3), 1, (1, 2, 3))
    for node, up in steps:
        before = led
        if up:
            alive = alive | {node}
            led = after_start(led, node, alive)
        else:
            alive = alive - {node}
            led = after_stop(led, node, alive)
        assert led.in_sync, "somebody has all records"
        assert set(led.in_sync) <= set(led.replicas) == {1, 2, 3}
        if led.leader == NO_LEADER:
            assert not alive & set(led.in_sync)
        else:
            assert set(led.in_sync) == alive & set(led.replicas)
            assert led.leader in led.in_sync
            assert led.leader in before.in_sync, "who lacked records does not lead"
        if before.leader in alive:
            assert led.leader == before.leader, "nobody takes over without a need"
