"""`Sender`: sends the batches that the accumulator plans, in one request per broker.

The sender runs the plan when a record or a response arrives, or when a batch is due.
`send_immediately` sends the batch of a single record without a plan. Tasks run only for requests
that must wait, for example for a connection or for a free slot on it, and for metadata and producer
ids. So no task runs while there is nothing to send. If a request needs no task, its response is
processed in the iteration of the event loop in which it arrives.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from ...clock import Timer
from ...messages.base import Response
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.produce_request import ProduceRequest
from ...messages.produce_response import PartitionProduceResponse, ProduceResponse
from ...protocol.error_codes import raise_for_code
from ...tasks import start_task
from ...wire.errors import KprotoError, ProtocolError, RequestTimeoutError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition, no_leader_error
from ..metadata.cluster_view import ClusterView
from ..metadata.response_hints import brokers_in
from ..network.connection import BrokerConnection
from ..release import MAGIC_OF_BATCHES
from .accumulator import RecordAccumulator
from .acked_sends import AckedSends
from .batch import Outcome, ProducerBatch
from .partition_queue import PartitionQueue
from .producer_state import ProducerIdAndEpoch
from .request_builder import ProduceRequestBuilder
from .requests import (
    encode_batch,
    invalid_records,
    leader_hints,
    partition_responses,
    produce_error,
)
from .settings import ACKS_ALL, CompressionName
from .transactions.transaction_manager import TransactionManager
from .transactions.transaction_state import TransactionState
from .unacked_connections import UnackedConnections

__all__ = ["Sender"]

_NEVER: Final = float("inf")

#: Sends the batches of a request to a node, and removes from the mapping the batches that have a
#: result.
_Send: TypeAlias = Callable[[int, dict[TopicPartition, ProducerBatch]], Coroutine[Any, Any, None]]


class Sender:
    """Sends the batches of the accumulator.

    Sets the event `completed` when batches may have been acked, or may have failed. Calls
    `before_plan` before each plan. If `is_scheduled` is True, a plan runs in the next iteration of
    the event loop.
    """

    def __init__(
        self,
        view: ClusterView,
        accumulator: RecordAccumulator,
        *,
        compression: CompressionName,
        optional_idempotence: bool = False,
        acks: int = ACKS_ALL,
    ) -> None:
        self._transaction = accumulator.transaction
        self._optional_idempotence = optional_idempotence
        self.completed = asyncio.Event()
        self._view = view
        self._accumulator = accumulator
        self._compression = compression
        self._acks = acks
        self._requests = ProduceRequestBuilder(view, self._transaction, acks)
        self._unacked_connections = UnackedConnections()  # with acks=0
        self.is_scheduled = False
        self._timer: Timer | None = None
        self._timer_at = _NEVER
        self._next_expiry = float("-inf")  # no batch expires before it
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight: Counter[int] = Counter()
        self._in_send_tasks: Counter[int] = Counter()  # the part of `_in_flight` that tasks send
        self._is_refreshing = False
        self._is_initializing = False
        self._closed = False
        self.before_plan: Callable[[], None] = lambda: None
        self.owner: object = None  # the producer

    def wake(self) -> None:
        """Sends the batches that are due, in the next iteration of the event loop.

        So records that are appended in the present iteration can still join the open batches.
        """
        if not self.is_scheduled and not self._closed:
            self.is_scheduled = True
            asyncio.get_running_loop().call_soon(self._run_once)

    async def close(self) -> None:
        """Fails all incomplete batches, and waits until no task runs."""
        self._closed = True
        self._stop_timer()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self.before_plan()
            self._accumulator.abort(_abort_error(asyncio.CancelledError()))
            self.completed.set()

    def _run_once(self) -> None:
        """Sends the batches that are due, and sets the timer for the next run.

        Fails all batches after an unexpected exception, and raises it.
        """
        self.is_scheduled = False
        if self._closed:
            return
        try:
            self.before_plan()
            self._schedule(self._send_ready())
        except Exception as fault:  # otherwise callers would wait forever for their records
            self._accumulator.abort(_abort_error(fault))
            raise
        finally:
            self.completed.set()

    def _schedule(self, at: float) -> None:
        """Sets the timer to `at`, unless the timer is already set to an earlier time.

        When the timer fires, the sender sends the due batches, and sets the timer for the next
        batches.
        """
        if at == _NEVER or (self._timer is not None and self._timer_at <= at):
            return
        self._stop_timer()
        clock = self._view.clock
        self._timer_at = at
        self._timer = clock.call_later(max(0.0, at - clock.monotonic()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.wake()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send_ready(self) -> float:
        """Sends the Produce requests that are due; returns the time of the next requests.

        The time is in seconds of the clock. Also fails expired batches, and starts to request a
        producer id or the unknown leaders.
        """
        if not self._accumulator.active_queues:
            return _NEVER
        now = self._view.clock.monotonic()
        if not self._acks:
            self._invalidate_lost_leaders(now)
        if now >= self._next_expiry:
            self._accumulator.expire_batches(now)
        if self._transaction is not None and self._transaction.drops_unsent:
            self._drop_unsent(self._transaction)
        plan = self._accumulator.plan(now, self._view.leader_since, self._in_flight.__getitem__)
        self._next_expiry = plan.deadline
        if plan.new_partitions and self._transaction is not None:
            self._transaction.add_partitions(plan.new_partitions)
        if plan.needs_producer_id and not self._is_initializing:
            self._is_initializing = True
            self._spawn(self._init_producer_id())
        if plan.unknown_leaders and not self._is_refreshing:
            self._is_refreshing = True
            self._spawn(self._refresh_leaders(plan.unknown_leaders))
        for node, queues in plan.requests.items():
            self._send(node, self._within_request_size(queues))
        return min(plan.next_at, plan.deadline, self._accumulator.next_at(plan.requests.values()))

    def _drop_unsent(self, transaction: TransactionManager) -> None:
        """Fails the batches that are not sent any more, because the transaction has failed."""
        if transaction.state is TransactionState.FATAL_ERROR:
            self._accumulator.fail_incomplete(transaction.failure())
        else:
            self._accumulator.fail_unsent(transaction.failure())

    @property
    def has_requests(self) -> bool:
        """True while a Produce request is in flight, or is about to be sent."""
        return any(self._in_flight.values())

    def _within_request_size(self, queues: Sequence[PartitionQueue]) -> Sequence[PartitionQueue]:
        """Returns the leading queues whose first batches fit into one request.

        The size of these batches is at most `max_request_bytes` in total. Returns at least one
        queue, even if its batch is larger.
        """
        remaining_bytes = self._view.settings.max_request_bytes
        for count, queue in enumerate(queues):
            remaining_bytes -= queue.pending[0].content.size_in_bytes
            if remaining_bytes < 0 and count:
                return queues[:count]
        return queues

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = start_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.wake()

    # Leaders and producer ids

    async def _refresh_leaders(self, queues: Sequence[PartitionQueue]) -> None:
        """Refreshes the metadata of the topics of `queues`.

        If a partition still has no leader after the refresh, its queue backs off. If the error is
        permanent, the batches of the queue fail.
        """
        view = self._view
        try:
            found = await view.refresh({queue.topic for queue in queues})
            for queue in queues:
                if (
                    view.leader_since(queue.topic, queue.partition, queue.leader_stale_since)
                    is None
                ):
                    self._fail_queue(queue, no_leader_error(found, queue.topic, queue.partition))
        except KprotoError as error:
            for queue in queues:
                self._fail_queue(queue, error)
        finally:
            self._is_refreshing = False

    async def _init_producer_id(self) -> None:
        """Requests a producer id.

        Disables optional idempotence if the brokers have no producer ids. If the request fails,
        applies the error to all pending batches that need a producer id.
        """
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        try:
            connection = await self._view.connection_for(request)
            if self._optional_idempotence and connection.message_magic < MAGIC_OF_BATCHES:
                self._view.observer.no_producer_ids(str(connection.address))
                self._accumulator.producer_state.disable_idempotence()
                return
            version = connection.version_of(InitProducerIdRequest)
            response = await connection.request(request, version=version)
            raise_for_code(response.error_code, "requesting a producer id")
        except KprotoError as error:
            for queue in list(self._accumulator.active_queues.values()):
                if queue.pending and queue.needs_producer_id:
                    self._fail_queue(queue, error)
        else:
            self._accumulator.producer_state.identity = ProducerIdAndEpoch(
                response.producer_id, response.producer_epoch
            )
            self._view.observer.producer_id_assigned(response.producer_id, response.producer_epoch)
        finally:
            self._is_initializing = False

    def _fail_queue(self, queue: PartitionQueue, error: KprotoError) -> None:
        self._accumulator.on_queue_failure(queue, error, self._view.clock.monotonic())

    # Produce requests

    def send_immediately(self, batch: ProducerBatch) -> bool:
        """Sends a batch at once, and returns True, if its leader has no request in flight.

        If the leader has a request in flight, returns False, and the next plan sends the batch.
        Also returns False if another batch of the partition precedes this batch, if the batch must
        linger, if its leader is unknown, if it needs a producer id that is missing, or if a plan is
        scheduled already.
        """
        if self.is_scheduled or self._closed:
            return False
        view, accumulator = self._view, self._accumulator
        queue = accumulator.queues[batch.topic, batch.partition]
        now = view.clock.monotonic()
        if not accumulator.can_send_now(batch, now):
            return False
        if not self._acks:
            self._invalidate_lost_leaders(now)
        node = view.leader_since(batch.topic, batch.partition, queue.leader_stale_since)
        if node is None or self._in_flight[node]:
            return False
        self._send(node, [queue])
        deadline = accumulator.deadline_of(batch)
        self._next_expiry = min(self._next_expiry, deadline)
        self._schedule(deadline)
        return True

    def _send(self, node: int, queues: Sequence[PartitionQueue]) -> None:
        """Sends the next batch of each queue, in one request."""
        self._in_flight[node] += 1
        batches: dict[TopicPartition, ProducerBatch] = {}
        try:
            for queue in queues:
                batches[queue.tp] = self._accumulator.take(queue, node)
            connection = self._view.open_connection(node)
            magic = self._view.message_magic if connection is None else connection.message_magic
            self._encode_batches(batches, magic)
            if not batches:
                self._on_request_done(node, batches, None)
            elif (
                connection is None
                # A request that is sent now could overtake one that a task has not written yet.
                or self._in_send_tasks[node]
                or not self._try_send(connection, node, batches)
            ):
                self._spawn_send(node, batches, self._produce)
            else:
                self._report_sent(batches)
                if not self._acks:
                    self._on_sent(connection, node, batches)
        except BaseException as fault:
            self._on_request_done(node, batches, fault)
            if not isinstance(fault, Exception):
                raise

    def _encode_batches(self, batches: dict[TopicPartition, ProducerBatch], magic: int) -> None:
        """Encodes batches in the format `magic`; fails and removes batches that have an error."""
        for tp, batch in list(batches.items()):
            try:
                encode_batch(
                    batch,
                    self._compression,
                    magic,
                    is_transactional=self._transaction is not None,
                )
            except KprotoError as error:
                self._on_failure(batches.pop(tp), error)

    def _report_sent(self, batches: dict[TopicPartition, ProducerBatch]) -> None:
        """Counts `batches`, which are sent now, in the metrics."""
        for batch in batches.values():
            self._view.observer.batch_sent(batch.count, len(batch.data or b""))

    def _try_send(
        self, connection: BrokerConnection, node: int, batches: dict[TopicPartition, ProducerBatch]
    ) -> bool:
        if not self._acks:
            request, _, version = self._requests.build(connection, batches)
            return connection.try_send_only(request, version=version)
        if len(batches) == 1:
            (batch,) = batches.values()
            single = self._requests.single(connection, batch)
            assert batch.data is not None, "it was built"
            return connection.try_send_encoded(
                ProduceRequest,
                single.encode(batch.data),
                version=single.version,
                callback=lambda outcome: self._on_response(
                    node, batches, connection, single.ids, outcome
                ),
            )
        request, ids, version = self._requests.build(connection, batches)
        return connection.try_send(
            request,
            version=version,
            callback=lambda outcome: self._on_response(node, batches, connection, ids, outcome),
        )

    def _on_response(
        self,
        node: int,
        batches: dict[TopicPartition, ProducerBatch],
        connection: BrokerConnection,
        ids: dict[str, Uuid],
        outcome: Response | KprotoError,
    ) -> None:
        """Processes the outcome of a request that `_try_send` sent."""
        if isinstance(outcome, KprotoError):
            # Raised here, it would refer to this producer, and the connection refers to the error.
            self._on_request_done(node, batches, outcome)
            return
        fault: BaseException | None = None
        try:
            self._handle_response(connection, batches, ids, outcome)
        except BaseException as error:
            fault = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._on_request_done(node, batches, fault)

    def _spawn_send(
        self, node: int, batches: dict[TopicPartition, ProducerBatch], send: _Send
    ) -> None:
        """Starts a task that calls `send`, the part of a request that must wait."""
        self._in_send_tasks[node] += 1
        self._spawn(self._until_request_done(node, batches, send))

    async def _until_request_done(
        self, node: int, batches: dict[TopicPartition, ProducerBatch], send: _Send
    ) -> None:
        """Awaits `send`, then marks the request as done.

        If `send` raises, the batches that have no result fail with its exception.
        """
        fault: BaseException | None = None
        try:
            await send(node, batches)
        except BaseException as error:
            fault = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._in_send_tasks[node] -= 1
            self._on_request_done(node, batches, fault)

    async def _produce(self, node: int, batches: dict[TopicPartition, ProducerBatch]) -> None:
        """Sends a Produce request to `node`; may wait for a connection or a slot."""
        connection = await self._view.connection_to(node)
        self._drop_expired(batches)
        self._encode_batches(batches, connection.message_magic)
        if not batches:
            return
        request, ids, version = self._requests.build(connection, batches)
        self._report_sent(batches)
        if self._acks:
            response = await connection.request(request, version=version)
            self._handle_response(connection, batches, ids, response)
        else:
            await connection.send_only(request, version=version)
            await self._until_sent(connection, node, batches)

    def _drop_expired(self, batches: dict[TopicPartition, ProducerBatch]) -> None:
        """Removes batches that expired during the wait for a connection."""
        for tp, batch in list(batches.items()):
            if batch.future.done():
                self._on_failure(batches.pop(tp), RequestTimeoutError("it was not sent in time"))

    # Produce requests without a response (acks=0)

    def _on_sent(
        self, connection: BrokerConnection, node: int, batches: dict[TopicPartition, ProducerBatch]
    ) -> None:
        """Completes batches that were sent with acks=0, if the socket has taken their bytes.

        If not, starts a task that waits until the socket has taken the bytes.
        """
        if connection.has_unsent_bytes:
            self._spawn_send(node, batches, partial(self._until_sent, connection))
        else:
            self._complete_sent(connection, node, batches)
            self._on_request_done(node, batches, None)

    async def _until_sent(
        self, connection: BrokerConnection, node: int, batches: dict[TopicPartition, ProducerBatch]
    ) -> None:
        """Completes batches when the socket has taken their bytes."""
        await connection.drain()
        self._complete_sent(connection, node, batches)

    def _complete_sent(
        self, connection: BrokerConnection, node: int, batches: dict[TopicPartition, ProducerBatch]
    ) -> None:
        """Completes batches without an offset, because no response follows."""
        self._unacked_connections.on_sent(node, connection)
        for batch in batches.values():
            self._accumulator.on_ack(batch)
        batches.clear()

    def _invalidate_lost_leaders(self, now: float) -> None:
        """Marks leaders as outdated if records were sent to them on a connection that is now lost.

        The metadata of their partitions is then requested again. Kafka's own client refreshes
        metadata after each disconnect, too.
        """
        lost = self._unacked_connections.take_lost()
        if not lost:
            return
        for queue in self._accumulator.queues.values():
            if queue.node in lost:
                queue.leader_stale_since = now

    def _handle_response(
        self,
        connection: BrokerConnection,
        batches: dict[TopicPartition, ProducerBatch],
        ids: dict[str, Uuid],
        response: Response,
    ) -> None:
        """Passes the result for each batch to the accumulator.

        Raises ProtocolError if the response lacks a batch.
        """
        assert isinstance(response, ProduceResponse)
        found = partition_responses(response, ids)
        has_hints = False
        acked: AckedSends[Outcome] | None = AckedSends() if len(batches) > 1 else None
        try:
            for tp, result in found.items():
                batch = batches.get(tp)
                if batch is None:
                    continue
                error = produce_error(result, batch)
                if error is not None and not has_hints:
                    self._view.update_leaders(leader_hints(found), brokers_in(response))
                    has_hints = True
                del batches[tp]
                if error is None:
                    offset, time_ms = result.base_offset, result.log_append_time_ms
                    self._accumulator.on_ack(batch, offset, time_ms, acked)
                else:
                    moved = self._has_leader_moved(tp, result)
                    invalid = invalid_records(result, batch)
                    self._on_failure(batch, error, moved=moved, invalid=invalid)
        finally:
            if acked is not None:
                acked.wake()
        if batches:
            raise ProtocolError(
                f"{connection.address}: the response to a Produce lacks "
                + ", ".join(f"{topic}[{partition}]" for topic, partition in batches)
            )

    def _on_request_done(
        self, node: int, batches: dict[TopicPartition, ProducerBatch], fault: BaseException | None
    ) -> None:
        """Handles the end of a Produce request.

        `batches` are the batches for which `_handle_response` has no result. If `fault` is not
        None, these batches fail with `fault`.
        """
        self._in_flight[node] -= 1
        if fault is not None:
            cause = fault if isinstance(fault, KprotoError) else _abort_error(fault)
            for batch in batches.values():
                self._on_failure(batch, cause)
        self.completed.set()
        if self._accumulator.active_queues:
            self.wake()
        if isinstance(fault, Exception) and not isinstance(fault, KprotoError):
            what = "an internal error of the producer ended a request"
            handler = asyncio.get_running_loop().call_exception_handler
            handler({"message": what, "exception": fault})

    def _has_leader_moved(self, tp: TopicPartition, result: PartitionProduceResponse) -> bool:
        """Returns True if the broker named a leader, and the leader in the metadata has changed.

        `result` is the broker's response for the partition. The leader has changed if it is not the
        broker to which the batch was sent.
        """
        cluster = self._view.cluster
        leader = cluster.leader(*tp)
        node = self._accumulator.queues[tp].node
        return result.current_leader.leader_id >= 0 and leader in cluster.brokers and leader != node

    def _on_failure(
        self,
        batch: ProducerBatch,
        error: KprotoError,
        *,
        moved: bool = False,
        invalid: Mapping[int, KprotoError] | None = None,
    ) -> None:
        now = self._view.clock.monotonic()
        self._accumulator.on_failure(batch, error, now, moved=moved, invalid=invalid)


def _abort_error(fault: BaseException) -> KprotoError:
    """Returns the error of the batches that the producer drops because of `fault`."""
    if isinstance(fault, asyncio.CancelledError):
        return KprotoError("the producer was closed before that")
    return KprotoError(f"the producer had an internal error before that: {fault!r}")
