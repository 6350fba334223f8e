"""Observes one client: counts its events, calls its hooks, and writes its log lines.

The packages of the client call it once per request, batch or change of state, never once per
record. Only the hooks `on_send` and `on_ack` are called for each record. Counts are plain numbers;
`metrics` collects them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary, WeakSet

from ...messages.base import Message
from ...wire.counted import counted, were
from ...wire.errors import BrokerResponseError, KprotoError
from .calls import CompletedBatch, HookCalls
from .connection_watch import NO_WATCH, ConnectionWatch
from .counts import ApiCounts, BatchCounts, BrokerCounts, GroupCounts, RunCounts, ShareCounts
from .hooks import Hooks, RetryEvent
from .log_lines import RetryLog, format_target, is_enabled, log, logs_changes

__all__ = ["NullObserver", "Observer"]

#: Errors that are part of normal operation: the coordinator is still completing the previous
#: transaction.
_EXPECTED = frozenset({"CONCURRENT_TRANSACTIONS"})

#: Error codes by which a broker fences a producer.
_FENCED = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})


#: The most addresses with counts. Brokers in containers may get a new address at each start, and a
#: faulty broker may return ever new addresses: the counts of unused addresses must not fill the
#: memory of a client that runs for months.
MAX_ADDRESSES: Final = 1_000


class ObservedProducer(Protocol):
    """The incomplete records of a producer; `buffered` is their size in bytes."""

    buffered: int

    @property
    def incomplete_records(self) -> int:
        """The number of records that are neither acked nor failed."""
        ...


class PositionedConsumer(Protocol):
    """A consumer whose positions the observer reads."""

    @property
    def positions(self) -> dict[tuple[str, int], int]:
        """The offset of the next record to be polled, by partition."""
        ...


class RetriedAttempts(Protocol):
    """The consecutive failures of an operation, and the time of the next attempt, in seconds."""

    count: int
    not_before: float


class Observer:
    """The metrics, hooks and log of one client; `monotonic` returns its clock's time in seconds."""

    def __init__(self, hooks: Hooks | None, monotonic: Callable[[], float]) -> None:
        self.calls = HookCalls(hooks)
        self._monotonic = monotonic
        self._apis: dict[type[Message], ApiCounts] = {}
        self._brokers: dict[str, BrokerCounts] = {}
        self._batches = BatchCounts()
        self._retries: Counter[str] = Counter()
        self._refreshes = 0
        self._refreshed_at: float | None = None
        self._rebootstraps = 0
        self._producers: WeakSet[ObservedProducer] = WeakSet()
        self._consumers: WeakKeyDictionary[PositionedConsumer, dict[tuple[str, int], int]]
        self._consumers = WeakKeyDictionary()
        self._groups: dict[str, GroupCounts] = {}
        self._runs: dict[str, RunCounts] = {}
        self._share_groups: dict[str, ShareCounts] = {}
        self._retry_log = RetryLog()
        self._is_closed = False

    def close(self) -> None:
        """Stops reporting retries, because the client is closing."""
        self._is_closed = True

    # Connections and the cluster

    def connection(self, address: str) -> ConnectionWatch:
        """Returns the watch for a new connection to `address`, host:port."""
        broker = self._brokers.get(address)
        if broker is None:
            self._forget_addresses()
            broker = self._brokers[address] = BrokerCounts()
        return ConnectionWatch(address, broker, self._apis, self.calls, self._monotonic)

    def _forget_addresses(self) -> None:
        """Drops the counts of the oldest unused address, if there are `MAX_ADDRESSES` addresses."""
        if len(self._brokers) >= MAX_ADDRESSES:
            of_no_use = (
                address for address, broker in self._brokers.items() if not broker.is_in_use
            )
            oldest = next(of_no_use, None)
            if oldest is not None:
                del self._brokers[oldest]

    @property
    def logs_changes(self) -> bool:
        """True if changes of the cluster are logged."""
        return logs_changes()

    def refreshed(self) -> None:
        """Counts a Metadata response."""
        self._refreshes += 1
        self._refreshed_at = self._monotonic()

    def cluster_changed(self, lines: Iterable[str]) -> None:
        """Logs changes of the cluster."""
        for line in lines:
            log(logging.INFO, "%s", line)

    def cluster_id_changed(self, now: str | None, before: str) -> None:
        """Logs that metadata has another cluster id than before."""
        log(logging.WARNING, "the cluster has id %s, and had %s", now, before)

    def rebootstrapped(self, why: str, servers: str) -> None:
        """Logs and counts a rebootstrap, which drops the metadata."""
        self._rebootstraps += 1
        log(logging.WARNING, "%s: going back to the bootstrap servers %s", why, servers)

    def retried(
        self,
        what: str,
        error: Exception,
        attempts: RetriedAttempts,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        """Reports a retry; see `RetryEvent`."""
        if self._is_closed:
            return
        self._retries[what] += 1
        now = self._monotonic()
        wait_ms = max(0.0, 1000 * (attempts.not_before - now))
        if self.calls.on_retry is not None:
            event = RetryEvent(what, topic, partition, attempts.count, wait_ms, error)
            self.calls.on_retry(event)
        is_expected = isinstance(error, BrokerResponseError) and error.name in _EXPECTED
        if topic is not None and partition is not None and not is_expected:
            self._retry_log.begin(what, topic, partition, error, now)
        if is_enabled(logging.DEBUG):
            target = format_target(topic, partition)
            doing = f"{what} {target}" if target else what
            line = "%s: attempt %d failed, the next is in %.0f ms: %s"
            log(logging.DEBUG, line, doing, attempts.count, wait_ms, error)

    def recovered(self, what: str, topic: str, partition: int) -> None:
        """Reports that an operation succeeded after failures."""
        self._retry_log.end(what, topic, partition, self._monotonic())

    def failed_permanently(self, what: str, topic: str, partition: int) -> None:
        """Reports that an operation has failed, and is not retried any more."""
        self._retry_log.end(what, topic, partition, self._monotonic(), has_failed=True)

    # Producers

    def producer(self, producer: ObservedProducer) -> None:
        """Registers a producer by a weak reference."""
        self._producers.add(producer)

    def producer_id_assigned(self, producer_id: int, epoch: int) -> None:
        """Logs the producer id of a producer."""
        log(logging.INFO, "the producer has id %d, epoch %d", producer_id, epoch)

    def no_producer_ids(self, address: str) -> None:
        """Warns that a broker has no producer ids, so that retries may store a record twice."""
        log(
            logging.WARNING,
            "%s has no producer ids, because it is older than Kafka 0.11: retries may store a"
            " record twice",
            address,
        )

    def batch_sent(self, records: int, size: int) -> None:
        """Counts one attempt to send a batch; `size` is in bytes after compression."""
        self._batches.records.add(records)
        self._batches.bytes.add(size)

    def settled(self, batch: CompletedBatch, error: KprotoError | None) -> None:
        """Counts the outcome of a batch, and reports it to the hook `on_ack`.

        `error` is the first error of the records of the batch; None if all were acked.
        """
        if error is None:
            self._batches.acknowledged += batch.count
        else:
            self._failed(batch, error)
        self.calls.settled(batch)

    def _failed(self, batch: CompletedBatch, error: KprotoError) -> None:
        failed = [batch.failure(position) is not None for position in range(batch.count)]
        self._batches.failed += sum(failed)
        self._batches.acknowledged += len(failed) - sum(failed)
        self.failed_permanently("produce", batch.topic, batch.partition)
        target = format_target(batch.topic, batch.partition)
        if isinstance(error, BrokerResponseError) and error.name in _FENCED:
            log(logging.WARNING, "the producer was fenced at %s: %s", target, error)
        total = sum(failed)
        text = "%s for %s %s not stored: %s"
        log(logging.INFO, text, counted(total, "record"), target, were(total), error)

    # Consumers

    def consumer(self, consumer: PositionedConsumer, ends: dict[tuple[str, int], int]) -> None:
        """Registers a consumer by a weak reference.

        The consumer stores the log end of each partition in `ends`: the high watermark, or with
        `read_committed` the last stable offset.
        """
        self._consumers[consumer] = ends

    # Groups

    def group(self, group_id: str) -> GroupCounts:
        """Returns the counts of a group's members."""
        return self._groups.setdefault(group_id, GroupCounts())

    def runs(self, group_id: str) -> RunCounts:
        """Returns the counts of the `GroupConsumer.run` calls of a group."""
        return self._runs.setdefault(group_id, RunCounts())

    def share_group(self, group_id: str) -> ShareCounts:
        """Returns the counts of the share consumers of a group."""
        return self._share_groups.setdefault(group_id, ShareCounts())

    # Metrics

    def metrics(self, nodes: Mapping[str, int]) -> dict[str, Any]:
        """Returns the metrics of the client; `nodes` maps host:port to node ids."""
        age = None
        if self._refreshed_at is not None:
            age = round(1000 * (self._monotonic() - self._refreshed_at), 3)
        return {
            "requests": {
                api.name: api.as_dict()
                for api in sorted(self._apis.values(), key=lambda api: api.name)
            },
            "brokers": {
                address: counts.as_dict(nodes.get(address))
                for address, counts in self._brokers.items()
            },
            "retries": dict(self._retries),
            "metadata": {
                "refreshes": self._refreshes,
                "age_ms": age,
                "rebootstraps": self._rebootstraps,
            },
            "producers": {
                "buffered_bytes": sum(producer.buffered for producer in self._producers),
                "buffered_records": sum(
                    producer.incomplete_records for producer in self._producers
                ),
                "records_acknowledged": self._batches.acknowledged,
                "records_failed": self._batches.failed,
                "batch_records": self._batches.records.as_dict(),
                "batch_bytes": self._batches.bytes.as_dict(),
            },
            "consumers": {"lag": self._lag()},
            "groups": {group_id: its.as_dict() for group_id, its in self._groups.items()},
            "runs": {group_id: its.as_dict() for group_id, its in self._runs.items()},
            "share_groups": {
                group_id: its.as_dict() for group_id, its in self._share_groups.items()
            },
            "hooks": {"failures": self.calls.failures},
        }

    def _lag(self) -> dict[str, dict[str, int]]:
        """Returns the lag by topic and partition.

        If several consumers read a partition, returns the largest of their lags.
        """
        found: dict[str, dict[str, int]] = {}
        for consumer, ends in list(self._consumers.items()):
            positions = consumer.positions
            for (topic, partition), end in sorted(ends.items()):
                if (topic, partition) in positions:
                    lag = max(0, end - positions[topic, partition])
                    by_partition = found.setdefault(topic, {})
                    name = str(partition)
                    by_partition[name] = max(lag, by_partition.get(name, 0))
        return found


class NullObserver(Observer):
    """Ignores connections, requests, batches and retries.

    It is used to measure the cost of counting.
    """

    def connection(self, address: str) -> ConnectionWatch:
        return NO_WATCH

    def refreshed(self) -> None:
        pass

    def retried(
        self,
        what: str,
        error: Exception,
        attempts: RetriedAttempts,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        pass

    def recovered(self, what: str, topic: str, partition: int) -> None:
        pass

    def failed_permanently(self, what: str, topic: str, partition: int) -> None:
        pass

    def batch_sent(self, records: int, size: int) -> None:
        pass

    def settled(self, batch: CompletedBatch, error: KprotoError | None) -> None:
        pass
