"""Records that wait for their partitions, and when which batch goes to which broker.

Decisions on plain data, without a loop: `plan` says what to send now and when to look again,
`came_back` what a failure leads to. The order of a partition holds through every retry:

- With idempotence up to `max_in_flight` batches of a partition are under way. A broker takes them
  in the order of their sequence numbers alone (KIP-98), so one that overtook another is refused
  with OUT_OF_ORDER_SEQUENCE_NUMBER and goes again. Until the first batch under a producer id is
  stored it goes alone: a broker that knows nothing of the id takes any number.
- Once a batch comes back, those behind it come back too before any goes again, in their order.
- Once a batch has failed for good, the numbers behind it fit no more. Those that may have been sent
  go again under their old numbers until the broker stores or refuses one; then it and all behind
  it begin anew, under the next epoch of the producer id (KIP-360). Bytes of the old epoch that the
  network held until then are refused. Each partition has its own epoch, as brokers keep one a
  partition.
- What begins anew is not stored, and never will be: where the network may hold bytes of the failed
  batch and of the refused one, which the broker would take one after the other, the refused one
  fails as well. So nothing is stored twice.
- A batch that is too large for the broker is split, down to single records; its parts go one after
  the other, under the numbers that their records had.
- Without idempotence one batch of a partition is under way at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ...protocol.error_codes import code_of, error_of_code
from ...records import GrowingBatch
from ...wire.errors import BrokerResponseError, KprotoError, RequestTimeoutError
from ..cluster.metadata import TopicPartition
from ..observing.observer import Observer
from ..retry import Attempts, Remedy, remedy_of
from ..settings import ClientSettings
from .batch import (
    LAST_SEQUENCE,
    NO_IDENTITY,
    Batch,
    Delivery,
    Identity,
    identity_behind,
)
from .errors import DeliveryError
from .producer_record import Headers

__all__ = ["Accumulator", "PartitionQueue", "Plan"]

_OUT_OF_ORDER: Final = code_of("OUT_OF_ORDER_SEQUENCE_NUMBER")
_TOO_LARGE: Final = code_of("MESSAGE_TOO_LARGE")

#: Answers to a batch that may be stored all the same. Behind any other it is not.
_MAY_BE_STORED: Final = frozenset(
    map(
        code_of,
        (
            "KAFKA_STORAGE_ERROR",
            "NETWORK_EXCEPTION",
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            "REQUEST_TIMED_OUT",
            "UNKNOWN_SERVER_ERROR",
        ),
    )
)

#: So many failed deliveries are kept before those that somebody has looked at are dropped. Few, as
#: each may hold a large record; the bound doubles with what is left, so that looking stays cheap.
_UNSEEN_LEAST: Final = 16

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class PartitionQueue:
    """The batches of one partition: that wait, that are under way at `node`, that came back.

    `sequence` is the number of the next record under `identity`, None while there is none to be
    had; `is_known` once the broker has stored a batch under it. Once a batch has failed for good,
    `identity` is what comes behind it, and the next batch `starts_anew`; `gap_may_close` when the
    failed one may be stored yet. `has_append_time` when the last answer that tells said that the
    log has log append time. Metadata must be newer than `suspect_since` to be believed.
    """

    __slots__ = (
        "attempts",
        "gap_may_close",
        "has_append_time",
        "identity",
        "is_known",
        "node",
        "partition",
        "returned",
        "sequence",
        "starts_anew",
        "suspect_since",
        "topic",
        "turns",
        "under_way",
        "waiting",
    )

    def __init__(self, topic: str, partition: int, settings: ClientSettings) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.under_way: list[Batch] = []
        self.returned: list[Batch] = []
        self.node = -1
        self.identity: Identity | None = None
        self.sequence = 0
        self.turns = 0
        self.is_known = False
        self.starts_anew = False
        self.gap_may_close = False
        self.has_append_time = False
        self.suspect_since = _LONG_AGO
        self.attempts = Attempts(settings)

    @property
    def is_empty(self) -> bool:
        """True when nothing waits and nothing is under way."""
        return not (self.waiting or self.under_way or self.returned)

    @property
    def wants_identity(self) -> bool:
        """True when the next batch has no number yet, and none can be given to it."""
        return self.identity is None and not self.waiting[0].is_numbered

    def next_at(self, max_in_flight: int) -> float:
        """When the next batch may go; never, as long as something must come back first."""
        if not self.waiting or self.returned:
            return _NEVER
        batch = self.waiting[0]
        if self.under_way:
            # Counted from the oldest: a broker remembers the last five of a producer, not any five.
            behind = (batch.turn if batch.turn >= 0 else self.turns) - self.under_way[0].turn
            if behind >= (max_in_flight if self.is_known else 1):
                return _NEVER
            if batch.parent is not None or self.under_way[-1].parent is not None:
                return _NEVER  # of parts there are more than were counted
        if batch.is_numbered:
            return self.attempts.not_before
        takes_records = len(self.waiting) == 1 and batch.due > _LONG_AGO
        if self.under_way and (self.starts_anew or takes_records):
            return _NEVER  # One that still takes records may as well do so until they are stored.
        if len(self.waiting) > 1:
            return self.attempts.not_before
        return max(self.attempts.not_before, batch.due)

    def take(self, node: int, identity: Identity) -> Batch:
        """Let the next batch go to `node`; without a number it gets the next one.

        That is under the queue's own identity, or `identity` where it has none.
        """
        batch = self.waiting.popleft()
        if not batch.is_numbered:
            if self.identity is None or self.starts_anew:
                self.identity = self.identity or identity
                self.sequence = 0
                self.is_known = self.starts_anew = self.gap_may_close = False
            batch.is_numbered = True
            batch.identity = self.identity
            if self.identity != NO_IDENTITY:
                batch.sequence = self.sequence
                self.sequence = (self.sequence + batch.count) & LAST_SEQUENCE
        if batch.turn < 0:
            batch.turn = self.turns
            self.turns += 1
        self.node = node
        self.under_way.append(batch)
        return batch

    def is_behind_another(self, batch: Batch) -> bool:
        """True when a batch with a lower number is not settled yet."""
        return any(other.turn < batch.turn for other in (*self.under_way, *self.returned))

    def regroup(self) -> None:
        """Once nothing is under way any more, let what came back go first, in its order.

        Behind a batch that is not stored none is that had a higher number of the same producer id.
        """
        if not self.returned or self.under_way:
            return
        self.returned.sort(key=lambda batch: batch.turn)
        self.waiting.extendleft(reversed(self.returned))
        self.returned.clear()
        refused = False
        for batch in self.waiting:
            refused = refused or not batch.is_numbered
            if refused and not batch.keeps_number:
                batch.forget_number()


def _may_be_stored(error: KprotoError) -> bool:
    """True when a batch may be stored though it came back with `error`."""
    return not isinstance(error, BrokerResponseError) or error.code in _MAY_BE_STORED


class Plan(NamedTuple):
    """What to do now: the queues whose next batch goes to which node, those whose leader must be
    asked for, whether a producer id is wanted; when to look again, and when the oldest batch has
    had its time, in seconds of the clock.
    """

    requests: dict[int, list[PartitionQueue]]
    unled: list[PartitionQueue]
    wants_identity: bool
    next_at: float
    deadline: float


class Accumulator:
    """All queues of a producer. `buffered` is the size in bytes of what is not settled, `given_up`
    the number of batches that have failed.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        batch_bytes: int,
        linger_ms: int,
        max_in_flight: int,
        idempotent: bool,
        monotonic: Callable[[], float],
        new_future: Callable[[], asyncio.Future[KprotoError | None]],
        observer: Observer | None = None,
    ) -> None:
        self.settings = settings
        self._observer = observer or Observer(None, monotonic)
        self.batch_bytes = batch_bytes
        self.identity: Identity | None = None if idempotent else NO_IDENTITY
        self.takes_headers = True  # brokers that take message sets alone have none
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.busy: dict[TopicPartition, PartitionQueue] = {}
        self.unsettled: set[asyncio.Future[KprotoError | None]] = set()
        self.unseen: list[Delivery] = []
        self.buffered = 0
        self.given_up = 0
        self._unseen_most = _UNSEEN_LEAST
        #: How often records of a topic without key have moved on to the next partition (KIP-480).
        self.turns: dict[str, int] = {}
        self._idempotent = idempotent
        self._linger_s = linger_ms / 1000
        self._limit_s = settings.delivery_timeout_ms / 1000
        self._max_in_flight = max_in_flight
        self._monotonic = monotonic
        self._new_future = new_future

    # Records come in

    def open_batch(self, topic: str, partition: int) -> Batch | None:
        """The batch of a partition that takes more records, if there is one."""
        queue = self.queues.get((topic, partition))
        if queue is None or not queue.waiting or queue.waiting[-1].turn >= 0:
            return None
        return queue.waiting[-1]

    def add(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
    ) -> tuple[Batch, int]:
        """Put a record into the open batch of its partition; returns the batch and the position.

        Raises one of `ENCODE_FAILURES`, of `records.new_record`, for what no record can hold.
        """
        batch = self.open_batch(topic, partition)
        if batch is not None:
            content = batch.content
            added = content.append(key, value, headers, timestamp, self.batch_bytes)
            if added:
                self.buffered += added
                return batch, content.count - 1
            batch.due = _LONG_AGO  # it is full
            self._turn(topic)
        content = GrowingBatch()
        content.append(key, value, headers, timestamp, self.batch_bytes)
        batch = self._open(topic, partition, content)
        return batch, 0

    def add_encoded(self, topic: str, partition: int, content: GrowingBatch) -> Batch:
        """Let a batch that is full already stand behind what the partition has."""
        before = self.open_batch(topic, partition)
        if before is not None:
            before.due = _LONG_AGO
        batch = self._open(topic, partition, content)
        batch.due = _LONG_AGO
        return batch

    def _open(self, topic: str, partition: int, content: GrowingBatch) -> Batch:
        queue = self.queues.get((topic, partition))
        if queue is None:
            queue = PartitionQueue(topic, partition, self.settings)
            self.queues[topic, partition] = queue
        now = self._monotonic()
        due = now + self._linger_s if content.size_in_bytes < self.batch_bytes else _LONG_AGO
        batch = Batch(topic, partition, self._new_future(), content, now, due)
        self.unsettled.add(batch.future)
        self.buffered += content.size_in_bytes
        queue.waiting.append(batch)
        self.busy[topic, partition] = queue
        return batch

    def _turn(self, topic: str) -> None:
        self.turns[topic] = self.turns.get(topic, 0) + 1

    def go_without_identity(self) -> None:
        """Number no batch: the brokers give no producer ids. Only before the first has one."""
        self._idempotent = False
        self.identity = NO_IDENTITY

    def hurry(self) -> None:
        """Let nothing that waits now wait for more records."""
        for queue in self.busy.values():
            for batch in queue.waiting:
                batch.due = _LONG_AGO

    # Batches go out

    def plan(
        self,
        now: float,
        led_by: Callable[[str, int, float], int | None],
        in_flight: Callable[[int], int],
    ) -> Plan:
        """What to do at `now`; `in_flight` says how many requests a node has already."""
        plan = Plan({}, [], False, _NEVER, _NEVER)
        next_at = deadline = _NEVER
        wants_identity = False
        for queue in self.busy.values():
            deadline = min(deadline, self._first_deadline(queue))
            at = queue.next_at(self._max_in_flight if self._idempotent else 1)
            if at > now:
                next_at = min(next_at, at)
                continue
            if self.identity is None and queue.wants_identity:
                wants_identity = True
                continue
            node = led_by(queue.topic, queue.partition, queue.suspect_since)
            if node is None:
                plan.unled.append(queue)
            elif queue.under_way and queue.node != node:
                continue  # what is at the old leader comes back first
            elif in_flight(node) < self._max_in_flight:
                plan.requests.setdefault(node, []).append(queue)
        return plan._replace(wants_identity=wants_identity, next_at=next_at, deadline=deadline)

    def next_at(self, groups: Iterable[Iterable[PartitionQueue]]) -> float:
        """When more of the queues of a plan may go, once what it says has been taken."""
        in_flight = self._max_in_flight if self._idempotent else 1
        return min(
            (queue.next_at(in_flight) for queues in groups for queue in queues), default=_NEVER
        )

    def is_first(self, batch: Batch, now: float) -> bool:
        """True when a batch may go at `now`, and nothing of its partition stands before it."""
        queue = self.queues[batch.topic, batch.partition]
        return (
            not queue.under_way
            and queue.waiting[0] is batch
            and queue.next_at(1) <= now
            and (self.identity is not None or not queue.wants_identity)
        )

    def deadline_of(self, batch: Batch) -> float:
        """When a batch has had its time."""
        return batch.created + self._limit_s

    def take(self, queue: PartitionQueue, node: int) -> Batch:
        """Let the next batch of a queue go to `node`."""
        assert self.identity is not None or not queue.wants_identity
        self._turn(queue.topic)
        return queue.take(node, self.identity or NO_IDENTITY)

    def _first_deadline(self, queue: PartitionQueue) -> float:
        """When the oldest batch of a queue that is not settled has had its time."""
        deadline = _NEVER
        for batch in (*queue.under_way, *queue.returned):
            if not batch.future.done():
                deadline = min(deadline, self.deadline_of(batch))
        if queue.waiting:
            deadline = min(deadline, self.deadline_of(queue.waiting[0]))
        return deadline

    # And come back

    def stored(self, batch: Batch, base_offset: int = -1, log_append_time: int = -1) -> None:
        """The broker has a batch, from `base_offset` on, where it says so.

        Of one that it had already it says a log append time whatever the topic has: the largest
        timestamp that it knows of it. What a topic has shows in the answers to others.
        """
        queue = self._back(batch)
        if not batch.is_doubtful:
            queue.has_append_time = log_append_time >= 0
        elif log_append_time == batch.content.max_timestamp and not queue.has_append_time:
            log_append_time = -1
        batch.base_offset = base_offset
        batch.log_append_time = log_append_time
        queue.is_known = queue.is_known or batch.identity == queue.identity
        if queue.attempts.count:
            self._observer.recovered("produce", queue.topic, queue.partition)
        queue.attempts.succeeded()
        self.settle(batch, None)
        self._leave(queue)

    def came_back(
        self, batch: Batch, error: KprotoError, now: float, *, moved: bool = False
    ) -> None:
        """A batch was not stored, or nobody knows: it goes again, or its senders are told.

        Where its partition has `moved` to a leader that is known, it goes without a wait (KIP-951).
        """
        queue = self._back(batch)
        if batch.future.done():  # its time was over while it was under way
            self._leave(queue)
            return
        batch.is_doubtful = batch.is_doubtful or _may_be_stored(error)
        code = error.code if isinstance(error, BrokerResponseError) else 0
        refused = code == _OUT_OF_ORDER
        if refused and batch.keeps_number:
            self._give_up(queue, batch, error)
        elif refused and self._idempotent and queue.starts_anew:
            if batch.is_doubtful and queue.gap_may_close:
                why = "a batch before it failed, and copies of both may still be under way"
                self._give_up(queue, batch, error_of_code(_OUT_OF_ORDER, why))
            else:
                batch.forget_number()  # it is not stored
                queue.returned.append(batch)
        elif refused and self._idempotent and queue.is_behind_another(batch):
            queue.returned.append(batch)
        elif code == _TOO_LARGE and batch.count > 1:
            queue.returned += batch.split(self._new_future)
        elif remedy_of(error) is Remedy.FAIL:
            self._give_up(queue, batch, error)
        else:
            queue.returned.append(batch)
            self._note_failure(queue, error, now, moved=moved)
        self._leave(queue)

    def failed(self, queue: PartitionQueue, error: KprotoError, now: float) -> None:
        """Nothing of a queue can go, for want of a leader or a producer id."""
        if remedy_of(error) is Remedy.FAIL:
            while queue.waiting:
                self._give_up(queue, queue.waiting.popleft(), error)
        else:
            self._note_failure(queue, error, now)
        self._leave(queue)

    def expire(self, now: float) -> None:
        """Give up what is older than `delivery_timeout_ms`, under way or not."""
        for queue in list(self.busy.values()):
            if self._first_deadline(queue) > now:
                continue
            for batch in (*queue.under_way, *queue.returned, *queue.waiting):
                if self.deadline_of(batch) > now or batch.future.done():
                    continue
                if batch not in queue.under_way:  # else it is dropped when it comes back
                    (queue.returned if batch in queue.returned else queue.waiting).remove(batch)
                error = queue.attempts.error or RequestTimeoutError(
                    f"no broker acknowledged it within {self.settings.delivery_timeout_ms} ms "
                    "(delivery_timeout_ms)"
                )
                self._give_up(queue, batch, error)
            self._leave(queue)

    def abandon(self, error: KprotoError) -> None:
        """Give up everything."""
        for queue in list(self.busy.values()):
            for batch in (*queue.under_way, *queue.returned, *queue.waiting):
                self.settle(batch, error)
            queue.under_way.clear()
            queue.returned.clear()
            queue.waiting.clear()
        self.busy.clear()

    def settle(self, batch: Batch, error: KprotoError | None) -> None:
        """Tell who waits for a batch what has become of it."""
        if batch.future.done():
            return
        batch.future.set_result(error)
        for waiter in batch.waiters:
            if not waiter.done():
                waiter.set_result(None)
        batch.waiters.clear()
        self.given_up += error is not None
        whole = batch.parent
        if whole is not None:
            batch.forget_records()  # the whole has them, for who asks
            batch.data = None
            outcomes = [part.future.result() for part in whole.parts if part.future.done()]
            if len(outcomes) == len(whole.parts):
                for part in whole.parts:
                    part.parent = None
                self.settle(whole, next((each for each in outcomes if each is not None), None))
            return
        self.unsettled.discard(batch.future)
        self.buffered -= batch.content.size_in_bytes
        self._observer.settled(batch, error)
        if error is not None:
            self._keep_unseen(batch.deliveries)
        elif not batch.deliveries:
            batch.forget_records()
        batch.data = None
        batch.deliveries = []

    def _keep_unseen(self, failed: list[Delivery]) -> None:
        """Keep failures for the next flush; those that were looked at go when they are many."""
        self.unseen += failed
        if len(self.unseen) > self._unseen_most:
            self.unseen = [delivery for delivery in self.unseen if not delivery.seen]
            self._unseen_most = max(_UNSEEN_LEAST, 2 * len(self.unseen))

    def unseen_failures(self) -> list[DeliveryError]:
        """The failures of deliveries that nobody has awaited; each is told once."""
        unseen, self.unseen = self.unseen, []
        failures = (delivery.failure() for delivery in unseen if not delivery.seen)
        return [failure for failure in failures if failure is not None]

    @property
    def unsettled_records(self) -> int:
        """How many records are neither acknowledged nor given up."""
        return sum(
            batch.count
            for queue in self.busy.values()
            for batch in (*queue.under_way, *queue.returned, *queue.waiting)
            if not batch.future.done()
        )

    def _back(self, batch: Batch) -> PartitionQueue:
        queue = self.queues[batch.topic, batch.partition]
        if batch in queue.under_way:
            queue.under_way.remove(batch)
        return queue

    def _note_failure(
        self, queue: PartitionQueue, error: KprotoError, now: float, *, moved: bool = False
    ) -> None:
        queue.attempts.failed(error, now)
        if moved:
            queue.attempts.at_once(now)
        elif remedy_of(error) is Remedy.REFRESH:
            queue.suspect_since = now
        self._observer.retried("produce", error, queue.attempts, queue.topic, queue.partition)

    def _give_up(self, queue: PartitionQueue, batch: Batch, error: KprotoError) -> None:
        if batch.is_numbered and self._idempotent and batch.identity == queue.identity:
            # Which sequence number the broker has is unknown: under the next identity it has none.
            queue.starts_anew = True
            queue.gap_may_close = (
                queue.gap_may_close or batch.is_doubtful or batch in queue.under_way
            )
            queue.identity = identity_behind(batch.identity, error)
            of_producer = self.identity or NO_IDENTITY
            if queue.identity is None and of_producer.producer_id == batch.identity.producer_id:
                self.identity = None
        self.settle(batch, error)

    def _leave(self, queue: PartitionQueue) -> None:
        queue.regroup()
        if queue.is_empty:
            self.busy.pop((queue.topic, queue.partition), None)
