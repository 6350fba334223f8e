"""`RecordProcessing`: runs a processing pool on polled records, for `GroupConsumer.run`.

The package `processing` decides when each record is processed, and tracks incomplete offsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from ...clock import Timer
from ...wire.errors import ConfigurationError, UnreadableRecordError
from ..core.tasks import shielded
from ..fetch.effects import FetchEffect
from ..fetch.partition_state import TopicPartitionState
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..processing.failure_log import log_unraised
from ..processing.forward_topics import check_forward_topics
from ..processing.handlers import BatchHandler, RecordHandler
from ..processing.pool import ProcessingPool
from ..processing.ports import AckSink, RecordReceiver, RecordSink, TransactionalProducer
from ..processing.run_summary import RunSummary
from ..processing.run_transactions import RunTransactions
from ..processing.settings import RunSettings
from ..processing.signals import signals_handled
from ..processing.transactional_handlers import TransactionalBatchHandler, TransactionalHandler
from .group_effects import GroupEffectHandler
from .rebalance_listener import RebalanceListenerInvoker
from .transactional_offsets import TransactionalOffsets

__all__ = [
    "ForwardProducerFactory",
    "ProcessingConsumer",
    "RecordProcessing",
    "TransactionalProducerFactory",
    "check_run_topics",
]

T = TypeVar("T")

logger = logging.getLogger("kproto.client")

#: Creates a producer for records that are sent to retry and dead-letter topics.
ForwardProducerFactory: TypeAlias = Callable[[], RecordSink]

#: Creates the producer of `run` from a transactional id and the transaction timeout in ms.
TransactionalProducerFactory: TypeAlias = Callable[[str, int], TransactionalProducer]


class ProcessingConsumer(Protocol):
    """The methods of `GroupConsumer` that this module calls."""

    async def _poll(self, poller: object, take: Callable[[], T | None]) -> T | None: ...
    async def _stop(self) -> None: ...
    def _subscribe_retry_topics(self, topics: frozenset[str]) -> None: ...


class RecordProcessing:
    """Connects a group consumer to the processing pool of `run`, as its `ConsumerPort`.

    `pool` exists during `run`, and is None otherwise. The pool queues at most `max_bytes` of
    records.
    """

    def __init__(
        self,
        view: ClusterView,
        stream: ProcessingConsumer,
        subscriptions: SubscriptionState,
        effect_handler: GroupEffectHandler,
        listener: RebalanceListenerInvoker,
        acks: AckSink,
        make_forward_producer: ForwardProducerFactory | None,
        make_transactional_producer: TransactionalProducerFactory | None,
        transactional_offsets: TransactionalOffsets,
        *,
        group_id: str,
        max_bytes: int,
    ) -> None:
        self._view = view
        self._stream = stream
        self._subscriptions = subscriptions
        self._effects = effect_handler
        self._listener = listener
        self._acks = acks
        self._make_forward_producer = make_forward_producer
        self._make_transactional_producer = make_transactional_producer
        self._transactional_offsets = transactional_offsets
        self._group_id = group_id
        self._max_bytes = max_bytes
        self.pool: ProcessingPool | None = None
        self._run_ended: asyncio.Event | None = None  # also set if `stop` waits no longer
        self._stop_timer: Timer | None = None

    async def run(
        self,
        handle: RecordHandler | BatchHandler | TransactionalHandler,
        settings: RunSettings,
    ) -> RunSummary:
        """Processes records until the pool is stopped; see `GroupConsumer.run`."""
        producer: RecordSink | RunTransactions | None = None
        transactions: RunTransactions | None = None
        if isinstance(handle, TransactionalHandler | TransactionalBatchHandler):
            producer = transactions = handle.transactions = self._create_transactions(settings)
        elif settings.forward_topics:
            if self._make_forward_producer is None:
                raise ConfigurationError("this consumer has no producer of forwarded records")
            producer = self._make_forward_producer()
        group_id = self._group_id
        pool = self.pool = ProcessingPool(
            self,
            self._acks if transactions is None else transactions,
            self._view.clock,
            settings,
            handle,
            producer,
            group_id,
            self._max_bytes,
            None if transactions is None else transactions.failures,
        )
        run_ended = self._run_ended = asyncio.Event()
        try:
            counted = self._view.observer.runs(group_id).during(pool)
            with counted, signals_handled(settings.stop_on, pool.on_signal):
                await check_forward_topics(self._view, settings.forward_topics)
                self._stream._subscribe_retry_topics(
                    frozenset(retry_topic.topic for retry_topic in settings.retry_topics)
                )
                if transactions is not None:
                    transactions.pool = pool
                    await transactions.start(pool.stopping)
                    self._listener.transactions = transactions
                await self._process(pool, self._acks if transactions is None else transactions)
        except BaseException:
            if pool.error is not None:
                log_unraised(pool.error)
            raise
        finally:
            try:
                if producer is not None:
                    await producer.close(timeout_ms=self._view.settings.error_flush_ms)
            finally:
                self.pool = self._listener.transactions = None
                run_ended.set()
                if self._stop_timer is not None:
                    self._stop_timer.cancel()
                    self._stop_timer = None
        if pool.error is not None:
            raise pool.error
        return pool.summary

    def _create_transactions(self, settings: RunSettings) -> RunTransactions:
        if self._make_transactional_producer is None or settings.transactional_id is None:
            raise ConfigurationError("this consumer has no producer of transactions")
        timeout_ms = settings.transaction_timeout_ms
        return RunTransactions(
            self._make_transactional_producer(settings.transactional_id, timeout_ms),
            self._transactional_offsets,
            self._view.clock,
            self._view.settings,
            timeout_ms,
            self._group_id,
        )

    async def _process(self, pool: ProcessingPool, acks: AckSink) -> None:
        subscriptions = self._subscriptions
        poll = subscriptions.poll
        poll.on_poll(self._view.clock.monotonic())  # earlier records are processed
        poll.buffer.put_back_remaining()
        poll.processor = pool
        try:
            await pool.until_stopped()
        finally:
            try:
                settings = self._view.settings
                limit_ms = max(round(pool.drain_remaining_ms), settings.error_flush_ms)
                await shielded(
                    self._acknowledge_and_stop(acks, limit_ms),
                    self._view.clock,
                    limit_ms + settings.cancelled_close_ms,
                    what=f"the last commit of run() in the group {self._group_id!r}",
                    afterwards="records whose offsets are not committed are redelivered",
                )
            finally:
                left = [
                    (state, offset, poll.bitmap_of(state))
                    for state, offset in pool.first_incomplete_offsets().items()
                    if isinstance(state, TopicPartitionState)
                ]
                poll.processor = None
                poll.on_poll(self._view.clock.monotonic())
                self._effects.apply(subscriptions.release_backpressure())
                for state, offset, bitmap in left:
                    self._effects.apply(subscriptions.rewind(state, offset, bitmap))

    async def _acknowledge_and_stop(self, acks: AckSink, limit_ms: int) -> None:
        await acks.acknowledge(limit_ms)
        await self._stream._stop()

    def check_no_handler(self) -> None:
        """Raises ConfigurationError if a handler makes the call."""
        if self.pool is not None and self.pool.is_called_by_handler:
            raise ConfigurationError(
                "a handler cannot close its consumer, because that waits for the handler: "
                "raise kproto.Stop, and run() ends"
            )

    async def stop(self) -> None:
        """Stops the pool, and waits for the end of `run`; does nothing if `run` is not running.

        After a call of `end_drain`, waits for `error_flush_ms` at most, because a handler may
        continue even if it was cancelled.
        """
        if self.pool is not None and self._run_ended is not None:
            self.pool.stop()
            await self._run_ended.wait()

    def end_drain(self) -> None:
        """Cancels the handlers of `run`; then `run` commits. Does nothing if `run` is not running.

        Records whose handlers are cancelled do not count as processed.
        """
        if self.pool is None or self._run_ended is None or self._stop_timer is not None:
            return
        if self.pool.records_in_flight:
            logger.warning(
                "group %s: the handlers of run() are cancelled, because the time of the cancelled "
                "close is over (error_flush_ms and cancelled_close_ms); their records are "
                "redelivered",
                self._group_id,
            )
        self.pool.end_drain()
        seconds = self._view.settings.error_flush_ms / 1000
        self._stop_timer = self._view.clock.call_later(seconds, self._run_ended.set)

    @property
    def has_lost_in_flight(self) -> bool:
        """True if records of lost partitions are being processed.

        The member waits until the handlers of these records have ended before it rejoins.
        """
        return self.pool is not None and self.pool.has_lost_in_flight

    # The ConsumerPort

    async def poll_records(self, receiver: RecordReceiver) -> bool:
        """Polls records, and passes them to `receiver`; returns False if the consumer is closed."""
        return (
            await self._stream._poll(receiver, partial(self._take_records_for, receiver))
            is not None
        )

    def _take_records_for(self, receiver: RecordReceiver) -> bool | None:
        buffer = self._subscriptions.poll.buffer
        if not receiver.accepts_records:
            receiver.on_poll_refused()
            return None
        try:
            fetched = buffer.take_records(receiver.max_list_bytes)
        except UnreadableRecordError as error:
            state = buffer.last_taken
            receiver.accept_unreadable(state, state.assignment_epoch, state.tp, error)
            return True
        if fetched is None:
            return None
        state = buffer.last_taken
        receiver.accept_records(state, state.assignment_epoch, state.tp, fetched.records)
        return True

    @property
    def is_out_of_session(self) -> bool:
        """True if the session may have expired; other members may then own the partitions."""
        return self._effects.is_out_of_session

    async def until_in_session(self) -> None:
        """Waits until a heartbeat has extended the session, or the partitions are lost."""
        await self._effects.until_in_session()

    def apply_backpressure(self, tp: TopicPartition) -> None:
        """Stops polling a partition until `release_backpressure`."""
        self._subscriptions.apply_backpressure(tp)

    def release_backpressure(self, tp: TopicPartition) -> None:
        """Ends the backpressure: records of the partition are polled again."""
        self._effects.apply(self._subscriptions.release_backpressure([tp]))

    def wake_poll(self) -> None:
        """Wakes the poll, which then checks again whether the pool accepts records."""
        self._effects.apply([FetchEffect.WAKE_POLL])

    def on_drained(self, *, is_lost: bool) -> None:
        """Makes a revocation check again whether handlers still process records of its partitions.

        A rejoin may wait for handlers that process records of lost partitions. If `is_lost` is True
        and no such record is left, wakes this rejoin.
        """
        self._listener.on_poll()
        if is_lost and self._effects.member is not None and not self.has_lost_in_flight:
            self._effects.member.on_poll()


class _SubscriptionMethods(Protocol):
    """The methods of `groups.subscription.Subscription` that this module calls."""

    @property
    def pattern(self) -> object: ...
    def includes(self, topic: str) -> bool: ...
    def matches_locally(self, topic: str) -> bool: ...


def check_run_topics(
    settings: RunSettings,
    subscription: _SubscriptionMethods | None,
    manual_assignment: Collection[TopicPartition] = (),
) -> None:
    """Raises ConfigurationError for topics of `run` that do not fit the consumer.

    The consumer must be able to subscribe to the retry topics, and must not read the dead letter
    topic.
    """
    dead_letter_topic = settings.dead_letter_topic
    is_read = dead_letter_topic in [topic for topic, _ in manual_assignment]
    if dead_letter_topic is not None and (
        is_read or (subscription is not None and subscription.matches_locally(dead_letter_topic))
    ):
        raise ConfigurationError(
            f"dead letters in {dead_letter_topic!r} would be handled: this consumer reads it"
        )
    for retry_topic in settings.retry_topics:
        if subscription is None:
            raise ConfigurationError("retry topics need a subscription: the group assigns them")
        if subscription.pattern is not None and not subscription.includes(retry_topic.topic):
            raise ConfigurationError(
                f"the subscribed pattern does not match the retry topic {retry_topic.topic!r}"
            )
