"""Tests which errors the client retries, and the backoff of retries (KIP-580)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client import ClientSettings
from kproto.client.core.retry import (
    LAST_ATTEMPT_S,
    Attempts,
    Remedy,
    backoff_ms,
    remedy_of,
    remedy_of_code,
)
from kproto.protocol.error_codes import ERRORS, code_of, error_of_code
from kproto.wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    DecodeError,
    KprotoError,
    RequestTimeoutError,
)

MIDDLE = 0.5
"""The random value without jitter."""

SETTINGS = ClientSettings(retry_backoff_ms=100, retry_backoff_max_ms=1000)


@pytest.mark.parametrize(
    ("attempt", "wait"),
    [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (6, 1000), (5000, 1000)],
)
def test_backoff_doubles_up_to_its_limit(attempt: int, wait: float) -> None:
    assert backoff_ms(SETTINGS, attempt, MIDDLE) == wait


@given(attempt=st.integers(1, 10_000), chance=st.floats(0, 1, exclude_max=True))
def test_jitter_is_at_most_a_fifth(attempt: int, chance: float) -> None:
    plain = backoff_ms(SETTINGS, attempt, MIDDLE)
    assert 0.8 * plain - 1e-9 <= backoff_ms(SETTINGS, attempt, chance) <= 1.2 * plain + 1e-9


def test_extreme_random_values_give_the_full_jitter() -> None:
    assert backoff_ms(SETTINGS, 1, 0.0) == pytest.approx(80)
    assert backoff_ms(SETTINGS, 1, 1.0) == pytest.approx(120)


def test_first_backoff_is_limited_too() -> None:
    settings = ClientSettings(retry_backoff_ms=5000, retry_backoff_max_ms=1000)
    assert backoff_ms(settings, 1, MIDDLE) == 1000


# --- Actions for errors ---


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (BrokerConnectionError("lost"), Remedy.REFRESH),
        (RequestTimeoutError("silent"), Remedy.REFRESH),
        (ConfigurationError("closed"), Remedy.FAIL),
        (DecodeError("garbage"), Remedy.FAIL),
        (error_of_code(code_of("NOT_COORDINATOR"), ""), Remedy.FIND_COORDINATOR),
        (error_of_code(code_of("COORDINATOR_NOT_AVAILABLE"), ""), Remedy.FIND_COORDINATOR),
        (error_of_code(code_of("COORDINATOR_LOAD_IN_PROGRESS"), ""), Remedy.RETRY),
        (error_of_code(code_of("NOT_CONTROLLER"), ""), Remedy.REFRESH),
        (error_of_code(code_of("NOT_LEADER_OR_FOLLOWER"), ""), Remedy.REFRESH),
        (error_of_code(code_of("CONCURRENT_TRANSACTIONS"), ""), Remedy.RETRY),
        (error_of_code(code_of("GROUP_AUTHORIZATION_FAILED"), ""), Remedy.FAIL),
    ],
    ids=str,
)
def test_error_has_its_remedy(error: KprotoError, remedy: Remedy) -> None:
    assert remedy_of(error) is remedy


def test_exactly_the_retriable_error_codes_are_retried() -> None:
    for code, known in ERRORS.items():
        assert (remedy_of_code(code) is not Remedy.FAIL) == known.retriable, known.name


# --- Attempts ---


LOST = BrokerConnectionError("lost")


def test_attempts_end_at_the_deadline_set_by_the_first_failure() -> None:
    attempts = Attempts(SETTINGS, 1_000)
    assert attempts.not_before == float("-inf")
    assert attempts.failed(LOST, 50.0)
    assert 50.08 <= attempts.not_before <= 50.12
    assert attempts.failed(LOST, 50.5)
    assert (attempts.count, attempts.error) == (2, LOST)
    assert attempts.failed(LOST, 50.99)
    assert attempts.not_before == attempts.deadline == 51.0
    assert not attempts.failed(LOST, 51.0)


def test_backoff_after_the_deadline_is_not_shortened() -> None:
    """A caller whose own deadline is later can still retry at `not_before`."""
    attempts = Attempts(SETTINGS, 1_000, started_at=0.0)
    assert not attempts.failed(LOST, 5.0)
    assert attempts.not_before >= 5.08


def test_last_attempt_has_a_minimum_time() -> None:
    attempts = Attempts(SETTINGS, 1_000, started_at=0.0)
    assert attempts.ends_at(0.99) == 1.0
    attempts.failed(LOST, 0.99)
    assert attempts.ends_at(1.0) == 1.0 + LAST_ATTEMPT_S


def test_deadline_excludes_idle_time_and_includes_attempts() -> None:
    attempts = Attempts(SETTINGS, 1_000)
    attempts.failed(LOST, 0.0)
    due = attempts.not_before
    attempts.on_attempt_started(due + 10)
    assert attempts.deadline == pytest.approx(11.0)
    attempts.on_attempt_started(due + 10)
    assert attempts.deadline == pytest.approx(11.0)
    attempts.make_due(due + 10.5)
    attempts.on_attempt_started(due + 20.5)
    assert attempts.deadline == pytest.approx(21.0)


def test_deadline_may_start_before_the_first_failure() -> None:
    attempts = Attempts(SETTINGS, 1_000, started_at=49.0)
    assert not attempts.failed(LOST, 50.0)


def test_success_resets_the_attempts() -> None:
    attempts = Attempts(SETTINGS, 1_000)
    attempts.failed(LOST, 50.0)
    attempts.succeeded()
    assert (attempts.count, attempts.error, attempts.not_before) == (0, None, float("-inf"))
    assert attempts.failed(LOST, 90.0)


def test_attempts_are_limited_by_api_timeout_ms_by_default() -> None:
    attempts = Attempts(ClientSettings(api_timeout_ms=2_000))
    assert attempts.failed(LOST, 0.0)
    assert attempts.failed(LOST, 1.0)
    assert not attempts.failed(LOST, 2.0)
