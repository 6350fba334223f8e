"""Appends records to the accumulator: at once if no earlier call waits, else in the queue.

Calls of one topic go on in the order in which they were made, also where they had to wait for
metadata or for room: who waits has a place in the line of its topic until it has given its last
record. What becomes of a record once it is given is not known here.
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
from .accumulator import Accumulator
from .acks import Acks
from .append_queues import AppendQueues, AppendTicket
from .batch import Batch
from .errors import DeliveryError
from .old_brokers import headers_refused
from .partitioner import chooser
from .record_validation import (
    ProducerRecord,
    as_record,
    checked_bytes,
    checked_headers,
    checked_timestamp,
)
from .sender import Sender
from .topic_appender import AppendOutcome, Timing, TopicAppender, take

__all__ = ["RecordAppender"]

T = TypeVar("T")

#: How long `append_many` takes records before others of the loop have their turn, in seconds.
GIVE_WAY_S: Final = 0.01

#: Of a list, which takes no time by itself, the clock is looked at once for so many records.
LOOK_EVERY: Final = 32


class RecordAppender:
    """Gives the records of a producer's calls to its accumulator, and wakes its sender.

    `append_queues` are the calls that wait. Once `is_closed`, calls that begin are refused.
    """

    def __init__(
        self, view: ClusterView, accumulator: Accumulator, sender: Sender, *, buffer_bytes: int
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
        """Let nothing linger that was given so far."""
        self._accumulator.stop_lingering()
        self._sender.wake()

    async def append(
        self,
        topic: str,
        record: ProducerRecord,
        *,
        is_single: bool = False,
        is_intercepted: bool = False,
    ) -> tuple[Batch, int]:
        """Give a record to the accumulator; returns its batch and its position there.

        One that `is_single` goes out at once, if nothing stands before it. Waits for metadata, for
        the partition if it is named and not known yet, and for room. Raises DeliveryError when that
        does not come about.
        """
        if self._calls.intercepts and not is_intercepted:
            return await self._append_intercepted(topic, record, is_single=is_single)
        way_in = self._ready_appender(topic)
        found = None if way_in is None else self._append_now(way_in, record)
        if found is not None:
            batch, position = found
            if position == 0 and not (is_single and self._sender.send_immediately(batch)):
                self._sender.wake()
            return found
        place = self.append_queues.enqueue_call(topic)
        try:
            found = await _or_given_back(
                self._append_when_first(place, record), topic, lambda: [record]
            )
        finally:
            place.leave()
        self._sender.wake()
        return found

    async def _append_intercepted(
        self, topic: str, record: ProducerRecord, *, is_single: bool
    ) -> tuple[Batch, int]:
        """Give what the user's hook makes of a record; tell it if that does not come about."""
        changed = self._calls.sent(topic, record)
        try:
            return await self.append(topic, changed, is_single=is_single, is_intercepted=True)
        except BaseException as error:
            self._calls.not_taken(topic, changed, error)
            raise

    async def append_encoded(self, topic: str, partition: int, content: GrowingBatch) -> Batch:
        """Give a batch whose records are encoded already; waits as `append` does.

        Raises ConfigurationError where a hook wants to see each record, or the brokers take message
        sets alone; EncodeError for a partition that the topic does not have; RequestTimeoutError.
        """
        if self._calls.intercepts:
            raise ConfigurationError(
                "a hook of this client sees each record that is sent, and a batch that is encoded "
                "already has none to show: send its records, or leave out Hooks.on_send"
            )
        way_in = self._ready_appender(topic)
        if way_in is None or partition not in way_in.info.partitions:
            place = self.append_queues.enqueue_call(topic)
            try:
                way_in = await self._wait_until_ready(place, partition)
            finally:
                place.leave()
        if partition not in way_in.info.partitions:
            raise EncodeError(f"topic {topic!r} has no partition {partition!r}")
        if not self._accumulator.takes_headers:
            raise ConfigurationError(
                "brokers before Kafka 0.11 take message sets alone: send the records one by one"
            )
        batch = self._accumulator.add_encoded(topic, partition, content)
        self._sender.wake()
        return batch

    async def append_many(
        self, topic: str, values: Iterable[bytes | ProducerRecord | None], acks: Acks
    ) -> None:
        """Give records as `append` does, and note in `acks` where each stands.

        From its first wait on the call keeps its place in the line.
        """
        way_in = self._ready_appender(topic)
        place: AppendTicket | None = None
        record: ProducerRecord | None = None
        monotonic = self._view.clock.monotonic
        gives_way_at = monotonic() + GIVE_WAY_S
        given_up = self._accumulator.failed_batches
        every = LOOK_EVERY if type(values) in (list, tuple) else 1
        to_come = taken = iter(values)
        if self._calls.intercepts:
            taken, every = self._calls.each_sent(topic, to_come), 1

        def left() -> list[ProducerRecord]:
            """What has not been given: all the others of a list, of an iterator what was taken."""
            others = islice(to_come, len(values)) if isinstance(values, Collection) else ()
            return [*(() if record is None else (record,)), *map(as_record, others)]

        try:
            if way_in is None:
                place = self.append_queues.enqueue_call(topic)
                way_in = await _or_given_back(self._wait_until_ready(place), topic, left)
            while True:
                timing = Timing(self._now_ms, monotonic, gives_way_at, every)
                met: Any = take(taken, way_in, self._accumulator, self._buffer_bytes, timing, acks)
                if met is AppendOutcome.END:
                    return
                if not isinstance(met, AppendOutcome):
                    record = as_record(met)
                    try:
                        found = self._append_now(way_in, record)
                        if found is None:
                            place = place or self.append_queues.enqueue_call(topic)
                            found = await _or_given_back(
                                self._append_when_first(place, record), topic, left
                            )
                            way_in = self._appender_of(topic)
                    except EncodeError as error:
                        raise EncodeError(
                            f"element {len(acks)}, counted from 0: {error}; no more were taken"
                        ) from error
                    acks.add(*found)
                    record = None
                    self._sender.wake()
                    if self._accumulator.buffered > self._buffer_bytes:
                        met = AppendOutcome.FULL
                    elif monotonic() < gives_way_at:
                        continue
                place = place or self.append_queues.enqueue_call(topic)
                waiting = (
                    self._wait_until_half_empty
                    if met is AppendOutcome.FULL
                    else self._yield_to_loop
                )
                await _or_given_back(waiting(place), topic, left)
                gives_way_at = monotonic() + GIVE_WAY_S
                if self._accumulator.failed_batches != given_up:
                    given_up = self._accumulator.failed_batches
                    for batch, _, cause in acks.failures():
                        raise DeliveryError(topic, batch.partition, left(), cause)
        except BaseException as error:
            if record is not None and self._calls.intercepts:
                self._calls.not_taken(topic, record, error)
            raise
        finally:
            if place is not None:
                place.leave()

    def _ready_appender(self, topic: str) -> TopicAppender | None:
        """The way to a topic, if nothing has to be waited for and nobody waits.

        Raises ConfigurationError once the producer is closed, and in another event loop.
        """
        if self.is_closed:
            raise ConfigurationError("the producer is closed; records can no longer be sent")
        if not isinstance(topic, str):
            raise EncodeError(f"{topic!r} is no name of a topic")
        if self._view.home.loop is not asyncio.get_running_loop():
            self._view.home.check()
        if (
            topic in self.append_queues.by_topic
            or self._accumulator.buffered > self._buffer_bytes
            or not self._view.is_fresh(topic)
        ):
            return None
        return self._appender_of(topic)

    def _appender_of(self, topic: str) -> TopicAppender:
        self._accumulator.takes_headers = self._view.message_magic >= MAGIC_OF_BATCHES
        info = self._view.cluster.topics[topic]
        known = self._appenders.get(topic)
        if known is None or known.info is not info:
            known = TopicAppender(info, chooser(info, self._accumulator.ordinals))
            self._appenders[topic] = known
        return known

    async def _wait_until_ready(
        self, place: AppendTicket, partition: int | None = None
    ) -> TopicAppender:
        """The way to a topic, once it is known and there is room, and the calls before have given.

        Raises RequestTimeoutError after `delivery_timeout_ms`.
        """
        view, topic = self._view, place.topic
        begun = view.clock.monotonic()
        with place:
            if view.is_fresh(topic):
                info = view.cluster.topics[topic]
            else:
                # A broker that is away for a moment is no reason to fail: it is none for a batch.
                info = await view.retrying(lambda: view.topic(topic), responses=False, begun=begun)
            if isinstance(partition, int) and partition not in info.partitions:
                # Partitions may have been added.
                await view.retrying(lambda: view.refresh([topic]), begun=begun)
            await self._wait_for_memory(place, begun)
        # What came in the meantime is as good, and a topic that is gone is told by its batch.
        view.cluster.topics.setdefault(topic, info)
        return self._appender_of(topic)

    async def _wait_for_memory(self, place: AppendTicket, begun: float) -> None:
        limit_ms = self._view.settings.delivery_timeout_ms
        left = begun + limit_ms / 1000 - self._view.clock.monotonic()
        had_turn = False
        try:
            async with self._view.clock.timeout(max(0.0, left)):
                await place.ordinal()
                had_turn = True
                await self._wait_until_below(self._buffer_bytes)
        except TimeoutError:
            why = (
                f"there was no room for it within {limit_ms} ms (delivery_timeout_ms, buffer_bytes)"
                if had_turn
                else f"a call before it had not given all its records after {limit_ms} ms "
                "(delivery_timeout_ms)"
            )
            raise RequestTimeoutError(why) from None

    async def _wait_until_half_empty(self, place: AppendTicket) -> None:
        with place:
            await self._wait_until_below(self._buffer_bytes // 2)

    async def _yield_to_loop(self, place: AppendTicket) -> None:
        with place:
            await self._view.clock.sleep(0)

    async def _wait_until_below(self, size: int) -> None:
        """Wait until no more than `size` bytes are buffered; nothing lingers meanwhile."""
        if self._accumulator.buffered > size:
            self.stop_lingering()
        while self._accumulator.buffered > size:
            self._sender.completed.clear()
            await self._sender.completed.wait()

    async def _append_when_first(
        self, place: AppendTicket, record: ProducerRecord
    ) -> tuple[Batch, int]:
        """Appends a record when it is the call's turn.

        Raises EncodeError, and what `_wait_until_ready` raises.
        """
        found = self._append_now(await self._wait_until_ready(place, record.partition), record)
        if found is None:
            raise EncodeError(f"topic {place.topic!r} has no partition {record.partition!r}")
        return found

    def _append_now(
        self, way_in: TopicAppender, record: ProducerRecord
    ) -> tuple[Batch, int] | None:
        """Put a record into the open batch of its partition; returns the batch and the position.

        None where the topic has no such partition, as far as it is known. What could not be
        written is refused here, so that it does not spoil a batch of others.
        """
        value, key, headers, timestamp, partition = record
        if partition is not None:
            if not isinstance(partition, int) or isinstance(partition, bool):
                raise EncodeError(f"partition {partition!r} of a record is no whole number")
            if partition not in way_in.info.partitions:
                return None  # nothing has been read of it: headers may be an iterator
        if value is not None and type(value) is not bytes:
            value = checked_bytes("value", value)
        if key is not None and type(key) is not bytes:
            key = checked_bytes("key", key)
        if headers:
            headers = checked_headers(headers)
            if not self._accumulator.takes_headers:
                raise headers_refused(way_in.info.name, headers)
        timestamp = self._now_ms() if timestamp is None else checked_timestamp(timestamp)
        if partition is None:
            partition = way_in.choose(key)
        return self._accumulator.add(way_in.info.name, partition, key, value, headers, timestamp)


async def _or_given_back(
    waiting: Awaitable[T], topic: str, left: Callable[[], list[ProducerRecord]]
) -> T:
    """What `pending` returns. Raises DeliveryError with the records that are left when it fails."""
    try:
        return await waiting
    except EncodeError:
        raise
    except KprotoError as cause:
        records = left()
        partition = records[0].partition if records else None
        raise DeliveryError(
            topic, -1 if partition is None else partition, records, cause
        ) from cause
