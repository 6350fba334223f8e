"""`RecordAppender`: appends records to the accumulator, at once or after a wait.

A call joins a queue if it lacks metadata or memory, or if an earlier call for the topic waits. So
calls for one topic append in the order of the calls. A waiting call has a ticket until it has
appended its last record, or has failed. The accumulator and the sender report the outcome of the
records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from itertools import islice
from typing import Any, Final, TypeVar

from ...records import GrowingBatch
from ...wire.errors import ConfigurationError, EncodeError, KprotoError, RequestTimeoutError
from ..metadata.cluster import TopicInfo
from ..metadata.cluster_view import ClusterView
from ..producer_record import EncodedRecords, EventRecord, ProducerRecord, as_record
from ..release import MAGIC_OF_BATCHES
from .accumulator import RecordAccumulator
from .acks import Acks
from .append_by_partition import RecordsByPartition
from .append_many_pass import (
    AppendEndReason,
    AppendPassClock,
    append_to_open_batches,
    pass_over,
)
from .append_queues import AppendQueues, AppendTicket
from .batch import ProducerBatch
from .concurrent_sends import MAX_COLLECTED_BYTES, ConcurrentSends
from .errors import DeliveryError
from .held_batches import HeldBatches
from .old_brokers import unsupported_headers_error
from .partitioner import Partitioner, PartitionerName, TopicPartitioner, make_partitioner
from .record_checks import check_without_headers, checked_bytes, checked_headers, checked_timestamp
from .sender import Sender

__all__ = ["RecordAppender"]

#: A list with fewer records than this is appended record by record: sorting the records by
#: partition would take longer.
MIN_CHUNKED: Final = 32

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
        partitioner: PartitionerName | Partitioner = "murmur2_random",
        allow_auto_create_topics: bool = False,
    ) -> None:
        #: Raises an error if no transaction accepts records; None without a transactional id.
        self.check_may_send: Callable[[], None] | None = None
        self.append_queues = AppendQueues()
        self.is_closed = False
        self._view = view
        self._now_ms = view.clock.now_ms
        self._accumulator = accumulator
        self._sender = sender
        self._buffer_bytes = buffer_bytes
        self._partitioner: PartitionerName | Partitioner = partitioner
        self._allow_auto_create_topics = allow_auto_create_topics
        self._calls = view.observer.calls
        self._partitioners: dict[str, TopicPartitioner] = {}
        #: By topic, the records that calls of `send` collect until the sender's next plan.
        self.concurrent_sends: dict[str, ConcurrentSends] = {}
        sender.before_plan = self.append_collected

    def append_collected(self) -> None:
        """Appends the records that calls of `send` have collected."""
        for topic in [*self.concurrent_sends]:
            self._append_collected_of(topic)

    def _append_collected_of(self, topic: str) -> None:
        sends = self.concurrent_sends.pop(topic, None)
        if sends is not None:
            sends.append(self._now_ms())

    def _collect_next(self, partitioner: TopicPartitioner) -> None:
        """Makes the next calls of `send` for a topic collect their records.

        Has no effect if no plan is scheduled, if the producer is transactional, if each record
        needs its own call of a hook or of the partitioner, or if the buffer is nearly full.
        """
        room = self._buffer_bytes - self._accumulator.buffered
        room -= len(self.concurrent_sends) * MAX_COLLECTED_BYTES
        if (
            not self._sender.is_scheduled
            or self._accumulator.transaction is not None
            or self._calls.intercepts
            or partitioner.is_per_record
            or room < MAX_COLLECTED_BYTES
        ):
            return
        loop = self._view.loop_guard.loop
        if loop is not None:
            self.concurrent_sends[partitioner.info.name] = ConcurrentSends(
                partitioner, self._accumulator, loop
            )

    def stop_lingering(self) -> None:
        """Makes all pending batches ready, and wakes the sender."""
        self.append_collected()
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
        """Appends a record to the accumulator; returns its batch, and its index in the batch.

        If `is_single` is True, `Sender.send_immediately` sends the record at once if possible.
        `is_intercepted` is True if `Hooks.on_send` has returned the record. The call waits for
        earlier calls for the topic, for metadata of the topic and of the record's partition, and
        for memory. Raises DeliveryError if a wait fails, EncodeError for an invalid record, and
        ConfigurationError once the producer is closed.
        """
        if self._calls.intercepts and not is_intercepted:
            return await self._append_intercepted(topic, record, is_single=is_single)
        partitioner = self._ready_partitioner(topic)
        if partitioner is not None:
            found = self._append_now(partitioner, record)
            if found is not None:
                batch, position = found
                if position == 0 and not (is_single and self._sender.send_immediately(batch)):
                    self._sender.wake()
                if is_single:
                    self._collect_next(partitioner)
                return found
        ticket = self.append_queues.enqueue_call(topic)
        try:
            found = await self._wrap_delivery_error(
                self._append_when_first(ticket, record), topic, lambda: [record]
            )
        finally:
            ticket.remove()
        self._sender.wake()
        return found

    async def _append_intercepted(
        self, topic: str, record: ProducerRecord, *, is_single: bool
    ) -> tuple[ProducerBatch, int]:
        """Appends the record that `Hooks.on_send` returns; reports a failure to `on_ack`."""
        changed = self._calls.on_send(topic, record)
        try:
            return await self.append(topic, changed, is_single=is_single, is_intercepted=True)
        except BaseException as error:
            self._calls.on_not_appended(topic, changed, error)
            raise

    async def append_encoded(
        self, topic: str, partition: int, records: EncodedRecords
    ) -> ProducerBatch:
        """Queues a batch whose records are already encoded; waits as `append` does.

        Raises ConfigurationError if a hook needs each record. Raises EncodeError for a batch
        without records, an invalid timestamp, a partition that the topic does not have, or headers
        that the brokers cannot store. Also raises the errors of the wait, such as
        RequestTimeoutError.
        """
        if not isinstance(records, EncodedRecords):
            raise EncodeError(f"a batch is EncodedRecords, not {type(records).__name__}")
        if records.count < 1 or not records.data:
            raise EncodeError("a batch needs at least one record")
        timestamp = self._now_ms() if records.timestamp is None else records.timestamp
        content = GrowingBatch.of_encoded(records.data, records.count, checked_timestamp(timestamp))
        if self._calls.intercepts:
            raise ConfigurationError(
                "a hook of this client needs each record that is sent, and this batch is encoded "
                "already: send its records, or leave out Hooks.on_send and Hooks.on_ack"
            )
        partitioner = self._ready_partitioner(topic)
        if partitioner is None or partition not in partitioner.info.partitions:
            ticket = self.append_queues.enqueue_call(topic)
            try:
                partitioner = await self._wait_until_ready(ticket, partition)
            except KprotoError as cause:
                self._on_not_appended(cause)
                raise
            finally:
                ticket.remove()
        if partition not in partitioner.info.partitions:
            raise EncodeError(f"topic {topic!r} has no partition {partition!r}")
        if not self._accumulator.supports_headers:
            check_without_headers(topic, content)
        batch = self._accumulator.add_encoded(topic, partition, content)
        self._sender.wake()
        return batch

    async def append_many(
        self, topic: str, values: Iterable[bytes | ProducerRecord | None], acks: Acks
    ) -> None:
        """Appends records as `append` does, and adds their batches and positions to `acks`.

        From its first wait until it ends, the call has a ticket in the queue of the topic. The
        `unsent` of an EncodeError has the invalid element; if `values` is a collection, it also has
        the elements after it.
        """
        first_index = len(acks)
        partitioner = self._ready_partitioner(topic)
        ticket: AppendTicket | None = None
        record: ProducerRecord | None = None
        monotonic = self._view.clock.monotonic
        yields_at = monotonic() + YIELD_AFTER_S
        failed_batches = self._accumulator.failed_batches
        every = CLOCK_EVERY if type(values) in (list, tuple) else 1
        source = elements = iter(values)
        if self._calls.intercepts:
            elements, every = self._calls.on_send_each(topic, source), 1
        held = HeldBatches(self._accumulator, is_active=every > 1)
        by_partition: RecordsByPartition | None = None
        if every > 1 and isinstance(values, Collection) and len(values) >= MIN_CHUNKED:
            by_partition = RecordsByPartition(source, self._accumulator, acks, held)
            elements = iter(())
        reads_elements = by_partition is None

        def unappended() -> list[ProducerRecord]:
            """Returns `record`, which was not appended, and the unread elements of `values`.

            If `values` is an iterator, returns only `record`.
            """
            others: Iterable[Any] = ()
            read: Iterable[ProducerRecord] = ()
            if by_partition is not None:
                read = by_partition.unappended()
                others = [*elements, *source]
            elif isinstance(values, Collection):
                others = islice(source, len(values))
            return [*(() if record is None else (record,)), *read, *map(as_record, others)]

        try:
            if partitioner is None:
                ticket = self.append_queues.enqueue_call(topic)
                partitioner = await self._wrap_delivery_error(
                    self._wait_until_ready(ticket), topic, unappended
                )
            while True:
                outcome: Any = None
                if by_partition is not None and not reads_elements:
                    outcome = self._append_by_partition(by_partition, partitioner, held, yields_at)
                    if outcome is AppendEndReason.ALL_APPENDED:
                        if by_partition.refused is None:
                            return
                        elements, by_partition.refused = pass_over(by_partition.refused), None
                        reads_elements = True
                if reads_elements:
                    timing = AppendPassClock(self._now_ms, monotonic, yields_at, every)
                    outcome = append_to_open_batches(
                        elements, partitioner, self._accumulator, self._buffer_bytes, timing, acks
                    )
                    if outcome is AppendEndReason.ALL_APPENDED:
                        if by_partition is None:
                            return
                        reads_elements = False
                        continue
                if not isinstance(outcome, AppendEndReason):
                    record = as_record(outcome)
                    try:
                        found = self._append_now(partitioner, record)
                        if found is None:
                            ticket = ticket or self.append_queues.enqueue_call(topic)
                            found = await self._wrap_delivery_error(
                                self._append_when_first(ticket, record), topic, unappended
                            )
                            partitioner = self._partitioner_of(topic)
                    except EncodeError as error:
                        refused = EncodeError(
                            f"element {len(acks)}, counted from 0: {error}; no later one is sent"
                        )
                        refused.unsent = (
                            [*values][len(acks) - first_index :]
                            if isinstance(values, Collection)
                            else [outcome]
                        )
                        raise refused from error
                    acks.add(*found)
                    record = None
                    if found[1] == 0:
                        held.add(found[0])
                    self._sender.wake()
                    if self._accumulator.buffered > self._buffer_bytes:
                        outcome = AppendEndReason.BUFFER_FULL
                    elif monotonic() < yields_at:
                        continue
                ticket = ticket or self.append_queues.enqueue_call(topic)
                waiting = (
                    self._wait_until_half_empty
                    if outcome is AppendEndReason.BUFFER_FULL
                    else self._yield_to_loop
                )
                await self._wrap_delivery_error(waiting(ticket), topic, unappended)
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
            if held.release():
                self._sender.wake()
            if ticket is not None:
                ticket.remove()

    def _append_by_partition(
        self,
        records: RecordsByPartition,
        partitioner: TopicPartitioner,
        held: HeldBatches,
        yields_at: float,
    ) -> AppendEndReason:
        """Reads and appends records until `yields_at`; returns the reason why it has ended.

        The reason is ALL_APPENDED if no more records can be read, or if a chunk was refused.
        """
        monotonic, now_ms = self._view.clock.monotonic, self._now_ms()
        reason = AppendEndReason.TIME_OVER
        while monotonic() < yields_at:
            if not records.is_appending:
                if records.refused is not None or records.is_at_end:
                    reason = AppendEndReason.ALL_APPENDED
                    break
                if records.read(partitioner):
                    records.begin()
            elif self._accumulator.buffered > self._buffer_bytes:
                reason = AppendEndReason.BUFFER_FULL
                break
            else:
                records.append_next(now_ms)
        held.release_if_large(self._buffer_bytes)
        self._sender.wake()
        return reason

    async def _wrap_delivery_error(
        self, waiting: Awaitable[T], topic: str, unappended: Callable[[], list[ProducerRecord]]
    ) -> T:
        """Returns the result of `waiting`; if it fails, raises DeliveryError.

        The error has the records that `unappended` returns. An EncodeError is raised unchanged.
        """
        try:
            return await waiting
        except EncodeError:
            raise
        except KprotoError as cause:
            self._on_not_appended(cause)
            records = unappended()
            partition = records[0].partition if records else None
            raise DeliveryError(
                topic, -1 if partition is None else partition, records, cause
            ) from cause

    def _on_not_appended(self, cause: KprotoError) -> None:
        """Makes the open transaction fail, because it lacks a record."""
        transaction = self._accumulator.transaction
        if transaction is not None:
            now = self._view.clock.monotonic()
            transaction.on_records_failed(cause, now, has_sequence=False)

    def check_accepts(self, topic: str) -> None:
        """Raises ConfigurationError if the producer is closed.

        Raises EncodeError for a topic that is no str, and the error of a transaction that accepts
        no records.
        """
        if self.is_closed:
            raise ConfigurationError("the producer is closed; records can no longer be sent")
        if self.check_may_send is not None:
            self.check_may_send()
        if not isinstance(topic, str):
            raise EncodeError(f"{topic!r} is no name of a topic")

    def _ready_partitioner(self, topic: str) -> TopicPartitioner | None:
        """Returns the partitioner of a topic; None if the call has to wait.

        Appends the records that earlier calls for the topic have collected. Raises
        ConfigurationError if the producer is closed, or if the running event loop is not that of
        the client. Raises EncodeError for a topic that is no str.
        """
        self.check_accepts(topic)
        if self._view.loop_guard.loop is not asyncio.get_running_loop():
            self._view.loop_guard.check()
        self._append_collected_of(topic)
        if (
            topic in self.append_queues.by_topic
            or self._accumulator.buffered > self._buffer_bytes
            or not self._view.has_current_metadata(topic)
        ):
            return None
        return self._partitioner_of(topic)

    def _partitioner_of(self, topic: str) -> TopicPartitioner:
        self._accumulator.supports_headers = self._view.message_magic >= MAGIC_OF_BATCHES
        info = self._view.cluster.topics[topic]
        known = self._partitioners.get(topic)
        if known is None or known.info is not info:
            known = make_partitioner(info, self._accumulator.sticky_moves, self._partitioner)
            self._partitioners[topic] = known
        return known

    async def _wait_until_ready(
        self, ticket: AppendTicket, partition: int | None = None
    ) -> TopicPartitioner:
        """Waits for metadata, for memory and for earlier calls; returns the topic's partitioner.

        Refreshes metadata that lacks `partition`. Raises KprotoError if a wait fails, or after
        `delivery_timeout_ms`.
        """
        view, topic = self._view, ticket.topic
        started_at = view.clock.monotonic()
        with ticket:
            info = await self.ensure_metadata(topic, started_at)
            if isinstance(partition, int) and partition not in info.partitions:
                # The partition may have been added since the last metadata.
                await view.retrying(
                    lambda: view.refresh([topic]),
                    started_at=started_at,
                    limited_by="delivery_timeout_ms",
                )
            await self._wait_for_memory(ticket, started_at)
        # Newer metadata is kept. If it lacks the topic, the record is appended all the same, and
        # its batch fails with the error of the topic.
        view.cluster.topics.setdefault(topic, info)
        return self._partitioner_of(topic)

    async def ensure_metadata(self, topic: str, started_at: float | None = None) -> TopicInfo:
        """Returns the metadata of a topic; requests the metadata if it is missing or too old.

        Raises the error of a topic that does not exist. Retries after other errors, and raises
        KprotoError once `delivery_timeout_ms` have passed since `started_at`, which is in seconds
        of the clock and by default now.
        """
        view = self._view
        if view.has_current_metadata(topic):
            return view.cluster.topics[topic]
        if self._allow_auto_create_topics:
            view.topic_creation.allow([topic])
        # Connection errors are retried here, as they are retried for batches.
        return await view.retrying(
            lambda: view.topic(topic),
            responses=False,
            started_at=view.clock.monotonic() if started_at is None else started_at,
            limited_by="delivery_timeout_ms",
        )

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
                f"the buffer was full for {limit_ms} ms (delivery_timeout_ms, buffer_bytes)"
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
        """Waits until at most `size` bytes are buffered.

        If more bytes are buffered, first makes the pending batches ready, so that they do not
        linger.
        """
        if self._accumulator.buffered > size:
            self.stop_lingering()
        while self._accumulator.buffered > size:
            self._sender.completed.clear()
            await self._sender.completed.wait()

    async def _append_when_first(
        self, ticket: AppendTicket, record: ProducerRecord
    ) -> tuple[ProducerBatch, int]:
        """Waits until all earlier calls have appended their records, then appends `record`.

        Raises EncodeError, and the errors of `_wait_until_ready`.
        """
        found = self._append_now(await self._wait_until_ready(ticket, record.partition), record)
        if found is None:
            raise EncodeError(f"topic {ticket.topic!r} has no partition {record.partition!r}")
        return found

    def _append_now(
        self, partitioner: TopicPartitioner, record: ProducerRecord
    ) -> tuple[ProducerBatch, int] | None:
        """Appends a record to the open batch of its partition, or to a new batch.

        Returns the batch, and the index of the record in it.

        Returns None if the known metadata of the topic lacks the partition. Raises EncodeError for
        values that cannot be encoded: in a batch they would fail records of other calls, too.
        """
        value, key, headers, timestamp, partition = record
        if partition is not None:
            if not isinstance(partition, int) or isinstance(partition, bool):
                raise EncodeError(f"partition {partition!r} of a record is no whole number")
            if partition not in partitioner.info.partitions:
                return None  # the headers were not read yet: they may be an iterator
        if value is not None and type(value) is not bytes:
            value = checked_bytes("value", value)
        if key is not None and type(key) is not bytes:
            key = checked_bytes("key", key)
        if headers:
            headers = checked_headers(headers)
            if not self._accumulator.supports_headers:
                if isinstance(record, EventRecord):
                    record = record.without_headers(self._view.message_magic)
                    return self._append_now(partitioner, record)
                raise unsupported_headers_error(partitioner.info.name, headers)
        timestamp = self._now_ms() if timestamp is None else checked_timestamp(timestamp)
        if partition is None:
            partition = partitioner.partition_of(key)
        return self._accumulator.add(
            partitioner.info.name, partition, key, value, headers, timestamp
        )
