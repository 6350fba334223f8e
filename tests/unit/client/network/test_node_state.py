"""Tests when the client reconnects to a broker: the backoffs and the connect timeouts."""

from __future__ import annotations

import pytest

from kproto.client import ClientSettings
from kproto.client.network.node_state import NodeState
from kproto.wire.errors import BrokerConnectionError, RequestTimeoutError

LOST = BrokerConnectionError("lost")
LATE = RequestTimeoutError("late")
MIDDLE = 0.5  # this random value adds no jitter


def test_the_wait_doubles_up_to_the_longest() -> None:
    node_state = NodeState(ClientSettings())
    waits = []
    for _ in range(7):
        node_state.failed(LOST, 100.0, MIDDLE)
        waits.append(round((node_state.not_before - 100.0) * 1000))
    assert waits == [50, 100, 200, 400, 800, 1000, 1000]


@pytest.mark.parametrize(("chance", "ms"), [(0.0, 40), (0.5, 50), (1.0, 60)])
def test_chance_adds_or_takes_a_fifth(chance: float, ms: int) -> None:
    node_state = NodeState(ClientSettings())
    node_state.failed(LOST, 0.0, chance)
    assert round(node_state.not_before * 1000) == ms


def test_a_success_begins_anew() -> None:
    node_state = NodeState(ClientSettings())
    for _ in range(4):
        node_state.failed(LATE, 0.0, MIDDLE, "10.0.0.1")
    node_state.succeeded()
    assert (node_state.failures, node_state.failed_ip, node_state.error) == (0, None, None)
    assert node_state.not_before < 0
    assert node_state.connect_timeout_ms == 10_000


def test_the_time_to_connect_doubles_behind_time_outs_alone() -> None:
    node_state = NodeState(ClientSettings())
    limits = []
    for error in (LATE, LATE, LATE, LOST, LATE):
        node_state.failed(error, 0.0, MIDDLE)
        limits.append(node_state.connect_timeout_ms)
    assert limits == [20_000, 30_000, 30_000, 10_000, 20_000]


def test_a_longest_time_below_the_first_counts_for_nothing() -> None:
    node_state = NodeState(ClientSettings(connect_timeout_ms=40_000))
    node_state.failed(LATE, 0.0, MIDDLE)
    assert node_state.connect_timeout_ms == 40_000
