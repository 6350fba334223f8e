"""`GroupConsumer`: reads partitions that its group assigns, or manually assigned partitions.

It is composed of the poll loop (`record_stream`), `run` (`processing_stream`), the rebalance
listener, the committer and auto-commit, and the group member, which handles no records.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypeVar

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
from ..processing.settings import (
    RunSettings,
)
from .group_parts import GroupFactories, MemberFactory, create_fetch_parts, create_group_parts
from .group_topics import GroupTopics, checked_subscription
from .processing_stream import ProcessingStream
from .rebalance_listener import CallbackHolder, RebalanceCallbacks
from .record_processing import (
    ForwardProducerFactory,
    TransactionalProducerFactory,
)
from .record_stream import PollTimeoutError
from .user_offsets import ReturnedRecords, explicit_commit

if TYPE_CHECKING:
    from ...codecs.record_decoder import RecordDecoder

__all__ = ["GroupConsumer"]

T = TypeVar("T")

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")


class GroupConsumer(ProcessingStream[K, V, U]):
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
        self._topics = GroupTopics(view, topics)
        self._settings = settings
        self._group_id = settings.group_id
        self._has_started = False
        self._is_in_block = False
        fetching = create_fetch_parts(
            view, settings, start, options, is_shared=self._topics.subscription is not None
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
        if options.allow_auto_create_topics:
            self._topics.allow_creation()
        self._callbacks = CallbackHolder(callbacks)
        parts = create_group_parts(
            view,
            self,
            fetching,
            settings,
            options,
            self._topics.subscription,
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
        tps = self._topics.manual_assignment
        if tps:
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

    def _check_may_run(self, settings: RunSettings) -> None:
        self._check_started("run handlers on")
        self._check_may_poll("run handlers on")
        if self._processing.pool is not None or self._status.is_polling:
            raise ConfigurationError("run() or an iteration reads this consumer already")
        self._topics.check_run(settings)

    # Subscribing

    def subscribe(self, topics: str | Iterable[str] | re.Pattern[str] | TopicPattern) -> None:
        """Replaces the subscription. If the new subscription differs, the group rebalances.

        A pattern matches whole names. Raises ConfigurationError for an invalid topic, if partitions
        are assigned manually, and once the consumer is closed. During `run`, also raises
        ConfigurationError if the subscription matches the dead letter topic, or if a compiled
        pattern does not match all retry topics.
        """
        pool = self._processing.pool
        subscription = checked_subscription(topics, None if pool is None else pool.settings)
        self._topics.subscribe(subscription, self._require_member("subscribe"))

    def _subscribe_retry_topics(self, topics: frozenset[str]) -> None:
        """Adds the retry topics `topics` to the subscription, and removes earlier retry topics.

        Partitions of retry topics without a committed offset start at the log start.
        """
        self._topics.subscribe_retry_topics(topics, self._member)
        self._subscriptions.starts.from_start = topics

    def unsubscribe(self) -> None:
        """Ends the subscription: the member revokes all partitions in the background.

        A dynamic member also leaves the group; the member joins again after `subscribe`.
        """
        self._topics.unsubscribe(self._require_member("unsubscribe"))

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
        self._effects.apply(self._positions.seek(partition, where))

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
