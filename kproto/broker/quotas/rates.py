"""Measures rates over a sliding window of samples, and implements token buckets.

The computations are Kafka's: see quota.window.num and quota.window.size.seconds for rates, KIP-599
for token buckets. Times are parameters, in ms of the wall clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["TokenBucket", "WindowedRate"]


@dataclass(slots=True)
class _Sample:
    """Holds the sum of one window, which starts when its first value is recorded."""

    start_ms: int
    last_ms: int
    value: float = 0.0


class WindowedRate:
    """Measures a rate per second over the last `samples` windows of `window_ms`."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._most = samples
        self._window_ms = window_ms
        self._samples: deque[_Sample] = deque()

    def record(self, value: float, now_ms: int) -> None:
        """Adds `value` to the current window; a negative value subtracts."""
        if not self._samples or now_ms - self._samples[-1].start_ms >= self._window_ms:
            self._samples.append(_Sample(now_ms, now_ms))
        sample = self._samples[-1]
        sample.value += value
        sample.last_ms = now_ms

    def rate(self, now_ms: int) -> float:
        """Returns the rate per second."""
        self._forget(now_ms)
        total = sum(sample.value for sample in self._samples)
        return total / (self.span_ms(now_ms) / 1000)

    def span_ms(self, now_ms: int) -> int:
        """Returns the time in ms over which the rate is measured, including empty windows."""
        self._forget(now_ms)
        elapsed = now_ms - self._samples[0].start_ms if self._samples else 0
        missing = self._most - 1 - elapsed // self._window_ms
        # With a span of 0, for one new sample, the rate would be infinite.
        return max(elapsed + max(missing, 0) * self._window_ms, self._window_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Returns True if nothing was recorded in the last `samples` windows."""
        self._forget(now_ms)
        return not self._samples

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Returns the throttle time in ms; 0 if the rate does not exceed `limit`.

        If `span_ms` were longer by the throttle time, the rate would equal `limit`.
        """
        excess = self.rate(now_ms) - limit
        return round(excess / limit * self.span_ms(now_ms)) if excess > 0 else 0

    def _forget(self, now_ms: int) -> None:
        """Removes samples whose last value was recorded `samples` windows ago or earlier."""
        oldest = now_ms - self._most * self._window_ms
        while self._samples and self._samples[0].last_ms <= oldest:
            self._samples.popleft()


class TokenBucket:
    """Implements a token bucket that starts full and refills at `limit` tokens per second.

    Its capacity is `limit` times the length of all windows in seconds. A request may take more
    tokens than the bucket has. The number of tokens is then negative, and the client waits until
    the number is 0 (KIP-599).
    """

    def __init__(self, samples: int, window_ms: int) -> None:
        self._burst_s = samples * window_ms / 1000
        self._tokens: float | None = None
        self._limit = 0.0  # the limit of the last call
        self._updated_ms = 0

    def tokens(self, limit: float, now_ms: int) -> float:
        """Returns the number of tokens; negative if more tokens were taken than the bucket had."""
        burst = self._burst_s * limit
        if self._tokens is None:
            self._tokens = burst
        else:
            passed_s = max(0, now_ms - self._updated_ms) / 1000
            self._tokens = min(burst, self._tokens + limit * passed_s)
        self._limit, self._updated_ms = limit, now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Takes `count` tokens, even if fewer are left."""
        self._tokens = self.tokens(limit, now_ms) - count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Returns the time in ms until the number of tokens is no longer negative.

        Returns 0 if the number is not negative now.
        """
        return max(0, round(-self.tokens(limit, now_ms) / limit * 1000))

    def is_idle(self, now_ms: int) -> bool:
        """Returns True if the bucket is full.

        Uses the limit of the latest call of `take` or `tokens`.
        """
        return self.tokens(self._limit, now_ms) >= self._burst_s * self._limit
