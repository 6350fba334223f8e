"""`Consumer`: reads partitions it was given, without a group.

It asks each leader for all its partitions in one fetch, and asks again before it hands out what
came, so that the brokers work while the user does. Control batches are never handed out, and the
next position is the offset behind the last batch, also where compaction has removed its end.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias

from ..messages.fetch_request import FetchRequest
from ..messages.fetch_response import FetchResponse, PartitionData
from ..protocol.error_codes import error_code, raise_for_code
from ..records import Record, read_batches
from ..wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    RequestTimeoutError,
)
from .admin import TopicPartition
from .backoff import backoff_ms
from .fetching import (
    AbortedTransactions,
    FetchAction,
    fetch_action,
    fetch_request,
    fetched_partitions,
    highest_fetch_version,
)

if TYPE_CHECKING:
    from .client import Client
    from .cluster import TopicInfo

__all__ = ["Consumer", "FetchedRecords", "Start"]

#: Where to begin: at the start, at the end, or at an offset for each partition.
Start: TypeAlias = Literal["earliest", "latest"] | Mapping[TopicPartition, int]


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
    ends at what were the ends of the partitions when it began.
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
        wanted: list[str | TopicPartition] = [topics] if isinstance(topics, str) else [*topics]
        if not wanted:
            raise ConfigurationError("a consumer needs a topic, or partitions as (topic, number)")
        self._client = client
        self._wanted = wanted
        self._start = start
        self._stop_at_end = stop_at_end
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._read_committed = read_committed
        #: The offset of the next record of each partition.
        self.positions: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._fetches: dict[int, asyncio.Task[FetchResponse]] = {}
        self._asked: dict[int, dict[TopicPartition, int]] = {}
        self._ready: deque[FetchedRecords] = deque()
        self._failures = 0

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
        """Give up the fetches that are under way."""
        tasks = list(self._fetches.values())
        self._fetches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aiter__(self) -> AsyncIterator[Record]:
        async for fetched in self.batches():
            for record in fetched.records:
                yield record

    async def batches(self) -> AsyncIterator[FetchedRecords]:
        """Yield lists of records, each of one partition; empty ones are left out."""
        await self._begin()
        try:
            while True:
                while self._ready:
                    yield self._ready.popleft()
                if self._stop_at_end and self._at_end():
                    return
                await self._fetch_more()
        finally:
            await self.close()

    # Where to begin and to end

    async def _begin(self) -> None:
        if self.positions:
            return
        partitions = await self._partitions()
        if isinstance(self._start, Mapping):
            missing = [place for place in partitions if place not in self._start]
            if missing:
                raise ConfigurationError(f"start gives no offset for {missing[0]}")
            self.positions = {place: self._start[place] for place in partitions}
        else:
            await self._reset(partitions, self._start)
        if self._stop_at_end:
            self._ends = await self._client.list_offsets(
                dict.fromkeys(partitions, "latest"), read_committed=self._read_committed
            )

    async def _partitions(self) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for wanted in self._wanted:
            if isinstance(wanted, str):
                info = await self._client.topic(wanted)
                found += [(wanted, partition) for partition in sorted(info.partitions)]
            else:
                await self._client.leader(*wanted)
                found.append(wanted)
        return list(dict.fromkeys(found))

    async def _reset(
        self, partitions: Iterable[TopicPartition], where: Literal["earliest", "latest"]
    ) -> None:
        wanted: dict[TopicPartition, Literal["earliest", "latest"] | int]
        wanted = dict.fromkeys(partitions, where)
        found = await self._client.list_offsets(wanted, read_committed=self._read_committed)
        self.positions.update(found)

    def _at_end(self) -> bool:
        return all(self.positions[place] >= end for place, end in self._ends.items())

    # Fetching

    async def _fetch_more(self) -> None:
        """Wait for a fetch, take its records, and ask its broker for the next."""
        topics = await self._topics()
        await self._ask(topics)
        done, _ = await asyncio.wait(self._fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        for node in [node for node, task in self._fetches.items() if task in done]:
            task = self._fetches.pop(node)
            asked = self._asked.pop(node)
            try:
                response = task.result()
            except (BrokerConnectionError, RequestTimeoutError) as error:
                await self._wait_to_retry(error)
                self._client.cluster.forget(topic for topic, _ in asked)
                continue
            await self._take(response, asked, topics)
        if self._ready:
            await self._ask(topics)

    async def _topics(self) -> dict[str, TopicInfo]:
        names = dict.fromkeys(topic for topic, _ in self.positions)
        return {name: await self._client.topic(name) for name in names}

    async def _ask(self, topics: Mapping[str, TopicInfo]) -> None:
        """Start a fetch at every leader that has none under way."""
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for (topic, partition), position in self.positions.items():
            if self._stop_at_end and position >= self._ends[topic, partition]:
                continue
            info = topics[topic].partitions.get(partition)
            if info is not None:
                by_leader.setdefault(info.leader, {})[topic, partition] = position
        for node, wanted in by_leader.items():
            if node not in self._fetches:
                self._asked[node] = wanted
                self._fetches[node] = asyncio.create_task(self._fetch(node, wanted, topics))

    async def _fetch(
        self, node: int, wanted: Mapping[TopicPartition, int], topics: Mapping[str, TopicInfo]
    ) -> FetchResponse:
        connection = await self._client.connection(node)
        used = {name: topics[name] for name, _ in wanted}
        version = connection.version_of(FetchRequest, highest_fetch_version(used.values()))
        request = fetch_request(
            wanted,
            used,
            max_bytes=self._max_bytes * len(wanted),
            partition_bytes=self._max_bytes,
            min_bytes=1,
            max_wait_ms=self._max_wait_ms,
            read_committed=self._read_committed,
        )
        return await connection.request(request, version=version)

    async def _take(
        self,
        response: FetchResponse,
        asked: Mapping[TopicPartition, int],
        topics: Mapping[str, TopicInfo],
    ) -> None:
        raise_for_code(response.error_code, "fetching")
        for place, data in fetched_partitions(response, topics):
            if self.positions.get(place) != asked.get(place):
                continue
            if data.error_code:
                await self._handle_error(place, data)
            elif data.records:
                self._failures = 0
                self._take_records(place, data)

    def _take_records(self, place: TopicPartition, data: PartitionData) -> None:
        topic, partition = place
        records: list[Record] = []
        position = self.positions[place]
        aborted = AbortedTransactions(data) if self._read_committed else None
        for batch in read_batches(data.records or b""):
            if batch.next_offset <= position:
                continue
            if batch.is_control:
                if aborted is not None:
                    aborted.see_marker(batch)
            elif aborted is None or not aborted.hides(batch):
                records += batch.records(from_offset=position, topic=topic, partition=partition)
            position = batch.next_offset
        self.positions[place] = position
        if records:
            self._ready.append(FetchedRecords(topic, partition, records, data.high_watermark))

    async def _handle_error(self, place: TopicPartition, data: PartitionData) -> None:
        topic, partition = place
        code = error_code(data.error_code)
        reason = f"fetching {topic}[{partition}] from offset {self.positions[place]}"
        error = BrokerResponseError(code.code, code.name, reason, retriable=code.retriable)
        action = fetch_action(data.error_code)
        if action is FetchAction.FAIL:
            raise error
        if action is FetchAction.RESET:
            if isinstance(self._start, Mapping):
                raise error
            await self._reset([place], self._start)
            return
        if action is FetchAction.REFRESH:
            self._client.cluster.forget([topic])
        await self._wait_to_retry(error)

    async def _wait_to_retry(self, error: Exception) -> None:
        """Wait longer after each failure in a row; raise `error` when there were too many."""
        self._failures += 1
        settings = self._client.settings
        if self._failures * settings.retry_backoff_max_ms > settings.delivery_timeout_ms:
            raise error
        wait = backoff_ms(settings, self._failures, random.random())  # noqa: S311 - jitter
        await asyncio.sleep(wait / 1000)
