"""`SendSchedule`: when the next batch of each partition is due. `SendPlan`: the next requests.

Does no I/O.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final, NamedTuple

from ..metadata.cluster import TopicPartition
from .partition_queue import PartitionQueue

__all__ = ["SendPlan", "SendSchedule"]

_NEVER: Final = float("inf")


class SendPlan(NamedTuple):
    """The next requests: `requests` maps each node to the queues whose next batches are sent to it.

    `unknown_leaders` are queues without a known leader. `needs_producer_id` is True if
    InitProducerId must be sent. The next plan is due at `next_at`, and the oldest batch expires at
    `deadline`. Both times are in seconds of the clock. `new_partitions` must be added to the
    transaction.
    """

    requests: dict[int, list[PartitionQueue]]
    unknown_leaders: list[PartitionQueue]
    needs_producer_id: bool
    next_at: float
    deadline: float
    new_partitions: list[TopicPartition]


class SendSchedule:
    """Tracks the queues whose next batch may be due.

    These are the queues that have changed since the last plan, the queues that were due in the last
    plan, and the queues with a timer that is due.
    """

    def __init__(self) -> None:
        self._candidates: dict[TopicPartition, PartitionQueue] = {}
        self._timers: list[tuple[float, int, PartitionQueue]] = []
        self._timer_numbers = count()

    def add(self, queue: PartitionQueue) -> None:
        """Makes the next plan look at a queue that has changed."""
        self._candidates[queue.tp] = queue

    def add_all(self, queues: Mapping[TopicPartition, PartitionQueue]) -> None:
        """Makes the next plan look at all of these queues."""
        self._candidates.update(queues)

    def remove(self, queue: PartitionQueue) -> None:
        """Removes an empty queue; has no effect if the queue is not a candidate."""
        self._candidates.pop(queue.tp, None)

    def clear(self) -> None:
        """Removes all queues."""
        self._candidates.clear()

    def due(self, now: float, max_in_flight: int) -> Iterator[PartitionQueue]:
        """Yields the queues that may send a batch at `now`, in seconds of the clock.

        Sets timers for the other queues. `max_in_flight` limits the batches in flight of a
        partition.
        """
        self._add_due_timers(now)
        for queue in [*self._candidates.values()]:
            at = queue.next_at(max_in_flight)
            if at > now:
                del self._candidates[queue.tp]
                self._set_timer(queue, at)
            else:
                yield queue

    @property
    def next_timer(self) -> float:
        """The time of the next timer in seconds of the clock; infinity without one."""
        return self._timers[0][0] if self._timers else _NEVER

    def _set_timer(self, queue: PartitionQueue, at: float) -> None:
        """Makes the first plan after `at` look at a queue; has no effect if `at` is infinity."""
        if at < queue.planned_at:
            queue.planned_at = at
            heapq.heappush(self._timers, (at, next(self._timer_numbers), queue))

    def _add_due_timers(self, now: float) -> None:
        """Adds to the candidates the queues whose timers are due."""
        while self._timers and self._timers[0][0] <= now:
            _, _, queue = heapq.heappop(self._timers)
            queue.planned_at = _NEVER
            if not queue.is_empty:
                self._candidates[queue.tp] = queue
