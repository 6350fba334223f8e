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
from ....messages.share_acknowledge_request import ShareAcknowledgeRequest
from ....messages.share_acknowledge_response import ShareAcknowledgeResponse
from ....messages.share_fetch_request import ShareFetchRequest
from ....messages.share_fetch_response import PartitionData, ShareFetchResponse
from ....protocol.error_codes import error_of_code
from ....records import Record
from ....tasks import start_task
from ....wire.errors import (
    BrokerResponseError,
    ConfigurationError,
    KprotoError,
    UnsupportedVersionError,
)
from ....wire.uuid import Uuid
from ...core.tasks import LONGEST_TIMER_S, until_ended
from ...metadata.cluster import Broker, LeaderHint, TopicPartition
from ...metadata.cluster_view import ClusterView
from ...network.connection import BrokerConnection
from ...observing.log_lines import log
from .ack_results import AckCodes, AckResults
from .acquired_reader import CompletedShareFetch
from .acquisition import (
    AcknowledgeType,
    Acquisition,
    LockLostError,
    acquisition_of,
)
from .buffer import ShareBuffer
from .leader_refresh import LeaderRefresh
from .live_acquisitions import LiveAcquisitions, acquisitions_of
from .node import RequestKind, ShareNode
from .partition_groups import PartitionGroups
from .requests import (
    RENEWS_SINCE,
    AcknowledgeResult,
    FetchLimits,
    SentAcks,
    ShareFetchOptions,
    ShareRemedy,
    acknowledge_codes,
    acknowledge_hints,
    acknowledge_request,
    fetch_remedy,
    fetch_request,
    request_remedy,
)
from .session import FINAL_EPOCH, TopicIdPartition

__all__ = ["ShareFetcher"]

_NEVER: Final = float("inf")


#: The next list is fetched in advance if the records of the last fetch took at most this share of
#: the lock duration: the locks of slow consumers would end before their records are returned.
_FAST_SHARE: Final = 0.1

#: The lock duration if the broker names none: the default of group.share.record.lock.duration.ms.
_LOCK_MS: Final = 30_000

_LATE_RESPONSE: Final = (
    "group %s: records of %s[%d] are dropped, and are delivered again: their acquisition locks may "
    "have ended before the response to the fetch was processed"
)

#: With implicit acknowledgement, the records of a long list are accepted after this many seconds.
_ACCEPT_EVERY_S: Final = 0.25


