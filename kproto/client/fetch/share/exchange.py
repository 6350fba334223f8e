"""`ShareExchange`: sends the requests of share sessions, and processes their responses.

`ShareFetcher` decides when a request is sent; each call sends one request of one session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from ....messages.share_acknowledge_request import ShareAcknowledgeRequest
from ....messages.share_acknowledge_response import ShareAcknowledgeResponse
from ....messages.share_fetch_request import ShareFetchRequest
from ....messages.share_fetch_response import PartitionData, ShareFetchResponse
from ....protocol.error_codes import error_of_code
from ....wire.errors import BrokerResponseError, KprotoError, UnsupportedVersionError
from ...metadata.cluster import Broker, LeaderHint, TopicPartition
from ...metadata.cluster_view import ClusterView
from ...network.connection import BrokerConnection
from ...observing.log_lines import log
from .ack_results import AckCodes, AckResults
from .acquired_reader import CompletedShareFetch
from .acquisition import LockLostError
from .buffer import ShareBuffer
from .leader_refresh import LeaderRefresh
from .live_acquisitions import LiveAcquisitions, acquisitions_of
from .node import RequestKind, ShareNode
from .partition_groups import PartitionGroups
from .requests import (
    RENEWS_SINCE,
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

__all__ = ["ExchangeListener", "ShareExchange"]

#: The lock duration if the broker names none: the default of group.share.record.lock.duration.ms.
_LOCK_MS: Final = 30_000

_LATE_RESPONSE: Final = (
    "group %s: records of %s[%d] are dropped, and are delivered again: their acquisition locks may "
    "have ended before the response to the fetch was processed"
)


_SESSION_LIMIT: Final = (
    "group %s: broker %d opens no further share session, so this consumer gets no records of its "
    "partitions until another share consumer closes its session; the limit is "
    "group.share.max.share.sessions of the broker (SHARE_SESSION_LIMIT_REACHED)"
)


class ExchangeListener(Protocol):
    """The methods of the fetcher that an exchange calls."""

    def node(self, node: int) -> ShareNode:
        """Returns the node with the share session at a broker."""
        ...

    @property
    def on_arrival(self) -> Callable[[], object]:
        """The function to call if records have arrived."""
        ...

    @property
    def on_error(self) -> Callable[[KprotoError], object]:
        """The function to call with an error that the next poll must raise."""
        ...


class ShareExchange:
    """Exchanges requests and responses over connections of its own, as the member `member_id`.

    Stores fetched records in `buffer`, and the results of acknowledgements in `results`.
    """

    def __init__(
        self,
        view: ClusterView,
        options: ShareFetchOptions,
        member_id: str,
        listener: ExchangeListener,
        groups: PartitionGroups,
        refresh: LeaderRefresh,
        buffer: ShareBuffer,
        results: AckResults,
    ) -> None:
        self._view = view
        self._clock = view.clock
        self._options = options
        self._member_id = member_id
        #: The owner of the connections, and of the acquisitions.
        self.owner = object()
        self._listener = listener
        self._groups = groups
        self._refresh = refresh
        self._buffer = buffer
        self._results = results
        self._counts = view.observer.share_group(options.group_id)
        self.live = LiveAcquisitions()
        #: The lock duration of the last response, in ms; None before the first response.
        self.lock_timeout_ms: int | None = None
        #: False once a broker was found that renews no locks.
        self.can_renew = True
        #: The next fetches acquire at most this many records together, and none in advance; None:
        #: as the options say.
        self.acquire_limit: int | None = None
        #: True if the last fetch has acquired as many records as it was allowed to.
        self.has_more = False
        #: The broker of the last fetch; -1 before the first one.
        self.last_fetched = -1
        self.is_paused = False  # no request may acquire records
        self.is_closing = False

    @property
    def lock_s(self) -> float:
        """The lock duration in seconds."""
        return (self.lock_timeout_ms or _LOCK_MS) / 1000

    async def send(self, node: ShareNode, kind: RequestKind) -> None:
        """Sends one request of a session, and processes its response."""
        sent: list[SentAcks] = []
        node.attempts.on_attempt_started(self._clock.monotonic())
        try:
            connection = await self._connect(node)
            if kind is not RequestKind.OPEN and not node.session.is_open:
                return  # another request is due with the new session
            if self.is_paused and kind is RequestKind.OPEN:
                return
            if self.is_paused:
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

    async def _connect(self, node: ShareNode) -> BrokerConnection:
        """Returns the connection of a session; a new connection has no session."""
        connection = await self._view.connection_to(node.node, owner=self.owner)
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
        self._buffer.drop_node(node.node)

    async def _fetch(
        self, node: ShareNode, connection: BrokerConnection, sent: list[SentAcks]
    ) -> None:
        options = self._options
        wanted = self._groups.by_node.get(node.node, [])
        change = node.session.change_to(wanted)
        limits = self._limits()
        request = fetch_request(options.group_id, self._member_id, change, limits, sent)
        self.last_fetched = node.node
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
                hints += self._take_partition(node, its, data, now, sent_at + self.lock_s)
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
            acquisitions = acquisitions_of(self.owner, node.node, tp, its[0], data, locked_until)
            self._counts.bytes += len(data.records)
            for each in acquisitions:
                self._counts.acquired += len(each.states)
                self._counts.redelivered += len(each.states) if each.delivery_count > 1 else 0
            for lost in self.live.add(acquisitions, now):
                error = LockLostError(f"the broker delivers records of {tp[0]}[{tp[1]}] again")
                self._results.refuse(self._listener.node(lost.acquisition.node), [lost], error)
            if locked_until <= now:
                log(logging.INFO, _LATE_RESPONSE, self._options.group_id, *tp)
            elif self._groups.is_subscribed(topic) and not self.is_closing:
                fetch = CompletedShareFetch(tp, node.node, data.records, acquisitions)
                self._buffer.add(fetch)
                self._listener.on_arrival()
            elif not self.is_closing:  # the close of the session releases the records
                node.release_open(acquisitions, now)
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
            self._listener.on_error(error_of_code(code, f"{what}: {message}" if message else what))

    async def _acknowledge(
        self, node: ShareNode, connection: BrokerConnection, sent: list[SentAcks]
    ) -> None:
        if not sent:
            return
        options = self._options
        epoch = node.session.epoch
        request = acknowledge_request(options.group_id, self._member_id, epoch, sent)
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

    def _back_off(self, tp: TopicPartition) -> None:
        """Stops fetching a partition for a short time; requests its metadata."""
        backoff_s = self._view.settings.retry_backoff_ms / 1000
        self._groups.back_off(tp, self._clock.monotonic() + backoff_s)
        self._refresh.start([tp[0]])

    async def close_session(self, node: ShareNode) -> None:
        """Sends the acknowledgements of a node, and closes its session."""
        sent: list[SentAcks] = []
        try:
            connection = await self._connect(node)
            if not node.session.is_open:
                return
            sent = self._results.take(node, self._clock.monotonic(), can_renew=self.can_renew)
            request = acknowledge_request(
                self._options.group_id, self._member_id, FINAL_EPOCH, sent
            )
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
        now, until = self._clock.monotonic(), sent_at + self.lock_s
        may_retry = not self.is_closing
        self._results.on_answered(node, sent, codes, now, until, may_retry=may_retry)

    def _on_request_error(
        self, node: ShareNode, sent: list[SentAcks], code: int, message: str | None, what: str
    ) -> None:
        """Handles the error code of a whole request: the next fetch opens a new session."""
        error = error_of_code(code, f"{what}: {message}" if message else what)
        remedy = request_remedy(code)
        name = error.name if isinstance(error, BrokerResponseError) else None
        if name == "SHARE_SESSION_LIMIT_REACHED" and not node.attempts.count:
            log(logging.WARNING, _SESSION_LIMIT, self._options.group_id, node.node)
        else:
            log(logging.INFO, "group %s: %s", self._options.group_id, error)
        self._results.refuse(node, sent, error)
        if name == "SHARE_SESSION_NOT_FOUND":
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
            self._raise(node, error)

    def _raise(self, node: ShareNode, error: KprotoError) -> None:
        """Makes the next poll raise the error; the time limit of the node starts again."""
        node.attempts.succeeded()
        node.attempts.failed(error, self._clock.monotonic())
        self._listener.on_error(error)

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
            self._raise(node, error)
