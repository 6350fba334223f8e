"""`ShareConsumer`: reads records of a share group, and acknowledges them one by one (KIP-932).

It is composed of the fetcher, which acquires and acknowledges records, the group member, which
handles no records, and the processing of `run()`. `share_parts` has the objects that outlive a
consumer that the program has dropped.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar, Unpack, overload

from ...codecs.undecodable import Undecodable
from ...records import Record
from ...records.type_variables import K, U, V
from ...unclosed import call_in_loop, finalize, warn_unclosed
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, UnsupportedVersionError
from ..core.yielding import LoopYielder
from ..fetch.share.acquisition import AcknowledgeType, LockLostError, ShareRecord
from ..fetch.share.requests import AcknowledgeResult, FetchLimits
from ..groups.share.settings import ShareGroupSettings
from ..groups.subscription import Subscription
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..processing.delivery_limit import limit_retries
from ..processing.failure_log import log_unraised
from ..processing.forward_topics import check_forward_topics
from ..processing.handlers import record_handler, with_codecs
from ..processing.run_summary import ShareRunSummary
from ..processing.settings import RunSettings, ShareRunArguments, share_run_settings
from ..processing.share_pool import SharePool
from ..processing.signals import signals_handled
from .record_processing import ForwardProducerFactory
from .record_stream import PollTimeoutError
from .share_iterations import DecodedShareIteration, ShareIteration, ShareListIteration
from .share_parts import ResultCallback, ShareParts

if TYPE_CHECKING:
    from ...codecs.record_decoder import RecordDecoder

__all__ = ["AnyShareRecord", "RecordOrRecords", "ShareConsumer"]

D = TypeVar("D")
T = TypeVar("T")

#: A record, decoded or not, or the record in the place of an undecodable one.
AnyShareRecord: TypeAlias = ShareRecord[Any, Any] | Undecodable

#: One record, or several.
RecordOrRecords: TypeAlias = AnyShareRecord | Iterable[AnyShareRecord]

_NEVER: Final = float("inf")

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

_ACCEPT: Final = int(AcknowledgeType.ACCEPT)
_RELEASE: Final = int(AcknowledgeType.RELEASE)
_REJECT: Final = int(AcknowledgeType.REJECT)
_RENEW: Final = int(AcknowledgeType.RENEW)


class ShareConsumer(Generic[K, V, U]):
    """Yields records that its share group has acquired for it; `Client.share_consumer` creates it.

    Members of a share group share partitions: a record goes to one member at a time, which has a
    lock on it until it acknowledges the record, or until the lock ends
    (group.share.record.lock.duration.ms). Use the consumer with `async with`: the end of the block
    sends the acknowledgements, releases all other records, and leaves the group.

    With implicit acknowledgement, asking for the next record, list or `poll` accepts the records
    returned before; so does the end of the block without an exception. With explicit
    acknowledgement the program calls `accept`, `release` or `reject` for each record, in any order;
    `renew` starts the lock of a record again. A record that is not acknowledged is delivered again,
    after its lock has ended or after the close.

    `ShareConsumer[str, Order]` has codecs: `decoder` decodes keys and values. After an
    UndecodableRecordError the consumer continues with the next record; the next poll, or the end of
    the block without an exception, rejects the undecodable record, in both modes.
    """

    if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
        __class_getitem__ = classmethod(GenericAlias)

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str],
        settings: ShareGroupSettings,
        *,
        decoder: RecordDecoder[K, V, U] | None = None,
        on_acknowledged: ResultCallback | None = None,
        make_forward_producer: ForwardProducerFactory | None = None,
        on_background_close: Callable[[asyncio.Task[None]], object] | None = None,
    ) -> None:
        if on_acknowledged is not None and (
            not callable(on_acknowledged) or inspect.iscoroutinefunction(on_acknowledged)
        ):
            raise ConfigurationError(
                f"on_acknowledged is {on_acknowledged!r:.80}; it must be a plain function, or None"
            )
        self._subscription = share_subscription(topics)
        self._view = view
        self._settings = settings
        self._is_explicit = settings.is_explicit
        self._decoder = decoder
        self._make_forward_producer = make_forward_producer
        limits = FetchLimits(
            settings.max_wait_ms,
            settings.fetch_min_bytes,
            settings.fetch_max_bytes,
            settings.max_poll_records,
            settings.acquire_mode_number,
        )
        self._parts = ShareParts(view, settings, limits, on_acknowledged, on_background_close)
        self._fetcher = self._parts.fetcher
        self._buffer = self._parts.fetcher.buffer
        self._status = self._parts.status
        self._yielder = LoopYielder()
        self._has_started = False
        self._is_in_block = False
        self._poller: object = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        _finalize(self._warn_if_left_open)

    def _warn_if_left_open(self) -> None:
        loop: asyncio.AbstractEventLoop | None = getattr(self, "_loop", None)
        if loop is None or self._status.is_closed:
            return
        call_in_loop(loop, self._parts.start_background_close)
        warn_unclosed(self._description(), self)

    def _description(self) -> str:
        return f"a consumer of the share group {self._settings.group_id!r}"

    # Start and end

    async def __aenter__(self) -> Self:
        self._view.loop_guard.check()
        if self._has_started or self._status.is_closed:
            was = "closed" if self._status.is_closed else "started"
            raise ConfigurationError(f"the consumer was {was} already; create another one")
        self._is_in_block = True
        self._start()
        return self

    def _start(self) -> None:
        self._has_started = True
        self._loop = asyncio.get_running_loop()
        self._parts.start(self._subscription)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            if not self._status.is_closed:
                # Without an exception the last returned records count as processed.
                self._fetcher.accept_returned()
            await self.close()
        else:
            is_cancelled = isinstance(error, asyncio.CancelledError)
            await self._close_after_error(is_cancelled=is_cancelled)

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Sends the acknowledgements, releases all other records, and leaves the group.

        Waits for the response to a fetch in flight, so the call takes up to `max_wait_ms`. The
        requests of the close have `timeout_ms`, at most `api_timeout_ms`, which is the default. If
        `close` is cancelled, once or repeatedly, it still does so, within `error_flush_ms` and
        `cancelled_close_ms`, before it raises CancelledError. If another task closes the consumer,
        the call waits for that close. With implicit acknowledgement, the records before the last
        returned one count as processed.
        """
        if timeout_ms is not None:
            check_whole_number("timeout_ms", timeout_ms, 0)
        self._check_may_close()
        most_ms = self._view.settings.api_timeout_ms
        await self._parts.close(most_ms if timeout_ms is None else min(timeout_ms, most_ms))

    async def _close_within(self, timeout_ms: int | None) -> None:
        await self.close(timeout_ms=timeout_ms)

    async def _close_after_error(self, *, is_cancelled: bool = False) -> None:
        """Closes the consumer within `error_flush_ms`."""
        self._check_may_close()
        limit_ms = self._view.settings.error_flush_ms
        await self._parts.close_after_error(limit_ms, is_cancelled=is_cancelled)

    def _check_may_close(self) -> None:
        """Raises ConfigurationError outside of the client's event loop, and in a handler."""
        self._view.loop_guard.check()
        pool = self._parts.pool
        if pool is not None and pool.is_called_by_handler:
            raise ConfigurationError(
                "a handler cannot close its consumer, because that waits for the handler: "
                "raise kproto.Stop, and run() ends"
            )

    async def _end_iteration(self) -> None:
        if self._has_started and not self._is_in_block and not self._status.is_closed:
            await self.close()

    # Subscription and state

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that the group has assigned to this member, perhaps to others, too."""
        return self._fetcher.assigned

    @property
    def lock_timeout_ms(self) -> int | None:
        """The duration of acquisition locks in ms; None before the first response to a fetch."""
        return self._fetcher.lock_timeout_ms

    def subscribe(self, topics: str | Iterable[str]) -> None:
        """Replaces the subscription.

        Releases the fetched records of former topics that were not returned: the group delivers
        them again. Returned records can still be acknowledged.
        Raises ConfigurationError for invalid topics, and if the consumer is closed.
        """
        self._check_open("subscribe")
        self._subscription = share_subscription(topics)
        if self._has_started:
            self._parts.subscribe(self._subscription)

    # Polling

    def __aiter__(self) -> ShareIteration[K, V, U]:
        if self._decoder is None:
            return ShareIteration(self, self._buffer)
        return DecodedShareIteration(self, self._buffer, self._decoder)

    def record_lists(self) -> ShareListIteration[K, V, U]:
        """Iterates over lists of records: each has acquired records of one partition.

        With codecs, a list ends before an undecodable record, and the next call raises the error.
        """
        return ShareListIteration(self, self._buffer, self._decoder)

    async def poll(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[ShareRecord[K, V] | U]]:
        """Returns acquired records by partition; waits up to `timeout_ms` for the first record.

        Returns at most `max_records`, by default `max_poll_records`. The dict is empty if no record
        arrives in time, or if the consumer is closed during the call. With implicit
        acknowledgement the call accepts the records of the previous call. A cancelled call loses no
        record. Raises the errors of an iteration, and ConfigurationError for an invalid argument.
        """
        check_whole_number("timeout_ms", timeout_ms, 0)
        most = self._settings.max_poll_records
        if max_records is not None:
            check_whole_number("max_records", max_records, 1)
            most = max_records
        ends_at = self._view.clock.monotonic() + timeout_ms / 1000
        try:
            decode = None if self._decoder is None else self._decoder.decode_list
            take = partial(self._buffer.take_polled, most, decode)
            return await self._poll(object(), take, ends_at) or {}
        except PollTimeoutError:
            return {}

    async def _poll(
        self, poller: object, take: Callable[[], T | None], ends_at: float = _NEVER
    ) -> T | None:
        """Waits until `take` returns an item, and returns it; None if the consumer is closed."""
        self._view.loop_guard.check()
        if self._status.is_polling:
            raise ConfigurationError(
                "another iteration of this consumer waits for records; iterate in one task, or "
                "create a consumer for each task"
            )
        pool = self._parts.pool
        if pool is not None and poller is not pool:
            raise ConfigurationError("run() polls this consumer; iterate over another one")
        if self._status.is_closed:
            if poller is self._poller:
                return None  # the consumer was closed during the iteration
            self._check_open("poll records of")
        self._poller = poller
        if not self._has_started:
            self._start()
        self._status.is_polling = True
        try:
            return await self._poll_until_available(take, ends_at)
        finally:
            self._status.is_polling = False
            self._fetcher.waiting_polls = 0

    async def _poll_until_available(self, take: Callable[[], T | None], ends_at: float) -> T | None:
        clock, status = self._view.clock, self._status
        now = clock.monotonic()
        self._parts.on_poll(now)
        if now >= self._yielder.next_at:
            await self._yielder.yield_at_intervals(now)
        is_last = False
        while True:
            error = status.fatal_error or status.take_pending_error()
            if error is not None:
                raise error.with_traceback(None)
            fetched = None if status.is_closed else take()
            if fetched is not None:
                self._parts.on_returned(clock.monotonic())
                return fetched
            if status.is_closed:
                return None
            if is_last:
                raise PollTimeoutError
            is_last = clock.monotonic() >= ends_at
            self._fetcher.waiting_polls = 1
            await self._parts.until_arrival(ends_at)

    def _check_open(self, what: str) -> None:
        if self._status.is_closed:
            raise ConfigurationError(
                f"the consumer is closed: create another one to {what} the share group "
                f"{self._settings.group_id!r}"
            )

    # Acknowledgements

    async def accept(self, records: RecordOrRecords) -> None:
        """Accepts a record, or several: they are processed, and are never delivered again.

        The acknowledgement is sent with the next fetch, or after 50 ms; `commit` waits for its
        result, and `on_acknowledged` gets the result. Raises LockLostError if the lock of a record
        has ended, and ConfigurationError for a record of another consumer, for a record that is
        acknowledged already, with implicit acknowledgement, and after the close. Records before the
        one with the error stay acknowledged.
        """
        self._acknowledge(records, _ACCEPT)

    async def release(self, records: RecordOrRecords) -> None:
        """Releases a record, or several: the group delivers them again, to any member.

        After the number of deliveries in `group.share.delivery.count.limit` of the broker, 5 by
        default, the broker archives the record instead. Raises the errors of `accept`.
        """
        self._acknowledge(records, _RELEASE)

    async def reject(self, records: RecordOrRecords) -> None:
        """Rejects a record, or several: they cannot be processed, and are never delivered again.

        Raises the errors of `accept`.
        """
        self._acknowledge(records, _REJECT)

    async def renew(self, records: RecordOrRecords) -> None:
        """Starts the lock of a record, or of several, again (KIP-1222).

        Another acknowledgement must follow. Raises the errors of `accept`, and
        UnsupportedVersionError if the broker is older than Kafka 4.2.
        """
        if not self._fetcher.can_renew:
            raise UnsupportedVersionError(
                "the broker renews no locks (KIP-1222): it is older than Kafka 4.2"
            )
        self._acknowledge(records, _RENEW)

    def _acknowledge(self, records: RecordOrRecords, kind: int) -> None:
        if self._status.is_closed or not self._is_explicit or self._parts.pool is not None:
            self._refuse_acknowledgements()
        if isinstance(records, Record):
            self._fetcher.acknowledge(records, kind)
            return
        if not isinstance(records, Iterable):
            raise ConfigurationError(f"{records!r:.80} is neither a record nor several")
        for record in records:
            self._fetcher.acknowledge(record, kind)

    def _refuse_acknowledgements(self) -> None:
        self._check_open("acknowledge records of")
        if not self._is_explicit:
            raise ConfigurationError(
                "this consumer acknowledges implicitly: asking for the next record accepts the "
                'previous one; set acknowledgement="explicit" to acknowledge records yourself'
            )
        raise ConfigurationError("run() acknowledges the records of this consumer")

    async def commit(self) -> list[AcknowledgeResult]:
        """Sends all acknowledgements, and waits for their results, by partition and request.

        With implicit acknowledgement, first accepts all returned records. Waits for
        `api_timeout_ms` at most. The errors of the broker are in the results: a record whose
        acknowledgement has failed is delivered again. Raises RequestTimeoutError, and
        ConfigurationError after the close.
        """
        self._check_open("commit acknowledgements of")
        self._view.loop_guard.check()
        lost: list[AcknowledgeResult] = []
        if not self._is_explicit and self._parts.pool is None:
            lost = self._fetcher.accept_returned()
        limit_ms = self._view.settings.api_timeout_ms
        until = self._view.clock.monotonic() + limit_ms / 1000
        return lost + await self._view.with_deadline(until, self._fetcher.commit(), limit_ms)

    # Concurrent processing

    @overload
    async def run(
        self,
        handler: Callable[[ShareRecord[K, V]], Awaitable[object]],
        *,
        decode: None = None,
        **settings: Unpack[ShareRunArguments],
    ) -> ShareRunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[D], Awaitable[object]],
        *,
        decode: Callable[[ShareRecord[K, V]], D],
        **settings: Unpack[ShareRunArguments],
    ) -> ShareRunSummary: ...

    async def run(
        self,
        handler: Callable[..., Awaitable[object]],
        *,
        decode: Callable[[Any], Any] | None = None,
        **settings: Unpack[ShareRunArguments],
    ) -> ShareRunSummary:
        """Calls `handler` with each record, up to `workers` at once, until `run` is stopped.

        Needs explicit acknowledgement. A record is accepted when its handler returns. If the
        handler raises, the record is released after the backoff of `retries`, as long as the number
        of its deliveries to all members is at most `retries.attempts`; then it is sent to
        `dead_letter_topic`, with failure headers (`kproto.failure_of`), or rejected without a dead
        letter topic. A failed record is not released after the last delivery that the config
        share.delivery.count.limit of the group allows at the start of `run`, if the principal may
        read it (DESCRIBE_CONFIGS on the group): the broker would archive the record. If `decode` or
        a codec of the consumer raises, the record is a dead letter, or rejected, at once. While a
        record waits or is processed, `run` renews its lock; it drops a waiting record whose lock
        has ended nevertheless.

        `run` stops if a handler raises `Stop`, at a signal of `stop_on` (by default SIGTERM, if it
        has no other handler), if `run` is cancelled, or if the consumer is closed. Then it releases
        the records that have not started, waits up to `drain_timeout_ms` for the handlers that
        still run, cancels them and releases their records. Raises ConfigurationError for invalid
        arguments and for a dead letter topic that does not exist, and errors of polls.
        """
        self._view.loop_guard.check()
        self._check_open("process records of")
        if not self._is_explicit:
            raise ConfigurationError(
                'run() acknowledges each record: set acknowledgement="explicit"'
            )
        if self._parts.pool is not None or self._status.is_polling:
            raise ConfigurationError("another task polls this consumer already")
        checked = share_run_settings(settings)
        if checked.dead_letter_topic in self._subscription.topics:
            raise ConfigurationError(
                f"dead letters in {checked.dead_letter_topic!r} would be handled: this consumer "
                "reads it"
            )
        handle = record_handler(handler, with_codecs(self._decoder, decode))
        return await self._run(handle, checked)

    def _on_stop_signal(self) -> None:
        """Stops `run`, as a signal of `stop_on` does; the blocking client handles the signals."""
        if self._parts.pool is not None:
            self._parts.pool.on_signal()

    def _release_unreceived(self, records: Iterable[AnyShareRecord]) -> None:
        """Releases records that a poll has returned, but that no caller has received.

        The blocking client calls it, if its calling thread was interrupted when the poll had ended.
        """
        with suppress(LockLostError):  # the group delivers all of them again
            for record in records:
                self._fetcher.acknowledge(record, _RELEASE)

    def _release_undecodable(self) -> None:
        """Releases the record whose UndecodableRecordError a poll has raised, but no caller has."""
        self._buffer.release_undecodable()

    async def _run(self, handle: Any, settings: RunSettings) -> ShareRunSummary:
        producer = None
        if settings.dead_letter_topic is not None:
            if self._make_forward_producer is None:
                raise ConfigurationError("this consumer has no producer of dead letters")
            producer = self._make_forward_producer()
        group_id = self._settings.group_id
        port = self._parts.pool_port(self)
        most = self._settings.max_poll_records
        pool = SharePool(port, self._view.clock, settings, handle, producer, group_id, most)
        self._parts.begin_run(pool)
        try:
            counted = self._view.observer.runs(group_id).during(pool)
            with counted, signals_handled(settings.stop_on, pool.on_signal):
                await check_forward_topics(self._view, settings.forward_topics)
                pool.use(await limit_retries(self._view, group_id, settings))
                await pool.until_stopped()
        except BaseException:
            if pool.error is not None:
                log_unraised(pool.error)
            raise
        finally:
            try:
                if producer is not None:
                    await producer.close(timeout_ms=self._view.settings.error_flush_ms)
            finally:
                self._parts.end_run()
        if pool.error is not None:
            raise pool.error
        return pool.summary


def share_subscription(topics: str | Iterable[str]) -> Subscription:
    """Returns a subscription to topics by name; share groups match no patterns.

    Raises ConfigurationError for other objects, for a name that no topic can have, and if there is
    no topic.
    """
    if not isinstance(topics, str) and isinstance(topics, Iterable):
        topics = list(topics)
        if not topics:
            raise ConfigurationError(
                "a share consumer needs a topic; its close ends a subscription"
            )
    subscription = Subscription.to(topics)
    if subscription.pattern is not None or subscription.broker_pattern is not None:
        raise ConfigurationError(
            f"{topics!r:.80} is a pattern: a share group subscribes to topics by name (KIP-932)"
        )
    for topic in sorted(subscription.topics):
        if _TOPIC_NAME.fullmatch(topic) is None or topic in (".", ".."):
            raise ConfigurationError(
                f"{topic!r:.80} is no name of a topic: names have 1 to 249 letters, digits, dots, "
                "underscores and hyphens of ASCII, and are not '.' or '..'"
            )
    return subscription
