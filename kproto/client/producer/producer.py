"""`Producer`: the face. Takes records, and tells what has become of them.

What waits where is the accumulator's, sending the sender's. Calls of one topic go on in the order
in which they were made, also where they had to wait for metadata or for room: who waits has a place
in the line of its topic until it has given its last record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from itertools import islice
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from ...records import codec_for_name
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, EncodeError, KprotoError, RequestTimeoutError
from ..cluster.view import ClusterView
from ..release import MAGIC_OF_BATCHES
from .accumulator import Accumulator
from .acks import Acks
from .batch import Ack, Batch, Delivery
from .errors import DeliveryError
from .lines import Lines, Place
from .old_brokers import check_old_brokers, headers_refused
from .one_pass import Stop, Timing, WayIn, take
from .partitioner import chooser
from .producer_record import (
    CompressionName,
    Headers,
    ProducerRecord,
    SupportsKafkaRecord,
    as_record,
    checked_bytes,
    checked_headers,
    checked_timestamp,
    record_of_event,
)
from .sender import Sender

__all__ = ["Producer"]

T = TypeVar("T")

#: How long `send_many` takes records before others of the loop have their turn, in seconds.
GIVE_WAY_S: Final = 0.01

#: Of a list, which takes no time by itself, the clock is looked at once for so many records.
LOOK_EVERY: Final = 32

#: Batches that a broker remembers of a producer, so that it knows one that is sent again (KIP-98).
REMEMBERED_BATCHES: Final = 5


class Producer:
    """Sends records and waits for their acknowledgement by all in-sync replicas.

    Made by `Client.producer`, which says what its settings do. Raises ConfigurationError for a
    setting that cannot work, MissingCodecError for a compression that needs a package.
    """

    def __init__(
        self,
        view: ClusterView,
        *,
        compression: CompressionName,
        batch_bytes: int,
        buffer_bytes: int,
        linger_ms: int,
        max_in_flight: int,
        idempotent: bool | None,
    ) -> None:
        check_whole_number("batch_bytes", batch_bytes, 1)
        check_whole_number("buffer_bytes", buffer_bytes, 1)
        check_whole_number("linger_ms", linger_ms, 0)
        check_whole_number("max_in_flight", max_in_flight, 1)
        is_optional = idempotent is None
        idempotent = check_old_brokers(view.settings.broker_version, compression, idempotent)
        if idempotent and max_in_flight > REMEMBERED_BATCHES:
            raise ConfigurationError(
                f"max_in_flight is {max_in_flight}; with idempotence it is {REMEMBERED_BATCHES} at "
                "the most, as brokers remember no more batches of a producer"
            )
        if linger_ms >= view.settings.delivery_timeout_ms:
            raise ConfigurationError(
                f"linger_ms is {linger_ms}: records would be given up before they are sent; it "
                f"must be below delivery_timeout_ms, which is {view.settings.delivery_timeout_ms}"
            )
        codec = codec_for_name(compression)
        codec.compress(b"", codec.default_level)  # a missing package is told now, not by a send
        self._view = view
        self._now_ms = view.clock.now_ms
        self._buffer_bytes = buffer_bytes
        self._accumulator = Accumulator(
            view.settings,
            batch_bytes=batch_bytes,
            linger_ms=linger_ms,
            max_in_flight=max_in_flight,
            idempotent=idempotent,
            monotonic=view.clock.monotonic,
            new_future=lambda: asyncio.get_running_loop().create_future(),
            observer=view.observer,
        )
        view.observer.producer(self._accumulator)
        self._calls = view.observer.calls
        self._sender = Sender(
            view, self._accumulator, compression=compression, optional_identity=is_optional
        )
        self._lines = Lines()  # who waits to give records
        self._ways_in: dict[str, WayIn] = {}
        self._is_closing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        timeout_ms = None if error is None else self._view.settings.error_flush_ms
        try:
            await asyncio.sleep(0)  # calls in tasks that the block has made come before its end
        finally:
            try:
                await self.close(timeout_ms=timeout_ms)
            except DeliveryError as failure:
                if error is None:
                    raise
                error.add_note(f"besides: {failure}")

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Refuse more calls, and send all that was given before. Failures belong to their calls.

        Calls that still wait for metadata or room, or have more to give, have `delivery_timeout_ms`
        to do so. What is not given or not acknowledged after `timeout_ms`, or when the close is
        cancelled, is given up: its senders get a DeliveryError. Raises DeliveryError as `flush`
        does. A block of `async with` that ends with an exception closes with `error_flush_ms`.
        """
        _check_time_out(timeout_ms)
        self._view.home.check()
        self._is_closing = True
        limit_ms = self._view.settings.delivery_timeout_ms
        if timeout_ms is not None:
            limit_ms = min(limit_ms, timeout_ms)
        clock = self._view.clock
        begun = clock.monotonic()
        try:
            # What has not come about by then is told to whoever sent it.
            await self._within(limit_ms, self._given())
            self._lines.close()
            if timeout_ms is not None:
                timeout_ms = max(0, timeout_ms - round((clock.monotonic() - begun) * 1000))
            await self._within(timeout_ms, self._settled())
        finally:
            self._lines.close()
            await self._sender.close()
        self._raise_unseen()

    async def flush(self, *, timeout_ms: int | None = None) -> None:
        """Wait until every record of the calls made so far is acknowledged or has failed.

        Such a call counts to the last record of its list or iterator, also where it still waits
        for metadata or room. Raises DeliveryError with the records of `enqueue` that failed and
        whose delivery nobody has awaited; each is told once. Raises RequestTimeoutError after
        `timeout_ms`; the calls go on, and what was given stays under way.
        """
        _check_time_out(timeout_ms)
        self._view.home.check()
        if not await self._within(timeout_ms, self._given_and_settled()):
            waiting = len(self._lines.places())
            calls = f", and {waiting} calls have more to give" if waiting else ""
            raise RequestTimeoutError(
                f"{self._accumulator.unsettled_records} records were not acknowledged{calls} "
                f"within {timeout_ms} ms"
            )
        self._raise_unseen()

    async def _within(self, timeout_ms: int | None, waiting: Awaitable[None]) -> bool:
        """Wait, for no longer than that; True when what is waited for has come about."""
        if timeout_ms is None:
            await waiting
            return True
        try:
            async with self._view.clock.timeout(timeout_ms / 1000):
                await waiting
        except TimeoutError:
            return False
        return True

    async def _given_and_settled(self) -> None:
        await self._given()
        await self._settled()

    async def _given(self) -> None:
        """Wait until those who wait now have given their records, or have failed to."""
        places = self._lines.places()
        if places:
            self._hurry()
            await asyncio.wait([place.left() for place in places])

    async def _settled(self) -> None:
        """Wait for the outcome of all that was given."""
        if self._accumulator.unsettled:
            self._hurry()
            await asyncio.wait(set(self._accumulator.unsettled))

    def _hurry(self) -> None:
        self._accumulator.hurry()
        self._sender.wake()

    def _raise_unseen(self) -> None:
        failed = self._accumulator.unseen_failures()
        if failed:
            first = failed[0]
            records = [record for failure in failed for record in failure.records]
            raise DeliveryError(first.topic, first.partition, records, first.cause) from first.cause

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Ack:
        """Send one record and wait until it is acknowledged.

        `timestamp` in ms, now by default. Without `partition` the key decides, and without a key
        the records of one batch go to a partition chosen in turn. Calls that run at the same time
        share batches. When cancelled, the record may still be sent.

        Raises DeliveryError, which holds the record, also for a topic that the cluster does not
        have; EncodeError for a value that no record can hold, or a partition that the topic does
        not have; ConfigurationError when it is called once the producer is closed.
        """
        record = ProducerRecord(value, key, headers, timestamp, partition)
        batch, position = await self._give(topic, record, is_single=True)
        if not batch.future.done():
            waiter = asyncio.get_running_loop().create_future()
            batch.waiters.append(waiter)
            await waiter
        cause = batch.future.result() and batch.failure(position)
        if cause is not None:
            raise DeliveryError(topic, batch.partition, [batch.given(position)], cause) from cause
        return batch.ack(position)

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Give one record and wait for no more than room for it; `await delivery` gives the `Ack`.

        A delivery that nobody awaits is told by the next `flush` or `close`, if it fails. Raises
        what `send` raises, but for DeliveryError.
        """
        record = ProducerRecord(value, key, headers, timestamp, partition)
        batch, position = await self._give(topic, record)
        delivery = Delivery(batch, position)
        batch.deliveries.append(delivery)
        return delivery

    async def send_event(
        self,
        topic: str,
        event: SupportsKafkaRecord,
        *,
        mode: Literal["binary", "structured"] | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        **options: Any,
    ) -> Ack:
        """Send an event as one record and wait until it is acknowledged.

        The event says itself what record it is: `event.to_kafka_record(mode, **options)`. For
        those of `kproto_cloudevents` the options are `to_kafka`'s: `key`, `key_mapper`,
        `headers`, `event_format`, `repeat_attributes`, `message_format`. An event that was read
        from a record goes out as the same record, with its key.

        Raises what the event raises when it cannot be written, EncodeError for what is no event,
        and else what `send` raises.
        """
        key, value, headers = record_of_event(event, mode, options)
        return await self.send(
            topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition
        )

    async def send_events(
        self,
        topic: str,
        events: Iterable[SupportsKafkaRecord],
        *,
        mode: Literal["binary", "structured"] | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        **options: Any,
    ) -> Acks:
        """Send many events, each as `send_event` does; waits until all are acknowledged.

        Of a list or another collection nothing is sent where one of them cannot be written. Of an
        iterator, which is read as the records go out, what stands before that one is sent.

        Raises what `send_event` raises for one that cannot be written, and else what `send_many`
        raises.
        """
        if hasattr(events, "to_kafka_record"):
            raise EncodeError("events is one event: give a list of them, or use send_event")
        records = (
            ProducerRecord(value, key, headers, timestamp, partition)
            for key, value, headers in (record_of_event(each, mode, options) for each in events)
        )
        return await self.send_many(
            topic, list(records) if isinstance(events, Collection) else records
        )

    async def send_many(self, topic: str, values: Iterable[bytes | ProducerRecord | None]) -> Acks:
        """Send many records; waits until all are acknowledged.

        An element is a value, or a `ProducerRecord` with key, headers and the like. Records of
        one partition keep their order; what later calls give to the topic comes behind the last
        of them. What stands before an element that no record can hold, or before a failure of
        `values` itself, is sent and waited for; when cancelled, what was given already may still
        be sent.

        Raises DeliveryError, which holds every record that was taken and not acknowledged, and
        else what `send` raises; an EncodeError says which element it is about. Once some have
        failed, or the producer has closed, no more are taken: those of a list are in the error, an
        iterator still has them.
        """
        if isinstance(values, ProducerRecord):
            raise EncodeError("values is one record: give a list of them, or use send")
        acks = Acks()
        try:
            await self._give_many(topic, values, acks)
        except Exception as error:
            left = error.records if isinstance(error, DeliveryError) else []
            failure = await self._outcome(topic, acks, left)
            if failure is None:
                raise
            raise failure from error
        failure = await self._outcome(topic, acks, [])
        if failure is not None:
            raise failure from failure.cause
        return acks

    async def _outcome(
        self, topic: str, acks: Acks, left: list[ProducerRecord]
    ) -> DeliveryError | None:
        """Wait for the outcome of all records; returns what went wrong with them, if anything.

        The error then has those that were not given, too.
        """
        batches = acks.batches()
        if batches:
            await asyncio.wait([batch.future for batch in batches])
        for batch, _, cause in acks.failures():
            return DeliveryError(topic, batch.partition, acks.undelivered() + left, cause)
        return None

    # The way in

    async def _give(
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
            return await self._give_changed(topic, record, is_single=is_single)
        way_in = self._at_hand(topic)
        found = None if way_in is None else self._put(way_in, record)
        if found is not None:
            batch, position = found
            if position == 0 and not (is_single and self._sender.send_at_once(batch)):
                self._sender.wake()
            return found
        place = self._lines.enter(topic)
        try:
            found = await _or_given_back(self._put_later(place, record), topic, lambda: [record])
        finally:
            place.leave()
        self._sender.wake()
        return found

    async def _give_changed(
        self, topic: str, record: ProducerRecord, *, is_single: bool
    ) -> tuple[Batch, int]:
        """Give what the user's hook makes of a record; tell it if that does not come about."""
        changed = self._calls.sent(topic, record)
        try:
            return await self._give(topic, changed, is_single=is_single, is_intercepted=True)
        except BaseException as error:
            self._calls.not_taken(topic, changed, error)
            raise

    async def _give_many(
        self, topic: str, values: Iterable[bytes | ProducerRecord | None], acks: Acks
    ) -> None:
        """Give records as `_give` does, and note in `acks` where each stands.

        From its first wait on the call keeps its place in the line.
        """
        way_in = self._at_hand(topic)
        place: Place | None = None
        record: ProducerRecord | None = None
        monotonic = self._view.clock.monotonic
        gives_way_at = monotonic() + GIVE_WAY_S
        given_up = self._accumulator.given_up
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
                place = self._lines.enter(topic)
                way_in = await _or_given_back(self._admitted(place), topic, left)
            while True:
                timing = Timing(self._now_ms, monotonic, gives_way_at, every)
                met: Any = take(taken, way_in, self._accumulator, self._buffer_bytes, timing, acks)
                if met is Stop.END:
                    return
                if not isinstance(met, Stop):
                    record = as_record(met)
                    try:
                        found = self._put(way_in, record)
                        if found is None:
                            place = place or self._lines.enter(topic)
                            found = await _or_given_back(
                                self._put_later(place, record), topic, left
                            )
                            way_in = self._way_in(topic)
                    except EncodeError as error:
                        raise EncodeError(
                            f"element {len(acks)}, counted from 0: {error}; no more were taken"
                        ) from error
                    acks.add(*found)
                    record = None
                    self._sender.wake()
                    if self._accumulator.buffered > self._buffer_bytes:
                        met = Stop.FULL
                    elif monotonic() < gives_way_at:
                        continue
                place = place or self._lines.enter(topic)
                waiting = self._half_empty if met is Stop.FULL else self._give_way
                await _or_given_back(waiting(place), topic, left)
                gives_way_at = monotonic() + GIVE_WAY_S
                if self._accumulator.given_up != given_up:
                    given_up = self._accumulator.given_up
                    for batch, _, cause in acks.failures():
                        raise DeliveryError(topic, batch.partition, left(), cause)
        except BaseException as error:
            if record is not None and self._calls.intercepts:
                self._calls.not_taken(topic, record, error)
            raise
        finally:
            if place is not None:
                place.leave()

    def _at_hand(self, topic: str) -> WayIn | None:
        """The way to a topic, if nothing has to be waited for and nobody waits.

        Raises ConfigurationError once the producer is closed, and in another event loop.
        """
        if self._is_closing:
            raise ConfigurationError("the producer is closed; records can no longer be sent")
        if not isinstance(topic, str):
            raise EncodeError(f"{topic!r} is no name of a topic")
        if self._view.home.loop is not asyncio.get_running_loop():
            self._view.home.check()
        if (
            topic in self._lines.by_topic
            or self._accumulator.buffered > self._buffer_bytes
            or not self._view.is_fresh(topic)
        ):
            return None
        return self._way_in(topic)

    def _way_in(self, topic: str) -> WayIn:
        self._accumulator.takes_headers = self._view.message_magic >= MAGIC_OF_BATCHES
        info = self._view.cluster.topics[topic]
        known = self._ways_in.get(topic)
        if known is None or known.info is not info:
            known = WayIn(info, chooser(info, self._accumulator.turns))
            self._ways_in[topic] = known
        return known

    async def _admitted(self, place: Place, partition: int | None = None) -> WayIn:
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
            await self._until_room(place, begun)
        # What came in the meantime is as good, and a topic that is gone is told by its batch.
        view.cluster.topics.setdefault(topic, info)
        return self._way_in(topic)

    async def _until_room(self, place: Place, begun: float) -> None:
        limit_ms = self._view.settings.delivery_timeout_ms
        left = begun + limit_ms / 1000 - self._view.clock.monotonic()
        had_turn = False
        try:
            async with self._view.clock.timeout(max(0.0, left)):
                await place.turn()
                had_turn = True
                await self._until_below(self._buffer_bytes)
        except TimeoutError:
            why = (
                f"there was no room for it within {limit_ms} ms (delivery_timeout_ms, buffer_bytes)"
                if had_turn
                else f"a call before it had not given all its records after {limit_ms} ms "
                "(delivery_timeout_ms)"
            )
            raise RequestTimeoutError(why) from None

    async def _half_empty(self, place: Place) -> None:
        with place:
            await self._until_below(self._buffer_bytes // 2)

    async def _give_way(self, place: Place) -> None:
        with place:
            await self._view.clock.sleep(0)

    async def _until_below(self, size: int) -> None:
        """Wait until no more than `size` bytes are buffered; nothing lingers meanwhile."""
        if self._accumulator.buffered > size:
            self._hurry()
        while self._accumulator.buffered > size:
            self._sender.settled.clear()
            await self._sender.settled.wait()

    async def _put_later(self, place: Place, record: ProducerRecord) -> tuple[Batch, int]:
        """Put a record once it is the call's turn. Raises EncodeError, and what `_admitted` does"""
        found = self._put(await self._admitted(place, record.partition), record)
        if found is None:
            raise EncodeError(f"topic {place.topic!r} has no partition {record.partition!r}")
        return found

    def _put(self, way_in: WayIn, record: ProducerRecord) -> tuple[Batch, int] | None:
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
    """What `waiting` returns. Raises DeliveryError with the records that are left when it fails."""
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


def _check_time_out(timeout_ms: int | None) -> None:
    if timeout_ms is not None:
        check_whole_number("timeout_ms", timeout_ms, 0)
