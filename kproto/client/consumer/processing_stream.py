"""`ProcessingStream`: reads as its group has it, and has records handled side by side by `run`.

What is handled when, and up to where all is done, is of `running`; who joins the group, and what
comes and goes, of `group_consumer`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from ...records import Record
from ...wire.errors import ConfigurationError, KprotoError
from ..commits.committer import Committer
from ..fetch.assigned_partition import AssignedPartition
from ..fetch.in_flight_records import InFlightRecords
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition
from ..processing.destinations import check_outlets
from ..processing.failure_log import log_unraised
from ..processing.handlers import handle_of
from ..processing.pool import ProcessingPool
from ..processing.ports import ConsumerPort, RecordReceiver, RecordSink
from ..processing.settings import Order, Retries, RetryTopic, RunSettings, RunSummary
from ..processing.signals import signals_handled
from .rebalance_listener import RebalanceListenerInvoker
from .record_stream import RecordStream

__all__ = ["MakeOutlet", "ProcessingStream"]

D = TypeVar("D")
T = TypeVar("T")

logger = logging.getLogger("kproto.client")

#: Makes a producer for records that are sent on.
MakeOutlet: TypeAlias = Callable[[], RecordSink]


class _Subscribed(Protocol):
    """The topics that are read."""

    @property
    def pattern(self) -> object: ...
    def wants(self, topic: str) -> bool: ...
    def surely_wants(self, topic: str) -> bool: ...


class ProcessingStream(RecordStream):
    """A reader whose records `run` handles; who inherits it sets what stands here."""

    _assigned: SubscriptionState
    _in_hand: InFlightRecords
    _ownership: RebalanceListenerInvoker
    _committer: Committer
    _group_id: str
    _is_auto: bool  # auto_commit
    _has_begun: bool
    _make_outlet: MakeOutlet | None
    _run: ProcessingPool | None = None
    _run_over: asyncio.Event | None = None

    @overload
    async def run(
        self,
        handler: Callable[[Record], Awaitable[object]],
        *,
        decode: None = None,
        workers: int = 16,
        order: Order = "partition",
        retries: int | Retries | None = None,
        retry_topics: Sequence[str | RetryTopic] = (),
        dead_letter_topic: str | None = None,
        max_ahead: int = 10_000,
        commit_interval_ms: int = 100,
        drain_timeout_ms: int = 20_000,
        cancel_lost: bool = True,
        stop_on: Collection[int] | None = None,
    ) -> RunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[D], Awaitable[object]],
        *,
        decode: Callable[[Record], D],
        workers: int = 16,
        order: Order = "partition",
        retries: int | Retries | None = None,
        retry_topics: Sequence[str | RetryTopic] = (),
        dead_letter_topic: str | None = None,
        max_ahead: int = 10_000,
        commit_interval_ms: int = 100,
        drain_timeout_ms: int = 20_000,
        cancel_lost: bool = True,
        stop_on: Collection[int] | None = None,
    ) -> RunSummary: ...

    async def run(
        self,
        handler: Callable[[Any], Awaitable[object]],
        *,
        decode: Callable[[Record], Any] | None = None,
        workers: int = 16,
        order: Order = "partition",
        retries: int | Retries | None = None,
        retry_topics: Sequence[str | RetryTopic] = (),
        dead_letter_topic: str | None = None,
        max_ahead: int = 10_000,
        commit_interval_ms: int = 100,
        drain_timeout_ms: int = 20_000,
        cancel_lost: bool = True,
        stop_on: Collection[int] | None = None,
    ) -> RunSummary:
        """Call `handler` with each record, up to `workers` at once; returns when it is to stop.

        With order "partition" the records of a partition come one after the other, with "key" those
        of a key of a partition, with "none" in any order. `decode` makes of a record what the
        handler gets. What is done is committed within `commit_interval_ms`, never an offset behind
        a record that is not: what is done behind that, less than `max_ahead` offsets ahead, stands
        in the metadata of the commit, and whoever reads on with this client leaves it out.
        `retries` says how often, and when,
        a record is tried again that the handler failed with; what still fails goes to the next of
        `retry_topics`, to be handled again after its delay, then to `dead_letter_topic`, as it came
        and with headers that say why (`kproto.failure_of`); without that its error is raised. What
        `decode` refuses is a dead letter at once.

        It stops when a handler raises `Stop`, by a signal of `stop_on` (SIGTERM, where nobody else
        handles it), cancelled, or when the consumer is closed: what is in hand then is finished
        within `drain_timeout_ms`, and what is done is committed. With `cancel_lost` handlers of
        partitions that others have already are cancelled. Docs/how-to/handling.md says all of it.

        Raises ConfigurationError for what cannot work, such as a topic to send to that is not
        there; what the handler raised and nothing mends; and what asking for records raises.
        """
        self._view.home.check()
        settings = RunSettings.of(
            workers=workers,
            order=order,
            retries=retries,
            retry_topics=retry_topics,
            dead_letter_topic=dead_letter_topic,
            max_ahead=max_ahead,
            commit_interval_ms=commit_interval_ms,
            drain_timeout_ms=drain_timeout_ms,
            cancel_lost=cancel_lost,
            stop_on=stop_on,
        )
        handle = handle_of(handler, decode)
        self._check_run(settings)
        outlet: RecordSink | None = None
        if settings.outlets:
            if self._make_outlet is None:
                raise ConfigurationError("this consumer has no producer to send records on by")
            outlet = self._make_outlet()
        group_id = self._group_id
        host = ConsumerPort(
            self._take_next,
            self._is_out_of_session,
            self._until_in_session,
            self._assigned.hold_back,
            self._assigned.let_go,
            self._has_finished,
            self._commit_soon,
        )
        run = self._run = ProcessingPool(host, self._view.clock, settings, handle, outlet, group_id)
        over = self._run_over = asyncio.Event()
        try:
            counted = self._view.observer.runs(group_id).during(run)
            with counted, signals_handled(settings.stop_on, run.signalled):
                await check_outlets(self._view, settings.outlets)
                self._want_too(frozenset(each.topic for each in settings.retry_topics))
                await self._handle(run)
        except BaseException:
            if run.error is not None:
                log_unraised(run.error)
            raise
        finally:
            try:
                if outlet is not None:
                    await outlet.close(timeout_ms=self._view.settings.error_flush_ms)
            finally:
                self._run = None
                over.set()
        if run.error is not None:
            raise run.error
        return run.summary

    async def _handle(self, run: ProcessingPool) -> None:
        in_hand = self._in_hand
        in_hand.asked(self._view.clock.monotonic())  # what was handed out before is done
        in_hand.put_back_rest()
        in_hand.handling = run
        try:
            await run.until_stopped()
        finally:
            try:
                await self._commit_done(run.left_ms)
                await self._stop()
            finally:
                undone = run.first_incomplete_offsets()
                ahead = {
                    state: self._assigned.ahead_of(state)
                    for state in undone
                    if isinstance(state, AssignedPartition)
                }
                in_hand.handling = None
                in_hand.asked(self._view.clock.monotonic())
                self._assigned.let_all_go()
                for state, offset in undone.items():
                    assert isinstance(state, AssignedPartition), "it has no others"
                    self._assigned.set_back(state, offset, ahead[state])

    async def _commit_done(self, left_ms: float) -> None:
        """Commit what is done; where that fails now, closing tries again."""
        if not self._is_auto or self._closed:
            return
        limit_ms = max(round(left_ms), self._view.settings.error_flush_ms)
        try:
            await self._committer.commit(self._ownership.due, limit_ms)
        except KprotoError as error:
            logger.warning("what is done was not committed at the end of run(): %s", error)

    async def _end_run(self) -> None:
        """Have `run` stop, and wait for its end: the consumer is to be closed."""
        if self._run is not None and self._run_over is not None:
            if self._run.is_mine:
                raise ConfigurationError(
                    "a handler cannot close its consumer, as that waits for the handler: raise "
                    "kproto.Stop, and run() ends"
                )
            self._run.stop()
            await self._run_over.wait()

    # What a run asks

    async def _take_next(self, run: RecordReceiver) -> bool:
        return await self._next_fetched(run, partial(self._take_for, run)) is not None

    def _take_for(self, run: RecordReceiver) -> bool | None:
        fetched = self._in_hand.take_records() if run.is_taking else None
        if fetched is None:
            return None
        state = self._in_hand.taken_of
        assert isinstance(state, AssignedPartition), "a group has no others"
        run.take(state, state.claim, (fetched.topic, fetched.partition), fetched.records)
        return True

    async def _next_fetched(self, reader: object, take: Callable[[], T | None]) -> T | None:
        if self._run is not None and reader is not self._run:
            raise ConfigurationError(
                "run() handles the records of this consumer; make another one to iterate over"
            )
        fetched = await super()._next_fetched(reader, take)
        self._in_hand.given(self._view.clock.monotonic())
        return fetched

    def _has_finished(self, is_lost: bool) -> None:
        self._ownership.asked()  # who waits for what is in hand looks again
        if is_lost:
            self._is_back()

    @property
    def _has_lost(self) -> bool:
        """Whether something is in hand of partitions that others have: too slow to be back."""
        return self._run is not None and self._run.has_lost

    @abstractmethod
    def _commit_soon(self) -> None:
        """Commit what is done, with `auto_commit`."""

    @abstractmethod
    def _is_out_of_session(self) -> bool:
        """Whether others may read what is assigned."""

    @abstractmethod
    async def _until_in_session(self) -> None:
        """Wait until it is known whether they do."""

    @abstractmethod
    def _is_back(self) -> None:
        """Nothing that was lost may be in hand any more."""

    @abstractmethod
    def _want_too(self, topics: frozenset[str]) -> None:
        """Subscribe to these, too; all of them is read, whatever `start` says."""

    @abstractmethod
    def _reads(self) -> tuple[_Subscribed | None, Collection[TopicPartition]]:
        """What is subscribed to, or given by hand."""

    # Checks

    def _check_may_ask(self, what: str) -> None:
        self._check_begun(what)
        if self._closed:
            raise ConfigurationError("the consumer is closed; make another one")
        self._check_no_callback(what.rsplit(" ", 1)[0])

    def _check_begun(self, what: str) -> None:
        if not self._has_begun:
            raise ConfigurationError(
                f"{what} a consumer of a group within its block, so that it leaves the group in "
                "order: `async with client.consumer(..., group=...) as consumer:`"
            )

    def _check_no_callback(self, what: str) -> None:
        if self._ownership.is_calling:
            raise ConfigurationError(
                f"a callback cannot {what}, as that waits for the end of the callback"
            )

    def _check_run(self, settings: RunSettings) -> None:
        """Raises ConfigurationError where this cannot be run now."""
        self._check_may_ask("run handlers on")
        if self._run is not None or self._is_asked:
            raise ConfigurationError(
                "somebody reads this consumer already: by run(), or by an iteration that waits"
            )
        self._check_topics(settings, *self._reads())

    def _check_topics(
        self,
        settings: RunSettings,
        subscribed: _Subscribed | None,
        by_hand: Collection[TopicPartition] = (),
    ) -> None:
        """Raises ConfigurationError for what cannot be read, or must not, by a run."""
        dead = settings.dead_letter_topic
        is_read = dead in [topic for topic, _ in by_hand]
        if dead is not None and (
            is_read or (subscribed is not None and subscribed.surely_wants(dead))
        ):
            raise ConfigurationError(f"dead letters in {dead!r} would be handled: it is read here")
        for each in settings.retry_topics:
            if subscribed is None:
                raise ConfigurationError(
                    "retry topics are handed out by a group: subscribe to topics"
                )
            if subscribed.pattern is not None and not subscribed.wants(each.topic):
                raise ConfigurationError(
                    f"the pattern that is subscribed to does not match {each.topic!r}"
                )
