"""`RecordAppender`: appends records to the accumulator, at once if no earlier call waits.

Otherwise the call joins a queue. Calls for one topic append in the order of the calls, even if they
wait for metadata or memory. A waiting call has a ticket until it has appended its last record. The
accumulator and the sender report the outcome of the records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from itertools import islice
from typing import Any, Final, TypeVar

from ...records import GrowingBatch
from ...wire.errors import ConfigurationError, EncodeError, KprotoError, RequestTimeoutError
from ..metadata.cluster_view import ClusterView
from ..release import MAGIC_OF_BATCHES
from .accumulator import RecordAccumulator
from .acks import Acks
from .append_queues import AppendQueues, AppendTicket
from .batch import ProducerBatch
from .errors import DeliveryError
from .old_brokers import unsupported_headers_error
from .partitioner import make_partitioner
from .record_validation import (
    ProducerRecord,
    as_record,
    checked_bytes,
    checked_headers,
    checked_timestamp,
)
from .sender import Sender
from .topic_appender import AppendOutcome, AppendTiming, TopicAppender, append_to_open_batches

__all__ = ["RecordAppender"]

T = TypeVar("T")

#: The time after which `append_many` yields to the event loop, in seconds.
YIELD_AFTER_S: Final = 0.01

#: `append_many` reads the clock once for this many records of a list, whose iteration takes almost
#: no time.
CLOCK_EVERY: Final = 32


class RecordAppender:
    """Appends the records of a producer's calls to its accumulator, and wakes its sender.

    `append_queues` has the waiting calls. Once `is_closed` is True, new calls are refused.
    """

    def __init__(
        self,
        view: ClusterView,
        accumulator: RecordAccumulator,
        sender: Sender,
        *,
        buffer_bytes: int,
    ) -> None:
        self.append_queues = AppendQueues()
        self.is_closed = False
        self._view = view
        self._now_ms = view.clock.now_ms
        self._accumulator = accumulator
        self._sender = sender
        self._buffer_bytes = buffer_bytes
        self._calls = view.observer.calls
        self._appenders: dict[str, TopicAppender] = {}

    def stop_lingering(self) -> None:
        """Makes all pending batches ready, and wakes the sender."""
        self._accumulator.stop_lingering()
        self._sender.wake()

    async def append(
        self,
        topic: str,
        record: ProducerRecord,
        *,
        is_single: bool = False,
        is_intercepted: bool = False,
    ) -> tuple[ProducerBatch, int]:
        """Appends a record to the accumulator; returns its batch and its position there.

        A record that `is_single` is sent at once if no batch precedes it. The call waits for
        metadata, for a named partition that is not known yet, and for memory. Raises DeliveryError
        if a wait fails, and EncodeError for an invalid record.
        """
        if self._calls.intercepts and not is_intercepted:
            return await self._append_intercepted(topic, record, is_single=is_single)
        appender = self._ready_appender(topic)
        found = None if appender is None else self._append_now(appender, record)
        if found is not None:
            batch, position = found
            if position == 0 and not (is_single and self._sender.send_immediately(batch)):
                self._sender.wake()
            return found
        ticket = self.append_queues.enqueue_call(topic)
        try:
            found = await _wrap_delivery_error(
                self._append_when_first(ticket, record), topic, lambda: [record]
            )
        finally:
            ticket.remove()
        self._sender.wake()
        return found

    async def _append_intercepted(
        self, topic: str, record: ProducerRecord, *, is_single: bool
    ) -> tuple[ProducerBatch, int]:
        """Appends the record that the user's hook returns; reports a failure to the hooks."""
        changed = self._calls.on_send(topic, record)
        try:
            return await self.append(topic, changed, is_single=is_single, is_intercepted=True)
        except BaseException as error:
            self._calls.on_not_appended(topic, changed, error)
            raise

    async def append_encoded(
        self, topic: str, partition: int, content: GrowingBatch
    ) -> ProducerBatch:
        """Queues a batch whose records are already encoded; waits as `append` does.

        Raises ConfigurationError if a hook needs each record or if the brokers accept message sets
        only, EncodeError for a partition that the topic does not have, and RequestTimeoutError.
        """
        if self._calls.intercepts:
            raise ConfigurationError(
                "a hook of this client sees each record that is sent, and a batch that is encoded "
                "already has none to show: send its records, or leave out Hooks.on_send"
            )
        appender = self._ready_appender(topic)
        if appender is None or partition not in appender.info.partitions:
            ticket = self.append_queues.enqueue_call(topic)
            try:
                appender = await self._wait_until_ready(ticket, partition)
            finally:
                ticket.remove()
        if partition not in appender.info.partitions:
            raise EncodeError(f"topic {topic!r} has no partition {partition!r}")
        if not self._accumulator.supports_headers:
            raise ConfigurationError(
                "brokers before Kafka 0.11 take message sets alone: send the records one by one"
            )
        batch = self._accumulator.add_encoded(topic, partition, content)
        self._sender.wake()
        return batch

    async def append_many(
        self, topic: str, values: Iterable[bytes | ProducerRecord | None], acks: Acks
    ) -> None:
        """Appends records as `append` does, and adds their positions to `acks`.

        From its first wait on, the call has a ticket until its end.
        """
        appender = self._ready_appender(topic)
        ticket: AppendTicket | None = None
        record: ProducerRecord | None = None
        monotonic = self._view.clock.monotonic
        yields_at = monotonic() + YIELD_AFTER_S
        failed_batches = self._accumulator.failed_batches
        every = CLOCK_EVERY if type(values) in (list, tuple) else 1
        source = elements = iter(values)
        if self._calls.intercepts:
            elements, every = self._calls.on_send_each(topic, source), 1

        def unappended() -> list[ProducerRecord]:
            """Returns the records that were not appended: `record`, and the rest of a list."""
            others = islice(source, len(values)) if isinstance(values, Collection) else ()
            return [*(() if record is None else (record,)), *map(as_record, others)]

        try:
            if appender is None:
                ticket = self.append_queues.enqueue_call(topic)
                appender = await _wrap_delivery_error(
                    self._wait_until_ready(ticket), topic, unappended
                )
            while True:
                timing = AppendTiming(self._now_ms, monotonic, yields_at, every)
                outcome: Any = append_to_open_batches(
                    elements, appender, self._accumulator, self._buffer_bytes, timing, acks
                )
                if outcome is AppendOutcome.END:
                    return
                if not isinstance(outcome, AppendOutcome):
                    record = as_record(outcome)
                    try:
                        found = self._append_now(appender, record)
                        if found is None:
                            ticket = ticket or self.append_queues.enqueue_call(topic)
                            found = await _wrap_delivery_error(
                                self._append_when_first(ticket, record), topic, unappended
                            )
                            appender = self._appender_of(topic)
                    except EncodeError as error:
                        raise EncodeError(
                            f"element {len(acks)}, counted from 0: {error}; no more were taken"
                        ) from error
                    acks.add(*found)
                    record = None
                    self._sender.wake()
                    if self._accumulator.buffered > self._buffer_bytes:
                        outcome = AppendOutcome.FULL
                    elif monotonic() < yields_at:
                        continue
                ticket = ticket or self.append_queues.enqueue_call(topic)
                waiting = (
                    self._wait_until_half_empty
                    if outcome is AppendOutcome.FULL
                    else self._yield_to_loop
                )
                await _wrap_delivery_error(waiting(ticket), topic, unappended)
                yields_at = monotonic() + YIELD_AFTER_S
                if self._accumulator.failed_batches != failed_batches:
                    failed_batches = self._accumulator.failed_batches
                    for batch, _, cause in acks.failures():
                        raise DeliveryError(topic, batch.partition, unappended(), cause)
        except BaseException as error:
            if record is not None and self._calls.intercepts:
                self._calls.on_not_appended(topic, record, error)
            raise
        finally:
            if ticket is not None:
                ticket.remove()

    def _ready_appender(self, topic: str) -> TopicAppender | None:
        """Returns the appender of a topic; None if the call has to wait.

        Raises ConfigurationError once the producer is closed, and in another event loop.
        """
        if self.is_closed:
            raise ConfigurationError("the producer is closed; records can no longer be sent")
        if not isinstance(topic, str):
            raise EncodeError(f"{topic!r} is no name of a topic")
        if self._view.loop_guard.loop is not asyncio.get_running_loop():
            self._view.loop_guard.check()
        if (
            topic in self.append_queues.by_topic
            or self._accumulator.buffered > self._buffer_bytes
            or not self._view.has_current_metadata(topic)
        ):
            return None
        return self._appender_of(topic)

    def _appender_of(self, topic: str) -> TopicAppender:
        self._accumulator.supports_headers = self._view.message_magic >= MAGIC_OF_BATCHES
        info = self._view.cluster.topics[topic]
        known = self._appenders.get(topic)
        if known is None or known.info is not info:
            known = TopicAppender(info, make_partitioner(info, self._accumulator.sticky_moves))
            self._appenders[topic] = known
        return known

    async def _wait_until_ready(
        self, ticket: AppendTicket, partition: int | None = None
    ) -> TopicAppender:
        """Waits for metadata, for memory and for earlier calls; returns the appender of the topic.

        Raises RequestTimeoutError after `delivery_timeout_ms`.
        """
        view, topic = self._view, ticket.topic
        started_at = view.clock.monotonic()
        with ticket:
            if view.has_current_metadata(topic):
                info = view.cluster.topics[topic]
            else:
                # Connection errors are retried here, as they are retried for batches.
                info = await view.retrying(
                    lambda: view.topic(topic),
                    responses=False,
                    started_at=started_at,
                    limited_by="delivery_timeout_ms",
                )
            if isinstance(partition, int) and partition not in info.partitions:
                # The partition may have been added since the last metadata.
                await view.retrying(
                    lambda: view.refresh([topic]),
                    started_at=started_at,
                    limited_by="delivery_timeout_ms",
                )
            await self._wait_for_memory(ticket, started_at)
        # Newer metadata is not overwritten; if it lacks the topic, the batch fails with that error.
        view.cluster.topics.setdefault(topic, info)
        return self._appender_of(topic)

    async def _wait_for_memory(self, ticket: AppendTicket, started_at: float) -> None:
        limit_ms = self._view.settings.delivery_timeout_ms
        remaining_s = started_at + limit_ms / 1000 - self._view.clock.monotonic()
        is_first = False
        try:
            async with self._view.clock.timeout(max(0.0, remaining_s)):
                await ticket.wait_until_first()
                is_first = True
                await self._wait_until_below(self._buffer_bytes)
        except TimeoutError:
            why = (
                f"there was no room for it within {limit_ms} ms (delivery_timeout_ms, buffer_bytes)"
                if is_first
                else f"an earlier call had not appended all its records after {limit_ms} ms "
                "(delivery_timeout_ms)"
            )
            raise RequestTimeoutError(why) from None

    async def _wait_until_half_empty(self, ticket: AppendTicket) -> None:
        with ticket:
            await self._wait_until_below(self._buffer_bytes // 2)

    async def _yield_to_loop(self, ticket: AppendTicket) -> None:
        with ticket:
            await self._view.clock.sleep(0)

    async def _wait_until_below(self, size: int) -> None:
        """Waits until at most `size` bytes are buffered; no batch lingers meanwhile."""
        if self._accumulator.buffered > size:
            self.stop_lingering()
        while self._accumulator.buffered > size:
            self._sender.completed.clear()
            await self._sender.completed.wait()

    async def _append_when_first(
        self, ticket: AppendTicket, record: ProducerRecord
    ) -> tuple[ProducerBatch, int]:
        """Appends a record once all earlier calls have appended theirs.

        Raises EncodeError, and the errors of `_wait_until_ready`.
        """
        found = self._append_now(await self._wait_until_ready(ticket, record.partition), record)
        if found is None:
            raise EncodeError(f"topic {ticket.topic!r} has no partition {record.partition!r}")
        return found

    def _append_now(
        self, appender: TopicAppender, record: ProducerRecord
    ) -> tuple[ProducerBatch, int] | None:
        """Appends a record to the open batch of its partition; returns its batch and index.

        Returns None if the known metadata of the topic lacks the partition. Raises EncodeError for
        values that cannot be encoded, so that they fail no batch with records of other calls.
        """
        value, key, headers, timestamp, partition = record
        if partition is not None:
            if not isinstance(partition, int) or isinstance(partition, bool):
                raise EncodeError(f"partition {partition!r} of a record is no whole number")
            if partition not in appender.info.partitions:
                return None  # the headers were not read yet: they may be an iterator
        if value is not None and type(value) is not bytes:
            value = checked_bytes("value", value)
        if key is not None and type(key) is not bytes:
            key = checked_bytes("key", key)
        if headers:
            headers = checked_headers(headers)
            if not self._accumulator.supports_headers:
                raise unsupported_headers_error(appender.info.name, headers)
        timestamp = self._now_ms() if timestamp is None else checked_timestamp(timestamp)
        if partition is None:
            partition = appender.partition_of(key)
        return self._accumulator.add(appender.info.name, partition, key, value, headers, timestamp)


async def _wrap_delivery_error(
    waiting: Awaitable[T], topic: str, unappended: Callable[[], list[ProducerRecord]]
) -> T:
    """Returns the result of `waiting`; if it fails, raises DeliveryError with `unappended()`."""
    try:
        return await waiting
    except EncodeError:
        raise
    except KprotoError as cause:
        records = unappended()
        partition = records[0].partition if records else None
        raise DeliveryError(
            topic, -1 if partition is None else partition, records, cause
        ) from cause
