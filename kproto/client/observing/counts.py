"""Counts what a client does, and formats the counts for `client.metrics()`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from .histogram import BATCH_BYTES, BATCH_RECORDS, LATENCY_MS, Histogram

__all__ = ["ApiCounts", "BatchCounts", "BrokerCounts", "GroupCounts", "RunCounts", "ShareCounts"]


class ApiCounts:
    """Counts the requests of one API."""

    __slots__ = ("bytes_in", "bytes_out", "errors", "latency", "name", "requests")

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        self.bytes_out = 0
        self.bytes_in = 0
        self.errors: Counter[str] = Counter()
        self.latency = Histogram(LATENCY_MS)

    def as_dict(self) -> dict[str, Any]:
        """Returns the counts as `metrics` shows them."""
        return {
            "requests": self.requests,
            "bytes_out": self.bytes_out,
            "bytes_in": self.bytes_in,
            "errors": dict(self.errors),
            "latency_ms": self.latency.as_dict(),
        }


class BrokerCounts:
    """Counts the connections to one address, and the requests in flight to this address."""

    __slots__ = (
        "closed",
        "failed",
        "failures_in_a_row",
        "in_flight",
        "lost",
        "opened",
        "throttle_ms",
        "throttled",
    )

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.lost = 0
        self.failed = 0
        self.failures_in_a_row = 0
        self.in_flight = 0
        self.throttled = 0
        self.throttle_ms = 0

    @property
    def is_in_use(self) -> bool:
        """True if a connection is open, or a request is in flight."""
        return self.opened > self.closed or self.in_flight > 0

    def as_dict(self, node: int | None) -> dict[str, Any]:
        """Returns the counts as `metrics` shows them."""
        return {
            "node": node,
            "open": self.opened - self.closed,
            "opened": self.opened,
            "closed": self.closed,
            "lost": self.lost,
            "failed": self.failed,
            "in_flight": self.in_flight,
            "throttled": self.throttled,
            "throttle_ms": self.throttle_ms,
        }


class BatchCounts:
    """Counts the batches of producers, and the outcomes of their records."""

    __slots__ = ("acknowledged", "bytes", "failed", "records")

    def __init__(self) -> None:
        self.records = Histogram(BATCH_RECORDS)
        self.bytes = Histogram(BATCH_BYTES)
        self.acknowledged = 0
        self.failed = 0


class GroupCounts:
    """Counts the events of the members of one group in this client.

    `late` counts how often a consumer exceeded `max_poll_interval_ms`.
    """

    __slots__ = ("heartbeats", "joins", "late", "lost_partitions", "rebalances")

    def __init__(self) -> None:
        self.joins = 0
        self.rebalances = 0
        self.heartbeats = 0
        self.lost_partitions = 0
        self.late = 0

    def as_dict(self) -> dict[str, int]:
        """Returns the counts as `metrics` shows them."""
        return {name: getattr(self, name) for name in sorted(self.__slots__)}


class ShareCounts:
    """Counts the fetches and the acknowledgements of the share consumers of one group.

    `acquired` counts offsets, `records` the records that were decoded from them, and `redelivered`
    acquired offsets that a member had before. `accepted`, `released`, `rejected`, `renewed` and
    `gaps` count the acknowledgements that a broker has stored, `refused` all that have failed.
    """

    __slots__ = (
        "accepted",
        "acquired",
        "bytes",
        "fetches",
        "gaps",
        "records",
        "redelivered",
        "refused",
        "rejected",
        "released",
        "renewed",
    )

    def __init__(self) -> None:
        self.fetches = 0
        self.bytes = 0
        self.acquired = 0
        self.redelivered = 0
        self.records = 0
        self.gaps = 0
        self.accepted = 0
        self.released = 0
        self.rejected = 0
        self.renewed = 0
        self.refused = 0

    def confirmed(self, states: bytes) -> None:
        """Counts acknowledgements that a broker has stored: one byte for each, its type."""
        self.gaps += states.count(0)
        self.accepted += states.count(1)
        self.released += states.count(2)
        self.rejected += states.count(3)
        self.renewed += states.count(4)

    def failed(self, states: bytes) -> None:
        """Counts acknowledgements that have failed: one byte for each, its type."""
        self.refused += sum(map(states.count, range(5)))

    def as_dict(self) -> dict[str, int]:
        """Returns the counts as `metrics` shows them."""
        return {name: getattr(self, name) for name in sorted(self.__slots__)}


class ConsumerRun(Protocol):
    """A call of `GroupConsumer.run`."""

    @property
    def records_in_flight(self) -> int:
        """The number of records that handlers are processing."""
        ...

    @property
    def counts(self) -> dict[str, int]:
        """The counts of `RunSummary` so far, by name."""
        ...


class RunCounts:
    """Counts the results of the `GroupConsumer.run` calls of one group in this client."""

    __slots__ = ("_ended", "_live")

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        self._live: list[ConsumerRun] = []

    @contextmanager
    def during(self, run: ConsumerRun) -> Iterator[None]:
        """Includes the counts of the call `run` in `as_dict`, during the block and after it."""
        self._live.append(run)
        try:
            yield
        finally:
            self._live.remove(run)
            self._ended.update(run.counts)

    def as_dict(self) -> dict[str, int]:
        """Returns the counts as `metrics` shows them."""
        found = Counter(self._ended)
        for run in self._live:
            found.update(run.counts)
        return dict(sorted(found.items())) | {
            "in_flight": sum(run.records_in_flight for run in self._live)
        }
