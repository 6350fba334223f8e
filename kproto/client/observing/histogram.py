"""Counts values between fixed bounds."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Any, Final

__all__ = ["BATCH_BYTES", "BATCH_RECORDS", "LATENCY_MS", "Histogram"]

#: Upper bounds of latencies in ms. A nearby broker responds in less than 1 ms, a fetch that waits
#: for records takes 500 ms, and 40,000 ms is the default request timeout.
LATENCY_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 40_000)

#: Upper bounds of records in a batch.
BATCH_RECORDS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000)

#: Upper bounds of the bytes of a batch; by default brokers refuse batches over 1,048,588 bytes.
BATCH_BYTES: Final = (100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)


class Histogram:
    """Counts values by upper bound.

    `counts[i]` is the number of values up to `bounds[i]` that are above `bounds[i - 1]`. The last
    count has the values above all bounds.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total: float = 0

    def add(self, value: float) -> None:
        """Counts one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def as_dict(self) -> dict[str, Any]:
        """Returns `count`, `sum` and the cumulative `buckets` by upper bound, as in Prometheus.

        The last bound is "+Inf".
        """
        names = [*map(str, self.bounds), "+Inf"]
        return {
            "count": sum(self.counts),
            "sum": round(self.total, 3),
            "buckets": dict(zip(names, accumulate(self.counts), strict=True)),
        }
