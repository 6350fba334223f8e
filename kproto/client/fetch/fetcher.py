"""The turns of a consumer: what is due is asked for, and what came is taken.

A fetch at each broker, for all that it has; positions, leaders and metadata where they are lacking.
Which partition may be asked for when is `partition`'s, which batches are handed out `visible`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse, PartitionData
from ...protocol.error_codes import error_of_code
from ...wire.checks import check_whole_number
from ...wire.errors import BrokerResponseError, KprotoError, ProtocolError
from ..core.retry import Attempts
from ..metadata.cluster import Broker, TopicPartition, why_unled
from ..metadata.cluster_view import ClusterView
from .completed_fetch import CompletedFetch
from .fetch_buffer import FetchBuffer
from .fetch_requests import (
    closing_request,
    fetch_request,
    fetched_partitions,
    is_out_of_range,
    leader_hints,
    response_bytes,
    without_last_epochs,
)
from .fetch_session import FetchSession, WantedPartition
from .filtered_batches import visible_batches
from .in_flight_fetches import InFlightFetches
from .list_offsets import OffsetWanted, ask_for_offsets, list_offsets, offsets_or_errors
from .manual_partitions import FetchablePartitions
from .partition_state import NO_REPLICA, PartitionState, plan_fetches
from .position_validation import AskedEpoch, EpochEnd, LogTruncatedError, epoch_ends
from .single_fetch import Fetch, ask_for_epochs, fetch_from

__all__ = ["FetchOptions", "Fetcher"]

logger = logging.getLogger("kproto.client")


#: What a fetch can say, in bytes and in ms.
_MOST: Final = 0x7FFFFFFF


class FetchOptions(NamedTuple):
    """How to fetch, and what to do where a log lacks what was asked for.

    `max_bytes` of each partition, and how long a broker may hold a fetch, `max_wait_ms`. Who stands
    behind the end of a log goes to its end where he `prefers_end`, else to its start; and nowhere
    where positions are `is_exact`: that is an error then.
    """

    max_bytes: int
    max_wait_ms: int
    read_committed: bool
    prefers_end: bool = False
    is_exact: bool = False

    def check(self) -> None:
        """Raises ConfigurationError for what no fetch can say."""
        check_whole_number("max_bytes", self.max_bytes, 1, _MOST)
        check_whole_number("max_wait_ms", self.max_wait_ms, 0, _MOST)


class Fetcher:
    """What is fetched goes to `handing_out`, over the connections of `owner`."""

    def __init__(
        self,
        view: ClusterView,
        options: FetchOptions,
        partitions: FetchablePartitions,
        under_way: InFlightFetches,
        handing_out: FetchBuffer,
        owner: object,
    ) -> None:
        self._view = view
        self._options = options
        self._partitions = partitions
        self._under_way = under_way
        self._handing_out = handing_out
        self._owner = owner
        self.high_watermarks: dict[TopicPartition, int] = {}  # as fetches told them last
        self._refreshes = Attempts(view.settings)
        self._sessions: dict[int, FetchSession] = {}  # by broker
        self._hurried: dict[TopicPartition, PartitionState] = {}

    def take_what_came(self) -> None:
        """Raises the error of a partition that must not be tried again, or not any more.

        The first, once all that came has been taken: no partition loses by another's fault.
        """
        faults = [*self._under_way.found(), *self._under_way.fetched(self._take)]
        if faults:
            raise faults[0]

    def start_what_is_due(self) -> float:
        """Start a fetch at every leader that has none under way; returns when to look again."""
        view = self._view
        now = view.clock.monotonic()
        self._partitions.add_new()
        for name in self._partitions.unbegun:
            self._under_way.look(f"beginning of {name}", self._partitions.begin_again(name))
        cluster = view.cluster
        begun = self._partitions.ones_begun()
        plan = plan_fetches(begun, now, view.led_by, cluster.leader_epoch, cluster.brokers)
        if plan.unled:
            self._under_way.look("leaders", self._find_leaders(plan.unled))
        for node, states in plan.lost_by_node.items():
            self._under_way.look(f"positions at {node}", self._find_positions(node, states))
        for node, states in plan.unsure_by_node.items():
            self._under_way.look(f"epochs at {node}", self._validate(node, states))
        if self._hurried:
            self._make_way(plan.by_node)
        for node, states in plan.by_node.items():
            if node not in self._under_way.fetches:
                self._fetch_at(node, states, now)
        stale = {state.topic for states in plan.by_node.values() for state in states}
        stale = {topic for topic in stale if not view.is_fresh(topic)}
        if stale and self._refreshes.not_before <= now:
            self._under_way.look("metadata", self._refresh(stale))
        return plan.next_at

    def _fetch_at(self, node: int, states: Sequence[PartitionState], now: float) -> None:
        topics = {state.topic: self._view.cluster.topics[state.topic] for state in states}
        by_place = {(state.topic, state.partition): state for state in states}
        most = self._options.max_bytes
        wanted = {
            place: WantedPartition(
                topics[state.topic].topic_id,
                state.position,
                most,
                state.leader_epoch,
                state.last_epoch,
            )
            for place, state in by_place.items()
        }
        session = self._sessions.get(node)
        if session is None:
            session = FetchSession(is_used=self._view.settings.fetch_sessions)
            self._sessions[node] = session
        ends_at = self._attempt_ends_at(states, now)
        fetch = Fetch(wanted, by_place, topics, session, now, ends_at)
        self._under_way.fetch(node, fetch, self._fetch(node, fetch))

    def hurry(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        """Let these, which have just come, wait for no fetch that a broker holds.

        Connections to their leaders are opened while somebody looks where they begin.
        """
        self._hurried.update(states)
        leaders = {self._view.cluster.leader(*place) for place in states}
        for node in leaders & self._view.cluster.brokers.keys():
            self._under_way.look(f"a connection to {node}", self._connect(node))

    async def _connect(self, node: int) -> None:
        with suppress(KprotoError):  # whoever fetches there tries again, and is told
            await self._view.connection_to(node, owner=self._owner)

    def _make_way(self, by_node: Mapping[int, Sequence[PartitionState]]) -> None:
        """Give up what is under way where partitions wait behind it that are in a hurry.

        A broker works on one request of a connection at a time: so others are opened.
        """
        is_held_up = False
        for node, states in by_node.items():
            for state in states:
                place = (state.topic, state.partition)
                if self._hurried.get(place) is state:
                    del self._hurried[place]
                    is_held_up = is_held_up or node in self._under_way.fetches
        if is_held_up:
            for fetch in self._under_way.give_up_fetches():
                fetch.session.lost()
            self._view.abort(self._owner)

    def forget(self, places: Iterable[TopicPartition]) -> None:
        """Others read these now."""
        for place in places:
            self.high_watermarks.pop(place, None)
            self._hurried.pop(place, None)

    def close_sessions(self) -> None:
        """Let brokers forget what is read. Waits for nothing: one who is not told forgets later.

        Over the shared connections, as a broker may still hold a fetch on those of the consumer.
        """
        for node, session in self._sessions.items():
            session_id = session.closing()
            connection = self._view.connection_at_hand(node)
            if session_id is not None and connection is not None:
                version = connection.version_of(FetchRequest)
                closing = closing_request(session_id)
                with suppress(KprotoError):
                    connection.post(
                        closing, version=version, tell=lambda outcome: None, may_be_lost=True
                    )
        self._sessions.clear()

    def _attempt_ends_at(self, states: Iterable[PartitionState], now: float) -> float:
        """Begin an attempt for partitions; when the first of them can wait no longer for it."""
        ends_at = now + self._view.settings.delivery_timeout_ms / 1000
        for state in states:
            state.attempts.asked(now)
            ends_at = min(ends_at, state.attempts.ends_at(now))
        return ends_at

    async def _find_positions(self, node: int, states: Sequence[PartitionState]) -> None:
        """Ask the leader where the logs begin, or end, that lack what was asked for."""
        view = self._view
        left = {(state.topic, state.partition): state for state in states}
        wanted: dict[TopicPartition, OffsetWanted]
        wanted = {place: state.lost_to or "earliest" for place, state in left.items()}
        begun = view.clock.monotonic()
        ends_at = self._attempt_ends_at(states, begun)
        try:
            answer = await view.by(
                ends_at, ask_for_offsets(view, node, wanted, self._options.read_committed)
            )
        except KprotoError as error:
            self._failed(left, error, begun)
            return
        for place, found in offsets_or_errors(answer):
            state = left.pop(place, None)
            if state is None or state is not self._partitions.by_place.get(place):
                continue
            if isinstance(found, BrokerResponseError):
                self._failed({place: state}, found, view.clock.monotonic())
            else:
                before = state.position
                gone = state.found(found, self._options.prefers_end)
                if state.position < before:
                    self._handing_out.set_back(state)
                if gone:
                    logger.warning(
                        "%s[%d]: the log no longer has offsets %d to %d; they are passed over",
                        *place,
                        found - gone,
                        found - 1,
                    )
        for topic, partition in left:
            raise ProtocolError(f"the response to ListOffsets lacks {topic}[{partition}]")

    async def _find_end(self, state: PartitionState) -> None:
        """Ask whether the log still has the end that is to be read to: it may have lost it.

        A new leader may not know yet how far its log is committed, and says so when it is asked.
        """
        place = (state.topic, state.partition)
        offsets = await list_offsets(
            self._view, {place: "latest"}, read_committed=self._options.read_committed
        )
        if state.end is not None and offsets[place] < state.end:
            logger.warning(
                "%s[%d]: the log ends at offset %d, and no longer at %d",
                *place,
                offsets[place],
                state.end,
            )
            state.end = max(offsets[place], state.position)

    async def _validate(self, node: int, states: Sequence[PartitionState]) -> None:
        """Ask a leader that is new whether its log has what was read (KIP-320)."""
        view = self._view
        left = {(state.topic, state.partition): state for state in states}
        asked = {
            place: AskedEpoch(state.last_epoch, view.cluster.leader_epoch(*place))
            for place, state in left.items()
        }
        positions = {place: state.position for place, state in left.items()}
        begun = view.clock.monotonic()
        ends_at = self._attempt_ends_at(states, begun)
        try:
            answer = await view.by(ends_at, ask_for_epochs(view, node, asked))
        except KprotoError as error:
            self._failed(left, error, begun)
            return
        if answer is None:
            for place, state in left.items():
                state.leader_epoch = asked[place].current
            return
        faults: list[KprotoError] = []
        for place, found in epoch_ends(answer):
            known = left.pop(place, None)
            if known is None or known is not self._partitions.by_place.get(place):
                continue
            if known.position != positions[place]:
                continue  # an answer of the leader before came meanwhile; it is asked for again
            try:
                if isinstance(found, BrokerResponseError):
                    self._failed({place: known}, found, view.clock.monotonic())
                else:
                    self._take_end_of_epoch(known, found)
                    known.leader_epoch = asked[place].current
                    self._succeeded(known)
            except KprotoError as fault:
                faults.append(fault)
        for topic, partition in left:
            what = "the response to OffsetForLeaderEpoch"
            faults.append(ProtocolError(f"{what} lacks {topic}[{partition}]"))
        if faults:
            raise faults[0]

    def _take_end_of_epoch(self, state: PartitionState, end: EpochEnd) -> None:
        """Go on in a log where the epoch of the last record ends at `end`.

        Raises LogTruncatedError where what was handed out is gone, and `start` gave offsets.
        """
        if end.is_known and end.offset >= state.position:
            state.last_epoch = min(state.last_epoch, end.epoch)
            return
        handed_out = self._handing_out.drop_for_another_log(state)
        place = f"{state.topic}[{state.partition}]"
        if end.is_known and handed_out <= end.offset:
            state.set_back(handed_out, end.epoch, end.offset)
            logger.info("%s: the log was truncated to offset %d, unread", place, end.offset)
            return
        if self._options.is_exact:
            state.position = handed_out
            diverging = end.offset if end.is_known else None
            raise LogTruncatedError(state.topic, state.partition, handed_out, diverging)
        if end.is_known:
            state.set_back(end.offset, end.epoch, end.offset)
            logger.warning(
                "%s: the log was truncated: offsets %d to %d, which were handed out, are gone; "
                "reading goes on at %d",
                place,
                end.offset,
                handed_out - 1,
                end.offset,
            )
        else:
            state.position = handed_out
            state.lost_to = "earliest"
            logger.warning(
                "%s: the log was truncated, its leader cannot tell where; what was handed out up "
                "to offset %d may be gone",
                place,
                handed_out - 1,
            )

    async def _find_leaders(self, states: Sequence[PartitionState]) -> None:
        """Ask for metadata; a partition that nobody leads then waits before it is asked again."""
        view = self._view
        asked = {(state.topic, state.partition): state for state in states}
        begun = view.clock.monotonic()
        ends_at = self._attempt_ends_at(states, begun)
        try:
            found = await view.by(ends_at, view.refresh({topic for topic, _ in asked}))
        except KprotoError as lost:
            self._failed(asked, lost, begun)
            return
        now = view.clock.monotonic()
        for state in self._still(asked).values():
            if view.led_by(state.topic, state.partition, state.suspect_since) is None:
                error = why_unled(found, state.topic, state.partition)
                state.failed(error, now)
                place = (state.topic, state.partition)
                self._view.observer.retried("fetch", error, state.attempts, *place)
            else:
                state.attempts.go_on(now)

    async def _refresh(self, topics: Iterable[str]) -> None:
        """Ask for metadata that has grown old. What is known serves as long as it can."""
        try:
            await self._view.refresh(topics)
        except KprotoError as error:
            self._refreshes.failed(error, self._view.clock.monotonic())
        else:
            self._refreshes.succeeded()

    async def _fetch(self, node: int, fetch: Fetch) -> None:
        view = self._view
        options = self._options
        room = response_bytes(options.max_bytes, len(fetch.wanted), view.settings.max_frame_bytes)

        def make(version: int) -> FetchRequest:
            fetch.asked = fetch.session.ask(without_last_epochs(fetch.wanted, version), version)
            return fetch_request(
                fetch.asked,
                max_bytes=room,
                min_bytes=1,
                max_wait_ms=options.max_wait_ms,
                read_committed=options.read_committed,
                rack=None if alone else view.settings.rack,
            )

        # Who says where he stands is sent to a replica near by, and gets no records of the leader.
        alone = any(state.leader_until > fetch.begun for state in fetch.states.values())
        try:
            fetch.response = await fetch_from(
                view,
                node,
                make,
                fetch.topics.values(),
                owner=self._owner,
                ends_at=fetch.ends_at,
            )
        except KprotoError as error:
            fetch.response = error
        fetch.ended = view.clock.monotonic()

    def _take(self, node: int, fetch: Fetch) -> None:
        """Take what a fetch brought."""
        response = fetch.response
        assert response is not None, "the fetch is done"
        found: dict[TopicPartition, PartitionData] = {}
        if isinstance(response, FetchResponse):
            found = dict(fetched_partitions(response, fetch.topics))
            if not fetch.session.answered(response.error_code, response.session_id, found):
                logger.info("broker %d has lost the fetch session; another is opened", node)
                return
            if response.error_code:
                what = f"fetching from broker {node}"
                response = error_of_code(response.error_code, what)
        else:
            fetch.session.lost()
        if isinstance(response, KprotoError):
            # How long a broker may hold a fetch is no failure.
            begun = min(fetch.begun + self._options.max_wait_ms / 1000, fetch.ended)
            for each in fetch.states.values():
                if each.replica is not None:
                    self._keep_to_leader(each, fetch.ended)
            self._failed(fetch.states, response, begun, fetch.ended)
            return
        hints = leader_hints(response, fetch.topics)
        if hints:
            endpoints = response.node_endpoints
            view = self._view
            view.hear_leaders(hints, [Broker(b.node_id, b.host, b.port, b.rack) for b in endpoints])
        faults: list[KprotoError] = []
        for place, data in found.items():
            wanted = fetch.wanted.get(place)
            state = self._partitions.by_place.get(place)
            if wanted is None or state is None or state is not fetch.states.get(place):
                continue
            # An answer by a leader that is none any more may hold what its successor has not.
            if (state.position, state.leader_epoch) != (wanted.offset, wanted.leader_epoch):
                continue
            try:
                if data.error_code:
                    self._take_error(node, state, wanted, data, fetch.ended)
                else:
                    self._take_partition(node, state, data, fetch.ended)
            except KprotoError as fault:
                faults.append(fault)
                # Behind all others, so that it takes nobody's room when it is asked for again.
                self._partitions.move_behind(place)
        assert fetch.asked is not None, "it was answered"
        # A broker that limits how much it sends answers at once, and with nothing (KIP-219).
        if fetch.asked.is_full and (found or not response.throttle_time_ms):
            for topic, partition in fetch.wanted.keys() - found.keys():
                faults.append(ProtocolError(f"the response to a Fetch lacks {topic}[{partition}]"))
        if faults:
            raise faults[0]

    def _take_error(
        self,
        node: int,
        state: PartitionState,
        wanted: WantedPartition,
        data: PartitionData,
        now: float,
    ) -> None:
        place = (state.topic, state.partition)
        what = f"fetching {state.topic}[{state.partition}] from offset {state.position}"
        error = error_of_code(data.error_code, what)
        was_replica = state.replica == node
        if was_replica:
            self._keep_to_leader(state, now)
        if was_replica and is_out_of_range(error):
            return  # a follower may lag behind, or be ahead: the leader is asked first
        cluster = self._view.cluster
        epoch = cluster.leader_epoch(*place)
        if data.current_leader.leader_epoch >= 0 and epoch >= data.current_leader.leader_epoch:
            leader = cluster.leader(*place)
            if leader in cluster.brokers and (leader != node or epoch > wanted.leader_epoch):
                state.moved(error, now)
                return
        self._failed({place: state}, error, now, now)

    def _take_partition(
        self, node: int, state: PartitionState, data: PartitionData, now: float
    ) -> None:
        self._succeeded(state)
        state.was_fetched = True
        self.high_watermarks[state.topic, state.partition] = data.high_watermark
        if data.preferred_read_replica not in (NO_REPLICA, node):
            self._prefer(state, data.preferred_read_replica, now)
        if data.diverging_epoch.epoch >= 0 and state.replica == node:
            self._keep_to_leader(state, now)  # a follower may lag behind: the leader is asked first
        elif data.diverging_epoch.epoch >= 0:
            diverging = data.diverging_epoch
            self._take_end_of_epoch(state, EpochEnd(diverging.epoch, diverging.end_offset))
        elif data.records:
            self._take_records(state, data)
        elif state.end is not None and 0 <= data.high_watermark <= state.position < state.end:
            name = f"end of {state.topic}[{state.partition}]"
            self._under_way.look(name, self._find_end(state))

    def _prefer(self, state: PartitionState, replica: int, now: float) -> None:
        """Read from a replica near by; one that metadata does not know yet is looked for."""
        if replica in self._view.cluster.brokers:
            state.prefer(replica, now + self._view.settings.metadata_max_age_ms / 1000)
            return
        self._keep_to_leader(state, now)
        if self._refreshes.not_before <= now:
            self._under_way.look("metadata", self._refresh([state.topic]))

    def _keep_to_leader(self, state: PartitionState, now: float) -> None:
        """Read from the leader for as long as the longest wait between two tries."""
        state.keep_to_leader(now + self._view.settings.retry_backoff_max_ms / 1000)

    def _still(
        self, states: Mapping[TopicPartition, PartitionState]
    ) -> dict[TopicPartition, PartitionState]:
        """Those that are read yet: not what has gone, was moved, or is of a topic made anew."""
        now = self._partitions.by_place
        return {place: state for place, state in states.items() if now.get(place) is state}

    def _failed(
        self,
        states: Mapping[TopicPartition, PartitionState],
        error: KprotoError,
        begun: float,
        ended: float | None = None,
    ) -> None:
        """Let partitions wait after an attempt of that time, unless others read them by now.

        Raises `error` where nothing mends it, or it has lasted too long.
        """
        now = self._view.clock.monotonic() if ended is None else ended
        for place, state in self._still(states).items():
            state.attempts.begin(begun)
            if is_out_of_range(error) and not self._options.is_exact:
                state.lost(error, now)
            else:
                state.failed(error, now)
            self._view.observer.retried("fetch", error, state.attempts, *place)

    def _succeeded(self, state: PartitionState) -> None:
        if state.attempts.count:
            self._view.observer.recovered("fetch", state.topic, state.partition)
        state.attempts.succeeded()

    def _take_records(self, state: PartitionState, data: PartitionData) -> None:
        place = (state.topic, state.partition)
        most = self._view.settings.max_decompressed_bytes
        visible = visible_batches(
            data,
            state.topic,
            state.position,
            end=state.end,
            read_committed=self._options.read_committed,
            max_decompressed_bytes=most,
        )
        state.took(visible)
        # Behind all others, so that in a full response each partition has its turn.
        self._partitions.move_behind(place)
        if visible.batches:
            waiting = CompletedFetch(
                state,
                visible.batches,
                high_watermark=data.high_watermark,
                max_decompressed_bytes=most,
            )
            self._handing_out.add(waiting)
