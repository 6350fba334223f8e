"""`PartitionQueue`: the batches of one partition, and when the next batch may be sent.

The queue is part of the accumulator, whose rules keep the order of the batches.
"""

from __future__ import annotations

from typing import Final

from ..core.retry import Attempts
from ..settings import ClientSettings
from .batch import ProducerBatch
from .producer_state import PartitionSequence, ProducerState

__all__ = ["PartitionQueue"]

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class PartitionQueue:
    """The batches of one partition: pending, in flight to broker `node`, or waiting for a retry.

    `sequence` is the producer id, epoch and next sequence number of the partition.
    `has_append_time` is True if the last ack had a log append time; acks of batches that an earlier
    attempt may have stored are ignored. The leader in the metadata is used only if the metadata is
    newer than `leader_stale_since`, in seconds of the clock. `planned_at` is the time of the timer
    that makes a plan look at the queue again; infinity if no timer is set.
    """

    __slots__ = (
        "attempts",
        "has_append_time",
        "in_flight",
        "leader_stale_since",
        "next_send_index",
        "node",
        "partition",
        "pending",
        "planned_at",
        "sequence",
        "to_retry",
        "topic",
        "tp",
    )

    def __init__(self, topic: str, partition: int, settings: ClientSettings) -> None:
        self.topic = topic
        self.partition = partition
        self.tp = topic, partition
        #: A list, because an empty deque takes 700 bytes, and there may be thousands of queues.
        self.pending: list[ProducerBatch] = []
        self.in_flight: list[ProducerBatch] = []
        self.to_retry: list[ProducerBatch] = []
        self.node = -1
        self.sequence = PartitionSequence()
        self.next_send_index = 0
        self.has_append_time = False
        self.leader_stale_since = _LONG_AGO
        self.planned_at = _NEVER
        self.attempts = Attempts(settings, settings.delivery_timeout_ms)

    @property
    def is_empty(self) -> bool:
        """True if no batch is pending, in flight, or waiting for a retry."""
        return not (self.pending or self.in_flight or self.to_retry)

    @property
    def open_batch(self) -> ProducerBatch | None:
        """The last pending batch, to which records can be appended; None if there is none."""
        if not self.pending:
            return None
        batch = self.pending[-1]
        return None if batch.send_index >= 0 or batch.is_sealed else batch

    @property
    def needs_producer_id(self) -> bool:
        """True if the next pending batch needs a sequence and a producer id.

        Use it only if a batch is pending.
        """
        return self.sequence.identity is None and not self.pending[0].has_sequence

    def next_at(self, max_in_flight: int) -> float:
        """Returns the time from which the next batch may be sent, in seconds of the clock.

        Returns infinity if no batch is pending, or if the next batch must wait until other batches
        are acked or fail.
        """
        if not self.pending or self.to_retry:
            return _NEVER
        batch = self.pending[0]
        if self.in_flight:
            # A broker remembers the last five batches of a producer, acked ones included: so the
            # limit counts from the oldest batch in flight.
            send_index = batch.send_index if batch.send_index >= 0 else self.next_send_index
            distance = send_index - self.in_flight[0].send_index
            if distance >= (max_in_flight if self.sequence.is_acked else 1):
                return _NEVER
            if batch.parent is not None or self.in_flight[-1].parent is not None:
                return _NEVER  # the parts of a split batch have one send_index
        if batch.has_sequence:
            return self.attempts.not_before
        is_open = len(self.pending) == 1 and batch.ready_at > _LONG_AGO
        if self.in_flight and (self.sequence.must_restart or is_open):
            return _NEVER  # an open batch fills while others are in flight
        if len(self.pending) > 1:
            return self.attempts.not_before
        return max(self.attempts.not_before, batch.ready_at)

    def take(self, node: int, state: ProducerState) -> ProducerBatch:
        """Moves the first pending batch to the batches in flight to `node`, and returns it.

        If the batch has no sequence number yet, assigns the next sequence number of the partition.
        """
        batch = self.pending.pop(0)
        if not batch.has_sequence:
            batch.has_sequence = True
            batch.identity, batch.sequence = state.assign(self.sequence, batch.count)
        if batch.send_index < 0:
            batch.send_index = self.next_send_index
            self.next_send_index += 1
        self.node = node
        self.in_flight.append(batch)
        return batch

    def has_unacked_predecessor(self, batch: ProducerBatch) -> bool:
        """Returns True if an earlier batch is in flight, or waits for its retry."""
        return any(
            other.send_index < batch.send_index for other in (*self.in_flight, *self.to_retry)
        )

    def requeue_retries(self) -> None:
        """Moves the batches in `to_retry` to the front of `pending`, unless a batch is in flight.

        If a batch in `pending` has no sequence, clears the sequences of the batches after it. Parts
        of a split batch keep their sequences if a broker may have stored the whole split batch.
        """
        if not self.to_retry or self.in_flight:
            return
        self.to_retry.sort(key=lambda batch: batch.send_index)
        self.pending[:0] = self.to_retry
        self.to_retry.clear()
        refused = False
        for batch in self.pending:
            refused = refused or not batch.has_sequence
            if refused and not batch.must_keep_sequence:
                batch.clear_sequence()
