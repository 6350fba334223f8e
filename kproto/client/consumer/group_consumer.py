"""`GroupConsumer`: reads partitions that its group assigns, or manually assigned partitions.

It is composed of the poll loop (`record_stream`), the rebalance listener, the committer and
auto-commit, the processing of `run()`, and the group member, which handles no records.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack, overload

from ...records import Record
from ...records.type_variables import K, U, V
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.errors import CommitFailedError
from ..commits.membership import GroupMembership
from ..commits.offset_requests import CommittedOffset
from ..commits.transactional_commit import TransactionalCommit
from ..fetch.fetch_options import DEFAULT_FETCH_OPTIONS, FetchOptions
from ..fetch.start_options import (
    LAST_OFFSET,
    GroupStart,
    check_group_start,
    parse_start,
    reset_policy_of,
)
from ..fetch.start_positions import find_partitions
from ..groups.ignored_settings import FOR_MANUAL_ASSIGNMENT, ignored_settings_in
from ..groups.settings import GroupSettings
from ..groups.subscription import Subscription, TopicPattern
from ..metadata.checks import checked_tp
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..processing.handler_transaction import HandlerTransaction
from ..processing.handlers import (
    BatchFailures,
    BatchHandler,
    RecordHandler,
    record_handler,
    with_codecs,
)
from ..processing.run_summary import RunSummary
from ..processing.settings import (
    RunArguments,
    RunSettings,
    TransactionalRunArguments,
    run_settings,
)
from ..processing.transactional_handlers import TransactionalBatchHandler, TransactionalHandler
from .group_parts import GroupFactories, MemberFactory, create_fetch_parts, create_group_parts
from .group_topics import subscription_or_partitions, with_added_topics
from .rebalance_listener import CallbackHolder, RebalanceCallbacks
from .record_processing import (
    ForwardProducerFactory,
    TransactionalProducerFactory,
    check_run_topics,
)
from .record_stream import PollTimeoutError, RecordStream
from .user_offsets import ReturnedRecords, explicit_commit

if TYPE_CHECKING:
    from ...codecs.record_decoder import RecordDecoder

__all__ = ["GroupConsumer"]

D = TypeVar("D")
T = TypeVar("T")

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")


class GroupConsumer(RecordStream[K, V, U]):
    """Yields the records of its assigned partitions; `Client.consumer` creates it.

    Iterations work as the iterations of `Consumer`, and have no end. Use the consumer with `async
    with`: the end of the block waits until the consumer is closed (see `close`). Without `async
    with`, the first poll joins the group, and `close`, or `aclose` of the iteration, closes the
    consumer. If the iteration is garbage-collected, the consumer is closed in the background.

    A record, a list, a batch or the records of a `poll` count as processed when the caller polls
    again, or when the block ends without an exception. `auto_commit`, or a call of `commit`,
    commits processed offsets.

    The consumer calls `on_assigned`, `on_revoked` and `on_lost` when its assignment changes. Polls
    raise the exceptions of these callbacks, the errors of `Consumer`, and errors of the member.
    """

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
        settings: GroupSettings,
        make_member: MemberFactory,
        *,
        start: GroupStart,
        callbacks: RebalanceCallbacks,
        fetch_options: FetchOptions = DEFAULT_FETCH_OPTIONS,
        decoder: RecordDecoder[K, V, U] | None = None,
        make_forward_producer: ForwardProducerFactory | None = None,
        make_transactional_producer: TransactionalProducerFactory | None = None,
        on_background_close: Callable[[asyncio.Task[None]], object] | None = None,
    ) -> None:
        start = parse_start(start)
        check_group_start(start)
        callbacks.check()
        options = fetch_options._replace(reset_policy=reset_policy_of(start))
        options.check()
        self._subscription, self._manual_assignment = subscription_or_partitions(topics)
        self._retry_topics: frozenset[str] = frozenset()  # of `run`
        self._settings = settings
        self._group_id = settings.group_id
        self._has_started = False
        self._is_in_block = False
        fetching = create_fetch_parts(
            view, settings, start, options, is_shared=self._subscription is not None
        )
        self._effects = fetching.effect_handler
        self._committed = fetching.committed
        super().__init__(
            view,
            options,
            fetching.subscriptions,
            fetching.in_flight,
            fetching.effect_handler,
            fetching.status,
            fetching.owner,
            decoder,
        )
        self._allow_auto_create_topics = options.allow_auto_create_topics
        self._allow_creation(self._subscription, self._manual_assignment)
        self._callbacks = CallbackHolder(callbacks)
        parts = create_group_parts(
            view,
            self,
            fetching,
            settings,
            options,
            self._subscription,
            self._callbacks,
            GroupFactories(
                make_member, make_forward_producer, make_transactional_producer, on_background_close
            ),
        )
        self._listener = parts.listener
        self._member = parts.member
        self._committer = parts.committer
        self._auto_commit = parts.auto_commit
        self._positions = parts.positions
        self._transactional_offsets = parts.transactional_offsets
        self._processing = parts.processing
        self._closer = parts.closer

    # Joining and leaving

    async def __aenter__(self) -> Self:
        self._view.loop_guard.check()
        if self._has_started or self._status.is_closed:
            was = "closed" if self._status.is_closed else "started"
            raise ConfigurationError(f"the consumer was {was} already; create another one")
        self._has_started = self._is_in_block = True
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise
        return self

    async def _start(self) -> None:
        """Joins the group, or assigns the manually assigned partitions."""
        view = self._view
        self._loop = asyncio.get_running_loop()
        if self._manual_assignment:
            tps = self._manual_assignment
            given = self._settings.explicit_settings
            for sentence in ignored_settings_in(given, FOR_MANUAL_ASSIGNMENT, "here"):
                logger.warning("group %s: %s", self._group_id, sentence)
            since = view.clock.monotonic()  # known metadata may be of topics that were deleted
            await view.retrying(lambda: find_partitions(view, tps, since), responses=False)
            await self._listener.assign(tps)
        if self._member is not None:
            self._member.start()
            self._closer.must_leave = True
        self._auto_commit.start()

    async def _start_at_first_poll(self) -> None:
        """Joins the group at the first poll.

        If the join fails or is cancelled, the next poll joins.
        """
        self._has_started = True
        try:
            await self._start()
        except BaseException:
            self._has_started = False
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            if not self._status.is_closed:
                # Without an exception the last returned records count as processed.
                self._subscriptions.poll.on_poll(self._view.clock.monotonic())
            await self.close()
        else:
            is_cancelled = isinstance(error, asyncio.CancelledError)
            await self._close_after_error(is_cancelled=is_cancelled)

    async def _close_after_error(
        self, leave: bool | None = None, *, is_cancelled: bool = False
    ) -> None:
        """Closes the consumer within `error_flush_ms`; logs an exception of a callback.

        Commits and leaves the group even if the call is cancelled, once or repeatedly.
        """
        self._check_may_close()
        await self._closer.close_after_error(leave, is_cancelled=is_cancelled)

    async def close(self, leave: bool | None = None, *, timeout_ms: int | None = None) -> None:
        """Revokes all partitions, and ends the membership in the group.

        With `auto_commit` it commits processed offsets first; a record that a handler still
        processes does not count as processed. `leave` overrides the setting `leave`: by default a
        dynamic member leaves, so that the group rebalances at once, and a static member stays, so
        that it can rejoin within its session. The commit and the request to leave have
        `timeout_ms`, at most `api_timeout_ms`, which is the default; without an answer in this time
        the close continues. Callbacks and handlers of `run` have limits of their own. If another
        task closes the consumer, the call waits for that close. Raises an error, such as the error
        of a callback, if no poll has raised it yet.

        If `close` is cancelled, once or repeatedly, it still commits and leaves before it raises
        CancelledError. After the cancellation, callbacks and the handlers of `run` have the sum of
        `cancelled_close_ms` and `error_flush_ms`, and are then cancelled. After that, the commit
        and the request to leave have `error_flush_ms`. If this time is too short, the next call of
        `close`, or the close of the client, completes the close with the same limits; that call
        raises RequestTimeoutError if the time is too short again.
        """
        if leave is not None and not isinstance(leave, bool):
            raise ConfigurationError(f"leave is {leave!r:.80}; it is True, False or None")
        if timeout_ms is not None:
            check_whole_number("timeout_ms", timeout_ms, 0)
        self._check_may_close()
        await self._closer.close(leave, timeout_ms)

    async def _close_within(self, timeout_ms: int | None) -> None:
        await self.close(timeout_ms=timeout_ms)

    def _check_may_close(self) -> None:
        """Raises ConfigurationError if a handler or a callback of this consumer makes the call."""
        super()._check_may_close()
        self._check_no_callback("close")
        self._processing.check_no_handler()

    async def _end_iteration(self) -> None:
        if self._has_started and not self._is_in_block and not self._status.is_closed:
            await self.close()
        else:
            await super()._end_iteration()

    def _abort_iteration(self, poller: object) -> None:
        super()._abort_iteration(poller)
        if poller is self._poller and self._is_left_open() and not self._is_in_block:
            self._abandon()

    def _is_left_open(self) -> bool:
        is_closing = self._status.is_closed or self._closer.has_background_close
        return self._has_started and not is_closing

    def _is_closed_with_iteration(self) -> bool:
        return super()._is_closed_with_iteration() and not self._is_in_block

    def _abandon(self) -> None:
        self._listener.hold(self._callbacks)  # the garbage collector may have freed both at once
        self._closer.start_background_close()

    def _description(self) -> str:
        return f"a consumer of the group {self._group_id!r}"

    # Polling

    async def _poll(
        self, poller: object, take: Callable[[], T | None], ends_at: float = _NEVER
    ) -> T | None:
        pool = self._processing.pool
        if pool is not None and poller is not pool:
            raise ConfigurationError("run() polls this consumer; iterate over another one")
        fetched = await super()._poll(poller, take, ends_at)
        self._subscriptions.poll.on_records_returned(self._view.clock.monotonic())
        return fetched

    async def _prepare_poll(self, ends_at: float = _NEVER) -> None:
        self._check_may_poll("poll records of")
        if not self._has_started:
            await self._start_at_first_poll()
        took_s = self._subscriptions.poll.on_poll(self._view.clock.monotonic())
        self._listener.on_poll()
        if self._member is not None and not self._processing.has_lost_in_flight:
            self._member.on_poll()
        if self._processing.pool is None:
            self._subscribe_retry_topics(frozenset())
        if self._transactional_offsets.must_seek:
            await self._transactional_offsets.seek_to_committed()
        await self._yielder.yield_after_blocking(took_s)
        await self._until_in_session(ends_at)

    async def _fetch_once(self, ends_at: float = _NEVER) -> None:
        await super()._fetch_once(ends_at)
        # The machine may have been suspended since the records arrived.
        await self._until_in_session(ends_at)

    async def _until_in_session(self, ends_at: float) -> None:
        """Waits while the session may have expired, at most until `ends_at`.

        `ends_at` is in seconds of the clock. Raises PollTimeoutError if the session may still have
        expired at that time.
        """
        await self._effects.until_in_session(ends_at)
        if self._effects.is_out_of_session:
            raise PollTimeoutError

    def _is_finished(self) -> bool:
        failure = self._status.fatal_error
        if failure is not None:
            raise failure.with_traceback(None)  # each poll raises it
        return False

    # Concurrent processing

    @overload
    async def run(
        self,
        handler: Callable[[Record[K, V]], Awaitable[object]],
        *,
        decode: None = None,
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[D], Awaitable[object]],
        *,
        decode: Callable[[Record[K, V]], D],
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[Record[K, V], HandlerTransaction], Awaitable[object]],
        *,
        decode: None = None,
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[D, HandlerTransaction], Awaitable[object]],
        *,
        decode: Callable[[Record[K, V]], D],
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    async def run(
        self,
        handler: Callable[..., Awaitable[object]],
        *,
        decode: Callable[[Record[K, V]], Any] | None = None,
        transactional_id: str | None = None,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary:
        """Calls `handler` with each record, up to `workers` at once, until `run` is stopped.

        With order "partition" one record of a partition is handled at a time, with "key" one record
        of each key in a partition, and with "none" any number of records. `decode` returns the
        handler's argument for a record. With `auto_commit`, at most `commit_interval_ms` after a
        record is processed, `run` requests a commit of the offset of the first incomplete record.
        The metadata of the commit lists later processed offsets, which this client then skips. A
        record is handled only if its offset is less than `max_offset_gap` after the first
        incomplete offset. A failed record is retried as `retries` says: the default is 3 times, or
        0 times with `retry_topics`. Then it is sent to the next of `retry_topics`, and finally to
        `dead_letter_topic`, with failure headers (`kproto.failure_of`); without a dead letter topic
        `run` raises the error. If `decode` or a codec of the consumer raises, the record is a dead
        letter at once.

        `run` stops if a handler raises `Stop`, at a signal of `stop_on` (by default SIGTERM, if it
        has no other handler), if `run` is cancelled, or if the consumer is closed. At the end `run`
        waits for the handlers that still run, up to `drain_timeout_ms`, then cancels these
        handlers, and with `auto_commit` commits processed offsets. With `cancel_lost`, `run`
        cancels handlers of lost partitions at once. See docs/how-to/handling.md. Raises
        ConfigurationError, e.g. for a retry topic that does not exist, and errors of handlers and
        of polls.
        """
        self._view.loop_guard.check()
        checked = run_settings(transactional_id, settings)
        if transactional_id is not None:
            return await self._run(
                TransactionalHandler(handler, with_codecs(self._decoder, decode)), checked
            )
        return await self._run(record_handler(handler, with_codecs(self._decoder, decode)), checked)

    @overload
    async def run_batches(
        self,
        handler: Callable[[list[Record[K, V]]], Awaitable[BatchFailures]],
        *,
        batch_size: int = 500,
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    async def run_batches(
        self,
        handler: Callable[[list[Record[K, V]], HandlerTransaction], Awaitable[BatchFailures]],
        *,
        batch_size: int = 500,
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    async def run_batches(
        self,
        handler: Callable[..., Awaitable[BatchFailures]],
        *,
        batch_size: int = 500,
        transactional_id: str | None = None,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary:
        """Calls `handler` with batches of up to `batch_size` records; otherwise works as `run`.

        `settings` are the other arguments of `run`, except `decode`, with the same defaults.

        A batch has records of one partition that are ready, in the order of their offsets;
        `run_batches` never waits for more records to fill a batch. With order "partition" one batch
        of a partition is handled at a time, with "key" a batch has one record of each key, and with
        "none" several batches of a partition may be handled at a time. `handler` returns None if
        all records are processed, or a dict from the index of each failed record in the batch to
        its exception; if it raises, all records of the batch have failed. Failed records are
        retried or sent to `retry_topics` and `dead_letter_topic` one by one as in `run`, and the
        other records of the batch count as processed. With order "partition" the next batch starts
        after the retries, and a retry has failed records only. If `handler` raises
        `Stop(done=True)`, all records of its batch are processed.

        Raises the errors of `run`, and ConfigurationError if `handler` returns something else.
        """
        self._view.loop_guard.check()
        check_whole_number("batch_size", batch_size, 1)
        checked = run_settings(transactional_id, settings)
        if transactional_id is not None:
            return await self._run(
                TransactionalBatchHandler(handler, batch_size, with_codecs(self._decoder, None)),
                checked,
            )
        return await self._run(
            BatchHandler(handler, batch_size, with_codecs(self._decoder, None)), checked
        )

    def _on_stop_signal(self) -> None:
        """Stops `run`, as a signal of `stop_on` does; the blocking client handles the signals."""
        if self._processing.pool is not None:
            self._processing.pool.on_signal()

    async def _run(
        self, handle: RecordHandler | BatchHandler | TransactionalHandler, settings: RunSettings
    ) -> RunSummary:
        """Runs `handle` on polled records.

        Raises ConfigurationError if the consumer is in a state in which `run` is not possible.
        """
        self._check_started("run handlers on")
        self._check_may_poll("run handlers on")
        if self._processing.pool is not None or self._status.is_polling:
            raise ConfigurationError("run() or an iteration reads this consumer already")
        check_run_topics(settings, self._subscription, self._manual_assignment)
        return await self._processing.run(handle, settings)

    # Subscribing

    def subscribe(self, topics: str | Iterable[str] | re.Pattern[str] | TopicPattern) -> None:
        """Replaces the subscription. If the new subscription differs, the group rebalances.

        A pattern matches whole names. Raises ConfigurationError for an invalid topic, if partitions
        are assigned manually, and once the consumer is closed. During `run`, also raises
        ConfigurationError if the subscription matches the dead letter topic, or if a compiled
        pattern does not match all retry topics.
        """
        subscription, _ = subscription_or_partitions(topics)
        if subscription is None:
            raise ConfigurationError("subscribe needs topics; pass partitions to Client.consumer")
        if self._processing.pool is not None:
            check_run_topics(self._processing.pool.settings, subscription)
        member = self._require_member("subscribe")
        self._allow_creation(subscription, ())
        member.subscribe(with_added_topics(subscription, self._retry_topics))
        self._subscription = subscription

    def _allow_creation(
        self, subscription: Subscription | None, tps: Iterable[TopicPartition]
    ) -> None:
        """Lets brokers create the named topics, if the consumer has `allow_auto_create_topics`."""
        if self._allow_auto_create_topics:
            names = frozenset() if subscription is None else subscription.topics
            self._view.topic_creation.allow([*names, *(topic for topic, _ in tps)])

    def _subscribe_retry_topics(self, topics: frozenset[str]) -> None:
        """Adds the retry topics `topics` to the subscription, and removes earlier retry topics.

        Partitions of retry topics without a committed offset start at the log start.
        """
        is_changed = topics != self._retry_topics
        if is_changed and self._member is not None and self._subscription is not None:
            self._member.subscribe(with_added_topics(self._subscription, topics))
        self._retry_topics = self._subscriptions.starts.from_start = topics

    def unsubscribe(self) -> None:
        """Ends the subscription: the member revokes all partitions in the background.

        A dynamic member also leaves the group; the member joins again after `subscribe`.
        """
        self._require_member("unsubscribe").unsubscribe()
        self._subscription = None

    def enforce_rebalance(self, reason: str = "") -> None:
        """Requests a rebalance of a classic group; brokers log the `reason` (KIP-800).

        The call has no effect in the consumer protocol, because the coordinator assigns the
        partitions. Raises ConfigurationError for manually assigned partitions, and once the
        consumer is closed.
        """
        if not isinstance(reason, str):
            raise ConfigurationError(f"reason is {reason!r:.80}; it must be a str")
        reason = reason or "rebalance enforced by the program"
        self._require_member("rebalance").request_rejoin(reason)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._subscriptions.partitions)

    # Positions

    async def position(self, partition: TopicPartition) -> int:
        """Returns the position of a partition, the offset of its next record.

        Looks the position up if it is unknown. Raises ConfigurationError if the partition is not
        assigned, or if its topic was recreated and the group has not assigned the new topic yet.
        Raises NoCommittedOffsetError if `start` is "none" and the group has no committed offset.
        Raises BrokerResponseError for errors of a broker.
        """
        self._view.loop_guard.check()
        return await self._positions.position(checked_tp(partition))

    def seek(self, partition: TopicPartition, where: int | Literal["earliest", "latest"]) -> None:
        """Sets the position of a partition to an offset, or to the start or the end of its log.

        Buffered records of the partition are dropped. Raises ConfigurationError for a partition
        that is not assigned, and for an invalid offset.
        """
        self._view.loop_guard.check()
        if isinstance(where, str) and where not in ("earliest", "latest"):
            raise ConfigurationError(f"cannot seek to {where!r:.80}; it is earliest or latest")
        if not isinstance(where, str):
            check_whole_number("the offset to seek", where, 0, LAST_OFFSET)
        partition = checked_tp(partition)
        self._positions.state_of(partition)
        state, effects = self._subscriptions.seek(partition)
        if isinstance(where, int):
            state.set_position(where)
        else:
            state.await_reset(where)
        self._effects.apply(effects)

    def pause(self, *partitions: TopicPartition) -> None:
        """Stops fetching and returning records of `partitions`, which stay assigned.

        `resume` ends the pause. A revocation also ends the pause of a partition: `on_assigned` can
        pause the partition again. Raises ConfigurationError for a partition that is not assigned.
        """
        self._view.loop_guard.check()
        self._subscriptions.pause(self._positions.check_assigned(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Ends the pause of `partitions`: the consumer fetches and returns their next records.

        Raises ConfigurationError for a partition that is not assigned.
        """
        self._view.loop_guard.check()
        self._effects.apply(self._subscriptions.resume(self._positions.check_assigned(partitions)))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(self._subscriptions.paused)

    async def lag(self) -> dict[TopicPartition, int]:
        """Returns, for each assigned partition, the number of offsets from the position to the end.

        The end is the present high watermark, or with `read_committed` the last stable offset.
        Partitions that no longer exist or have no position are left out. Raises the errors of
        `position`.
        """
        self._view.loop_guard.check()
        return await self._positions.lag()

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """Returns, for each partition, the first offset with a timestamp at or after its time.

        The offset is None if there is no such record. Times are in ms since 1970. Raises
        ConfigurationError for an invalid time, and BrokerResponseError.
        """
        self._view.loop_guard.check()
        return await self._positions.offsets_for_times(times)

    # Commits

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int] | ReturnedRecords | None = None,
        metadata: str = "",
    ) -> None:
        """Commits the offsets of all processed records, or the given `offsets`.

        `offsets` maps partitions to the offset of the next record to be read. Instead, it may be a
        record, list or batch that an iteration returned, or the result of `poll`. The records that
        the last poll returned do not count as processed: `commit` commits their offsets only if the
        caller passes these records. `metadata` is stored with each offset. A commit waits for
        earlier commits, and is retried for `api_timeout_ms` after retriable errors. Raises
        CommitFailedError if this member may not commit the partitions now, BrokerResponseError if
        the broker refuses the commit, RequestTimeoutError, and ConfigurationError for invalid
        offsets.
        """
        self._check_may_commit()
        if self._listener.transactions is not None:
            raise ConfigurationError("run() commits offsets in its transactions")
        if offsets is not None and self._processing.pool is not None:
            raise ConfigurationError("run() tracks processed offsets: pass none to commit()")
        if not isinstance(metadata, str):
            raise ConfigurationError(f"metadata is {metadata!r:.80}; it must be a str")
        request = CommitRequest(CommitKind.PROCESSED, metadata=metadata)
        if offsets is not None:
            request = explicit_commit(offsets, metadata, self._subscriptions)
            self._listener.on_poll()  # a revocation may wait for these records
        await self._committer.commit(request, self._view.settings.api_timeout_ms)

    async def _transactional_commit(self) -> TransactionalCommit:
        """Returns the offsets that a transaction commits; see `Transaction.commit_offsets`."""
        self._check_may_commit()
        if self._processing.pool is not None:
            raise ConfigurationError(
                "run() processes records of this consumer in parallel: poll them, or iterate over "
                "them, to commit their offsets with a transaction"
            )
        return await self._transactional_offsets.commit()

    async def seek_to_committed(self) -> None:
        """Moves the positions of all assigned partitions back to the committed offsets.

        Call it after the abort of a transaction, so that the consumer returns the records of the
        transaction again. Waits while an open transaction has pending offsets of the partitions
        (KIP-447). A partition without a committed offset moves to its start offset. Buffered
        records are dropped. Raises BrokerResponseError and other errors of the requests, and moves
        no position after such an error. Raises ConfigurationError during `run`, and once the
        consumer is closed.
        """
        self._view.loop_guard.check()
        self._check_started("seek in")
        if self._status.is_closed:
            raise ConfigurationError("the consumer is closed; create another one")
        if self._processing.pool is not None:
            raise ConfigurationError("run() tracks processed offsets, and moves positions itself")
        await self._transactional_offsets.seek_to_committed()

    async def committed(
        self, *partitions: TopicPartition
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Returns the committed offsets of `partitions`, by default of the assigned partitions.

        An offset is None if the group has committed no offset of the partition. An offset that was
        committed for a deleted topic of the same name does not count. Raises BrokerResponseError.
        """
        self._view.loop_guard.check()
        tps = dict.fromkeys(map(checked_tp, partitions)) or self._subscriptions.partitions
        return (await self._committed.fetch(tps)).offsets

    # Checks

    def _check_may_commit(self) -> None:
        """Raises ConfigurationError before the start and after the end of the consumer.

        Raises CommitFailedError if the member has failed.
        """
        self._view.loop_guard.check()
        self._check_started("commit by")
        if self._status.is_closed and not self._listener.is_callback_running:
            raise ConfigurationError("the consumer is closed: create another one to commit offsets")
        failure = self._status.fatal_error
        if failure is not None:
            raise CommitFailedError(f"the member has failed: {failure}") from failure

    def _require_member(self, what: str) -> GroupMembership[Subscription]:
        self._view.loop_guard.check()
        if self._member is None:
            raise ConfigurationError(f"cannot {what} with manual assignment: there is no member")
        if self._status.is_closed:
            raise ConfigurationError("the consumer is closed; create another one")
        return self._member

    def _check_may_poll(self, what: str) -> None:
        if self._status.is_closed:
            raise ConfigurationError("the consumer is closed; create another one")
        self._check_no_callback(what.rsplit(" ", 1)[0])

    def _check_started(self, what: str) -> None:
        if not self._has_started:
            raise ConfigurationError(
                f"{what} a group consumer within its block, or after an iteration has started: "
                "`async with client.consumer(..., group=...) as consumer:`"
            )

    def _check_no_callback(self, what: str) -> None:
        if self._listener.is_in_callback:
            raise ConfigurationError(f"a callback cannot {what}: it would wait for its own end")
