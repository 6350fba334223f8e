"""`Fetcher`: sends a fetch to each broker for all its partitions, and processes the responses.

`subscription_state` decides which partitions are fetched; `offset_fetcher` resets and validates
their positions. While the caller processes records, the next fetches are in flight.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse, PartitionData
from ...protocol.error_codes import code_of, error_of_code
from ...wire.errors import CorruptBatchError, KprotoError, MissingCodecError, ProtocolError
from ...wire.uuid import Uuid
from ..core.retry import Attempts
from ..metadata.cluster import Broker, LeaderHint, TopicPartition
from ..metadata.cluster_view import ClusterView
from .broken_batches import locate_broken_batch
from .completed_fetch import CompletedFetch, filter_batches
from .effects import EffectHandler
from .fetch_options import FetchOptions
from .fetch_plan import NodeFetches
from .fetch_requests import (
    OUT_OF_RANGE,
    OUT_OF_RANGE_REMEDY,
    closing_request,
    fetch_request,
    is_out_of_range,
    log_end_of,
    response_bytes,
)
from .fetch_session import FetchSession, RequestedPartition
from .in_flight_fetches import InFlightFetch, InFlightFetches
from .offset_fetcher import OffsetFetcher
from .old_brokers import check_fetch, check_first_batch_is_whole
from .partition_state import NO_REPLICA, TopicPartitionState
from .position_validation import EpochEnd
from .subscription_state import SubscriptionState

__all__ = ["Fetcher", "fetch_from", "fetched_partitions"]

logger = logging.getLogger("kproto.client")

#: Errors with which a response names the leader of the partition (KIP-951).
_OTHER_LEADER: Final = (code_of("NOT_LEADER_OR_FOLLOWER"), code_of("FENCED_LEADER_EPOCH"))

_NEVER: Final = float("inf")

#: The most partitions of a broker for which the first response with records is processed at once.
_MAX_AT_ONCE: Final = 100


class Fetcher:
    """Fetches partitions into the fetch buffer of `subscriptions`, over connections of `owner`."""

    def __init__(
        self,
        view: ClusterView,
        options: FetchOptions,
        subscriptions: SubscriptionState,
        in_flight: InFlightFetches,
        effect_handler: EffectHandler,
        owner: object,
    ) -> None:
        self._view = view
        self._options = options
        self._subscriptions = subscriptions
        self._in_flight = in_flight
        self._effects = effect_handler
        self._owner = owner
        self._offsets = OffsetFetcher(view, options, subscriptions, effect_handler)
        self._refreshes = Attempts(view.settings)
        self._sessions: dict[int, FetchSession] = {}  # by broker
        #: The states of the partitions of each session, by broker.
        self._states: dict[int, dict[TopicPartition, TopicPartitionState]] = {}
        self._checked_metadata = (-1, -1, 0.0)
        self._has_fetched_records = False

    def take_completed(self) -> bool:
        """Processes completed fetches and look-ups; raises the first error that is not retried.

        Processes all responses before it raises the error, so that an error of one partition does
        not delay other partitions. The first response with records is an exception: if it has many
        partitions, processes it only up to the first records, and returns False. The next call
        processes the rest. So the first record need not wait for thousands of partitions.
        """
        faults = list(self._in_flight.lookup_errors())
        is_processed = True
        for node, fetch in self._in_flight.completed_fetches():
            try:
                is_processed = self._take(node, fetch)
            except KprotoError as fault:
                faults.append(fault)
            if not is_processed:
                break
            self._in_flight.remove(node)
        if self._subscriptions.poll.buffer.ready:
            self._has_fetched_records = True
        if faults:
            raise faults[0]
        return is_processed

    def start_due(self) -> float:
        """Starts due fetches, resets, validations and metadata refreshes.

        Each broker has at most one fetch in flight. Returns the time at which the earliest backoff
        of a partition ends, in seconds of the clock; infinity if no partition backs off.
        """
        view = self._view
        now = view.clock.monotonic()
        self._effects.on_metadata()
        cluster = view.cluster
        plan = self._subscriptions.planner.plan(
            now, cluster.version, view.leader_since, cluster.leader_epoch, cluster.brokers
        )
        offsets = self._offsets
        if plan.unknown_leaders:
            self._in_flight.start_lookup("leaders", offsets.find_leaders(plan.unknown_leaders))
        for node, states in plan.resets.items():
            self._in_flight.start_lookup(
                f"positions at {node}", offsets.reset_positions(node, states)
            )
        for node, states in plan.validations.items():
            self._in_flight.start_lookup(
                f"epochs at {node}", offsets.validate_positions(node, states)
            )
        if self._subscriptions.preempts(self._in_flight.fetches):
            self._preempt_fetches()
        brokers = len(plan.fetches)
        for node, fetches in plan.fetches.items():
            limit = self._options.response_limit(brokers, len(fetches.states))
            if node not in self._in_flight.fetches and self._has_memory(limit):
                self._fetch_at(node, fetches, now, limit)
        self._refresh_old_metadata(now)
        return plan.next_at

    def _refresh_old_metadata(self, now: float) -> None:
        """Refreshes the metadata of fetched topics if it is older than `metadata_max_age_ms`.

        Looks at the topics only if metadata or the fetched topics have changed, or at the time at
        which the first metadata becomes too old.
        """
        view, planner = self._view, self._subscriptions.planner
        versions = (view.cluster.version, planner.topics_version)
        if versions == self._checked_metadata[:2] and now < self._checked_metadata[2]:
            return
        valid_until = {topic: view.metadata_valid_until(topic) for topic in planner.topics}
        stale = [topic for topic, until in valid_until.items() if until <= now]
        if not stale:
            self._checked_metadata = (*versions, min(valid_until.values(), default=_NEVER))
        elif self._refreshes.not_before <= now:
            self._in_flight.start_lookup("metadata", self._refresh(stale))

    def _has_memory(self, more: int) -> bool:
        """Returns True if `queued_max_bytes` allows another fetch of up to `more` bytes.

        May drop buffered fetches of paused partitions: see `SubscriptionState.make_room`.
        """
        left = self._options.queued_max_bytes - self._in_flight.max_bytes
        return self._subscriptions.make_room(left - more)

    def _fetch_at(self, node: int, fetches: NodeFetches, now: float, limit: int) -> None:
        view = self._view
        session = self._sessions.get(node)
        if session is None:
            session = self._sessions[node] = FetchSession(is_used=view.settings.fetch_sessions)
            self._states[node] = {}
            fetches.changed.update(dict.fromkeys(fetches.states))
        states = self._states[node]
        topics = view.cluster.topics
        most = self._options.max_partition_fetch_bytes
        for tp in fetches.changed:
            state = fetches.states.get(tp)
            if state is None:
                session.update(tp, None)
                states.pop(tp, None)
                continue
            states[tp] = state
            topic_id = topics[state.topic].topic_id
            session.update(
                tp,
                RequestedPartition(
                    topic_id, state.position, most, state.leader_epoch, state.last_epoch
                ),
            )
        fetches.changed.clear()
        ends_at = self._offsets.begin_attempt(fetches.retrying.values(), now)
        limit = min(limit, response_bytes(most, len(states), view.settings.max_frame_bytes))
        # The leader may name a replica to a fetch with a rack, and then sends no records.
        without_rack = fetches.leader_until > now
        fetch = InFlightFetch(session, states, now, ends_at, limit, without_rack)
        self._in_flight.fetch(node, fetch, self._fetch(node, fetch))

    def _preempt_fetches(self) -> None:
        """Cancels all fetches, because newly assigned partitions would wait for one of them.

        Also closes their connections. A broker handles one request of a connection at a time, so
        the next fetches need new connections.
        """
        for fetch in self._in_flight.cancel_fetches():
            fetch.session.handle_error()
        self._view.abort(self._owner)

    def close_sessions(self) -> None:
        """Closes the fetch sessions, without waiting for responses.

        The requests use the shared connections, because a broker may still delay a fetch on the
        connections of the consumer. If no shared connection to a broker is open, the broker keeps
        the session until it evicts the session.
        """
        for node, session in self._sessions.items():
            session_id = session.close()
            connection = self._view.open_connection(node)
            if session_id is not None and connection is not None:
                version = connection.version_of(FetchRequest)
                closing = closing_request(session_id)
                with suppress(KprotoError):
                    connection.try_send(
                        closing, version=version, callback=lambda outcome: None, may_be_lost=True
                    )
        self._sessions.clear()
        self._states.clear()

    async def _refresh(self, topics: Iterable[str]) -> None:
        """Refreshes the metadata of `topics`; until then the known metadata is used."""
        try:
            await self._view.refresh(topics)
        except KprotoError as error:
            self._refreshes.failed(error, self._view.clock.monotonic())
        else:
            self._refreshes.succeeded()

    async def _fetch(self, node: int, fetch: InFlightFetch) -> None:
        view = self._view
        options = self._options

        def make(version: int) -> FetchRequest:
            fetch.sent = fetch.session.build_fetch(version)
            return fetch_request(
                fetch.sent,
                max_bytes=fetch.max_bytes,
                min_bytes=options.fetch_min_bytes,
                max_wait_ms=options.max_wait_ms,
                read_committed=options.read_committed,
                rack=None if fetch.without_rack else view.settings.rack,
                version=version,
            )

        try:
            fetch.response = await fetch_from(
                view,
                node,
                make,
                fetch.session.highest_version,
                owner=self._owner,
                ends_at=fetch.ends_at,
            )
        except KprotoError as error:
            fetch.response = error
        fetch.ended_at = view.clock.monotonic()

    def _take(self, node: int, fetch: InFlightFetch) -> bool:
        """Processes the response of a fetch, or the error with which it ended.

        Returns False if it has stopped at the first records: see `take_completed`.
        """
        if fetch.unprocessed is None:
            fetch.unprocessed = iter(self._open_response(node, fetch).items())
        is_processed = self._take_partitions(node, fetch, fetch.unprocessed)
        if is_processed and fetch.faults:
            raise fetch.faults[0]
        return is_processed

    def _open_response(
        self, node: int, fetch: InFlightFetch
    ) -> dict[TopicPartition, PartitionData]:
        """Updates the fetch session and the leaders by a response; returns its partitions.

        Backs off if the whole fetch has failed; in this case there are no partitions.
        """
        response = fetch.response
        assert response is not None, "the fetch is done"
        found: dict[TopicPartition, PartitionData] = {}
        if isinstance(response, FetchResponse):
            found = dict(fetched_partitions(response, fetch.session.topic_names))
            if not fetch.session.handle_response(response.error_code, response.session_id, found):
                logger.info("broker %d has lost the fetch session; another is opened", node)
                return {}
            if response.error_code:
                what = f"fetching from broker {node}"
                response = error_of_code(response.error_code, what)
        else:
            fetch.session.handle_error()
        if isinstance(response, KprotoError):
            # The time for which a broker may delay a fetch does not count as a failure.
            started_at = min(fetch.started_at + self._options.max_wait_ms / 1000, fetch.ended_at)
            for each in fetch.states.values():
                if each.preferred_replica is not None:
                    self._prefer_leader(each, fetch.ended_at)
            self._offsets.back_off(fetch.states, response, started_at, fetch.ended_at)
            return {}
        hints = leader_hints(found)
        if hints:
            endpoints = response.node_endpoints
            view = self._view
            view.update_leaders(
                hints, [Broker(b.node_id, b.host, b.port, b.rack) for b in endpoints]
            )
        assert fetch.sent is not None, "it was answered"
        # A broker that throttles answers at once, without partitions (KIP-219).
        if fetch.sent.is_full and (found or not response.throttle_time_ms):
            fetch.faults += [
                ProtocolError(f"the response to a Fetch lacks {topic}[{partition}]")
                for topic, partition in missing_partitions(fetch.session.partitions, found)
            ]
        return found

    def _take_partitions(
        self,
        node: int,
        fetch: InFlightFetch,
        found: Iterator[tuple[TopicPartition, PartitionData]],
    ) -> bool:
        """Processes the partitions `found`; returns False if it stops at the first records."""
        ready = self._subscriptions.poll.buffer.ready
        may_stop = not self._has_fetched_records and len(fetch.states) > _MAX_AT_ONCE
        for tp, data in found:
            requested = fetch.session.partitions.get(tp)
            state = self._subscriptions.partitions.get(tp)
            if requested is None or state is None or state is not fetch.states.get(tp):
                continue
            # A former leader may have sent records that its successor does not have.
            if state.position != requested.offset or state.leader_epoch != requested.leader_epoch:
                continue
            try:
                if data.error_code:
                    self._take_error(node, state, requested, data, fetch.ended_at)
                else:
                    self._take_partition(node, state, requested, data, fetch.ended_at)
            except KprotoError as fault:
                fetch.faults.append(fault)
                # A failed partition is fetched last, so that its records take no bytes from others.
                self._subscriptions.move_to_end(state)
            if may_stop and ready:
                return False
        return True

    def _take_error(
        self,
        node: int,
        state: TopicPartitionState,
        requested: RequestedPartition,
        data: PartitionData,
        now: float,
    ) -> None:
        tp = state.tp
        what = f"fetching {state.topic}[{state.partition}] from offset {state.position}"
        if state.is_committed_offset(state.position):
            what += ", which the group has committed"
        if data.error_code == OUT_OF_RANGE:
            what += OUT_OF_RANGE_REMEDY
        error = error_of_code(data.error_code, what)
        was_replica = state.preferred_replica == node
        if was_replica:
            self._prefer_leader(state, now)
        if was_replica and is_out_of_range(error):
            return  # a follower may be behind or ahead: the leader is asked first (KIP-392)
        cluster = self._view.cluster
        epoch = cluster.leader_epoch(*tp)
        if data.current_leader.leader_epoch >= 0 and epoch >= data.current_leader.leader_epoch:
            leader = cluster.leader(*tp)
            if leader in cluster.brokers and (leader != node or epoch > requested.leader_epoch):
                state.on_leader_moved(error, now)
                return
        self._offsets.back_off({tp: state}, error, now, now)

    def _take_partition(
        self,
        node: int,
        state: TopicPartitionState,
        requested: RequestedPartition,
        data: PartitionData,
        now: float,
    ) -> None:
        self._offsets.on_success(state)
        state.was_fetched = True
        self._subscriptions.log_ends[state.tp] = log_end_of(
            data, read_committed=self._options.read_committed
        )
        if data.preferred_read_replica not in (NO_REPLICA, node):
            self._prefer_replica(state, data.preferred_read_replica, now)
        # A broker compares epochs only if the request has the last fetched epoch (KIP-595).
        if requested.last_epoch >= 0 and (diverging := data.diverging_epoch).epoch >= 0:
            if state.preferred_replica == node:
                self._prefer_leader(state, now)  # a follower may be behind: the leader is asked
            else:
                self._offsets.on_epoch_end(state, EpochEnd(diverging.epoch, diverging.end_offset))
        elif data.records:
            self._take_records(state, data)
        elif state.end is not None and 0 <= data.high_watermark <= state.position < state.end:
            name = f"end of {state.topic}[{state.partition}]"
            self._in_flight.start_lookup(name, self._offsets.update_end(state))

    def _prefer_replica(self, state: TopicPartitionState, replica: int, now: float) -> None:
        """Fetches from the replica that the leader names, for `metadata_max_age_ms`.

        If the metadata lacks the replica, refreshes the metadata, and fetches from the leader until
        the refresh has ended.
        """
        if replica in self._view.cluster.brokers:
            state.prefer_replica(replica, now + self._view.settings.metadata_max_age_ms / 1000)
            return
        self._prefer_leader(state, now)
        if self._refreshes.not_before <= now:
            self._in_flight.start_lookup("metadata", self._refresh([state.topic]))

    def _prefer_leader(self, state: TopicPartitionState, now: float) -> None:
        """Fetches a partition from its leader instead of a replica for `retry_backoff_max_ms`."""
        state.prefer_leader(now + self._view.settings.retry_backoff_max_ms / 1000)

    def _take_records(self, state: TopicPartitionState, data: PartitionData) -> None:
        most = self._view.settings.max_decompressed_bytes
        try:
            filtered = filter_batches(
                data,
                state.topic,
                state.position,
                end=state.end,
                read_committed=self._options.read_committed,
                max_decompressed_bytes=most,
            )
        except (CorruptBatchError, MissingCodecError) as error:
            locate_broken_batch(error, state)
            raise
        completed = None
        if filtered.batches:
            completed = CompletedFetch(
                state,
                filtered.batches,
                size_in_bytes=len(data.records or b""),
                high_watermark=data.high_watermark,
                max_decompressed_bytes=most,
            )
        self._subscriptions.on_fetched(
            state, completed, filtered.position, filtered.last_epoch, filtered.epochs
        )


async def fetch_from(
    view: ClusterView,
    leader: int,
    make: Callable[[int], FetchRequest],
    highest_version: int | None,
    *,
    owner: object,
    ends_at: float,
) -> FetchResponse:
    """Sends a fetch to the node `leader`, and returns the response.

    `make` builds the fetch for the negotiated version, which is at most `highest_version`. The node
    may also be a follower (KIP-392). The fetch uses the connection of `owner`. The connection must
    be open by `ends_at`, in seconds of the clock. The time limit of the response is the time left
    until `ends_at`, or `request_timeout_ms` if that is shorter, plus the `max_wait_ms` for which
    the broker may delay the response.
    """
    connection = await view.with_deadline(ends_at, view.connection_to(leader, owner=owner))
    version = connection.version_of(FetchRequest, highest_version)
    request = make(version)
    check_fetch(request, version)
    left_ms = max(1, round((ends_at - view.clock.monotonic()) * 1000))
    limit = min(view.settings.request_timeout_ms, left_ms) + request.max_wait_ms
    response = await connection.request(request, version=version, timeout_ms=limit)
    check_first_batch_is_whole(request, response, version)
    return response


def fetched_partitions(
    response: FetchResponse, topic_names: Mapping[Uuid, str]
) -> Iterator[tuple[TopicPartition, PartitionData]]:
    """Yields the partitions of a response by topic name; topics with unknown ids are left out.

    `topic_names` has the names by topic id.
    """
    for topic in response.responses:
        name = topic.topic or topic_names.get(topic.topic_id)
        if name is not None:
            for data in topic.partitions:
                yield (name, data.partition_index), data


def missing_partitions(
    requested: Mapping[TopicPartition, object], found: Mapping[TopicPartition, object]
) -> set[TopicPartition]:
    """Returns the partitions of `requested` that `found` lacks, often none of thousands."""
    if found.keys() >= requested.keys():
        return set()
    return requested.keys() - found.keys()


def leader_hints(fetched: Mapping[TopicPartition, PartitionData]) -> list[LeaderHint]:
    """Returns the new leaders that the broker names if it does not lead a partition (KIP-951)."""
    hints: list[LeaderHint] = []
    for (topic, partition), data in fetched.items():
        if data.error_code not in _OTHER_LEADER:
            continue
        now = data.current_leader
        if now.leader_id >= 0 and now.leader_epoch >= 0:
            hints.append(LeaderHint(topic, partition, now.leader_id, now.leader_epoch))
    return hints
