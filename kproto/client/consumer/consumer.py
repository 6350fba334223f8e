"""`Consumer`: reads partitions it was given, without a group.

It asks each leader for all its partitions in one fetch, and asks again before it hands out what
came, so that the brokers work while the user does. Which partition may be asked for when is
`partition`'s, which batches are handed out `visible`'s, what is in them `waiting`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ...messages.fetch_response import FetchResponse, PartitionData
from ...protocol.error_codes import code_of, error_of_code
from ...wire.checks import check_whole_number
from ...wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    CorruptBatchError,
    KprotoError,
    MissingCodecError,
    ProtocolError,
    RequestTimeoutError,
)
from ..cluster.metadata import TopicInfo, TopicPartition, why_unled
from ..cluster.view import ClusterView
from ..retry import Attempts
from .beginning import find_beginnings, find_places
from .fetch import Fetch, fetch_from
from .fetch_requests import (
    fetch_request,
    fetched_partitions,
    is_out_of_range,
    response_bytes,
)
from .handing_out import (
    BatchIteration,
    HandingOut,
    RawBatchIteration,
    RecordIteration,
    ValueIteration,
)
from .offsets import OffsetWanted, ask_for_offsets, offsets_or_errors
from .partition import NOT_FOUND, PartitionState, new_partitions, plan_fetches
from .topics import Start, checked_start, checked_topics, topic_of
from .under_way import UnderWay, see
from .visible import visible_batches
from .waiting import Waiting

__all__ = ["Consumer", "Start"]

T = TypeVar("T")

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")

#: What a fetch can say, in bytes and in ms.
_MOST: Final = 0x7FFFFFFF

#: Who reads without waiting for anything else lets the event loop turn so often, in seconds: what
#: comes meanwhile is read from the socket, and the broker sends on. Other tasks have their turn.
_GIVE_WAY_S: Final = 0.001

_REMADE: Final = code_of("UNKNOWN_TOPIC_ID")


class Consumer:
    """Yields the records of partitions; made by `Client.consumer`.

    `async for record in consumer` yields one record after the other, `async for fetched in
    consumer.batches()` a `FetchedRecords` after the other, which is faster; `values` and
    `raw_batches` give less, and are faster still. Endless, unless `stop_at_end`: then it ends at
    what were the ends of the partitions when it began. An iteration that was broken off goes on
    where it was when another is begun, of whatever kind. An `anext` that is cancelled, as by
    `asyncio.wait_for`, loses nothing and ends nothing: the next one goes on.

    Lost connections and errors that a new leader or a little time mends are waited out for
    `delivery_timeout_ms`. Raises BrokerResponseError for others, CorruptBatchError for bytes that
    are no records, behind the good ones before them.
    """

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str] | Iterable[TopicPartition],
        *,
        start: Start,
        stop_at_end: bool,
        max_bytes: int,
        max_wait_ms: int,
        read_committed: bool,
    ) -> None:
        checked_start(start)
        check_whole_number("max_bytes", max_bytes, 1, _MOST)
        check_whole_number("max_wait_ms", max_wait_ms, 0, _MOST)
        self._view = view
        self._wanted = checked_topics(topics)
        self._start: Start = start
        self._stop_at_end = stop_at_end
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._read_committed = read_committed
        self._closed = False
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._under_way = UnderWay()
        self._fault: KprotoError | None = None  # told behind the records that came before it
        self._told_at = _NEVER  # by then, in seconds of the clock
        self._gives_way_at = _LONG_AGO
        self._has_turned = True  # the loop, since that was set
        self._refreshes = Attempts(view.settings)
        self._names = list(dict.fromkeys(map(topic_of, self._wanted)))
        self._known: dict[str, TopicInfo] = {}  # whole topics as they were looked at last
        self._unbegun: set[str] = set()  # made anew before anything of them was fetched
        self._beginning: asyncio.Task[None] | None = None
        self._handing_out = HandingOut(view.observer.calls.on_records)
        self._high_watermarks = view.observer.consumer(self)
        self._ready = self._handing_out.ready
        self._reader: object = None  # the iteration that asked last
        self._is_asked = False  # it waits
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition, behind the last one handed out.

        Empty until the consumer has begun.
        """
        found = {
            place: state.position
            for place, state in self._partitions.items()
            if state.position != NOT_FOUND
        }
        return found | self._handing_out.positions

    async def __aenter__(self) -> Self:
        try:
            await self._begin()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every iteration, give up the fetches under way and close their connections."""
        self._closed = True
        self._handing_out.put_back_rest()
        self._high_watermarks.clear()
        await self._stop()

    def __aiter__(self) -> RecordIteration:
        return RecordIteration(self, self._handing_out)

    def batches(self) -> BatchIteration:
        """Iterate over `FetchedRecords`: the `records` of one partition, and where they stood.

        They are those of one batch, of a part of a large one, or of some small ones.
        """
        return BatchIteration(self, self._handing_out)

    def values(self) -> ValueIteration:
        """Iterate over `FetchedValues`: the `values` of one partition, without keys and the rest.

        What is left out is checked as for records. The offsets of values are not told, and cannot
        be counted, since compaction and transactions leave gaps; `next_offset` is behind them.
        """
        return ValueIteration(self, self._handing_out)

    def raw_batches(self) -> RawBatchIteration:
        """Iterate over `FetchedBatch`: batches as they came, to be passed on or opened elsewhere.

        Their checksums are right; nothing is decompressed or decoded. Control batches and, with
        `read_committed`, those of aborted transactions are left out. A batch is given whole: the
        first may hold records before the offset asked for, the last of `stop_at_end` some behind
        the end, and one of which some records have been handed out comes again with these.
        """
        return RawBatchIteration(self, self._handing_out)

    # What iterations ask

    async def _next_fetched(self, reader: object, take: Callable[[], T | None]) -> T | None:
        """What `take` gives to the iteration `reader`, once there is something; None at the end."""
        if self._is_asked:
            raise ConfigurationError(
                "another iteration of this consumer waits for records; read it in one task, or "
                "make a consumer for each"
            )
        if self._closed and reader is self._reader:
            return None  # it was closed while this one was read
        self._reader = reader
        self._is_asked = True
        try:
            fetched = await self._next(take)
            if fetched is None:
                await self._stop()
        except RequestTimeoutError as silent:
            await self._stop()
            # Not as a TimeoutError, which who polls by `asyncio.wait_for` would take for his own.
            raise BrokerConnectionError(str(silent)) from silent
        except Exception:
            await self._stop()
            raise
        finally:
            self._is_asked = False
        return fetched

    async def _stop(self) -> None:
        """Give up the fetches under way, and their connections; an iteration begins them again."""
        await asyncio.gather(*self._cancel(), return_exceptions=True)
        await self._view.release(self)

    def _dropped(self, reader: object) -> None:
        """The iteration of `reader` was dropped: give up what is under way for it."""
        if reader is self._reader and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._abandon, reader)

    def _abandon(self, reader: object) -> None:
        if reader is self._reader:
            self._cancel()
            self._view.abort(self)

    def _cancel(self) -> list[asyncio.Task[Any]]:
        tasks = self._under_way.cancel()
        if self._beginning is not None:
            self._beginning.cancel()
            tasks.append(self._beginning)
        return [task for task in tasks if not task.done()]

    async def _next(self, take: Callable[[], T | None]) -> T | None:
        """What `take` gives; None at the end. Cancelled, it leaves what is under way."""
        await self._begin()
        now = self._view.clock.monotonic()
        if now >= self._gives_way_at:
            if not self._has_turned and self._under_way.fetches:
                await asyncio.sleep(0)
                if self._closed:
                    return None
            self._gives_way_at = now + _GIVE_WAY_S
            self._has_turned = False
            asyncio.get_running_loop().call_soon(self._turned)
        while True:
            fetched = self._taken(take)
            if fetched is not None:
                return fetched
            if self._fault is not None and not self._is_held_back():
                fault, self._fault = self._fault, None
                raise fault
            if self._closed or all(state.is_at_end for state in self._partitions.values()):
                return None
            await self._turn()

    def _turned(self) -> None:
        self._has_turned = True

    def _is_held_back(self) -> bool:
        """Whether a fault is still to wait for what is under way.

        It does for as long as a broker may hold a fetch, so that partitions of a slower broker go
        on for who reads on behind each fault.
        """
        return bool(self._under_way.fetches) and self._view.clock.monotonic() < self._told_at

    def _taken(self, take: Callable[[], T | None]) -> T | None:
        """What `take` gives of what came; None where nothing is left of it.

        Where a batch cannot be opened its partition goes back to it: what came behind is dropped,
        and the fetch under way is for another position, so that the next one finds the fault again.
        """
        try:
            return take()
        except (CorruptBatchError, MissingCodecError) as error:
            unreadable = self._handing_out.drop_unreadable()
            state = unreadable.state
            state.position = unreadable.from_offset
            error.add_note(f"while reading {state.topic}[{state.partition}] of Kafka")
            raise

    # Where to begin and to end

    async def _begin(self) -> None:
        """Look for partitions and positions; who is cancelled finds them when he asks again."""
        if self._closed:
            raise ConfigurationError("the consumer is closed; make another one")
        self._loop = asyncio.get_running_loop()
        while not (self._partitions or self._closed):
            if self._beginning is None:
                self._beginning = asyncio.create_task(self._find_partitions())
                self._beginning.add_done_callback(see)
            task = self._beginning
            if not task.done():
                await asyncio.wait([task])
            self._beginning = None
            if not task.cancelled():
                task.result()
                return

    async def _find_partitions(self) -> None:
        self._partitions = await self._beginnings(self._wanted)

    async def _begin_again(self, name: str) -> None:
        """Begin with a topic as if it had not been begun with yet."""
        topic_id = self._known[name].topic_id
        wanted = [want for want in self._wanted if topic_of(want) == name]
        found = await self._beginnings(wanted)
        for place in self._places_of(name):
            del self._partitions[place]
        self._partitions |= found
        if self._known[name].topic_id == topic_id:
            self._unbegun.discard(name)

    async def _beginnings(
        self, wanted: Sequence[str | TopicPartition]
    ) -> dict[TopicPartition, PartitionState]:
        view = self._view
        # A broker that is away for a moment is no reason to fail: it is none later either.
        counts_from_now = self._stop_at_end or self._start == "latest"
        as_of = view.clock.monotonic() if counts_from_now else _LONG_AGO
        places = await view.retrying(partial(find_places, view, wanted, as_of), responses=False)
        for name in map(topic_of, wanted):
            info = view.cluster.topics.get(name)
            if info is not None:
                self._known[name] = info  # what is found out is about this one
        self._under_way.look("connections", self._connect(places))
        return await find_beginnings(
            view,
            places,
            self._start,
            stop_at_end=self._stop_at_end,
            read_committed=self._read_committed,
        )

    def _places_of(self, name: str) -> list[TopicPartition]:
        return [place for place in self._partitions if place[0] == name]

    async def _connect(self, places: Iterable[TopicPartition]) -> None:
        """Open the connections that the fetches will want, while positions are asked for."""
        nodes = {self._view.cluster.leader(*place) for place in places}
        opening = [self._view.connection_to(node, owner=self) for node in nodes]
        await asyncio.gather(*opening, return_exceptions=True)  # a fetch tells what is wrong

    # Fetching

    async def _turn(self) -> None:
        """Start what is due, wait until some of it is done or more is due, and take what came."""
        # Behind a fault nothing is begun until it is told.
        moment = self._start_what_is_due() if self._fault is None else self._told_at
        await self._under_way.first(None if moment == _NEVER else self._view.until(moment))
        if self._closed:
            return
        try:
            self._take_what_came()
            if self._ready and self._fault is None:
                self._start_what_is_due()
        except KprotoError as fault:
            if self._fault is None:
                self._fault = fault
                self._told_at = self._view.clock.monotonic() + self._max_wait_ms / 1000

    def _take_what_came(self) -> None:
        """Raises the error of a partition that must not be tried again, or not any more.

        The first, once all that came has been taken: no partition loses by another's fault.
        """
        faults = [*self._under_way.found(), *self._under_way.fetched(self._take)]
        if faults:
            raise faults[0]

    def _start_what_is_due(self) -> float:
        """Start a fetch at every leader that has none under way; returns when to look again."""
        view = self._view
        now = view.clock.monotonic()
        self._add_new_partitions()
        for name in self._unbegun:
            self._under_way.look(f"beginning of {name}", self._begin_again(name))
        begun = [it for it in self._partitions.values() if it.topic not in self._unbegun]
        plan = plan_fetches(begun, now, view.led_by)
        if plan.unled:
            self._under_way.look("leaders", self._find_leaders(plan.unled))
        for node, states in plan.lost_by_node.items():
            self._under_way.look(f"positions at {node}", self._find_positions(node, states))
        for node, states in plan.by_node.items():
            if node not in self._under_way.fetches:
                self._fetch_at(node, states, now)
        stale = {state.topic for states in plan.by_node.values() for state in states}
        stale = {topic for topic in stale if not view.is_fresh(topic)}
        if stale and self._refreshes.not_before <= now:
            self._under_way.look("metadata", self._refresh(stale))
        return plan.next_at

    def _fetch_at(self, node: int, states: Sequence[PartitionState], now: float) -> None:
        asked = {(state.topic, state.partition): state.position for state in states}
        topics = {state.topic: self._view.cluster.topics[state.topic] for state in states}
        by_place = {(state.topic, state.partition): state for state in states}
        fetch = Fetch(asked, by_place, topics, now, self._attempt_ends_at(states, now))
        self._under_way.fetch(node, fetch, self._fetch(node, fetch))

    def _attempt_ends_at(self, states: Iterable[PartitionState], now: float) -> float:
        """Begin an attempt for partitions; when the first of them can wait no longer for it."""
        ends_at = now + self._view.settings.delivery_timeout_ms / 1000
        for state in states:
            state.attempts.asked(now)
            ends_at = min(ends_at, state.attempts.ends_at(now))
        return ends_at

    def _add_new_partitions(self) -> None:
        """Look at topics that metadata shows anew: at one made anew, and at partitions added.

        Partitions that a whole topic has got are read from their start: nothing is missed. Not with
        `stop_at_end`, which reads what there was when it began. Raises BrokerResponseError where
        that is gone.
        """
        topics = self._view.cluster.topics
        for name in self._names:
            info = topics.get(name)
            if info is None or info is self._known.get(name):
                continue
            before = self._known.get(name)
            if before is not None and before.topic_id != info.topic_id:
                self._begin_anew(info)
            self._known[name] = info
            if name not in self._wanted or self._stop_at_end:
                continue
            for place in new_partitions(info.partitions, name, self._partitions):
                state = PartitionState(place, None, None, self._view.settings)
                self._partitions[place] = state

    def _begin_anew(self, info: TopicInfo) -> None:
        """Read from the start what was deleted and made anew under the same name (KIP-516).

        If nothing of the old one has been fetched, it was known from old metadata alone: then it is
        begun with as if it had been known rightly. Not at a later "latest": that may be behind
        records that came since.
        """
        places = self._places_of(info.name)
        was_fetched = any(self._partitions[place].was_fetched for place in places)
        if not was_fetched and self._start != "latest":
            self._unbegun.add(info.name)
        elif self._stop_at_end:
            raise error_of_code(
                _REMADE,
                f"topic {info.name!r} was deleted and made anew; what was to be read of it is gone",
            )
        else:
            logger.warning("topic %s was made anew; it is read from its start", info.name)
        for place in places:
            self._partitions[place] = PartitionState(place, None, None, self._view.settings)

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
                ends_at, ask_for_offsets(view, node, wanted, self._read_committed)
            )
        except KprotoError as error:
            self._failed(left, error, begun)
            return
        for place, found in offsets_or_errors(answer):
            state = left.pop(place, None)
            if state is None or state is not self._partitions.get(place):
                continue
            if isinstance(found, BrokerResponseError):
                self._failed([place], found, view.clock.monotonic())
            else:
                gone = state.found(found, self._start == "latest")
                if gone:
                    logger.warning(
                        "%s[%d]: the log no longer has offsets %d to %d; they are passed over",
                        *place,
                        found - gone,
                        found - 1,
                    )
        for topic, partition in left:
            raise ProtocolError(f"the response to ListOffsets lacks {topic}[{partition}]")

    async def _find_leaders(self, states: Sequence[PartitionState]) -> None:
        """Ask for metadata; a partition that nobody leads then waits before it is asked again."""
        view = self._view
        begun = view.clock.monotonic()
        ends_at = self._attempt_ends_at(states, begun)
        try:
            found = await view.by(ends_at, view.refresh({state.topic for state in states}))
        except KprotoError as error:
            self._failed([(state.topic, state.partition) for state in states], error, begun)
            return
        now = view.clock.monotonic()
        for state in states:
            if view.led_by(state.topic, state.partition, state.suspect_since) is None:
                state.failed(why_unled(found, state.topic, state.partition), now)
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
        room = response_bytes(self._max_bytes, len(fetch.asked), view.settings.max_frame_bytes)
        request = fetch_request(
            fetch.asked,
            fetch.topics,
            max_bytes=room,
            partition_bytes=self._max_bytes,
            min_bytes=1,
            max_wait_ms=self._max_wait_ms,
            read_committed=self._read_committed,
        )
        topics = fetch.topics.values()
        try:
            fetch.response = await fetch_from(
                view, node, request, topics, owner=self, ends_at=fetch.ends_at
            )
        except KprotoError as error:
            fetch.response = error
        fetch.ended = view.clock.monotonic()

    def _take(self, node: int, fetch: Fetch) -> None:
        """Take what a fetch brought."""
        response = fetch.response
        assert response is not None, "the fetch is done"
        if isinstance(response, FetchResponse) and response.error_code:
            what = f"fetching from broker {node}"
            response = error_of_code(response.error_code, what)
        if isinstance(response, KprotoError):
            # How long a broker may hold a fetch is no failure.
            begun = min(fetch.begun + self._max_wait_ms / 1000, fetch.ended)
            self._failed(fetch.asked, response, begun, fetch.ended)
            return
        left = dict(fetch.asked)
        faults: list[KprotoError] = []
        for place, data in fetched_partitions(response, fetch.topics):
            asked = left.pop(place, None)
            state = self._partitions.get(place)
            if state is None or state is not fetch.states.get(place) or state.position != asked:
                continue
            try:
                self._take_partition(state, data, fetch.ended)
            except KprotoError as fault:
                faults.append(fault)
                # Behind all others, so that it takes nobody's room when it is asked for again.
                self._partitions[place] = self._partitions.pop(place)
        for topic, partition in left:
            faults.append(ProtocolError(f"the response to a Fetch lacks {topic}[{partition}]"))
        if faults:
            raise faults[0]

    def _take_partition(self, state: PartitionState, data: PartitionData, now: float) -> None:
        if data.error_code:
            what = f"fetching {state.topic}[{state.partition}] from offset {state.position}"
            error = error_of_code(data.error_code, what)
            self._failed([(state.topic, state.partition)], error, now, now)
            return
        if state.attempts.count:
            self._view.observer.recovered("fetch", state.topic, state.partition)
        state.attempts.succeeded()
        state.was_fetched = True
        self._high_watermarks[state.topic, state.partition] = data.high_watermark
        if data.records:
            self._take_records(state, data)

    def _failed(
        self,
        places: Iterable[TopicPartition],
        error: KprotoError,
        begun: float,
        ended: float | None = None,
    ) -> None:
        """Let partitions wait after an attempt of that time.

        Raises `error` where nothing mends it, or it has lasted too long.
        """
        now = self._view.clock.monotonic() if ended is None else ended
        for place in places:
            state = self._partitions.get(place)
            if state is None:
                continue  # the topic was made anew with fewer partitions
            state.attempts.begin(begun)
            if is_out_of_range(error) and not isinstance(self._start, Mapping):
                state.lost(error, now)
            else:
                state.failed(error, now)
            self._view.observer.retried("fetch", error, state.attempts, *place)

    def _take_records(self, state: PartitionState, data: PartitionData) -> None:
        place = (state.topic, state.partition)
        most = self._view.settings.max_decompressed_bytes
        batches, state.position = visible_batches(
            data,
            state.topic,
            state.position,
            end=state.end,
            read_committed=self._read_committed,
            max_decompressed_bytes=most,
        )
        # Behind all others, so that in a full response each partition has its turn.
        self._partitions[place] = self._partitions.pop(place)
        if batches:
            waiting = Waiting(
                state,
                batches,
                high_watermark=data.high_watermark,
                max_decompressed_bytes=most,
            )
            self._ready.append(waiting)
