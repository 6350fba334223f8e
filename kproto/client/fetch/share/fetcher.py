"""`ShareFetcher`: fetches the assigned partitions of a share group, and sends acknowledgements.

One task starts the requests that are due; `node` decides which, and `buffer` has the records. Each
broker has at most one request in flight, because the epochs of a share session are in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from ....clock import Timer
from ....records import Record
from ....tasks import start_task
from ....wire.errors import ConfigurationError, KprotoError
from ....wire.uuid import Uuid
from ...core.tasks import LONGEST_TIMER_S, until_ended
from ...metadata.cluster import TopicPartition
from ...metadata.cluster_view import ClusterView
from ...observing.log_lines import format_target, log
from .ack_results import AckResults
from .acquisition import Acquisition, acquisition_of
from .buffer import ShareBuffer
from .exchange import ShareExchange
from .leader_refresh import LeaderRefresh
from .node import RequestKind, ShareNode
from .partition_groups import PartitionGroups
from .requests import AcknowledgeResult, ShareFetchOptions

__all__ = ["ShareFetcher"]

_NEVER: Final = float("inf")

#: The next list is fetched in advance if the records of the last fetch took at most this share of
#: the lock duration: the locks of slow consumers would end before their records are returned.
_FAST_SHARE: Final = 0.1

#: With implicit acknowledgement, the records of a long list are accepted after this many seconds.
_ACCEPT_EVERY_S: Final = 0.25

#: The most partitions that a log line names.
_NAMED_PARTITIONS: Final = 5


class ShareFetcher:
    """Fetches over connections of its own, as the member `member_id`.

    Calls `on_arrival` if records or an error have arrived, `on_error` with an error that the next
    poll must raise, and `on_results` with the results of acknowledgements.
    """

    def __init__(
        self,
        view: ClusterView,
        options: ShareFetchOptions,
        member_id: str,
        *,
        on_arrival: Callable[[], object],
        on_error: Callable[[KprotoError], object],
        on_results: Callable[[list[AcknowledgeResult]], object],
    ) -> None:
        self._view = view
        self._clock = view.clock
        self._options = options
        self.on_arrival = on_arrival
        self.on_error = on_error
        counts = view.observer.share_group(options.group_id)
        self.buffer = ShareBuffer(
            self._on_pending,
            view.settings.max_decompressed_bytes,
            counts,
            is_explicit=options.is_explicit,
        )
        self.waiting_polls = 0
        #: How long the caller has processed the records of the last fetch, in seconds.
        self.last_processing_s = 0.0
        self._groups = PartitionGroups()
        self._nodes: dict[int, ShareNode] = {}
        self._refresh = LeaderRefresh(view, self._groups, self._on_refreshed)
        self._results = AckResults(on_results, counts)
        self._exchange = ShareExchange(
            view, options, member_id, self, self._groups, self._refresh, self.buffer, self._results
        )
        self._changed = asyncio.Event()
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._accept_at = _NEVER

    # Calls of the consumer

    @property
    def assigned(self) -> list[TopicPartition]:
        """The assigned partitions."""
        return list(self._groups.assigned)

    @property
    def lock_timeout_ms(self) -> int | None:
        """The lock duration of the last response, in ms; None before the first response."""
        return self._exchange.lock_timeout_ms

    @property
    def can_renew(self) -> bool:
        """False once a broker was found that renews no locks."""
        return self._exchange.can_renew

    @property
    def has_more(self) -> bool:
        """True if the last fetch has acquired as many records as it was allowed to."""
        return self._exchange.has_more

    def limit_acquisition(self, most: int | None) -> None:
        """Makes the next fetches acquire at most `most` records together, and none in advance.

        With None they acquire as many records as the options say.
        """
        self._exchange.acquire_limit = most

    def start(self) -> None:
        """Starts the task of the fetcher."""
        self._task = start_task(self._run())
        self._task.add_done_callback(self._on_task_done)

    def wake(self) -> None:
        """Makes the fetcher check which requests are due."""
        self._changed.set()

    def assign(self, topic_ids: Mapping[TopicPartition, Uuid]) -> None:
        """Adds assigned partitions, with the ids of their topics."""
        self._groups.assign(topic_ids)
        self.wake()

    def revoke(self, tps: Collection[TopicPartition]) -> None:
        """Removes partitions, which are not fetched any more.

        Their records that were not returned stay in the buffer: the member has their locks, and
        partitions of share groups have several members. A release would cost each of them a
        delivery.
        """
        self._groups.revoke(tps)
        self.wake()

    def subscribe(self, topics: frozenset[str]) -> None:
        """Fetches only `topics`; releases the records of other topics that were not returned."""
        self._groups.subscribe(topics)
        self.buffer.release_other_topics(topics)
        self.wake()

    def pause(self) -> None:
        """Starts no fetch until `resume`: acknowledgements are sent without acquiring records."""
        self._exchange.is_paused = True

    def resume(self) -> None:
        """Fetches again after `pause`."""
        self._exchange.is_paused = False

    def acknowledge(self, record: object, kind: int) -> None:
        """Stores the acknowledgement of a record, which is sent soon.

        Raises LockLostError, and ConfigurationError for a record of another consumer and for a
        record that is acknowledged already.
        """
        if (
            not isinstance(record, Record)
            or (acquisition := acquisition_of(record)) is None
            or acquisition.owner is not self._exchange.owner
        ):
            raise ConfigurationError(
                f"{record!r:.200} is no record that this consumer has acquired: acknowledge a "
                "record with the consumer that has returned it"
            )
        now = self._clock.monotonic()
        acquisition.acknowledge(record.offset, kind, now)
        if not acquisition.is_pending:
            self.node(acquisition.node).add_pending(acquisition, now)
            self.wake()

    def _on_pending(self, acquisitions: list[Acquisition]) -> None:
        now = self._clock.monotonic()
        for each in acquisitions:
            self.node(each.node).add_pending(each, now)
        self.wake()

    def accept_returned(self) -> list[AcknowledgeResult]:
        """Accepts the records that were returned since the last poll, unless it is explicit.

        Reports and returns the results of acceptances that are not sent, because the locks of their
        records have ended.
        """
        return self._results.refuse_unsent(self.buffer.on_poll())

    def accept_processed(self) -> list[AcknowledgeResult]:
        """Accepts the returned records, except for the last one, as `accept_returned` does."""
        return self._results.refuse_unsent(self.buffer.accept_processed())

    def on_list_returned(self) -> None:
        """Schedules the acceptance of the records of the current list, if it is implicit."""
        if not self._options.is_explicit and self._accept_at == _NEVER:
            self._accept_at = self._clock.monotonic() + _ACCEPT_EVERY_S

    async def commit(self) -> list[AcknowledgeResult]:
        """Sends all acknowledgements, and waits for their results."""
        return await self._results.wait(self._nodes.values(), self.wake)

    async def close(self) -> None:
        """Sends all acknowledgements, and closes the sessions, which releases all other records.

        Waits for the requests in flight first.
        """
        self._exchange.is_closing = True
        self.buffer.drop_all()
        self.wake()
        while self._requests:
            await asyncio.wait([*self._requests])
        await self._end_task()
        self._release_outside_sessions()
        closes = [
            self._exchange.close_session(node)
            for node in self._nodes.values()
            if node.session.is_open
        ]
        await asyncio.gather(*closes)
        for node in self._nodes.values():
            self._results.refuse_pending(node)

    def _release_outside_sessions(self) -> None:
        """Releases the records of revoked partitions that were not acknowledged.

        The close of a session releases only the records of the partitions that it has.
        """
        now = self._clock.monotonic()
        for each in self._exchange.live.locked(now):
            node = self.node(each.node)
            is_closed_with_session = (each.topic_id, each.partition) in node.session.partitions
            if node.session.is_open and not is_closed_with_session:
                node.release_open([each], now)

    async def end(self) -> None:
        """Ends all tasks and connections."""
        self._exchange.is_closing = True
        tasks = [*self._requests, *self._refresh.end()]
        for task in tasks:
            task.cancel()
        try:
            await self._end_task()
            await until_ended(tasks)
        finally:
            self._view.abort(self._exchange.owner)
            await self._view.release(self._exchange.owner)

    async def _end_task(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await until_ended([self._task])

    # The task

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            now = self._clock.monotonic()
            self._start_due(now)
            if not self._changed.is_set():
                self._set_timer(now)
                await self._changed.wait()

    def _set_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadlines = [self._accept_at, self.buffer.unlocked_at, self._groups.next_at]
        deadlines += [node.next_at() for node in self._nodes.values()]
        deadlines.append(self._refresh.next_at)
        at = min((each for each in deadlines if each > now), default=_NEVER)
        self._timer = self._clock.call_later(min(at - now, LONGEST_TIMER_S), self._on_timer)

    def _on_timer(self) -> None:
        """Drops unlocked records before any task runs, because a task may return them."""
        now = self._clock.monotonic()
        self._drop_unlocked(now)
        self._changed.set()

    def _drop_unlocked(self, now: float) -> None:
        if now < self.buffer.unlocked_at:
            return
        tps = self.buffer.drop_unlocked(now)
        names = ", ".join(format_target(*tp) for tp in tps[:_NAMED_PARTITIONS])
        log(
            logging.WARNING,
            "group %s: acquired records of %s were not returned before their acquisition locks "
            "ended: the group delivers them again, and counts the deliveries; set a smaller "
            "max_poll_records, or a longer share.record.lock.duration.ms of the group",
            self._options.group_id,
            names if len(tps) <= _NAMED_PARTITIONS else f"{names} and others",
        )

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            fault = KprotoError(f"the fetcher has failed: {task.exception()!r}")
            fault.__cause__ = task.exception()
            self.on_error(fault)

    def _start_due(self, now: float) -> None:
        """Starts the requests that are due, and the acceptance and drop of records."""
        if now >= self._accept_at:
            self._accept_at = _NEVER
            self.accept_processed()
            if self.buffer.has_unreturned:
                self._accept_at = now + _ACCEPT_EVERY_S
        self._drop_unlocked(now)
        self._groups.end_backoffs(now)
        self._group_partitions()
        if not self._exchange.is_closing:
            self._refresh.start_due(now)
        by_node = self._groups.by_node
        for node in [*by_node, *(self._nodes.keys() - by_node.keys())]:
            its = self.node(node)
            wants = node in by_node and self._wants_records(its)
            kind = its.next_request(now, wants_records=wants)
            if kind is RequestKind.REFUSE:
                self._results.refuse_pending(its)
            elif kind is not RequestKind.NONE:
                its.is_busy = True
                its.is_fetching = kind in (RequestKind.FETCH, RequestKind.OPEN)
                task = start_task(self._send(its, kind))
                self._requests.add(task)
                task.add_done_callback(self._requests.discard)

    def _wants_records(self, node: ShareNode) -> bool:
        """Returns True if the next list should be fetched now."""
        if self._exchange.is_closing or self._exchange.is_paused or self.buffer.has_fetched:
            return False
        if self._options.limits_records:
            others = [each for each in self._nodes.values() if each.is_fetching]
            return bool(self.waiting_polls) and not others and node.node == self._next_in_turn()
        if self.waiting_polls or self._exchange.acquire_limit is not None:
            return bool(self.waiting_polls)
        lock_s = self._exchange.lock_s
        return self.buffer.has_returned and self.last_processing_s <= lock_s * _FAST_SHARE

    def _next_in_turn(self) -> int:
        nodes = sorted(self._groups.by_node)
        return next((node for node in nodes if node > self._exchange.last_fetched), nodes[0])

    def node(self, node: int) -> ShareNode:
        its = self._nodes.get(node)
        if its is None:
            its = self._nodes[node] = ShareNode(node, self._view.settings)
        return its

    # Leaders

    def _group_partitions(self) -> None:
        """Groups the partitions by leader; drops records of former leaders."""
        if self._groups.update(self._view.cluster):
            self.buffer.drop_moved(self._groups.leaders)

    def _on_refreshed(self) -> None:
        self._group_partitions()
        self.wake()

    # Requests

    # Requests

    async def _send(self, node: ShareNode, kind: RequestKind) -> None:
        """Sends one request of a session, and processes its response."""
        try:
            await self._exchange.send(node, kind)
        finally:
            node.is_busy = node.is_fetching = False
            node.answered_count = node.sent_count
            node.is_urgent = node.is_urgent and bool(node.pending)
            self._results.check_commits()
            self.wake()
