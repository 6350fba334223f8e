"""Measures the usage of users and clients against their quotas, and computes throttle times."""

from __future__ import annotations

from typing import Final

from .entities import CONNECTION_RATE, AppliedQuota, QuotaTable
from .rates import TokenBucket, WindowedRate

__all__ = ["ClientQuotaManager", "ControllerMutationQuota"]

_PRODUCED: Final = "producer_byte_rate"
_CONSUMED: Final = "consumer_byte_rate"
_REQUESTS: Final = "request_percentage"
_MUTATIONS: Final = "controller_mutation_rate"

#: If there are this many meters, idle meters are removed before a meter is added. That changes no
#: throttle time. So a client that uses a new client id for each connection does not fill the
#: memory.
_MOST_METERS: Final = 10_000

_Key = tuple[str, str, str]


class ClientQuotaManager:
    """Measures the usage of a node's users and clients over `samples` windows of `window_ms`.

    Times are in ms of the wall clock. Throttle times are in ms and at most `most_ms`. A throttle
    time is 0 if no quota applies, or if the quota is not exceeded.
    """

    def __init__(self, table: QuotaTable, samples: int, window_ms: int, most_ms: int) -> None:
        self.table = table
        self._samples = samples
        self._window_ms = window_ms
        self._most_ms = most_ms
        self._rates: dict[_Key, WindowedRate] = {}
        self._buckets: dict[_Key, TokenBucket] = {}

    def record_produce(self, user: str, client_id: str, size: int, now_ms: int) -> int:
        """Counts the bytes of a Produce request; returns the throttle time in ms."""
        return self._record(_PRODUCED, user, client_id, size, now_ms, self._most_ms)

    def record_fetch(self, user: str, client_id: str, size: int, now_ms: int) -> int:
        """Counts the bytes of a Fetch response; returns the throttle time in ms."""
        return self._record(_CONSUMED, user, client_id, size, now_ms, self._most_ms)

    def unrecord_fetch(self, user: str, client_id: str, size: int, now_ms: int) -> None:
        """Subtracts the bytes of a Fetch response that is not sent."""
        limit = self.table.limit(_CONSUMED, user, client_id)
        if limit is not None:
            self._rate(_CONSUMED, limit, now_ms).record(-size, now_ms)

    def max_fetch_bytes(self, user: str, client_id: str) -> int | None:
        """Returns the largest size in bytes of a single Fetch response that stays within the quota.

        Returns None if no quota applies.
        """
        limit = self.table.limit(_CONSUMED, user, client_id)
        if limit is None:
            return None
        return int(limit.value * (self._samples - 1) * self._window_ms / 1000)

    def record_request_time(self, user: str, client_id: str, seconds: float, now_ms: int) -> int:
        """Counts the seconds for which a handler ran; returns the throttle time in ms (KIP-124).

        The throttle time is at most one quota window.
        """
        most_ms = min(self._most_ms, self._window_ms)
        return self._record(_REQUESTS, user, client_id, seconds * 100, now_ms, most_ms)

    def record_connection(self, ip: str, now_ms: int) -> int:
        """Counts a new connection of an ip; returns the throttle time in ms (KIP-612).

        A connection with a throttle time is refused, and does not count.
        """
        limit = self.table.connection_limit(ip)
        if limit is None:
            return 0
        rate = self._rate(CONNECTION_RATE, AppliedQuota(limit, ip, ""), now_ms)
        rate.record(1, now_ms)
        throttle_ms = min(rate.throttle_ms(limit, now_ms), self._most_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def mutation_quota(
        self, user: str, client_id: str, now_ms: int, *, strict: bool
    ) -> ControllerMutationQuota:
        """Returns the quota controller_mutation_rate for one request (KIP-599).

        For `strict`, see `ControllerMutationQuota`.
        """
        limit = self.table.limit(_MUTATIONS, user, client_id)
        if limit is None:
            return ControllerMutationQuota(None, 0.0, now_ms, self._most_ms, strict=strict)
        key = (_MUTATIONS, limit.user, limit.client_id)
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= _MOST_METERS:
                self._buckets = {
                    known: one for known, one in self._buckets.items() if not one.is_idle(now_ms)
                }
            bucket = self._buckets[key] = TokenBucket(self._samples, self._window_ms)
        return ControllerMutationQuota(bucket, limit.value, now_ms, self._most_ms, strict=strict)

    def _record(
        self, key: str, user: str, client_id: str, value: float, now_ms: int, most_ms: int
    ) -> int:
        limit = self.table.limit(key, user, client_id)
        if limit is None:
            return 0
        rate = self._rate(key, limit, now_ms)
        rate.record(value, now_ms)
        return min(rate.throttle_ms(limit.value, now_ms), most_ms)

    def _rate(self, key: str, limit: AppliedQuota, now_ms: int) -> WindowedRate:
        named = (key, limit.user, limit.client_id)
        rate = self._rates.get(named)
        if rate is None:
            if len(self._rates) >= _MOST_METERS:
                self._rates = {
                    known: one for known, one in self._rates.items() if not one.is_idle(now_ms)
                }
            rate = self._rates[named] = WindowedRate(self._samples, self._window_ms)
        return rate


class ControllerMutationQuota:
    """Applies controller_mutation_rate to the partition mutations of one request.

    If `strict` is True, mutations are refused while the token bucket is below 0. If `strict` is
    False, no mutation is refused, and the client is throttled instead.
    """

    def __init__(
        self,
        bucket: TokenBucket | None,
        limit: float,
        now_ms: int,
        most_ms: int,
        *,
        strict: bool,
    ) -> None:
        self._bucket = bucket
        self._limit = limit
        self._now_ms = now_ms
        self._most_ms = most_ms
        self._strict = strict
        #: The throttle time of the client in ms, after `record`.
        self.throttle_ms = 0

    def record(self, count: int) -> bool:
        """Counts `count` partition mutations, and sets `throttle_ms`.

        Returns False if the mutations are refused; then the client must retry.
        """
        if self._bucket is None:
            return True
        refused = self._strict and self._bucket.tokens(self._limit, self._now_ms) < 0
        if not refused:
            self._bucket.take(count, self._limit, self._now_ms)
        if refused or not self._strict:
            wait_ms = self._bucket.throttle_ms(self._limit, self._now_ms)
            self.throttle_ms = min(wait_ms, self._most_ms)
        return not refused
