"""Tests that quota rates and token buckets measure as Kafka's classes do, at random times."""

from __future__ import annotations

import random

import pytest

from kproto.broker.quotas import TokenBucket, WindowedRate
from tools.reference import KafkaJavaProgram
from tools.reference.pairs import RELEASES
from tools.reference.quotas import QuotaMeasurement, QuotaUse, measure

pytestmark = [pytest.mark.reference, pytest.mark.slow]

T = 1_700_000_000_000
SEED = 5


def cases(count: int) -> list[QuotaUse]:
    chance = random.Random(SEED)
    found = []
    for _ in range(count):
        now_ms = T
        events = []
        longest = chance.choice((20, 400, 1_500, 12_000, 40_000))
        for _ in range(60):
            now_ms += chance.randrange(longest)
            events.append((now_ms, chance.randrange(-5, 500)))
        samples, window_s = chance.choice(((11, 1), (2, 1), (5, 3)))
        found.append(QuotaUse(samples, window_s, chance.choice((0.5, 10.0, 1000.0)), events))
    return found


def measured_here(taken: QuotaUse) -> list[QuotaMeasurement]:
    rate = WindowedRate(taken.samples, taken.window_s * 1000)
    bucket = TokenBucket(taken.samples, taken.window_s * 1000)
    found = []
    for now_ms, value in taken.events:
        rate.record(value, now_ms)
        bucket.take(value, taken.limit, now_ms)
        found.append(
            QuotaMeasurement(
                rate.rate(now_ms), rate.span_ms(now_ms), bucket.tokens(taken.limit, now_ms)
            )
        )
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_rates_and_tokens_equal_those_of_kafka(
    judges: dict[str, KafkaJavaProgram], release: str
) -> None:
    wanted = cases(300)
    for taken, theirs in zip(wanted, measure(judges[release], wanted), strict=True):
        ours = measured_here(taken)
        assert [it.span_ms for it in ours] == [it.span_ms for it in theirs], taken
        for here, there in zip(ours, theirs, strict=True):
            assert here.rate == pytest.approx(there.rate), taken
            assert here.tokens == pytest.approx(there.tokens), taken
