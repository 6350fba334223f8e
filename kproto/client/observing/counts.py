"""What is counted, as plain numbers, and how `client.metrics()` shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from .histogram import BATCH_BYTES, BATCH_RECORDS, LATENCY_MS, Histogram

__all__ = ["ApiCounts", "BatchCounts", "BrokerCounts", "GroupCounts", "RunCounts"]


class ApiCounts:
    """Requests of one API."""

    __slots__ = ("bytes_in", "bytes_out", "errors", "latency", "name", "requests")

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        self.bytes_out = 0
        self.bytes_in = 0
        self.errors: Counter[str] = Counter()
        self.latency = Histogram(LATENCY_MS)

    def as_dict(self) -> dict[str, Any]:
        """As `metrics` shows it."""
        return {
            "requests": self.requests,
            "bytes_out": self.bytes_out,
            "bytes_in": self.bytes_in,
            "errors": dict(self.errors),
            "latency_ms": self.latency.as_dict(),
        }


class BrokerCounts:
    """Connections to one address, and the requests under way there."""

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
        """Whether a connection is open, or a request under way."""
        return self.opened > self.closed or self.in_flight > 0

    def as_dict(self, node: int | None) -> dict[str, Any]:
        """As `metrics` shows it."""
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
    """Batches that producers sent, and what became of their records."""

    __slots__ = ("acknowledged", "bytes", "failed", "records")

    def __init__(self) -> None:
        self.records = Histogram(BATCH_RECORDS)
        self.bytes = Histogram(BATCH_BYTES)
        self.acknowledged = 0
        self.failed = 0


class GroupCounts:
    """What the members of one group have done that this client has."""

    __slots__ = ("heartbeats", "joins", "late", "lost_partitions", "rebalances")

    def __init__(self) -> None:
        self.joins = 0
        self.rebalances = 0
        self.heartbeats = 0
        self.lost_partitions = 0
        self.late = 0

    def as_dict(self) -> dict[str, int]:
        """As `metrics` shows it."""
        return {name: getattr(self, name) for name in sorted(self.__slots__)}


class Running(Protocol):
    """A `run` of a consumer."""

    @property
    def in_hand(self) -> int:
        """How many records are in hand."""
        ...

    @property
    def counts(self) -> dict[str, int]:
        """What it has done so far."""
        ...


class RunCounts:
    """What the runs of one group have done that this client has."""

    __slots__ = ("_ended", "_live")

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        self._live: list[Running] = []

    @contextmanager
    def during(self, run: Running) -> Iterator[None]:
        """Count with it while it is under way, and what it has done from then on."""
        self._live.append(run)
        try:
            yield
        finally:
            self._live.remove(run)
            self._ended.update(run.counts)

    def as_dict(self) -> dict[str, int]:
        """As `metrics` shows it."""
        found = Counter(self._ended)
        for run in self._live:
            found.update(run.counts)
        return dict(sorted(found.items())) | {"in_hand": sum(run.in_hand for run in self._live)}
