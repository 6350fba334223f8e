"""Tests rates over time windows, token buckets, and throttle times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.quotas import ClientQuotaManager, QuotaTable, TokenBucket, WindowedRate

T = 1_700_000_000_000


def rate() -> WindowedRate:
    return WindowedRate(11, 1000)


def test_first_sample_is_spread_over_missing_windows() -> None:
    one = rate()
    one.record(1000, T)
    assert one.span_ms(T) == 10_000
    assert one.rate(T) == 100
    assert one.span_ms(T + 500) == 10_500
    assert one.throttle_ms(100, T) == 0
    assert one.throttle_ms(50, T) == 10_000
    assert one.throttle_ms(99, T) == round(1 / 99 * 10_000)


def test_samples_older_than_the_windows_are_dropped() -> None:
    one = rate()
    one.record(1000, T)
    assert one.rate(T + 10_999) > 0
    assert one.rate(T + 11_000) == 0
    assert one.is_idle(T + 11_000)


def test_negative_value_is_subtracted() -> None:
    one = rate()
    one.record(1000, T)
    one.record(-1000, T)
    assert one.rate(T) == 0
    assert one.throttle_ms(1, T) == 0


@given(
    st.lists(st.tuples(st.integers(0, 1500), st.integers(1, 1000)), min_size=1, max_size=60),
    st.integers(1, 500),
)
def test_throttle_time_extends_the_span(taken: list[tuple[int, int]], limit: int) -> None:
    one, now_ms = rate(), T
    for pause_ms, value in taken:
        now_ms += pause_ms
        one.record(value, now_ms)
        total = one.rate(now_ms) * one.span_ms(now_ms) / 1000
        lacks_ms = total / limit * 1000 - one.span_ms(now_ms)
        assert one.throttle_ms(limit, now_ms) == pytest.approx(max(0, lacks_ms), abs=1)


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 100)), max_size=60))
def test_rate_counts_samples_within_the_windows(taken: list[tuple[int, int]]) -> None:
    one, now_ms = rate(), T
    events: list[tuple[int, int]] = []
    for pause_ms, value in taken:
        now_ms += pause_ms
        one.record(value, now_ms)
        events.append((now_ms, value))
        total = one.rate(now_ms) * one.span_ms(now_ms) / 1000
        surely = sum(value for at, value in events if now_ms - at < 11_000)
        perhaps = sum(value for at, value in events if now_ms - at < 12_000)
        assert surely - 0.001 <= total <= perhaps + 0.001
        assert 10_000 <= one.span_ms(now_ms) < 13_000


def test_a_bucket_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(11, 1000)
    assert bucket.tokens(5, T) == 55
    bucket.take(60, 5, T)
    assert bucket.tokens(5, T) == -5
    assert bucket.throttle_ms(5, T) == 1000
    assert bucket.throttle_ms(5, T + 400) == 600
    assert bucket.tokens(5, T + 1000) == 0
    assert not bucket.is_idle(T + 1000)
    assert bucket.is_idle(T + 12_000)
    assert bucket.tokens(5, T + 60_000) == 55, "it is no fuller than full"


def quota_manager(**quotas: float) -> ClientQuotaManager:
    table = QuotaTable()
    for key, value in quotas.items():
        table.set((("user", None),), key, value)
    return ClientQuotaManager(table, 11, 1000, 30_000)


def test_no_throttle_without_quota() -> None:
    nothing = quota_manager()
    assert nothing.record_produce("u", "c", 1 << 30, T) == 0
    assert nothing.record_request_time("u", "c", 100.0, T) == 0
    assert nothing.max_fetch_bytes("u", "c") is None
    quota = nothing.mutation_quota("u", "c", T, strict=True)
    assert quota.record(1_000_000)
    assert quota.throttle_ms == 0


def test_default_quota_is_measured_per_user() -> None:
    meters = quota_manager(producer_byte_rate=100)
    assert meters.record_produce("u", "c", 2000, T) == 10_000
    assert meters.record_produce("u", "other client", 0, T) == 10_000, "the quota is of the user"
    assert meters.record_produce("v", "c", 900, T) == 0


def test_throttle_time_is_limited() -> None:
    meters = quota_manager(producer_byte_rate=1, request_percentage=1)
    assert meters.record_produce("u", "c", 1 << 30, T) == 30_000
    assert meters.record_request_time("u", "c", 100.0, T) == 1000, (
        "for the time of requests, a window"
    )


def test_the_time_of_requests_is_a_percentage_of_one_thread() -> None:
    meters = quota_manager(request_percentage=10)
    assert meters.record_request_time("u", "c", 1.0, T) == 0, "one of ten seconds"
    assert meters.record_request_time("u", "c", 0.05, T) == 500


def test_max_fetch_bytes_of_a_quota() -> None:
    assert quota_manager(consumer_byte_rate=100).max_fetch_bytes("u", "c") == 1000


@pytest.mark.parametrize("strict", [True, False])
def test_partition_mutations_beyond_the_quota(strict: bool) -> None:
    meters = quota_manager(controller_mutation_rate=1)
    first = meters.mutation_quota("u", "c", T, strict=strict)
    assert first.record(15), "what goes below zero is done once"
    assert first.throttle_ms == (0 if strict else 4000)
    second = meters.mutation_quota("u", "c", T, strict=strict)
    assert second.record(1) is not strict
    assert second.throttle_ms == (4000 if strict else 5000)
    later = meters.mutation_quota("u", "c", T + 5000, strict=strict)
    assert later.record(1)


def test_idle_meters_are_dropped() -> None:
    meters = ClientQuotaManager(QuotaTable(), 11, 1000, 30_000)
    meters.table.set((("client-id", None),), "producer_byte_rate", 1000.0)
    for number in range(10_001):
        meters.record_produce("u", f"c{number}", 1, T + number * 10)
    assert len(meters._rates) < 2000


def test_used_buckets_are_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto.broker.quotas.client_quota_manager._MOST_METERS", 1)
    table = QuotaTable()
    table.set((("user", "large"),), "controller_mutation_rate", 1000)
    table.set((("user", "small"),), "controller_mutation_rate", 1)
    quota_manager = ClientQuotaManager(table, 11, 1000, 30_000)
    assert quota_manager.mutation_quota("large", "", T, strict=True).record(10_900)
    assert quota_manager.mutation_quota("small", "", T, strict=True).record(1)
    assert quota_manager.mutation_quota("large", "", T, strict=True).record(200)
    assert not quota_manager.mutation_quota("large", "", T, strict=True).record(1)
