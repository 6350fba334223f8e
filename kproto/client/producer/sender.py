"""Moves batches from the accumulator to the brokers and waits: all that is ready for one together.

Looks at the accumulator's plan when something has changed or is due, and starts what the plan says;
each request under way is a task of its own. Nothing runs while there is nothing to send.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from ...clock import Timer
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.produce_request import ProduceRequest
from ...protocol.error_codes import raise_for_code
from ...records import encode_batch
from ...wire.errors import KprotoError, ProtocolError
from ...wire.uuid import ZERO_UUID
from ..cluster.metadata import why_unled
from ..cluster.view import ClusterView
from .accumulator import Accumulator, PartitionQueue
from .batch import Batch, Identity
from .producer_record import CompressionName
from .requests import (
    highest_produce_version,
    produce_error,
    produce_request,
    produced_partitions,
)

__all__ = ["Sender"]

_NEVER: Final = float("inf")


class Sender:
    """Delivers what the accumulator holds. `settled` is set whenever batches have been settled."""

    def __init__(
        self,
        view: ClusterView,
        accumulator: Accumulator,
        *,
        compression: CompressionName,
    ) -> None:
        self.settled = asyncio.Event()
        self._view = view
        self._accumulator = accumulator
        accumulator.wake = self.wake
        self._compression = compression
        self._is_due = False
        self._timer: Timer | None = None
        self._timer_at = _NEVER
        self._deadline = float("-inf")  # nothing is given up before it
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight: Counter[int] = Counter()
        self._looking = False
        self._identifying = False
        self._closed = False

    def wake(self) -> None:
        """Look at the accumulator in the next turn of the loop.

        Records that are given in this turn join the batch that is already open.
        """
        if not self._is_due and not self._closed:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._look)

    async def close(self) -> None:
        """Give up what is left, and wait until no task is."""
        self._closed = True
        self._stop_timer()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._accumulator.abandon(_given_up(asyncio.CancelledError()))
            self.settled.set()

    def _look(self) -> None:
        """Start what is due, and have the clock call again when more is."""
        self._is_due = False
        if self._closed:
            return
        try:
            self._look_again_at(self._start_what_is_due())
        except Exception as fault:  # nobody may wait for ever for what a fault left behind
            self._accumulator.abandon(_given_up(fault))
            raise
        finally:
            self.settled.set()

    def _look_again_at(self, moment: float) -> None:
        """Wake at `moment`. A timer that is due before it stays: it wakes once more, no more."""
        if moment == _NEVER or (self._timer is not None and self._timer_at <= moment):
            return
        self._stop_timer()
        clock = self._view.clock
        self._timer_at = moment
        self._timer = clock.call_later(max(0.0, moment - clock.monotonic()), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.wake()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_what_is_due(self) -> float:
        """Start requests; returns when to look again."""
        if not self._accumulator.busy:
            return _NEVER
        now = self._view.clock.monotonic()
        if now >= self._deadline:
            self._accumulator.expire(now)
        plan = self._accumulator.plan(now, self._view.led_by, self._in_flight.__getitem__)
        self._deadline = plan.deadline
        if plan.wants_identity and not self._identifying:
            self._identifying = True
            self._start(self._identify())
        if plan.unled and not self._looking:
            self._looking = True
            self._start(self._look_for_leaders(plan.unled))
        for node, queues in plan.requests.items():
            self._in_flight[node] += 1
            batches = [self._accumulator.take(queue, node) for queue in self._fitting(queues)]
            self._start(self._produce(node, batches))
        return min(plan.next_at, plan.deadline, self._accumulator.next_at(plan.requests.values()))

    def _fitting(self, queues: Sequence[PartitionQueue]) -> Sequence[PartitionQueue]:
        """As many as a request may hold, and one at least; the others go with the next."""
        room = self._view.settings.max_request_bytes
        for count, queue in enumerate(queues):
            room -= queue.waiting[0].size
            if room < 0 and count:
                return queues[:count]
        return queues

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.wake()

    # What a plan asks for

    async def _look_for_leaders(self, queues: Sequence[PartitionQueue]) -> None:
        """Ask for metadata; a queue that nobody leads then waits before it is asked for again."""
        view = self._view
        try:
            found = await view.refresh({queue.topic for queue in queues})
            for queue in queues:
                if view.led_by(queue.topic, queue.partition, queue.suspect_since) is None:
                    self._failed(queue, why_unled(found, queue.topic, queue.partition))
        except KprotoError as error:
            for queue in queues:
                self._failed(queue, error)
        finally:
            self._looking = False

    async def _identify(self) -> None:
        """Ask for a producer id."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        try:
            connection = await self._view.connection_for(request)
            version = connection.version_of(InitProducerIdRequest)
            answer = await connection.request(request, version=version)
            raise_for_code(answer.error_code, "asking for a producer id")
        except KprotoError as error:
            for queue in list(self._accumulator.busy.values()):
                if queue.waiting and queue.wants_identity:
                    self._failed(queue, error)
        else:
            self._accumulator.identity = Identity(answer.producer_id, answer.producer_epoch)
        finally:
            self._identifying = False

    def _failed(self, queue: PartitionQueue, error: KprotoError) -> None:
        self._accumulator.failed(queue, error, self._view.clock.monotonic())

    async def _produce(self, node: int, batches: list[Batch]) -> None:
        """Send batches once, and tell the accumulator what has become of each."""
        left = {(batch.topic, batch.partition): batch for batch in batches}
        try:
            for place, batch in list(left.items()):
                try:
                    self._encode(batch)
                except KprotoError as error:
                    self._came_back(left.pop(place), error)
            if left:
                await self._exchange(node, left)
        except BaseException as error:
            cause = error if isinstance(error, KprotoError) else _given_up(error)
            for batch in left.values():
                self._came_back(batch, cause)
            if cause is not error:
                raise
        finally:
            self._in_flight[node] -= 1

    def _came_back(self, batch: Batch, error: KprotoError) -> None:
        self._accumulator.came_back(batch, error, self._view.clock.monotonic())

    def _encode(self, batch: Batch) -> None:
        """Make the bytes of a batch; they stay the same through every attempt."""
        if batch.data is None:
            batch.data = encode_batch(
                batch.records,
                compression=self._compression,
                producer_id=batch.identity.producer_id,
                producer_epoch=batch.identity.producer_epoch,
                base_sequence=batch.sequence,
            )

    async def _exchange(self, node: int, left: dict[tuple[str, int], Batch]) -> None:
        view = self._view
        topics = view.cluster.topics
        ids = {name: topics[name].topic_id if name in topics else ZERO_UUID for name, _ in left}
        connection = await view.connection_to(node)
        version = connection.version_of(ProduceRequest, highest_produce_version(ids.values()))
        # The broker gives up first, and says so.
        timeout_ms = view.settings.request_timeout_ms * 3 // 4
        request = produce_request(list(left.values()), ids, timeout_ms)
        response = await connection.request(request, version=version)
        for place, answer in produced_partitions(response, ids).items():
            batch = left.pop(place, None)
            if batch is None:
                continue
            error = produce_error(answer, batch)
            if error is None:
                batch.base_offset = answer.base_offset
                batch.log_append_time = answer.log_append_time_ms
                self._accumulator.stored(batch)
            else:
                self._came_back(batch, error)
        if left:
            raise ProtocolError(
                f"{connection.address}: the response to a Produce lacks "
                + ", ".join(f"{topic}[{partition}]" for topic, partition in left)
            )


def _given_up(fault: BaseException) -> KprotoError:
    """What is told of records that no broker was asked to store, or nobody waited for."""
    if isinstance(fault, asyncio.CancelledError):
        return KprotoError("the producer was closed before that")
    return KprotoError(f"the producer failed before that, by a fault of its own: {fault!r}")
