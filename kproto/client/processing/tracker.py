"""Tracks which records may be processed now or retried later, and which offsets are complete.

Does no I/O: callers pass the time, in seconds of the client's clock. A record of a retry topic has
two due times, one by that clock and one in ms since 1970. The record is due at the earlier of the
two times, because the wall clock may be set back. Partitions are identified by their `state`: a
partition that is revoked and assigned again has another state, and the results of records that are
still processed for the first state are ignored.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Container, Iterator
from itertools import count
from typing import Final

from ...records import Record
from ..fetch.fetch_options import DEFAULT_FETCH_OPTIONS
from ..metadata.cluster import TopicPartition
from .ordered_shard import OrderedShard
from .settings import Order
from .shard import Shard
from .unordered_shard import OrderedBatchShard, UnorderedShard

__all__ = ["RecordTracker"]

_NEVER: Final = float("inf")

#: The most bytes of queued records in a consumer with the default settings.
_DEFAULT_MAX_BYTES: Final = DEFAULT_FETCH_OPTIONS.processing_limit


class RecordTracker:
    """Tracks the records in processing, and decides which of them may start.

    A shard has the incomplete records of one partition. Workers acquire the shards in `ready` in
    turn. `held_bytes` is the size of the records in all shards. Each partition may queue its share
    of `max_bytes`, so that slow partitions leave room for other partitions. With a `batch_size`,
    workers process batches.
    """

    def __init__(
        self,
        order: Order,
        max_offset_gap: int,
        max_bytes: int = _DEFAULT_MAX_BYTES,
        batch_size: int | None = None,
    ) -> None:
        self._batch_size = batch_size
        self._order = order
        self._max_offset_gap = max_offset_gap
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self._shards: dict[object, Shard] = {}
        self._draining: set[Shard] = set()
        self.ready: deque[Shard] = deque()
        self._scheduled: list[tuple[float, int, Shard, Record | None]] = []
        self._unchecked: list[Shard] = []
        self._numbers = count()

    # Adding records

    def add(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
        records: list[Record],
        due_ms: list[float] | None = None,
        due: float = _NEVER,
    ) -> Shard:
        """Queues records of a partition; returns its shard.

        For records of a retry topic, `due_ms` and `due` are the due times (see `Shard.add`); the
        caller must then call `move_due`.
        """
        shard = self._shards.get(state)
        if shard is None:
            shard = self._shards[state] = self._new_shard(state, assignment_epoch, tp)
        shard.add(records, due_ms, due, self._share)
        if due_ms is None:
            self._enqueue_shard(shard)
        else:
            self._unchecked.append(shard)
            self._account(shard)
        return shard

    @property
    def _share(self) -> int:
        """The most bytes that a partition may queue before backpressure applies to it.

        The shares of all partitions add up to half of `max_bytes`, because a polled list may exceed
        the share of its partition.
        """
        return max(1, self.max_bytes // (2 * max(1, len(self._shards))))

    @property
    def max_list_bytes(self) -> int:
        """The approximate maximum size of a polled list, in bytes.

        It is half of the bytes that a partition may queue before backpressure.
        """
        return max(1, self._share // 2)

    def _account(self, shard: Shard) -> None:
        """Updates `held_bytes` after a change of the records of a shard."""
        is_tracked = shard in self._draining or self._shards.get(shard.state) is shard
        held = shard.held_bytes if is_tracked else 0
        self.held_bytes += held - shard.accounted_bytes
        shard.accounted_bytes = held

    def _new_shard(self, state: object, assignment_epoch: object, tp: TopicPartition) -> Shard:
        gap = self._max_offset_gap
        size = self._batch_size
        if self._order == "partition" and size is None:
            return OrderedShard(state, assignment_epoch, tp)
        if self._order == "partition" and size is not None:
            return OrderedBatchShard(
                state, assignment_epoch, tp, max_offset_gap=gap, batch_size=size
            )
        by_key = self._order == "key"
        return UnorderedShard(
            state, assignment_epoch, tp, by_key=by_key, max_offset_gap=gap, batch_size=size or 1
        )

    # Ready shards

    def _enqueue_shard(self, shard: Shard) -> None:
        must_wait = self._draining and self._has_predecessor(shard)
        if not must_wait and not shard.is_ready and shard.has_ready_record():
            shard.is_ready = True
            self.ready.append(shard)
        self._account(shard)  # `has_ready_record` may have dropped a processed list

    def _has_predecessor(self, shard: Shard) -> bool:
        """Returns True while a handler processes a record of an older shard of the partition.

        A partition gets another shard after a seek or a truncation of its log. Only shards with the
        assignment epoch of `shard` count.
        """
        return any(
            each.assignment_epoch == shard.assignment_epoch
            and each is not shard
            and each.has_in_flight()
            for each in self._draining
        )

    def acquire_shard(self) -> Shard | None:
        """Returns the first shard of `ready` that may start a record; None if there is none.

        Removes the shard from `ready`. An unordered shard with several ready records stays in
        `ready`, so that other workers can take its other records.
        """
        while self.ready:
            shard = self.ready.popleft()
            shard.is_ready = False
            is_there = shard.has_ready_record()
            self._account(shard)
            if is_there:
                if isinstance(shard, UnorderedShard) and len(shard.ready) > 1:
                    shard.is_ready = True
                    self.ready.append(shard)
                return shard
        return None

    def release_shard(self, shard: Shard) -> None:
        """Enqueues a shard that a worker has left, if a record may start; removes a drained shard.

        If the shard is draining, shards of the same assignment that waited for its records may
        start now.
        """
        self._remove_if_done(shard)
        self._enqueue_shard(shard)
        if shard.is_draining:
            for successor in self._shards.values():
                if successor.assignment_epoch == shard.assignment_epoch and successor is not shard:
                    self._enqueue_shard(successor)

    def _remove_if_done(self, shard: Shard) -> None:
        if (
            shard in self._draining
            and not shard.has_in_flight()
            and (shard.is_lost or shard.first_incomplete() is None)
        ):
            self._draining.discard(shard)

    # Retries and due times

    def schedule(self, shard: Shard, record: Record | None, due: float) -> None:
        """Schedules a retry of `record` at `due`.

        If `record` is None, schedules a check for records of `shard` that are due for a retry.
        """
        if record is None:
            shard.is_timed = True
        heapq.heappush(self._scheduled, (due, next(self._numbers), shard, record))

    @property
    def next_due(self) -> float:
        """The time at which to call `move_due` again, in seconds; infinity if none is scheduled."""
        return self._scheduled[0][0] if self._scheduled else _NEVER

    def move_due(self, now: float, now_ms: float) -> None:
        """Queues the records whose backoff, or whose delay in a retry topic, is over."""
        while self._unchecked:
            self._take_due_of(self._unchecked.pop(), now, now_ms)
        while self._scheduled and self._scheduled[0][0] <= now:
            _, _, shard, record = heapq.heappop(self._scheduled)
            if shard.is_lost:
                continue
            if record is not None:
                shard.requeue(record)
                self._enqueue_shard(shard)
            else:
                shard.is_timed = False
                self._take_due_of(shard, now, now_ms)

    def _take_due_of(self, shard: Shard, now: float, now_ms: float) -> None:
        due = shard.take_due(now, now_ms)
        if due is not None and not shard.is_timed:
            self.schedule(shard, None, due)
        self._enqueue_shard(shard)

    # Complete and incomplete offsets

    def first_incomplete(self, state: object) -> int | None:
        """Returns the first incomplete offset of a partition.

        Returns None if all records of the partition are processed.
        """
        found = None
        for shard in self._shards_of(state):
            if not shard.is_lost:
                found = _min_offset(found, shard.first_incomplete())
        current = self._shards.get(state)
        return found if current is None else _min_offset(found, current.dropped)

    def incomplete_offsets(self, state: object) -> tuple[int, list[int]] | None:
        """Returns `Shard.incomplete_offsets` for a partition.

        A partition may have several shards while old shards drain. Uses the shard with the first
        incomplete offset of the partition; returns None if there is no such shard.
        """
        first_incomplete = self.first_incomplete(state)
        for shard in self._shards_of(state):
            if not shard.is_lost and shard.first_incomplete() == first_incomplete:
                return shard.incomplete_offsets()
        return None

    def _shards_of(self, state: object) -> Iterator[Shard]:
        shard = self._shards.get(state)
        if shard is not None:
            yield shard
        for draining in self._draining:
            if draining.state is state:
                yield draining

    def shard_of(self, state: object) -> Shard | None:
        """Returns the shard to which records of a partition are added; None if there is none."""
        return self._shards.get(state)

    def first_queued(self, state: object) -> int | None:
        """Returns the offset of the first queued record of a partition; None if there is none.

        A queued record is accepted, but its processing has not started.
        """
        shard = self._shards.get(state)
        return None if shard is None else shard.first_queued()

    @property
    def queued_positions(self) -> dict[TopicPartition, int]:
        """The offset of the first queued record, for each partition with queued records."""
        found = {shard.tp: shard.first_queued() for shard in self._shards.values()}
        return {tp: offset for tp, offset in found.items() if offset is not None}

    def is_in_flight(self, epochs: Container[object]) -> bool:
        """Returns True if a handler processes a record of one of the assignment `epochs`.

        Before `drain`, queued records may count, too; see `Shard.has_in_flight`.
        """
        shards = [*self._shards.values(), *self._draining]
        return any(shard.assignment_epoch in epochs and shard.has_in_flight() for shard in shards)

    @property
    def is_idle(self) -> bool:
        """True if no handler processes a record.

        Valid only after `drain_all`: before it, the result may be False because of records that no
        handler processes (see `Shard.has_in_flight`).
        """
        return not any(shard.has_in_flight() for shard in (*self._shards.values(), *self._draining))

    # Draining, pauses and backpressure

    def drain(self, state: object) -> int | None:
        """Drops the queued records of a partition.

        Returns the first dropped offset, at which fetching continues; None if there is none.
        """
        shard = self._shards.pop(state, None)
        if shard is None:
            return None
        shard.drain()
        self._draining.add(shard)
        self._remove_if_done(shard)
        self._account(shard)
        return shard.dropped

    def drain_all(self) -> None:
        """Drops the queued records of all partitions."""
        for shard in self._shards.values():
            shard.drain()
            self._account(shard)

    def discard(self, state: object) -> None:
        """Drops the records of a partition.

        Ignores the results of records that handlers are processing.
        """
        for shard in [*self._shards_of(state)]:
            shard.discard()
            self._shards.pop(state, None)
            self._draining.add(shard)
            self._remove_if_done(shard)
            self._account(shard)

    def pause(self, state: object) -> None:
        """Stops starting records of a partition until `resume`."""
        shard = self._shards.get(state)
        if shard is not None:
            shard.pause()

    def resume(self, state: object) -> None:
        """Allows the records of a paused partition to start."""
        shard = self._shards.get(state)
        if shard is not None:
            shard.resume()
            self._enqueue_shard(shard)

    def needs_backpressure(self, shard: Shard) -> bool:
        """Returns True if the consumer must not poll the partition of a shard now.

        Backpressure starts at `backpressure_limit` queued records, and ends below half of this
        number.
        """
        limit = (
            max(1, shard.backpressure_limit // 2)
            if shard.has_backpressure
            else shard.backpressure_limit
        )
        return not shard.is_draining and shard.queued >= limit

    def states(self) -> set[object]:
        """Returns the states of all partitions with records, including draining partitions."""
        return {*self._shards, *(shard.state for shard in self._draining)}

    def first_incomplete_offsets(self) -> dict[object, int]:
        """Returns the first incomplete offset of each partition, including draining partitions."""
        found = {state: self.first_incomplete(state) for state in self.states()}
        return {state: offset for state, offset in found.items() if offset is not None}


def _min_offset(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
