"""Batches records by partition, and decides which batch is sent to which broker, and when.

The accumulator uses plain data, and no event loop: `plan` returns the requests that are due and the
time of the next plan; `on_failure` retries or fails a batch. These rules keep the order of the
records of a partition through every retry:

- With idempotence up to `max_in_flight` batches of a partition are in flight. A broker appends them
  only in the order of their sequences (KIP-98): if a batch has overtaken another batch, the broker
  returns OUT_OF_ORDER_SEQUENCE_NUMBER, and the producer retries the batch. The first batch under a
  producer id and epoch is sent alone until it is acked: a broker that does not know the id accepts
  any sequence.
- After a batch has failed, the other batches in flight must fail or be acked before any batch is
  retried; all failed batches are then retried in their original order.
- After a batch has failed for good, the broker may refuse all later sequences. Batches that may
  have been sent are retried under their old sequences until the broker refuses a batch. The refused
  batch and all later batches restart under the next epoch of the producer id (KIP-360). The broker
  refuses requests of the old epoch that arrive later.
- A batch gets a new sequence only if it is not stored and cannot be stored any more. If both the
  failed batch and the refused batch may still be in the network, the broker might append them one
  after the other. In this case the refused batch also fails, so that no record is stored twice.
- A batch that is too large for the broker is split, down to single records; the parts are sent one
  after the other, under the sequences of their records.
- Without idempotence at most one batch of a partition is in flight.
- With a transaction, a batch that fails for good makes the transaction fail. Batches that were
  never sent then fail, too. Batches that may have been sent are retried until they are acked or
  fail, so that no copy of a batch arrives after the end of the transaction.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ...protocol.error_codes import code_of, error_of_code
from ...records import GrowingBatch
from ...wire.errors import BrokerResponseError, KprotoError, RequestTimeoutError
from ..core.retry import Remedy, remedy_of
from ..metadata.cluster import TopicPartition
from ..observing.observer import Observer
from ..producer_record import Headers
from ..settings import ClientSettings
from .acked_sends import AckedSends
from .batch import Outcome, ProducerBatch
from .failed_deliveries import FailedDeliveries
from .partition_queue import PartitionQueue
from .producer_state import OutOfOrderAction, ProducerState, may_be_stored
from .send_schedule import SendPlan, SendSchedule
from .transactions.transaction_manager import TransactionManager

__all__ = ["RecordAccumulator"]

_OUT_OF_ORDER: Final = code_of("OUT_OF_ORDER_SEQUENCE_NUMBER")
_TOO_LARGE: Final = code_of("MESSAGE_TOO_LARGE")

#: The most records that `add_run` looks at: with small batches, looking at all records of a long
#: list again for each batch would take most of the time.
_MOST_RUN: Final = 1_024

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class RecordAccumulator:
    """Queues batches by partition.

    `buffered` is the size in bytes of all incomplete batches, which have neither been acknowledged
    nor failed. `failed_batches` is the number of batches that failed for good. `failed_deliveries`
    are the failures that the next `flush` raises. `collected_calls` is the number of calls of
    `send` that were collected before their records were appended. `transaction` is None for a
    producer without a transactional id.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        batch_bytes: int,
        linger_ms: int,
        max_in_flight: int,
        idempotent: bool,
        failed_deliveries: FailedDeliveries,
        monotonic: Callable[[], float],
        new_future: Callable[[], asyncio.Future[KprotoError | None]],
        observer: Observer | None = None,
        transaction: TransactionManager | None = None,
    ) -> None:
        self.settings = settings
        self._observer = observer or Observer(None, monotonic)
        self.batch_bytes = batch_bytes
        self.transaction = transaction
        self.producer_state = ProducerState(
            is_idempotent=idempotent, is_transactional=transaction is not None
        )
        self.supports_headers = True  # False for brokers before 0.11, whose message sets have none
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.active_queues: dict[TopicPartition, PartitionQueue] = {}
        self._schedule = SendSchedule()
        #: The deadlines of all incomplete batches, in ascending order; deadlines of some batches
        #: that have completed are also still here.
        self._deadlines: deque[tuple[float, asyncio.Future[KprotoError | None]]] = deque()
        self.incomplete: set[asyncio.Future[KprotoError | None]] = set()
        self.failed_deliveries = failed_deliveries
        self.buffered = 0
        self.failed_batches = 0
        self.collected_calls = 0
        #: The number of moves of a topic's keyless records to the next partition (KIP-480).
        self.sticky_moves: dict[str, int] = {}
        self._linger_s = linger_ms / 1000
        self._limit_s = settings.delivery_timeout_ms / 1000
        self._max_in_flight = max_in_flight
        self._monotonic = monotonic
        self._new_future = new_future

    @property
    def lingers(self) -> bool:
        """True if a batch that is not full waits for more records (`linger_ms`)."""
        return self._linger_s > 0

    @property
    def _partition_max_in_flight(self) -> int:
        """Returns the limit of batches in flight per partition; 1 without idempotence."""
        return self._max_in_flight if self.producer_state.is_idempotent else 1

    # Appending records

    def open_batch(self, topic: str, partition: int) -> ProducerBatch | None:
        """Returns the last pending batch of a partition if it was never sent; None otherwise.

        The batch accepts more records until it is full.
        """
        queue = self.queues.get((topic, partition))
        return None if queue is None else queue.open_batch

    def add(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
    ) -> tuple[ProducerBatch, int]:
        """Appends a record to the open batch of its partition, or to a new batch.

        Returns the batch, and the index of the record in it. Raises one of
        `records.new_record.ENCODE_FAILURES` for values that cannot be encoded.
        """
        queue = self._queue_of(topic, partition)
        batch = queue.open_batch
        if batch is not None:
            content = batch.content
            added = content.append(key, value, headers, timestamp, self.batch_bytes)
            if added:
                self.buffered += added
                return batch, content.count - 1
            self.set_ready(batch)  # the batch is full
            self._move_sticky_partition(topic)
        content = GrowingBatch()
        content.append(key, value, headers, timestamp, self.batch_bytes)
        return self._open_batch(queue, content), 0

    def add_run(
        self,
        topic: str,
        partition: int,
        keys: Sequence[bytes],
        values: Sequence[bytes],
        start: int,
        timestamp: int,
        headers: Sequence[Headers] | None = None,
    ) -> tuple[ProducerBatch, int, int]:
        """Appends record `start`, and as many of the next records as fit into its batch.

        Returns the batch, the index of record `start` in the batch, and the number of appended
        records, which is at most `_MOST_RUN`. Record `i` has the key `keys[i]`, the value
        `values[i]`, and the headers `headers[i]`, or none if `headers` is None; all have
        `timestamp` in ms.
        """
        end = start + _MOST_RUN
        queue = self._queue_of(topic, partition)
        batch = queue.open_batch
        content = GrowingBatch() if batch is None else batch.content
        position = content.count
        appended, grown = content.append_run(
            keys[start:end],
            values[start:end],
            timestamp,
            self.batch_bytes,
            None if headers is None else headers[start:end],
        )
        if not appended:
            its = () if headers is None else headers[start]
            batch, position = self.add(topic, partition, keys[start], values[start], its, timestamp)
            return batch, position, 1
        if batch is None:
            batch = self._open_batch(queue, content)
        else:
            self.buffered += grown
        return batch, position, appended

    def add_encoded(self, topic: str, partition: int, content: GrowingBatch) -> ProducerBatch:
        """Queues `content` as a batch of its own, after the other batches of the partition.

        No record is added to this batch later. This batch, and an open batch before it, are ready
        to be sent at once.
        """
        queue = self._queue_of(topic, partition)
        before = queue.open_batch
        if before is not None:
            self.set_ready(before)
        batch = self._open_batch(queue, content)
        batch.ready_at = _LONG_AGO
        batch.is_sealed = True
        return batch

    def _queue_of(self, topic: str, partition: int) -> PartitionQueue:
        """Returns the queue of a partition, which is new if the partition had no record before."""
        queue = self.queues.get((topic, partition))
        if queue is None:
            queue = PartitionQueue(topic, partition, self.settings)
            self.queues[queue.tp] = queue
        return queue

    def _open_batch(self, queue: PartitionQueue, content: GrowingBatch) -> ProducerBatch:
        now = self._monotonic()
        size = content.size_in_bytes
        ready_at = now + self._linger_s if size < self.batch_bytes else _LONG_AGO
        future = self._new_future()
        batch = ProducerBatch(queue.topic, queue.partition, future, content, now, ready_at)
        self.incomplete.add(future)
        self.buffered += size
        self._deadlines.append((self.deadline_of(batch), future))
        queue.pending.append(batch)
        self.active_queues[queue.tp] = queue
        self._schedule.add(queue)
        return batch

    def set_ready(self, batch: ProducerBatch) -> None:
        """Makes a pending batch ready to be sent, full or not."""
        batch.ready_at = _LONG_AGO
        queue = self.queues[batch.topic, batch.partition]
        self._schedule.add(queue)

    def _move_sticky_partition(self, topic: str) -> None:
        self.sticky_moves[topic] = self.sticky_moves.get(topic, 0) + 1

    def stop_lingering(self) -> None:
        """Makes all pending batches ready, full or not."""
        for queue in self.active_queues.values():
            for batch in queue.pending:
                batch.ready_at = _LONG_AGO
        self._schedule.add_all(self.active_queues)

    # Sending batches

    def plan(
        self,
        now: float,
        leader_since: Callable[[str, int, float], int | None],
        in_flight: Callable[[int], int],
    ) -> SendPlan:
        """Returns the requests that are due at `now`.

        `leader_since(topic, partition, time)` returns the leader from metadata newer than `time`,
        or None. `in_flight` returns the number of requests in flight to a node.
        """
        plan = SendPlan({}, [], False, _NEVER, _NEVER, [])
        needs_producer_id = False
        for queue in self._schedule.due(now, self._partition_max_in_flight):
            if self.producer_state.identity is None and queue.needs_producer_id:
                needs_producer_id = True
                continue
            if self._needs_partition(queue, now):
                plan.new_partitions.append(queue.tp)
                continue
            node = leader_since(queue.topic, queue.partition, queue.leader_stale_since)
            if node is None:
                plan.unknown_leaders.append(queue)
            elif queue.in_flight and queue.node != node:
                continue  # batches in flight to the old leader must complete first
            elif in_flight(node) < self._max_in_flight:
                plan.requests.setdefault(node, []).append(queue)
        return plan._replace(
            needs_producer_id=needs_producer_id,
            next_at=self._schedule.next_timer,
            deadline=self._next_deadline(),
        )

    def _next_deadline(self) -> float:
        """Returns the time at which the oldest incomplete batch expires; infinity without one."""
        while self._deadlines and self._deadlines[0][1].done():
            self._deadlines.popleft()
        return self._deadlines[0][0] if self._deadlines else _NEVER

    def next_at(self, groups: Iterable[Iterable[PartitionQueue]]) -> float:
        """Returns the earliest time at which any of the queues may send another batch."""
        max_in_flight = self._partition_max_in_flight
        return min(
            (queue.next_at(max_in_flight) for queues in groups for queue in queues), default=_NEVER
        )

    def can_send_now(self, batch: ProducerBatch, now: float) -> bool:
        """Returns True if no earlier batch of the partition is incomplete, and `batch` may be sent.

        `now` is in seconds of the clock.
        """
        queue = self.queues[batch.topic, batch.partition]
        return (
            not queue.in_flight
            and queue.pending[0] is batch
            and queue.next_at(1) <= now
            and (self.producer_state.identity is not None or not queue.needs_producer_id)
            and not self._needs_partition(queue, now)
        )

    def _needs_partition(self, queue: PartitionQueue, now: float) -> bool:
        """Returns True if the partition must be added to the transaction before the next batch."""
        return self.transaction is not None and self.transaction.needs_partition(queue.tp, now)

    def deadline_of(self, batch: ProducerBatch) -> float:
        """Returns the time at which a batch expires, in seconds of the clock."""
        return batch.created_at + self._limit_s

    def take(self, queue: PartitionQueue, node: int) -> ProducerBatch:
        """Puts the next batch of the queue in flight to `node`, and returns it."""
        assert self.producer_state.identity is not None or not queue.needs_producer_id
        self._move_sticky_partition(queue.topic)
        if self.transaction is not None:
            self.transaction.on_batch_sent()
        return queue.take(node, self.producer_state)

    def _first_deadline(self, queue: PartitionQueue) -> float:
        """Returns the time at which the oldest incomplete batch of a queue expires."""
        deadline = _NEVER
        for batch in (*queue.in_flight, *queue.to_retry):
            if not batch.future.done():
                deadline = min(deadline, self.deadline_of(batch))
        if queue.pending:
            deadline = min(deadline, self.deadline_of(queue.pending[0]))
        return deadline

    # Responses and failures

    def on_ack(
        self,
        batch: ProducerBatch,
        base_offset: int = -1,
        log_append_time: int = -1,
        acked: AckedSends[Outcome] | None = None,
    ) -> None:
        """Completes a batch that the broker has stored; `base_offset` is -1 if it is unknown.

        The calls of `send` that were collected are added to `acked`, whose `wake` wakes them; if
        `acked` is None, they are woken now.

        `log_append_time` is the log append time in the response; -1 if the topic uses create time.
        For a duplicate, however, the broker always responds with the largest timestamp of the
        stored batch. So only the responses to other batches show whether the topic uses log append
        time.
        """
        queue = self._take_in_flight(batch)
        if not batch.maybe_stored:
            queue.has_append_time = log_append_time >= 0
        elif log_append_time == batch.content.max_timestamp and not queue.has_append_time:
            log_append_time = -1
        batch.base_offset = base_offset
        batch.log_append_time = log_append_time
        queue.sequence.on_ack(batch.identity)
        if queue.attempts.count:
            self._observer.recovered("produce", queue.topic, queue.partition)
        queue.attempts.succeeded()
        self.complete(batch, None, acked)
        self._update_active_queues(queue)

    def on_failure(
        self,
        batch: ProducerBatch,
        error: KprotoError,
        now: float,
        *,
        moved: bool = False,
        invalid: Mapping[int, KprotoError] | None = None,
    ) -> None:
        """Retries or splits a batch that failed with `error`, or fails its records.

        Ignores a batch that has expired while it was in flight. If metadata already has the new
        leader of the partition (`moved`), the retry skips the backoff (KIP-951). If the broker
        refused the batch because of single records, `invalid` maps the positions of these records
        to their errors.
        """
        queue = self._take_in_flight(batch)
        if batch.future.done():  # it expired while it was in flight
            self._update_active_queues(queue)
            return
        batch.maybe_stored = batch.maybe_stored or may_be_stored(error)
        code = error.code if isinstance(error, BrokerResponseError) else 0
        action = OutOfOrderAction.APPLY_REMEDY
        if code == _OUT_OF_ORDER and self.producer_state.is_idempotent:
            action = queue.sequence.on_out_of_order(
                must_keep_sequence=batch.must_keep_sequence,
                maybe_stored=batch.maybe_stored,
                has_unacked_predecessor=queue.has_unacked_predecessor(batch),
            )
        if action is OutOfOrderAction.FAIL:
            self._fail_batch(queue, batch, error)
        elif action is OutOfOrderAction.FAIL_UNRESOLVED:
            why = "a batch before it failed, and copies of both may still be in flight"
            self._fail_batch(queue, batch, error_of_code(_OUT_OF_ORDER, why))
        elif action is OutOfOrderAction.RESEQUENCE:
            batch.clear_sequence()
            queue.to_retry.append(batch)
        elif action is OutOfOrderAction.RETRY:
            queue.to_retry.append(batch)
        elif code == _TOO_LARGE and batch.count > 1:
            queue.to_retry += batch.split(self._new_future)
        elif (
            invalid
            and self.transaction is None
            and remedy_of(error) is Remedy.FAIL
            and not batch.maybe_stored
        ):
            self._fail_invalid(queue, batch, error, invalid)
        elif remedy_of(error) is Remedy.FAIL:
            if invalid and self.transaction is not None:  # all fail, these with their own errors
                batch.invalid = dict(invalid)
            self._fail_batch(queue, batch, error)
        else:
            queue.to_retry.append(batch)
            self._record_failure(queue, error, now, moved=moved)
        self._update_active_queues(queue)

    def _fail_invalid(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        error: KprotoError,
        invalid: Mapping[int, KprotoError],
    ) -> None:
        """Fails the `invalid` records of a refused batch, each with its error (KIP-467).

        The other records of the batch are sent again. Call it only if no broker may have stored an
        earlier attempt of the batch: otherwise the other records could be stored twice.
        """
        if batch.count == 1:
            self._fail_batch(queue, batch, invalid[0])
            return
        if batch.has_sequence:
            self.producer_state.on_batch_failed(
                queue.sequence, batch.identity, error, maybe_stored=False
            )
        valid = batch.split_off(invalid, self._new_future)
        if valid is None:
            self.complete(batch, error)
        else:
            queue.to_retry.append(valid)

    def on_queue_failure(self, queue: PartitionQueue, error: KprotoError, now: float) -> None:
        """Processes an error that leaves a queue without a leader or a producer id.

        Starts a backoff of the queue, or fails its pending batches if the error is permanent.
        """
        if remedy_of(error) is Remedy.FAIL:
            while queue.pending:
                self._fail_batch(queue, queue.pending.pop(0), error)
        else:
            self._record_failure(queue, error, now)
        self._update_active_queues(queue)

    def expire_batches(self, now: float) -> None:
        """Fails batches older than `delivery_timeout_ms`, in flight or not."""
        for queue in list(self.active_queues.values()):
            if self._first_deadline(queue) > now:
                continue
            for batch in (*queue.in_flight, *queue.to_retry, *queue.pending):
                if self.deadline_of(batch) > now or batch.future.done():
                    continue
                if batch not in queue.in_flight:  # otherwise its response removes it
                    (queue.to_retry if batch in queue.to_retry else queue.pending).remove(batch)
                error = queue.attempts.error or RequestTimeoutError(
                    f"no broker acknowledged it within {self.settings.delivery_timeout_ms} ms "
                    "(delivery_timeout_ms)"
                )
                self._fail_batch(queue, batch, error)
            self._update_active_queues(queue)

    def fail_unsent(self, error: KprotoError) -> None:
        """Fails the batches that have no sequence yet: no broker can have stored them."""
        for queue in list(self.active_queues.values()):
            for batch in [each for each in queue.pending if not each.has_sequence]:
                queue.pending.remove(batch)
                self.complete(batch, error)
            self._update_active_queues(queue)

    def fail_incomplete(self, error: KprotoError) -> None:
        """Fails all incomplete batches with `error`.

        Unlike after `abort`, a failed batch still counts as in flight until its response arrives,
        and later batches of its partition wait for the response.
        """
        for queue in list(self.active_queues.values()):
            for batch in (*queue.in_flight, *queue.to_retry, *queue.pending):
                batch.maybe_stored = batch.maybe_stored or batch in queue.in_flight
                self.complete(batch, error)
            queue.to_retry.clear()
            queue.pending.clear()
            self._update_active_queues(queue)

    def abort(self, error: KprotoError) -> None:
        """Fails all incomplete batches with `error`."""
        for queue in list(self.active_queues.values()):
            for batch in (*queue.in_flight, *queue.to_retry, *queue.pending):
                batch.maybe_stored = batch.maybe_stored or batch in queue.in_flight
                self.complete(batch, error)
            queue.in_flight.clear()
            queue.to_retry.clear()
            queue.pending.clear()
        self.active_queues.clear()
        self._schedule.clear()

    def complete(
        self,
        batch: ProducerBatch,
        error: KprotoError | None,
        acked: AckedSends[Outcome] | None = None,
    ) -> None:
        """Completes a batch: it is acked if `error` is None, otherwise it has failed for good.

        Wakes its waiters, or adds them to `acked`, as `on_ack` does. Completes a split batch once
        all of its parts are complete.
        """
        if batch.future.done():
            return
        batch.future.set_result(error)
        batch.wake_waiters(acked)
        self.failed_batches += error is not None
        whole = batch.parent
        if whole is not None:
            batch.forget_records()  # the whole batch has them
            batch.data = None
            outcomes = [part.future.result() for part in whole.parts if part.future.done()]
            if len(outcomes) == len(whole.parts):
                for part in whole.parts:
                    part.parent = None
                outcomes += whole.invalid.values()
                error = next((each for each in outcomes if each is not None), None)
                self.complete(whole, error, acked)
            return
        self.incomplete.discard(batch.future)
        if not self.incomplete:
            self._deadlines.clear()
        self.buffered -= batch.content.size_in_bytes
        self._observer.settled(batch, error)
        if error is not None:
            if self.transaction is not None:
                self.transaction.on_records_failed(
                    error, self._monotonic(), has_sequence=batch.send_index >= 0
                )
            self.failed_deliveries.add(batch)
        elif not batch.deliveries:
            batch.forget_records()
        batch.data = None
        if batch.deliveries:
            batch.deliveries = []

    @property
    def incomplete_records(self) -> int:
        """The number of records that are neither acked nor failed."""
        return self.incomplete_by_topic().total()

    def incomplete_by_topic(self) -> Counter[str]:
        """Returns, by topic, the number of records that are neither acked nor failed."""
        counts = Counter[str]()
        for queue in self.active_queues.values():
            for batch in (*queue.in_flight, *queue.to_retry, *queue.pending):
                if not batch.future.done():
                    counts[queue.topic] += batch.count
        return counts

    def _take_in_flight(self, batch: ProducerBatch) -> PartitionQueue:
        queue = self.queues[batch.topic, batch.partition]
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        return queue

    def _record_failure(
        self, queue: PartitionQueue, error: KprotoError, now: float, *, moved: bool = False
    ) -> None:
        queue.attempts.failed(error, now)
        if moved:
            queue.attempts.skip_backoff(now)
        elif remedy_of(error) is Remedy.REFRESH:
            queue.leader_stale_since = now
        self._observer.retried("produce", error, queue.attempts, queue.topic, queue.partition)

    def _fail_batch(self, queue: PartitionQueue, batch: ProducerBatch, error: KprotoError) -> None:
        batch.maybe_stored = batch.maybe_stored or batch in queue.in_flight
        if batch.has_sequence:
            self.producer_state.on_batch_failed(
                queue.sequence,
                batch.identity,
                error,
                maybe_stored=batch.maybe_stored,
            )
        self.complete(batch, error)

    def _update_active_queues(self, queue: PartitionQueue) -> None:
        queue.requeue_retries()
        if queue.is_empty:
            self.active_queues.pop(queue.tp, None)
            self._schedule.remove(queue)
        else:
            self._schedule.add(queue)