class ShareFetcher:
    """Fetches over connections of its own, as the member `member_id`.

    Calls `on_arrival` if records or an error have arrived, `on_error` with an error that the next
    poll must raise, and `on_results` with the results of acknowledgements.
    """

    def __init__(
        self,
        view: ClusterView,
        options: ShareFetchOptions,
        *,
        on_arrival: Callable[[], object],
        on_error: Callable[[KprotoError], object],
        on_results: Callable[[list[AcknowledgeResult]], object],
    ) -> None:
        self._view = view
        self._clock = view.clock
        self._options = options
        self._on_arrival = on_arrival
        self._on_error = on_error
        self._owner = object()
        self.member_id = ""
        self._counts = view.observer.share_group(options.group_id)
        self.buffer = ShareBuffer(
            self._on_pending,
            view.settings.max_decompressed_bytes,
            self._counts,
            is_explicit=options.is_explicit,
        )
        #: The lock duration of the last response, in ms; None before the first response.
        self.lock_timeout_ms: int | None = None
        #: False once a broker was found that renews no locks.
        self.can_renew = True
        self.waiting_polls = 0
        #: The next fetches acquire at most this many records together, and none in advance; None:
        #: as the options say.
        self.acquire_limit: int | None = None
        #: True if the last fetch has acquired as many records as it was allowed to.
        self.has_more = False
        #: How long the caller has processed the records of the last fetch, in seconds.
        self.last_processing_s = 0.0
        self._groups = PartitionGroups()
        self._nodes: dict[int, ShareNode] = {}
        self._live = LiveAcquisitions()
        self._refresh = LeaderRefresh(view, self._groups, self._on_refreshed)
        self._last_fetched = -1  # with `limits_records`: the node that was fetched from last
        self._results = AckResults(on_results, self._counts)
        self._changed = asyncio.Event()
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._is_paused = False
        self._accept_at = _NEVER

    # Calls of the consumer

    @property
    def assigned(self) -> list[TopicPartition]:
        """The assigned partitions."""
        return list(self._groups.assigned)

    @property
    def _lock_s(self) -> float:
        return (self.lock_timeout_ms or _LOCK_MS) / 1000

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
        self._is_paused = True

    def resume(self) -> None:
        """Fetches again after `pause`."""
        self._is_paused = False

    def acknowledge(self, record: object, kind: int) -> None:
        """Stores the acknowledgement of a record, which is sent soon.

        Raises LockLostError, and ConfigurationError for a record of another consumer and for a
        record that is acknowledged already.
        """
        acquisition = acquisition_of(record) if isinstance(record, Record) else None
        if acquisition is None or acquisition.owner is not self:
            raise ConfigurationError(
                f"{record!r:.200} is no record that this consumer has acquired: acknowledge a "
                "record with the consumer that has returned it"
            )
        now = self._clock.monotonic()
        acquisition.acknowledge(record.offset, kind, now)
        if not acquisition.is_pending:
            self._node(acquisition.node).add_pending(acquisition, now)
            self.wake()

    def _on_pending(self, acquisitions: list[Acquisition]) -> None:
        now = self._clock.monotonic()
        for each in acquisitions:
            self._node(each.node).add_pending(each, now)
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
        self._is_closing = True
        self.buffer.drop_all()
        self.wake()
        while self._requests:
            await asyncio.wait([*self._requests])
        await self._end_task()
        self._release_outside_sessions()
        closes = [
            self._close_session(node) for node in self._nodes.values() if node.session.is_open
        ]
        await asyncio.gather(*closes)
        for node in self._nodes.values():
            self._results.refuse_pending(node)

    def _release_outside_sessions(self) -> None:
        """Releases the records of revoked partitions that were not acknowledged.

        The close of a session releases only the records of the partitions that it has.
        """
        now = self._clock.monotonic()
        for each in self._live.locked(now):
            node = self._node(each.node)
            is_closed_with_session = (each.topic_id, each.partition) in node.session.partitions
            if node.session.is_open and not is_closed_with_session:
                _release_open(node, [each], now)

    async def end(self) -> None:
        """Ends all tasks and connections."""
        self._is_closing = True
        tasks = [*self._requests, *self._refresh.end()]
        for task in tasks:
            task.cancel()
        try:
            await self._end_task()
            await until_ended(tasks)
        finally:
            self._view.abort(self._owner)
            await self._view.release(self._owner)

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
        if now >= self.buffer.unlocked_at:
            self.buffer.drop_unlocked(now)
        self._changed.set()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            fault = KprotoError(f"the fetcher has failed: {task.exception()!r}")
            fault.__cause__ = task.exception()
            self._on_error(fault)

    def _start_due(self, now: float) -> None:
        """Starts the requests that are due, and the acceptance and drop of records."""
        if now >= self._accept_at:
            self._accept_at = _NEVER
            self.accept_processed()
            if self.buffer.has_unreturned:
                self._accept_at = now + _ACCEPT_EVERY_S
        if now >= self.buffer.unlocked_at:
            self.buffer.drop_unlocked(now)
        self._groups.end_backoffs(now)
        self._group_partitions()
        if not self._is_closing:
            self._refresh.start_due(now)
        by_node = self._groups.by_node
        for node in [*by_node, *(self._nodes.keys() - by_node.keys())]:
            its = self._node(node)
            wants = node in by_node and self._wants_records(its)
            kind = its.next_request(now, wants_records=wants)
            if kind is RequestKind.REFUSE:
                self._results.refuse_pending(its)
            elif kind is not RequestKind.NONE:
                its.is_busy = True
                its.is_fetching = kind in (RequestKind.FETCH, RequestKind.OPEN)
                task = start_task(self._exchange(its, kind))
                self._requests.add(task)
                task.add_done_callback(self._requests.discard)

    def _wants_records(self, node: ShareNode) -> bool:
        """Returns True if the next list should be fetched now."""
        if self._is_closing or self._is_paused or self.buffer.has_fetched:
            return False
        if self._options.limits_records:
            others = [each for each in self._nodes.values() if each.is_fetching]
            return bool(self.waiting_polls) and not others and node.node == self._next_in_turn()
        if self.waiting_polls or self.acquire_limit is not None:
            return bool(self.waiting_polls)
        lock_s = self._lock_s
        return self.buffer.has_returned and self.last_processing_s <= lock_s * _FAST_SHARE

    def _next_in_turn(self) -> int:
        nodes = sorted(self._groups.by_node)
        return next((node for node in nodes if node > self._last_fetched), nodes[0])

    def _node(self, node: int) -> ShareNode:
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

    def _back_off(self, tp: TopicPartition) -> None:
        """Stops fetching a partition for a short time; requests its metadata."""
        backoff_s = self._view.settings.retry_backoff_ms / 1000
        self._groups.back_off(tp, self._clock.monotonic() + backoff_s)
        self._refresh.start([tp[0]])

    # Requests

    async def _exchange(self, node: ShareNode, kind: RequestKind) -> None:
        """Sends one request of a session, and processes its response."""
        sent: list[SentAcks] = []
        try:
            connection = await self._connect(node)
            if kind is not RequestKind.OPEN and not node.session.is_open:
                return  # another request is due with the new session
            if self._is_paused and kind is RequestKind.OPEN:
                return
            if self._is_paused:
                kind = RequestKind.ACKNOWLEDGE  # a fetch would acquire the released records again
            if kind is RequestKind.ACKNOWLEDGE:
                sent = self._results.take(node, self._clock.monotonic(), can_renew=self.can_renew)
                await self._acknowledge(node, connection, sent)
            else:
                if kind is RequestKind.FETCH:
                    fetched = self._groups.by_node.get(node.node, ())
                    sent = self._results.take_of(fetched, node, self._clock.monotonic())
                await self._fetch(node, connection, sent)
        except KprotoError as error:
            self._on_failure(node, sent, error)
        finally:
            node.is_busy = node.is_fetching = False
            node.answered_count = node.sent_count
            node.is_urgent = node.is_urgent and bool(node.pending)
            self._results.check_commits()
            self.wake()

    async def _connect(self, node: ShareNode) -> BrokerConnection:
        """Returns the connection of a session; a new connection has no session."""
        connection = await self._view.connection_to(node.node, owner=self._owner)
        if node.connection is not connection:
            if node.session.is_open:
                self._on_session_lost(node)
            node.connection = connection
        for request in (ShareFetchRequest, ShareAcknowledgeRequest):
            if request.API_KEY not in connection.ranges:
                raise UnsupportedVersionError(
                    f"broker {node.node} has no {request.__name__.removesuffix('Request')} "
                    "(KIP-932): share groups need brokers of Kafka 4.2 or later"
                )
        self.can_renew = connection.version_of(ShareAcknowledgeRequest) >= RENEWS_SINCE
        return connection

    def _on_session_lost(self, node: ShareNode) -> None:
        """Drops the records of a session that the broker has closed, and so released."""
        node.session.reset()
        self.buffer.drop_node(node.node)

    async def _fetch(
        self, node: ShareNode, connection: BrokerConnection, sent: list[SentAcks]
    ) -> None:
        options = self._options
        wanted = self._groups.by_node.get(node.node, [])
        change = node.session.change_to(wanted)
        limits = self._limits()
        request = fetch_request(options.group_id, self.member_id, change, limits, sent)
        self._last_fetched = node.node
        timeout_ms = self._view.settings.request_timeout_ms + limits.max_wait_ms
        sent_at = self._clock.monotonic()
        response = await connection.request(request, timeout_ms=timeout_ms)
        if response.error_code:
            what = f"fetching from broker {node.node} for share group {options.group_id!r}"
            self._on_request_error(node, sent, response.error_code, response.error_message, what)
            return
        node.session.on_answered()
        node.attempts.succeeded()
        self._counts.fetches += 1
        now = self._clock.monotonic()
        if response.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = response.acquisition_lock_timeout_ms
        codes: dict[TopicIdPartition, tuple[int, str | None]] = {}
        hints: list[LeaderHint] = []
        acquired_before = self._counts.acquired
        for topic in response.responses:
            for data in topic.partitions:
                its = topic.topic_id, data.partition_index
                codes[its] = data.acknowledge_error_code, data.acknowledge_error_message
                hints += self._take_partition(node, its, data, now, sent_at + self._lock_s)
        self.has_more = self._counts.acquired - acquired_before >= limits.max_records
        self._on_acks_answered(node, sent, codes, sent_at)
        self._apply_hints(hints, response)

    def _limits(self) -> FetchLimits:
        """Returns the limits of the next fetch from one of the brokers."""
        limits, most = self._options.limits.waiting_within(self.lock_timeout_ms), self.acquire_limit
        if most is None:
            return limits
        brokers = 1 if self._options.limits_records else len(self._groups.by_node)
        return limits.within(-(-most // max(1, brokers)))

    def _take_partition(
        self,
        node: ShareNode,
        its: TopicIdPartition,
        data: PartitionData,
        now: float,
        locked_until: float,
    ) -> list[LeaderHint]:
        """Buffers the records of a partition, or handles its error; returns a named leader.

        Drops records whose locks may have ended before the response was processed.
        """
        topic = self._groups.name_of(its[0])
        if topic is None:
            return []
        tp = topic, its[1]
        if data.acquired_records and data.records:
            acquisitions = acquisitions_of(self, node.node, tp, its[0], data, locked_until)
            self._counts.bytes += len(data.records)
            for each in acquisitions:
                self._counts.acquired += len(each.states)
                self._counts.redelivered += len(each.states) if each.delivery_count > 1 else 0
            for lost in self._live.add(acquisitions, now):
                error = LockLostError(f"the broker delivers records of {tp[0]}[{tp[1]}] again")
                self._results.refuse(self._node(lost.acquisition.node), [lost], error)
            if locked_until <= now:
                log(logging.INFO, _LATE_RESPONSE, self._options.group_id, *tp)
            elif self._groups.is_subscribed(topic) and not self._is_closing:
                fetch = CompletedShareFetch(tp, node.node, data.records, acquisitions)
                self.buffer.add(fetch)
                self._on_arrival()
            elif not self._is_closing:  # the close of the session releases the records
                _release_open(node, acquisitions, now)
        if not data.error_code:
            return []
        self._on_partition_error(tp, data.error_code, data.error_message)
        leader = data.current_leader
        if leader.leader_id < 0:
            return []
        return [LeaderHint(*tp, leader.leader_id, leader.leader_epoch)]

    def _on_partition_error(self, tp: TopicPartition, code: int, message: str | None) -> None:
        if tp not in self._groups.assigned:
            return
        self._back_off(tp)
        if fetch_remedy(code) is ShareRemedy.RAISE:
            what = f"fetching {tp[0]}[{tp[1]}] for share group {self._options.group_id!r}"
            self._on_error(error_of_code(code, f"{what}: {message}" if message else what))

    async def _acknowledge(
        self, node: ShareNode, connection: BrokerConnection, sent: list[SentAcks]
    ) -> None:
        if not sent:
            return
        options = self._options
        epoch = node.session.epoch
        request = acknowledge_request(options.group_id, self.member_id, epoch, sent)
        sent_at = self._clock.monotonic()
        response = await connection.request(request)
        if response.error_code:
            what = f"acknowledging at broker {node.node} for share group {options.group_id!r}"
            self._on_request_error(node, sent, response.error_code, response.error_message, what)
            return
        node.session.on_answered()
        node.attempts.succeeded()
        self._on_acknowledge_response(node, sent, response, sent_at)

    def _on_acknowledge_response(
        self,
        node: ShareNode,
        sent: list[SentAcks],
        response: ShareAcknowledgeResponse,
        sent_at: float,
    ) -> None:
        if response.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = response.acquisition_lock_timeout_ms
        self._on_acks_answered(node, sent, acknowledge_codes(response), sent_at)
        self._apply_hints(acknowledge_hints(response, self._groups.name_of), response)

    async def _close_session(self, node: ShareNode) -> None:
        """Sends the acknowledgements of a node, and closes its session."""
        sent: list[SentAcks] = []
        try:
            connection = await self._connect(node)
            if not node.session.is_open:
                return
            sent = self._results.take(node, self._clock.monotonic(), can_renew=self.can_renew)
            request = acknowledge_request(self._options.group_id, self.member_id, FINAL_EPOCH, sent)
            sent_at = self._clock.monotonic()
            response = await connection.request(request)
            if response.error_code:
                what = f"closing the share session at broker {node.node}"
                code, message = response.error_code, response.error_message
                self._on_request_error(node, sent, code, message, what)
            else:
                self._on_acknowledge_response(node, sent, response, sent_at)
        except KprotoError as error:
            self._on_failure(node, sent, error)
        finally:
            node.session.reset()
            node.answered_count = node.sent_count
            self._results.check_commits()

    # Results

    def _apply_hints(
        self, hints: list[LeaderHint], response: ShareFetchResponse | ShareAcknowledgeResponse
    ) -> None:
        if hints:
            endpoints = response.node_endpoints
            self._view.update_leaders(
                hints, [Broker(b.node_id, b.host, b.port, b.rack) for b in endpoints]
            )

    def _on_acks_answered(
        self, node: ShareNode, sent: list[SentAcks], codes: AckCodes, sent_at: float
    ) -> None:
        now, until = self._clock.monotonic(), sent_at + self._lock_s
        may_retry = not self._is_closing
        self._results.on_answered(node, sent, codes, now, until, may_retry=may_retry)

    def _on_request_error(
        self, node: ShareNode, sent: list[SentAcks], code: int, message: str | None, what: str
    ) -> None:
        """Handles the error code of a whole request: the next fetch opens a new session."""
        error = error_of_code(code, f"{what}: {message}" if message else what)
        remedy = request_remedy(code)
        log(logging.INFO, "group %s: %s", self._options.group_id, error)
        self._results.refuse(node, sent, error)
        if isinstance(error, BrokerResponseError) and error.name == "SHARE_SESSION_NOT_FOUND":
            self._on_session_lost(node)
        node.session.reset()
        if remedy is ShareRemedy.NEW_SESSION and not node.attempts.count:
            node.attempts.failed(error, self._clock.monotonic())
            node.attempts.skip_backoff(self._clock.monotonic())
            return
        has_time = node.attempts.failed(error, self._clock.monotonic())
        if remedy is ShareRemedy.REFRESH:
            self._refresh.start(self._groups.topics_at(node.node))
        if remedy is ShareRemedy.RAISE or not has_time:
            node.attempts.succeeded()
            node.attempts.failed(error, self._clock.monotonic())
            self._on_error(error)

    def _on_failure(self, node: ShareNode, sent: list[SentAcks], error: KprotoError) -> None:
        """Handles a lost connection or a timeout: the broker releases the acquired records."""
        log(logging.INFO, "group %s: %s", self._options.group_id, error)
        self._results.refuse(node, sent, error)
        self._on_session_lost(node)
        node.connection = None
        self._results.refuse_pending(node, error)
        self._view.invalidate_brokers()
        self._refresh.start(self._groups.topics_at(node.node))
        has_time = node.attempts.failed(error, self._clock.monotonic())
        if isinstance(error, UnsupportedVersionError) or not has_time:
            node.attempts.succeeded()
            node.attempts.failed(error, self._clock.monotonic())
            self._on_error(error)


def _release_open(node: ShareNode, acquisitions: list[Acquisition], now: float) -> None:
    """Releases all offsets that are not acknowledged."""
    for each in acquisitions:
        if each.acknowledge_open(AcknowledgeType.RELEASE, each.first):
            node.add_pending(each, now)
