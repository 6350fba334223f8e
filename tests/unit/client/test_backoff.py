"""How long a retry waits (KIP-580): doubling, a bound, jitter of a fifth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client import ClientSettings
from kproto.client.backoff import backoff_ms

MIDDLE = 0.5
"""The chance with which the jitter is none."""

SETTINGS = ClientSettings(retry_backoff_ms=100, retry_backoff_max_ms=1000)


@pytest.mark.parametrize(
    ("attempt", "wait"),
    [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (6, 1000), (5000, 1000)],
)
def test_it_doubles_up_to_the_bound(attempt: int, wait: float) -> None:
    assert backoff_ms(SETTINGS, attempt, MIDDLE) == wait


@given(attempt=st.integers(1, 10_000), chance=st.floats(0, 1, exclude_max=True))
def test_chance_adds_or_takes_a_fifth(attempt: int, chance: float) -> None:
    plain = backoff_ms(SETTINGS, attempt, MIDDLE)
    assert 0.8 * plain - 1e-9 <= backoff_ms(SETTINGS, attempt, chance) <= 1.2 * plain + 1e-9


def test_the_ends_of_chance() -> None:
    assert backoff_ms(SETTINGS, 1, 0.0) == pytest.approx(80)
    assert backoff_ms(SETTINGS, 1, 1.0) == pytest.approx(120)


def test_a_first_wait_above_the_bound_is_bounded() -> None:
    settings = ClientSettings(retry_backoff_ms=5000, retry_backoff_max_ms=1000)
    assert backoff_ms(settings, 1, MIDDLE) == 1000
