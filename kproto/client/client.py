"""`Client`: one cluster, its connections and what is known of it.

Producers and consumers share a client. The client routes a request to the right broker and
negotiates its version; what a request and its response hold is the caller's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from ..messages.base import Request, Response
from ..messages.delete_topics_request import DeleteTopicsRequest
from ..messages.fetch_request import FetchRequest
from ..messages.fetch_response import FetchResponse
from ..messages.find_coordinator_request import FindCoordinatorRequest
from ..messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ..protocol.error_codes import code_of, error_code, raise_for_code
from ..wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    ProtocolError,
    RequestTimeoutError,
)
from .admin import (
    NewTopic,
    OffsetWanted,
    TopicPartition,
    create_topics_request,
    delete_topics_request,
    list_offsets_request,
    offsets_of,
    raise_for_created,
    raise_for_deleted,
)
from .backoff import backoff_s
from .cluster import Cluster, TopicInfo
from .connection import BrokerConnection
from .fetching import (
    FETCH_BYTES,
    FetchedPartition,
    fetch_request,
    fetched_partitions,
    highest_fetch_version,
)
from .pool import ConnectionPool
from .routing import CoordinatorType, Route, coordinator_keys, route_of
from .settings import ClientSettings, parse_bootstrap

if TYPE_CHECKING:
    from .consumer import Consumer, Start
    from .producer import Producer
    from .producing import CompressionName

__all__ = ["Client"]

R = TypeVar("R", bound=Response)

T = TypeVar("T")

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")
_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")

#: Owns the connections of `Client.fetch`.
_FETCHES: Final = "fetches"


class Client:
    """A client of one Kafka cluster, to be used with `async with`.

    `bootstrap` is `host:port`, several joined by commas, or a list of such; any broker of the
    cluster will do. Raises ConfigurationError when it is no address.
    """

    def __init__(
        self, bootstrap: str | Sequence[str], settings: ClientSettings | None = None
    ) -> None:
        self.settings = settings or ClientSettings()
        self.cluster = Cluster()
        self._pool = ConnectionPool(parse_bootstrap(bootstrap), self.settings)
        self._coordinators: dict[tuple[CoordinatorType, str], int] = {}
        self._heard_of: dict[str, float] = {}  # when metadata of a topic came, monotonic seconds
        self._refreshing: dict[frozenset[str] | None, asyncio.Task[list[TopicInfo]]] = {}

    async def __aenter__(self) -> Self:
        try:
            await self.refresh([])
        except BaseException:
            await self.close()
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
        """Close every connection.

        Requests that still wait get a BrokerConnectionError, those that come later, and retries,
        a ConfigurationError.
        """
        await self._pool.close()
        # Without connections they end at once; cancelled, they would take along who waits for them.
        await asyncio.gather(*self._refreshing.values(), return_exceptions=True)

    # Requests

    async def request(
        self,
        request: Request[R],
        *,
        broker: int | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """Send any request of the definitions; returns its response, error codes and all.

        It goes to the broker of node id `broker`, or where it belongs: a leader, a coordinator,
        the controller, or any broker. The version is negotiated unless `version` names one.
        Raises ConfigurationError when the broker must be named, EncodeError when the version
        cannot express the request, UnsupportedVersionError, BrokerConnectionError and
        RequestTimeoutError.
        """
        connection = await self._connection_for(request, broker)
        return await connection.request(request, version=version, timeout_ms=timeout_ms)

    async def connection(
        self, broker: int | None = None, *, owner: object = None
    ) -> BrokerConnection:
        """The connection to the broker of that node id, or to any broker.

        With `owner` one to that broker that nobody else uses, for requests that make the broker
        wait; `release` closes it. Raises ConfigurationError when the cluster has no such broker.
        """
        if broker is None:
            return await self._pool.to_any(self.cluster)
        address = self.cluster.brokers.get(broker)
        if address is None:
            await self.refresh([])
            address = self.cluster.brokers.get(broker)
        if address is None:
            known = ", ".join(map(str, sorted(self.cluster.brokers))) or "none"
            raise ConfigurationError(f"the cluster has no broker {broker}; it has {known}")
        return await self._pool.to(address, owner)

    async def release(self, owner: object) -> None:
        """Close the connections that `owner` has for himself."""
        await self._pool.release(owner)

    async def _connection_for(self, request: Request[R], broker: int | None) -> BrokerConnection:
        if broker is not None:
            return await self.connection(broker)
        route = route_of(request)
        if route is Route.CONTROLLER and self.cluster.controller in self.cluster.brokers:
            return await self.connection(self.cluster.controller)
        if route is Route.GROUP_COORDINATOR:
            return await self._coordinator(CoordinatorType.GROUP, request)
        if route is Route.TRANSACTION_COORDINATOR:
            return await self._coordinator(CoordinatorType.TRANSACTION, request)
        if route in (Route.LEADER, Route.NAMED) and len(self.cluster.brokers) > 1:
            raise ConfigurationError(
                f"{type(request).__name__} is answered by {route.value}; name it with broker="
            )
        return await self.connection()

    async def _coordinator(self, kind: CoordinatorType, request: Request[R]) -> BrokerConnection:
        what = f"{type(request).__name__} names"
        keys = coordinator_keys(request)
        if not keys:
            raise ConfigurationError(f"{what} no {kind.name.lower()} to route it by")
        if len(keys) > 1 and len(self.cluster.brokers) > 1:
            raise ConfigurationError(
                f"{what} {len(keys)} of them, whose coordinators may be several brokers; ask for "
                "one at a time, or name the broker with broker="
            )
        key = keys[0]
        known = self._coordinators.get((kind, key))
        if known in self.cluster.brokers:
            return await self.connection(known)
        answer = await self.retrying(lambda: self._find_coordinator(kind, key))
        self._coordinators[kind, key] = answer
        return await self.connection(answer)

    async def _find_coordinator(self, kind: CoordinatorType, key: str) -> int:
        connection = await self.connection()
        batched = connection.version_of(FindCoordinatorRequest) >= 4
        request = FindCoordinatorRequest(
            key="" if batched else key,
            key_type=kind.value,
            coordinator_keys=[key] if batched else [],
        )
        answer = await connection.request(request)
        place = f"the coordinator of {kind.name.lower()} {key!r}"
        if batched and not answer.coordinators:
            raise ProtocolError(f"{connection.address}: the response does not name {place}")
        found = answer.coordinators[0] if batched else answer
        detail = f": {found.error_message}" if found.error_message else ""
        raise_for_code(found.error_code, f"finding {place}{detail}")
        return found.node_id

    def forget_coordinator(self, kind: CoordinatorType, key: str) -> None:
        """Drop what is known of a coordinator that turned out to be another."""
        self._coordinators.pop((kind, key), None)

    # Metadata

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Ask for metadata of `topics`, or of all; returns them with their error codes.

        Topics are never created by asking. The brokers are refreshed too.
        """
        wanted = None if topics is None else frozenset(topics)
        task = self._refreshing.get(wanted)
        if task is None:
            task = asyncio.create_task(self._refresh(wanted))
            self._refreshing[wanted] = task
            task.add_done_callback(lambda done: self._refreshed(wanted, done))
        return await asyncio.shield(task)

    def _refreshed(
        self, wanted: frozenset[str] | None, task: asyncio.Task[list[TopicInfo]]
    ) -> None:
        self._refreshing.pop(wanted, None)
        if not task.cancelled():
            task.exception()  # whoever waited has it; when nobody does any more, it is seen here

    async def _refresh(self, wanted: frozenset[str] | None) -> list[TopicInfo]:
        connection = await self.connection()
        version = connection.version_of(MetadataRequest)
        # In v0 no name means every topic; later versions say so by null.
        named = [MetadataRequestTopic(name=name) for name in sorted(wanted or ())]
        request = MetadataRequest(
            topics=None if wanted is None and version > 0 else named,
            allow_auto_topic_creation=version < 4,
        )
        response = await connection.request(request, version=version)
        topics = self.cluster.update(response)
        now = time.monotonic()
        self._heard_of.update({topic.name: now for topic in topics if not topic.error_code})
        return topics

    async def topic(self, name: str) -> TopicInfo:
        """A topic and its partitions; asks for it unless it is known and fresh.

        Raises BrokerResponseError when the cluster does not have the topic: one that may appear
        yet is asked for until `topic_timeout_ms` is over.
        """
        known = self.cluster.topics.get(name)
        if known is not None and self._is_fresh(name):
            return known
        return await self._asking_for(name, lambda found: 0 if found.partitions else _NO_LEADER)

    async def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition.

        Raises BrokerResponseError when the topic does not have the partition, or when nobody
        leads it until `topic_timeout_ms` is over.
        """
        info = await self.topic(topic)
        if partition not in info.partitions:
            info = await self._asked_for(topic)  # partitions may have been added
        if partition not in info.partitions:
            raise BrokerResponseError(
                _NO_SUCH_TOPIC,
                error_code(_NO_SUCH_TOPIC).name,
                f"topic {topic!r} has {len(info.partitions)} partitions, and none is {partition}",
            )
        if not self._is_led(info, partition):
            info = await self._asking_for(
                topic, lambda found: 0 if self._is_led(found, partition) else _NO_LEADER
            )
        return info.partitions[partition].leader

    def _is_led(self, info: TopicInfo, partition: int) -> bool:
        part = info.partitions.get(partition)
        return part is not None and part.leader in self.cluster.brokers

    def _is_fresh(self, name: str) -> bool:
        age = time.monotonic() - self._heard_of.get(name, float("-inf"))
        return age * 1000 < self.settings.metadata_max_age_ms

    async def _asked_for(self, name: str) -> TopicInfo:
        for found in await self.refresh([name]):
            if found.name == name:
                return found
        raise ProtocolError(f"the response to a Metadata request for topic {name!r} lacks it")

    async def _asking_for(self, name: str, fault: Callable[[TopicInfo], int]) -> TopicInfo:
        """Ask for a topic until its error code and that of `fault` are 0, or it is too late."""
        limit = self.settings.topic_timeout_ms
        deadline = time.monotonic() + limit / 1000
        attempt = 0
        while True:
            found = await self._asked_for(name)
            code = found.error_code or fault(found)
            if not code:
                return found
            attempt += 1
            wait = backoff_s(self.settings, attempt)
            known_as, reason = error_code(code), f"topic {name!r}"
            if not known_as.retriable:
                raise BrokerResponseError(code, known_as.name, reason)
            if time.monotonic() + wait > deadline:
                reason += f"; it was asked for over {limit} ms (topic_timeout_ms)"
                raise BrokerResponseError(code, known_as.name, reason)
            await asyncio.sleep(wait)

    async def retrying(self, operation: Callable[[], Awaitable[T]], *, responses: bool = True) -> T:
        """Run `operation` again after retriable errors, up to `delivery_timeout_ms`.

        They are lost connections, time-outs and, with `responses`, the error codes that Kafka
        calls retriable; anything else is raised at once.
        """
        deadline = time.monotonic() + self.settings.delivery_timeout_ms / 1000
        attempt = 0
        while True:
            try:
                return await operation()
            except (BrokerConnectionError, RequestTimeoutError, BrokerResponseError) as error:
                if isinstance(error, BrokerResponseError) and not (responses and error.retriable):
                    raise
                attempt += 1
                wait = backoff_s(self.settings, attempt)
                if time.monotonic() + wait > deadline:
                    raise
            await asyncio.sleep(wait)

    # Topics and offsets

    async def create_topics(
        self, *topics: str | NewTopic, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> None:
        """Create topics; a bare name takes the broker's defaults.

        Raises BrokerResponseError, which names the topic, for the first that was refused; the
        others may have been created.
        """
        request = create_topics_request(topics, timeout_ms, validate_only=validate_only)
        raise_for_created(await self.request(request))

    async def delete_topics(self, *names: str, timeout_ms: int = 30_000) -> None:
        """Delete topics. Raises BrokerResponseError, which names the topic."""
        connection = await self._connection_for(DeleteTopicsRequest(), None)
        version = connection.version_of(DeleteTopicsRequest)
        request = delete_topics_request(names, timeout_ms, version)
        answer = await connection.request(request, version=version)
        self.cluster.forget(names)
        raise_for_deleted(answer)

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, OffsetWanted],
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """The offsets at the start, at the end, or of the first record since a time in ms.

        -1 when no record is that late. `latest` is the offset the next record will get; with
        `read_committed` the last stable one. Raises BrokerResponseError.
        """
        return await self.retrying(lambda: self._list_offsets(partitions, read_committed))

    async def _list_offsets(
        self, partitions: Mapping[TopicPartition, OffsetWanted], read_committed: bool
    ) -> dict[TopicPartition, int]:
        by_leader: dict[int, dict[TopicPartition, OffsetWanted]] = {}
        for (topic, partition), wanted in partitions.items():
            leader = await self.leader(topic, partition)
            by_leader.setdefault(leader, {})[topic, partition] = wanted
        found: dict[TopicPartition, int] = {}
        for leader, asked in by_leader.items():
            request = list_offsets_request(asked, read_committed=read_committed)
            try:
                found.update(offsets_of(await self.request(request, broker=leader)))
            except (BrokerConnectionError, BrokerResponseError, RequestTimeoutError):
                self.cluster.forget(topic for topic, _ in asked)
                raise
        for topic, partition in partitions:
            if (topic, partition) not in found:
                raise ProtocolError(f"the response to ListOffsets lacks {topic}[{partition}]")
        return found

    # Fetching

    async def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int = FETCH_BYTES,
        min_bytes: int = 1,
        max_wait_ms: int = 500,
        read_committed: bool = False,
    ) -> FetchedPartition:
        """Fetch the batches of one partition from `offset` on, as the broker stores them.

        Waits up to `max_wait_ms` for `min_bytes`. The first batch may begin before `offset`, and
        comes whole however large; the last may be cut. Raises BrokerResponseError.
        """
        leader = await self.leader(topic, partition)
        info = await self.topic(topic)
        request = fetch_request(
            {(topic, partition): offset},
            {topic: info},
            max_bytes=max_bytes,
            partition_bytes=max_bytes,
            min_bytes=min_bytes,
            max_wait_ms=max_wait_ms,
            read_committed=read_committed,
        )
        try:
            answer = await self.fetch_from(leader, request, [info], owner=_FETCHES)
        except (BrokerConnectionError, RequestTimeoutError):
            self.cluster.forget([topic])
            raise
        raise_for_code(answer.error_code, f"fetching {topic}[{partition}]")
        wanted = (topic, partition)
        found = fetched_partitions(answer, {topic: info})
        data = next((part for place, part in found if place == wanted), None)
        if data is None:
            raise ProtocolError(f"the response to a fetch of {topic}[{partition}] lacks it")
        if data.error_code:
            self.cluster.forget([topic])
        raise_for_code(data.error_code, f"fetching {topic}[{partition}] from offset {offset}")
        return FetchedPartition(
            data.records or b"",
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
        )

    async def fetch_from(
        self, leader: int, request: FetchRequest, topics: Iterable[TopicInfo], *, owner: object
    ) -> FetchResponse:
        """Send a fetch to the broker that leads its partitions, over `owner`'s own connection.

        A fetch may wait at the broker for `max_wait_ms`, which comes on top of the time that a
        request has.
        """
        connection = await self.connection(leader, owner=owner)
        version = connection.version_of(FetchRequest, highest_fetch_version(topics))
        limit = self.settings.request_timeout_ms + request.max_wait_ms
        return await connection.request(request, version=version, timeout_ms=limit)

    # Producers and consumers

    def producer(
        self,
        *,
        compression: CompressionName = "none",
        batch_bytes: int = 1_000_000,
        buffer_bytes: int = 33_554_432,
        idempotent: bool = True,
    ) -> Producer:
        """A producer, to be used with `async with`; see `kproto.client.producer.Producer`."""
        from .producer import Producer

        return Producer(
            self,
            compression=compression,
            batch_bytes=batch_bytes,
            buffer_bytes=buffer_bytes,
            idempotent=idempotent,
        )

    def consumer(
        self,
        topics: str | Iterable[str] | Iterable[TopicPartition],
        *,
        start: Start = "earliest",
        stop_at_end: bool = False,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 500,
        read_committed: bool = False,
    ) -> Consumer:
        """A consumer of whole topics, or of single partitions; to be used with `async for`.

        See `kproto.client.consumer.Consumer`.
        """
        from .consumer import Consumer

        return Consumer(
            self,
            topics,
            start=start,
            stop_at_end=stop_at_end,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
            read_committed=read_committed,
        )
