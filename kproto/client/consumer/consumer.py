"""`Consumer`: reads partitions it was given, without a group.

It asks each leader for all its partitions in one fetch, and asks again before it hands out what
came, so that the brokers work while the user does. Which partition may be asked for when is
`partition`'s, what of the bytes is handed out `visible`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from ...messages.fetch_response import FetchResponse, PartitionData
from ...protocol.error_codes import error_of_code
from ...wire.checks import check_whole_number
from ...wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ..cluster.metadata import TopicInfo, TopicPartition, why_unled
from ..cluster.view import ClusterView
from ..retry import Attempts
from .fetch import fetch_from
from .fetch_requests import (
    fetch_request,
    fetched_partitions,
    is_out_of_range,
    response_bytes,
)
from .handing_out import BatchIteration, FetchedRecords, HandingOut, RecordIteration
from .offsets import OffsetWanted, ask_for_offsets, list_offsets, offsets_or_errors
from .partition import NOT_FOUND, PartitionState, new_partitions, plan_fetches
from .visible import visible_records

__all__ = ["Consumer", "Start"]

logger = logging.getLogger("kproto.client")

#: Where to begin: at the start, at the end, or at an offset for each partition.
Start: TypeAlias = Literal["earliest", "latest"] | Mapping[TopicPartition, int]

_NEVER: Final = float("inf")


@dataclass(slots=True)
class _Fetch:
    """A fetch at one node: what was asked for, from which offsets; and when, in seconds."""

    asked: dict[TopicPartition, int]
    topics: dict[str, TopicInfo]
    begun: float
    ends_at: float
    ended: float = _NEVER
    response: FetchResponse | KprotoError | None = None


class Consumer:
    """Yields the records of partitions; made by `Client.consumer`.

    `async for record in consumer` yields one record after the other, `async for fetched in
    consumer.batches()` a `FetchedRecords` after the other, which is faster. Endless, unless
    `stop_at_end`: then it ends at what were the ends of the partitions when it began. An iteration
    that was broken off goes on where it was when another is begun. An `anext` that is cancelled, as
    by `asyncio.wait_for`, loses nothing and ends nothing: the next one goes on.

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
        if not isinstance(start, Mapping) and start not in ("earliest", "latest"):
            raise ConfigurationError(
                f"start is {start!r}; it is 'earliest', 'latest' or an offset for each partition"
            )
        check_whole_number("max_bytes", max_bytes, 1)
        check_whole_number("max_wait_ms", max_wait_ms, 0)
        self._view = view
        self._wanted = _checked(topics)
        self._start: Start = start
        self._stop_at_end = stop_at_end
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._read_committed = read_committed
        self._closed = False
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._fetches: dict[int, tuple[asyncio.Task[None], _Fetch]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}  # for leaders, for positions
        self._timer: asyncio.Task[None] | None = None
        self._fault: Exception | None = None  # told behind the records that came before it
        self._refreshes = Attempts(view.settings)
        self._known: dict[str, TopicInfo] = {}  # whole topics as they were looked at last
        self._beginning: asyncio.Task[None] | None = None
        self._handing_out = HandingOut()
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
        await self._stop()

    def __aiter__(self) -> RecordIteration:
        return RecordIteration(self, self._handing_out)

    def batches(self) -> BatchIteration:
        """Iterate over `FetchedRecords`: the `records` of one partition, and where they stood."""
        return BatchIteration(self, self._handing_out)

    # What iterations ask

    async def _next_records(self, reader: object) -> FetchedRecords | None:
        """The next records for the iteration `reader`; None at the end."""
        if self._is_asked:
            raise ConfigurationError(
                "another iteration of this consumer waits for records; read it in one task, or "
                "make a consumer for each"
            )
        self._reader = reader
        self._is_asked = True
        try:
            fetched = await self._next()
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
        tasks: list[asyncio.Task[Any]] = [task for task, _ in self._fetches.values()]
        tasks += self._looking.values()
        tasks += [task for task in (self._timer, self._beginning) if task is not None]
        self._fetches.clear()
        self._looking.clear()
        for task in tasks:
            task.cancel()
        return tasks

    async def _next(self) -> FetchedRecords | None:
        """The next records; None at the end. Cancelled, it leaves what is under way."""
        await self._begin()
        left = self._handing_out.take_rest()
        if left is not None:
            return left
        while not self._ready:
            if self._fault is not None:
                fault, self._fault = self._fault, None
                raise fault
            if self._closed or all(state.is_at_end for state in self._partitions.values()):
                return None
            await self._turn()
        return self._ready.popleft()

    # Where to begin and to end

    async def _begin(self) -> None:
        """Look for partitions and positions; who is cancelled finds them when he asks again."""
        if self._closed:
            raise ConfigurationError("the consumer is closed; make another one")
        self._loop = asyncio.get_running_loop()
        while not (self._partitions or self._closed):
            if self._beginning is None:
                self._beginning = asyncio.create_task(self._find_partitions())
                self._beginning.add_done_callback(_see)
            task = self._beginning
            await asyncio.wait([task])
            self._beginning = None
            if not task.cancelled():
                task.result()
                return

    async def _find_partitions(self) -> None:
        # A broker that is away for a moment is no reason to fail: it is none later either.
        places = await self._view.retrying(self._places, responses=False)
        if isinstance(self._start, Mapping):
            missing = [place for place in places if place not in self._start]
            if missing:
                raise ConfigurationError(f"start gives no offset for {missing[0]}")
            positions = {place: self._start[place] for place in places}
        else:
            positions = await self._offsets(places, self._start)
        ends = await self._offsets(places, "latest") if self._stop_at_end else {}
        settings = self._view.settings
        self._partitions = {
            place: PartitionState(place, positions[place], ends.get(place), settings)
            for place in places
        }

    async def _places(self) -> list[TopicPartition]:
        await self._view.know(want if isinstance(want, str) else want[0] for want in self._wanted)
        found: list[TopicPartition] = []
        for wanted in self._wanted:
            if isinstance(wanted, str):
                info = await self._view.topic(wanted)
                found += [(wanted, partition) for partition in info.partitions]
            else:
                await self._view.leader(*wanted)
                found.append(wanted)
        return list(dict.fromkeys(found))

    async def _offsets(
        self, places: Iterable[TopicPartition], where: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        wanted: dict[TopicPartition, Literal["earliest", "latest"] | int]
        wanted = dict.fromkeys(places, where)
        return await list_offsets(self._view, wanted, read_committed=self._read_committed)

    # Fetching

    async def _turn(self) -> None:
        """Start what is due, wait until some of it is done or more is due, and take what came."""
        moment = self._start_what_is_due()
        waited: list[asyncio.Task[None]] = [task for task, _ in self._fetches.values()]
        waited += self._looking.values()
        if moment != _NEVER:
            self._timer = asyncio.create_task(self._view.until(moment))
            waited.append(self._timer)
        try:
            if waited:
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        if self._closed:
            return
        try:
            self._take_what_came()
        except Exception as fault:
            if not self._ready:
                raise
            self._fault = fault
        else:
            if self._ready:
                self._start_what_is_due()

    def _take_what_came(self) -> None:
        """Raises the error of a partition that must not be tried again, or not any more."""
        for name in [name for name, task in self._looking.items() if task.done()]:
            self._looking.pop(name).result()
        for node in [node for node, (task, _) in self._fetches.items() if task.done()]:
            task, fetch = self._fetches.pop(node)
            task.result()
            self._take(node, fetch)

    def _start_what_is_due(self) -> float:
        """Start a fetch at every leader that has none under way; returns when to look again."""
        view = self._view
        now = view.clock.monotonic()
        self._add_new_partitions()
        plan = plan_fetches(self._partitions.values(), now, view.led_by)
        if plan.unled:
            self._look("leaders", self._find_leaders(plan.unled))
        for node, states in plan.lost_by_node.items():
            self._look(f"positions at {node}", self._find_positions(node, states))
        for node, states in plan.by_node.items():
            if node not in self._fetches:
                self._fetch_at(node, states, now)
        stale = {state.topic for states in plan.by_node.values() for state in states}
        stale = {topic for topic in stale if not view.is_fresh(topic)}
        if stale and self._refreshes.not_before <= now:
            self._look("metadata", self._refresh(stale))
        return plan.next_at

    def _fetch_at(self, node: int, states: Sequence[PartitionState], now: float) -> None:
        asked = {(state.topic, state.partition): state.position for state in states}
        topics = {state.topic: self._view.cluster.topics[state.topic] for state in states}
        fetch = _Fetch(asked, topics, now, self._attempt_ends_at(states, now))
        task = asyncio.create_task(self._fetch(node, fetch))
        task.add_done_callback(_see)
        self._fetches[node] = (task, fetch)

    def _attempt_ends_at(self, states: Iterable[PartitionState], now: float) -> float:
        """Begin an attempt for partitions; when the first of them can wait no longer for it."""
        ends_at = now + self._view.settings.delivery_timeout_ms / 1000
        for state in states:
            state.attempts.asked(now)
            ends_at = min(ends_at, state.attempts.ends_at(now))
        return ends_at

    def _add_new_partitions(self) -> None:
        """Read partitions that a whole topic has got since, from their start: nothing is missed.

        Not with `stop_at_end`, which reads what there was when it began.
        """
        topics = self._view.cluster.topics
        for topic in () if self._stop_at_end else self._wanted:
            info = topics.get(topic) if isinstance(topic, str) else None
            if info is None or info is self._known.get(info.name):
                continue
            before = self._known.get(info.name)
            self._known[info.name] = info
            if before is not None and before.topic_id != info.topic_id:
                self._begin_anew(info)
            for place in new_partitions(info.partitions, info.name, self._partitions):
                state = PartitionState(place, None, None, self._view.settings)
                self._partitions[place] = state

    def _begin_anew(self, info: TopicInfo) -> None:
        """Read from the start what was deleted and made anew under the same name (KIP-516)."""
        logger.warning("topic %s was made anew; it is read from its start", info.name)
        for place in [place for place in self._partitions if place[0] == info.name]:
            self._partitions[place] = PartitionState(place, None, None, self._view.settings)

    def _look(self, name: str, finding: Coroutine[Any, Any, None]) -> None:
        """Have something found out, unless that is under way."""
        if name in self._looking:
            finding.close()
        else:
            self._looking[name] = asyncio.create_task(finding)
            self._looking[name].add_done_callback(_see)

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

    async def _fetch(self, node: int, fetch: _Fetch) -> None:
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

    def _take(self, node: int, fetch: _Fetch) -> None:
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
        for place, data in fetched_partitions(response, fetch.topics):
            state = self._partitions.get(place)
            if state is None or state.position != left.pop(place, None):
                continue
            if data.error_code:
                topic, partition = place
                what = f"fetching {topic}[{partition}] from offset {state.position}"
                error = error_of_code(data.error_code, what)
                self._failed([place], error, fetch.ended, fetch.ended)
                continue
            state.attempts.succeeded()
            if data.records:
                self._take_records(state, data)
        for topic, partition in left:
            raise ProtocolError(f"the response to a Fetch lacks {topic}[{partition}]")

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
            state = self._partitions[place]
            state.attempts.begin(begun)
            if is_out_of_range(error) and not isinstance(self._start, Mapping):
                state.lost(error, now)
            else:
                state.failed(error, now)

    def _take_records(self, state: PartitionState, data: PartitionData) -> None:
        topic, partition = place = (state.topic, state.partition)
        records, state.position = visible_records(
            data,
            topic,
            state.position,
            end=state.end,
            read_committed=self._read_committed,
            max_decompressed_bytes=self._view.settings.max_decompressed_bytes,
        )
        # Behind all others, so that in a full response each partition has its turn.
        self._partitions[place] = self._partitions.pop(place)
        if records:
            self._ready.append(FetchedRecords(topic, partition, records, data.high_watermark))


def _see(task: asyncio.Task[None]) -> None:
    """Look at what a task came to, if nobody does any more."""
    if not task.cancelled():
        task.exception()


def _checked(
    topics: str | Iterable[str] | Iterable[TopicPartition],
) -> list[str | TopicPartition]:
    """What a consumer shall read, as a list. Raises ConfigurationError."""
    if not isinstance(topics, Iterable):
        raise ConfigurationError(f"{topics!r} is neither a topic nor partitions")
    wanted: list[str | TopicPartition] = []
    for place in [topics] if isinstance(topics, str) else topics:
        match place:
            case str():
                wanted.append(place)
            case (str(topic), int(partition)):
                wanted.append((topic, partition))
            case _:
                raise ConfigurationError(
                    f"{place!r} is neither a topic nor a partition as (topic, number)"
                )
    if not wanted:
        raise ConfigurationError("a consumer needs a topic, or partitions as (topic, number)")
    return wanted
