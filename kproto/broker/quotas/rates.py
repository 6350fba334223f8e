"""What was taken lately: a rate over a sliding window of samples, and a bucket of tokens.

As Kafka measures them (quota.window.num, quota.window.size.seconds; KIP-599 for the bucket). Times
are in ms by the time of day, and handed in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["TokenBucket", "WindowedRate"]


@dataclass(slots=True)
class _Sample:
    """What was taken in one window, which begins with the first that is counted in it."""

    start_ms: int
    last_ms: int
    value: float = 0.0


class WindowedRate:
    """How much was taken a second, over the last `samples` windows of `window_ms`."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._most = samples
        self._window_ms = window_ms
        self._samples: deque[_Sample] = deque()

    def record(self, value: float, now_ms: int) -> None:
        """Count `value`; a negative one takes back what was counted."""
        if not self._samples or now_ms - self._samples[-1].start_ms >= self._window_ms:
            self._samples.append(_Sample(now_ms, now_ms))
        sample = self._samples[-1]
        sample.value += value
        sample.last_ms = now_ms

    def rate(self, now_ms: int) -> float:
        """What was taken a second."""
        self._forget(now_ms)
        total = sum(sample.value for sample in self._samples)
        return total / (self.span_ms(now_ms) / 1000)

    def span_ms(self, now_ms: int) -> int:
        """The time that the rate is taken over; windows that are missing count as empty."""
        self._forget(now_ms)
        elapsed = now_ms - self._samples[0].start_ms if self._samples else 0
        missing = self._most - 1 - elapsed // self._window_ms
        # A rate over one sample that just began would be endless.
        return max(elapsed + max(missing, 0) * self._window_ms, self._window_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing is remembered any more."""
        self._forget(now_ms)
        return not self._samples

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long to take nothing, so that the rate comes down to `limit`; 0 where it is not over.

        As long as the span would have to be longer for what was taken to fit.
        """
        over = self.rate(now_ms) - limit
        return round(over / limit * self.span_ms(now_ms)) if over > 0 else 0

    def _forget(self, now_ms: int) -> None:
        """Drop samples in which nothing was counted since the windows began."""
        oldest = now_ms - self._most * self._window_ms
        while self._samples and self._samples[0].last_ms <= oldest:
            self._samples.popleft()


class TokenBucket:
    """Tokens that come back at `limit` a second, up to those of all windows; it begins full.

    What is taken may go below zero once, and then has to be waited for (KIP-599).
    """

    def __init__(self, samples: int, window_ms: int) -> None:
        self._burst_s = samples * window_ms / 1000
        self._tokens: float | None = None
        self._limit = 0.0  # that it was last asked by
        self._updated_ms = 0

    def tokens(self, limit: float, now_ms: int) -> float:
        """How many there are; below 0 for those that were taken beyond."""
        burst = self._burst_s * limit
        if self._tokens is None:
            self._tokens = burst
        else:
            passed_s = max(0, now_ms - self._updated_ms) / 1000
            self._tokens = min(burst, self._tokens + limit * passed_s)
        self._limit, self._updated_ms = limit, now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take `count`, whether there are as many or not."""
        self._tokens = self.tokens(limit, now_ms) - count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long it takes until there are no fewer than 0."""
        return max(0, round(-self.tokens(limit, now_ms) / limit * 1000))

    def is_idle(self, now_ms: int) -> bool:
        """Whether it is full, by the limit that it had last."""
        return self.tokens(self._limit, now_ms) >= self._burst_s * self._limit
