"""`Client`: the roof. Composes the rooms and decides nothing itself.

Producers and consumers share what their client knows of the cluster, and its connections.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from ..clock import SYSTEM_CLOCK, Clock
from ..messages.base import Request, Response
from ..messages.delete_topics_request import DeleteTopicsRequest
from ..security.mechanisms import Sasl
from ..security.tls import AnyTls
from ..wire.errors import ConfigurationError
from .admin.topics import (
    NewTopic,
    create_topics_request,
    delete_topics_request,
    raise_for_created,
    raise_for_deleted,
)
from .cluster.metadata import Cluster, TopicInfo, TopicPartition
from .cluster.requests import BrokerAnswer
from .cluster.view import ClusterView
from .connections.broker_connection import BrokerConnection
from .consumer.consumer import Consumer, Start
from .consumer.fetch import fetch_partition
from .consumer.fetch_requests import FETCH_BYTES, FetchedPartition
from .consumer.group_consumer import GroupConsumer
from .consumer.offsets import OffsetWanted, list_offsets
from .consumer.ownership import Callback, Callbacks
from .consumer.topics import GroupStart
from .groups.assignor import Assignor
from .groups.choosing import GroupMember
from .groups.settings import DEFAULT_ASSIGNORS, GroupSettings
from .groups.subscription import TopicPattern
from .producer.producer import REMEMBERED_BATCHES, Producer
from .producer.producer_record import CompressionName
from .settings import ClientSettings, parse_bootstrap

if TYPE_CHECKING:
    from ..security.properties import PropertySource

__all__ = ["Client"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


class Client:
    """A client of one Kafka cluster, to be used with `async with`.

    `bootstrap` is `host:port`, several joined by commas, or a list of such; any broker of the
    cluster will do. `tls`, `sasl`, `rack` and `broker_version` take the place of those in
    `settings`: see `ClientSettings`, `Tls`, `Plain`, `ScramSha512` and `OAuthBearer`. `clock` is
    for tests that turn the time. Raises ConfigurationError when `bootstrap` is no address.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        settings: ClientSettings | None = None,
        *,
        tls: AnyTls | None = None,
        sasl: Sasl | None = None,
        rack: str | None = None,
        broker_version: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        named: dict[str, Any] = {
            "tls": tls,
            "sasl": sasl,
            "rack": rack,
            "broker_version": broker_version,
        }
        given = {name: value for name, value in named.items() if value is not None}
        self.settings = replace(settings or ClientSettings(), **given)
        self._view = ClusterView(parse_bootstrap(bootstrap), self.settings, clock)

    @classmethod
    def from_properties(
        cls, source: PropertySource, *, clock: Clock = SYSTEM_CLOCK, **overrides: Any
    ) -> Self:
        """A client of what a client.properties file says, or a mapping with the same names.

        The names are those of Kafka's Java clients and of librdkafka, as the page
        docs/reference/client-properties.md lists them. `overrides` are fields of ClientSettings,
        `tls` and `sasl` among them, and `bootstrap`: they take the place of all properties about
        the same. Producers and consumers of this client begin with what the properties say of
        them; with `group.id` its consumers are members of that group, but for those that are
        given another `group`, or None. Raises ConfigurationError, which names the property and no
        secret.
        """
        # With its table, which few clients need.
        from .properties import client_arguments, consumer_of

        arguments = client_arguments(source, overrides)
        client = cls(arguments.bootstrap, arguments.settings, clock=clock)
        # In place of the methods, whose own defaults stay visible to editors and checkers: what a
        # caller gives still wins, and what the file says comes before those.
        if arguments.producer:
            client.producer = partial(  # type: ignore[method-assign]  # see above
                client.producer, **arguments.producer
            )
        if arguments.consumer or arguments.group:
            client.consumer = consumer_of(  # type: ignore[method-assign, assignment]  # see above
                client.consumer, arguments
            )
        return client

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
        a ConfigurationError; so does who closes it in another event loop while its own still runs.
        """
        await self._view.close()

    # The cluster

    @property
    def cluster(self) -> Cluster:
        """Brokers and topics as last heard of."""
        return self._view.cluster

    def metrics(self) -> dict[str, Any]:
        """What this client has done and holds, as plain data that JSON can say.

        Counts since the client was made; docs/how-to/observability.md has meanings and units.
        """
        nodes = {str(address): node for node, address in self.cluster.brokers.items()}
        return self._view.observer.metrics(nodes)

    async def request(
        self,
        request: Request[R],
        *,
        broker: int | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """Send any request of the definitions; returns its response, error codes and all.

        It goes to the broker of node id `broker`, or where it belongs: leaders, coordinators, the
        controller, any broker, or every broker. What is for several is split, they are asked side
        by side, and their answers are merged in the order of the request. The version is
        negotiated with each unless `version` names one. Raises ConfigurationError when the broker
        must be named, EncodeError when the version cannot express the request,
        UnsupportedVersionError, BrokerConnectionError and RequestTimeoutError; of several brokers
        the first error, once all have answered, with a note on which it was.
        """
        return await self._view.request(
            request, broker=broker, version=version, timeout_ms=timeout_ms
        )

    async def request_by_broker(
        self,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> list[BrokerAnswer[R]]:
        """The same, with the answer of each broker by itself: its response, or its error.

        Raises only where it cannot be known who answers.
        """
        return await self._view.request_by_broker(request, version=version, timeout_ms=timeout_ms)

    async def connection(
        self, broker: int | None = None, *, owner: object = None
    ) -> BrokerConnection:
        """The connection to the broker of that node id, or to any broker.

        With `owner` one to that broker that nobody else uses, for requests that make the broker
        wait; `release` closes it. Raises ConfigurationError when the cluster has no such broker.
        """
        return await self._view.connection(broker, owner=owner)

    async def release(self, owner: object) -> None:
        """Close the connections that `owner` has for himself."""
        await self._view.release(owner)

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Ask for metadata of `topics`, or of all; returns them with their error codes.

        Topics are never created by asking. The brokers are refreshed too.
        """
        return await self._view.refresh(topics)

    async def topic(self, name: str) -> TopicInfo:
        """A topic and its partitions; asks for it unless it is known and fresh.

        Raises BrokerResponseError when the cluster does not have the topic: one that may appear
        yet is asked for until `topic_timeout_ms` is over. Lost connections are waited out for
        `delivery_timeout_ms`.
        """
        return await self._view.retrying(lambda: self._view.topic(name), responses=False)

    async def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition.

        Raises BrokerResponseError when the topic does not have the partition, or when nobody
        leads it until `topic_timeout_ms` is over. Lost connections are waited out for
        `delivery_timeout_ms`.
        """
        return await self._view.retrying(
            lambda: self._view.leader(topic, partition), responses=False
        )

    async def retrying(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run `operation` again after errors that time mends, up to `delivery_timeout_ms`.

        They are lost connections, time-outs and the error codes that Kafka calls retriable;
        anything else is raised at once. The last attempt begins when the time is over, and then
        has a moment. For what may be done twice: after a lost answer the broker has done it.
        """
        return await self._view.retrying(operation)

    # Topics and offsets

    async def create_topics(
        self, *topics: str | NewTopic, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> None:
        """Create topics; a bare name takes the broker's defaults.

        Raises BrokerResponseError, which names the topic, for the first that was refused; the
        others may have been created.
        """
        request = create_topics_request(topics, timeout_ms, validate_only=validate_only)
        raise_for_created(await self._view.request(request))

    async def delete_topics(self, *names: str, timeout_ms: int = 30_000) -> None:
        """Delete topics. Raises BrokerResponseError, which names the topic."""
        connection = await self._view.connection_for(DeleteTopicsRequest())
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
        return await list_offsets(self._view, partitions, read_committed=read_committed)

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
        comes whole however large; the last may be cut. Asks once: `retrying` asks again. Raises
        BrokerResponseError.
        """
        return await fetch_partition(
            self._view,
            topic,
            partition,
            offset,
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            max_wait_ms=max_wait_ms,
            read_committed=read_committed,
        )

    # Producers and consumers

    def producer(
        self,
        *,
        compression: CompressionName = "none",
        batch_bytes: int = 1_000_000,
        buffer_bytes: int = 33_554_432,
        linger_ms: int = 0,
        max_in_flight: int = REMEMBERED_BATCHES,
        idempotent: bool | None = None,
    ) -> Producer:
        """A producer, to be used with `async with`; see `kproto.client.producer`.

        `batch_bytes` bounds a batch before compression: brokers refuse one over 1,048,588 bytes
        by default; a larger record travels alone. `buffer_bytes` bounds what waits here: calls
        that would add to more take their time. A batch that is not full waits `linger_ms` for
        more records, and for those of its partition that are under way. `max_in_flight` bounds
        the requests under way at one broker: at most 5 with idempotence, as brokers remember no
        more batches of a producer; without it, a partition has one at a time. `idempotent` is True
        by default, but for brokers before Kafka 0.11, which give no producer ids.
        """
        return Producer(
            self._view,
            compression=compression,
            batch_bytes=batch_bytes,
            buffer_bytes=buffer_bytes,
            linger_ms=linger_ms,
            max_in_flight=max_in_flight,
            idempotent=idempotent,
        )

    @overload
    def consumer(
        self,
        topics: str | Iterable[str] | Iterable[TopicPartition],
        *,
        group: None = None,
        start: Start = "earliest",
        stop_at_end: bool = False,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 500,
        read_committed: bool = False,
    ) -> Consumer: ...

    @overload
    def consumer(
        self,
        topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
        *,
        group: str,
        start: GroupStart = "earliest",
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 500,
        read_committed: bool = False,
        instance_id: str | None = None,
        auto_commit: bool = True,
        auto_commit_interval_ms: int = 5_000,
        group_protocol: Literal["auto", "consumer", "classic"] = "auto",
        server_assignor: str | None = None,
        assignors: Sequence[str | Assignor] = DEFAULT_ASSIGNORS,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        max_poll_interval_ms: int = 300_000,
        leave: bool | Literal["auto"] = "auto",
        leave_timeout_ms: int = 5_000,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> GroupConsumer: ...

    def consumer(
        self,
        topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
        *,
        group: str | None = None,
        start: Start | GroupStart = "earliest",
        stop_at_end: bool = False,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 500,
        read_committed: bool = False,
        instance_id: str | None = None,
        auto_commit: bool | None = None,
        auto_commit_interval_ms: int | None = None,
        group_protocol: Literal["auto", "consumer", "classic"] | None = None,
        server_assignor: str | None = None,
        assignors: Sequence[str | Assignor] | None = None,
        session_timeout_ms: int | None = None,
        heartbeat_interval_ms: int | None = None,
        max_poll_interval_ms: int | None = None,
        leave: bool | Literal["auto"] | None = None,
        leave_timeout_ms: int | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> Consumer | GroupConsumer:
        """A consumer of whole topics, or of single partitions; to be used with `async for`.

        `start` is an offset of each partition, or the start or the end of all. `max_bytes` bounds
        what a fetch brings of a partition, and `max_wait_ms` how long a broker may hold it.

        With `group` one that shares topics with the other members of that group, or reads
        partitions by hand, and commits what is done; to be used with `async with`. Then `start` is
        for what the group has committed nothing of, a time or "none" as well. `on_assigned`,
        `on_revoked` and `on_lost`, functions or coroutine functions, get partitions as (topic,
        number) when they come, while they can still be committed, and when they are gone. The rest
        is that of `kproto.client.groups.settings.GroupSettings`, times in ms. See `Consumer` and
        `GroupConsumer`. Raises ConfigurationError.
        """
        settings: dict[str, Any] = {
            "instance_id": instance_id,
            "auto_commit": auto_commit,
            "auto_commit_interval_ms": auto_commit_interval_ms,
            "group_protocol": group_protocol,
            "server_assignor": server_assignor,
            "assignors": assignors,
            "session_timeout_ms": session_timeout_ms,
            "heartbeat_interval_ms": heartbeat_interval_ms,
            "max_poll_interval_ms": max_poll_interval_ms,
            "leave": leave,
            "leave_timeout_ms": leave_timeout_ms,
        }
        callbacks = Callbacks(on_assigned, on_revoked, on_lost)
        given = {name: each for name, each in settings.items() if each is not None}
        if group is None:
            for name in [*given, *(name for name in callbacks._fields if getattr(callbacks, name))]:
                raise ConfigurationError(f"{name} is for a consumer of a group: give its name, too")
            return Consumer(
                self._view,
                topics,  # type: ignore[arg-type]  # it refuses a pattern
                start=start,  # type: ignore[arg-type]  # it refuses the others
                stop_at_end=stop_at_end,
                max_bytes=max_bytes,
                max_wait_ms=max_wait_ms,
                read_committed=read_committed,
            )
        if stop_at_end:
            raise ConfigurationError(
                f"a consumer of a group ({group}) has no end: leave out stop_at_end, or give "
                "group=None"
            )
        return GroupConsumer(
            self._view,
            topics,
            GroupSettings(group, **given, given=frozenset(given)),
            GroupMember,
            start=start,  # type: ignore[arg-type]  # it refuses offsets
            callbacks=callbacks,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
            read_committed=read_committed,
            make_outlet=lambda: self.producer(),
        )
