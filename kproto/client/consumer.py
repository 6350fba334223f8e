"""`Consumer`: reads partitions it was given, without a group.

It asks each leader for all its partitions in one fetch, and asks again before it hands out what
came, so that the brokers work while the user does. Control batches are never handed out, and the
next position is the offset behind the last batch, also where compaction has removed its end.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from operator import length_hint
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self, TypeAlias

from ..messages.fetch_request import FetchRequest
from ..messages.fetch_response import FetchResponse, PartitionData
from ..protocol.error_codes import code_of, error_code
from ..records import Record, RecordBatch, read_batches
from ..wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    CorruptBatchError,
    MissingCodecError,
    ProtocolError,
    RequestTimeoutError,
)
from .admin import TopicPartition
from .backoff import backoff_s
from .fetching import (
    AbortedTransactions,
    FetchAction,
    fetch_action,
    fetch_request,
    fetched_partitions,
    response_bytes,
)

if TYPE_CHECKING:
    from .client import Client
    from .cluster import TopicInfo

__all__ = ["Consumer", "FetchedRecords", "Start"]

#: Where to begin: at the start, at the end, or at an offset for each partition.
Start: TypeAlias = Literal["earliest", "latest"] | Mapping[TopicPartition, int]


_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")
_NO_PARTITION: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")

#: Counts failures to reach any broker at all.
_NO_NODE: Final = -1


class FetchedRecords(NamedTuple):
    """Records of one partition in order; `high_watermark` is the offset behind its last record."""

    topic: str
    partition: int
    records: list[Record]
    high_watermark: int


class Consumer:
    """Yields the records of partitions; made by `Client.consumer`.

    `async for record in consumer` yields one record after the other, `async for fetched in
    consumer.batches()` lists of them, which is faster. Endless, unless `stop_at_end`: then it
    ends at what were the ends of the partitions when it began. An iteration that was broken off
    goes on where it was when another is begun.

    Lost connections and errors that a new leader or a little time mends are waited out for
    `delivery_timeout_ms`. Raises BrokerResponseError for others, CorruptBatchError for bytes that
    are no records, behind the good ones before them.
    """

    def __init__(
        self,
        client: Client,
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
        self._client = client
        self._wanted = _checked(topics)
        self._start: Start = start
        self._stop_at_end = stop_at_end
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._read_committed = read_committed
        self._closed = False
        self._fetched_to: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._fetches: dict[int, asyncio.Task[FetchResponse]] = {}
        self._asked: dict[int, dict[TopicPartition, int]] = {}
        self._failures: Counter[TopicPartition | int] = Counter()
        # What has come: lists that wait, and the one that is being handed out record by record.
        self._ready: deque[FetchedRecords] = deque()
        self._current: FetchedRecords | None = None
        self._rest: Iterator[Record] = iter(())

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition, behind the last one handed out.

        Empty until the consumer has begun.
        """
        found = dict(self._fetched_to)
        for fetched in reversed(self._ready):
            found[fetched.topic, fetched.partition] = fetched.records[0].offset
        left = length_hint(self._rest)
        if left and self._current is not None:
            place = (self._current.topic, self._current.partition)
            found[place] = self._current.records[-left].offset
        return found

    async def __aenter__(self) -> Self:
        await self._begin()
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
        await self._stop_fetching()

    async def _stop_fetching(self) -> None:
        tasks = list(self._fetches.values())
        self._fetches.clear()
        self._asked.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.release(self)

    async def __aiter__(self) -> AsyncGenerator[Record, None]:
        try:
            while True:
                for record in self._rest:
                    yield record
                self._current = await self._next()
                if self._current is None:
                    return
                self._rest = iter(self._current.records)
        finally:
            await self._stop_fetching()

    async def batches(self) -> AsyncGenerator[FetchedRecords, None]:
        """Yield lists of records, each of one partition; empty ones are left out."""
        try:
            while (fetched := await self._next()) is not None:
                yield fetched
        finally:
            await self._stop_fetching()

    async def _next(self) -> FetchedRecords | None:
        """The next records; None at the end."""
        await self._begin()
        left = list(self._rest)
        if left and self._current is not None:
            return self._current._replace(records=left)
        while not self._ready:
            if self._closed or (self._stop_at_end and self._at_end()):
                return None
            await self._fetch_more()
        return self._ready.popleft()

    # Where to begin and to end

    async def _begin(self) -> None:
        if self._closed:
            raise ConfigurationError("the consumer is closed; make another one")
        if self._fetched_to:
            return
        partitions = await self._partitions()
        if isinstance(self._start, Mapping):
            missing = [place for place in partitions if place not in self._start]
            if missing:
                raise ConfigurationError(f"start gives no offset for {missing[0]}")
            positions = {place: self._start[place] for place in partitions}
        else:
            positions = await self._offsets(partitions, self._start)
        if self._stop_at_end:
            self._ends = await self._offsets(partitions, "latest")
        self._fetched_to = positions

    async def _partitions(self) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for wanted in self._wanted:
            if isinstance(wanted, str):
                info = await self._client.topic(wanted)
                found += [(wanted, partition) for partition in info.partitions]
            else:
                await self._client.leader(*wanted)
                found.append(wanted)
        return list(dict.fromkeys(found))

    async def _offsets(
        self, partitions: Iterable[TopicPartition], where: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        wanted: dict[TopicPartition, Literal["earliest", "latest"] | int]
        wanted = dict.fromkeys(partitions, where)
        return await self._client.list_offsets(wanted, read_committed=self._read_committed)

    def _at_end(self) -> bool:
        return all(self._fetched_to[place] >= end for place, end in self._ends.items())

    # Fetching

    async def _fetch_more(self) -> None:
        """Wait for a fetch, take its records, and ask its broker for the next."""
        try:
            leaders, topics = await self._leaders()
        except (BrokerConnectionError, RequestTimeoutError) as error:
            await self._wait_to_retry(_NO_NODE, error)
            return
        if not leaders or self._closed:
            return
        self._ask(leaders, topics)
        done, _ = await asyncio.wait(self._fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        for node in [node for node, task in self._fetches.items() if task in done]:
            task = self._fetches.pop(node, None)
            if task is None:  # closed meanwhile
                return
            asked = self._asked.pop(node)
            try:
                response = task.result()
            except (BrokerConnectionError, RequestTimeoutError) as error:
                self._client.cluster.forget(topic for topic, _ in asked)
                await self._wait_to_retry(node, error)
            else:
                self._failures.pop(node, None)
                self._failures.pop(_NO_NODE, None)
                await self._take(response, node, asked, topics)
        if self._ready and not self._closed:
            self._ask(leaders, topics)

    async def _leaders(self) -> tuple[dict[TopicPartition, int], dict[str, TopicInfo]]:
        """Who leads each partition that is not at its end, and the topics.

        One that nobody leads is left out, after a wait.
        """
        leaders: dict[TopicPartition, int] = {}
        topics: dict[str, TopicInfo] = {}
        for place, position in list(self._fetched_to.items()):
            if self._stop_at_end and position >= self._ends[place]:
                continue
            topic, partition = place
            info = topics[topic] = await self._client.topic(topic)
            node = self._client.cluster.leader(topic, partition)
            if node in self._client.cluster.brokers:
                leaders[place] = node
                continue
            code = error_code(_NO_LEADER if partition in info.partitions else _NO_PARTITION)
            self._client.cluster.forget([topic])
            what = f"looking for the leader of {topic}[{partition}]"
            await self._wait_to_retry(place, BrokerResponseError(code.code, code.name, what))
        return leaders, topics

    def _ask(self, leaders: Mapping[TopicPartition, int], topics: Mapping[str, TopicInfo]) -> None:
        """Start a fetch at every leader that has none under way."""
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for place, position in self._fetched_to.items():
            if place not in leaders or (self._stop_at_end and position >= self._ends[place]):
                continue
            by_leader.setdefault(leaders[place], {})[place] = position
        for node, wanted in by_leader.items():
            if node not in self._fetches:
                self._asked[node] = wanted
                self._fetches[node] = asyncio.create_task(self._fetch(node, wanted, topics))

    async def _fetch(
        self, node: int, wanted: Mapping[TopicPartition, int], topics: Mapping[str, TopicInfo]
    ) -> FetchResponse:
        used = {name: topics[name] for name, _ in wanted}
        request: FetchRequest = fetch_request(
            wanted,
            used,
            max_bytes=response_bytes(
                self._max_bytes, len(wanted), self._client.settings.max_frame_bytes
            ),
            partition_bytes=self._max_bytes,
            min_bytes=1,
            max_wait_ms=self._max_wait_ms,
            read_committed=self._read_committed,
        )
        return await self._client.fetch_from(node, request, used.values(), owner=self)

    async def _take(
        self,
        response: FetchResponse,
        node: int,
        asked: Mapping[TopicPartition, int],
        topics: Mapping[str, TopicInfo],
    ) -> None:
        if response.error_code:
            await self._handle_error(
                node, response.error_code, f"fetching from broker {node}", asked
            )
        for place, data in fetched_partitions(response, topics):
            if self._fetched_to.get(place) != asked.get(place):
                continue
            if data.error_code:
                topic, partition = place
                what = f"fetching {topic}[{partition}] from offset {self._fetched_to[place]}"
                await self._handle_error(place, data.error_code, what, [place])
                continue
            self._failures.pop(place, None)
            if data.records:
                self._take_records(place, data)

    def _take_records(self, place: TopicPartition, data: PartitionData) -> None:
        topic, partition = place
        records: list[Record] = []
        begun = self._fetched_to[place]
        end = self._ends.get(place)
        aborted = AbortedTransactions(data) if self._read_committed else None
        try:
            for batch in read_batches(data.records or b"", whole_first=True):
                if batch.next_offset <= self._fetched_to[place]:
                    continue
                records += self._visible(batch, place, aborted)
                self._fetched_to[place] = batch.next_offset
                if end is not None and batch.next_offset >= end:
                    break  # What stands behind is not asked for, broken or not.
        except (CorruptBatchError, MissingCodecError) as error:
            if not records:  # else they are handed out first, and the next fetch begins here
                error.add_note(f"while reading {topic}[{partition}] of Kafka")
                raise
        if end is not None and self._fetched_to[place] > end:
            self._fetched_to[place] = end
            records = [record for record in records if record.offset < end]
        if self._fetched_to[place] == begun:
            raise ProtocolError(
                f"{topic}[{partition}]: all that the fetch from offset {begun} brought lies before "
                "it, and would be brought again"
            )
        # Behind all others, so that in a full response each partition has its turn.
        self._fetched_to[place] = self._fetched_to.pop(place)
        if records:
            self._ready.append(FetchedRecords(topic, partition, records, data.high_watermark))

    def _visible(
        self, batch: RecordBatch, place: TopicPartition, aborted: AbortedTransactions | None
    ) -> list[Record]:
        """The records of a batch that the user may see, from the position on."""
        if batch.is_control:
            if aborted is not None:
                aborted.see_marker(batch, self._client.settings.max_decompressed_bytes)
            return []
        if aborted is not None and aborted.hides(batch):
            return []
        topic, partition = place
        return batch.records(
            from_offset=self._fetched_to[place],
            max_decompressed_bytes=self._client.settings.max_decompressed_bytes,
            topic=topic,
            partition=partition,
        )

    # What went wrong

    async def _handle_error(
        self,
        who: TopicPartition | int,
        code: int,
        what: str,
        places: Iterable[TopicPartition],
    ) -> None:
        known = error_code(code)
        error = BrokerResponseError(code, known.name, what, retriable=known.retriable)
        action = fetch_action(code)
        if action is FetchAction.FAIL:
            raise error
        if action is FetchAction.RESET:
            if isinstance(self._start, Mapping):
                raise error
            self._fetched_to.update(await self._offsets(places, self._start))
            return
        if action is FetchAction.REFRESH:
            self._client.cluster.forget(topic for topic, _ in places)
        await self._wait_to_retry(who, error)

    async def _wait_to_retry(self, who: TopicPartition | int, error: Exception) -> None:
        """Wait longer after each failure in a row; raise `error` when there were too many."""
        self._failures[who] += 1
        attempt = self._failures[who]
        settings = self._client.settings
        if attempt * settings.retry_backoff_max_ms > settings.delivery_timeout_ms:
            raise error
        await asyncio.sleep(backoff_s(settings, attempt))


def _checked(
    topics: str | Iterable[str] | Iterable[TopicPartition],
) -> list[str | TopicPartition]:
    """What a consumer shall read, as a list. Raises ConfigurationError."""
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
