"""`Client`, the entry point: creates producers and consumers, and sends any request.

Producers and consumers share the metadata and the connections of their client. The modules of a
producer, a consumer or a group are imported when a program first creates one: a program that only
consumes does not load the producer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack, overload

from ..clock import SYSTEM_CLOCK, Clock
from ..messages.base import Request, Response
from ..records.type_variables import K, U, V
from ..wire.checks import check_whole_number
from ..wire.errors import ConfigurationError
from .core.open_parts import OpenParts
from .core.record_codecs import record_decoder
from .core.tasks import shielded
from .fetch.fetch_options import FETCH_BYTES
from .groups.default_assignors import DEFAULT_ASSIGNORS
from .kafka_names import (
    GROUP_CONSUMER_NAMES,
    PRODUCER_NAMES,
    SHARE_CONSUMER_NAMES,
    ConsumerNames,
    GroupConsumerNames,
    ProducerNames,
    ShareConsumerNames,
    resolve_aliases,
)
from .metadata.checks import checked_mapping, checked_topic, checked_tp
from .metadata.cluster_view import ClusterView
from .observing.log_lines import log
from .settings import ClientSettings, contradicting_prefixes, parse_bootstrap

if TYPE_CHECKING:
    import re
    from types import TracebackType

    from ..codecs.protocols import AnyDecoder, AnyEncoder
    from ..security.properties import PropertySource
    from ..security.sasl import Sasl
    from ..security.tls import AnyTls
    from ..wire.uuid import Uuid
    from .admin.admin import Admin
    from .admin.topics import NewTopic
    from .commits.offset_requests import CommittedOffset
    from .consumer.consumer import Consumer, Start
    from .consumer.group_consumer import GroupConsumer
    from .consumer.rebalance_listener import RebalanceCallback
    from .consumer.share_consumer import ShareConsumer
    from .consumer.share_parts import ResultCallback
    from .fetch.fetch_requests import FetchedPartition
    from .fetch.list_offsets import OffsetSpec
    from .fetch.start_options import GroupStart
    from .groups.assignor import Assignor
    from .groups.share.settings import AcknowledgementMode, AcquireMode
    from .groups.subscription import TopicPattern
    from .metadata.cluster import Cluster, TopicInfo, TopicPartition
    from .metadata.request_router import BrokerAnswer
    from .network.connection import BrokerConnection
    from .producer.partitioner import Partitioner, PartitionerName
    from .producer.producer import Producer
    from .producer.run_producer import RunProducer
    from .producer.settings import CompressionName, RequiredAcks
    from .producer.transactions.open_transaction import OpenTransaction

__all__ = ["Client"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")

#: The default of arguments for which None is a valid value: the caller omitted the argument.
_UNSET: Final[Any] = object()


class Client:
    """A client of one Kafka cluster, to be used with `async with`.

    `bootstrap` is `host:port`, several of these joined by commas, or a list of them; one reachable
    broker of the cluster suffices. A prefix as in `SASL_SSL://host:port` has no effect. `tls`,
    `sasl`, `rack` and `broker_version` override the fields with the same names in `settings`: see
    `ClientSettings`, `Tls`, `Plain`, `ScramSha512` and `OAuthBearer`. `clock` is for tests that
    control the time. Raises ConfigurationError if `bootstrap` is no address.
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
        for text in contradicting_prefixes(bootstrap, self.settings):
            log(logging.WARNING, "%s", text)
        self._parts = OpenParts(
            clock, self.settings.error_flush_ms, self.settings.max_cancelled_close_ms
        )
        # Defaults from properties; arguments of a call override them.
        self._producer_defaults: Mapping[str, Any] = {}
        self._consumer_defaults: Mapping[str, Any] = {}
        self._group_defaults: Mapping[str, Any] = {}
        self._share_defaults: Mapping[str, Any] = {}

    @classmethod
    def from_properties(
        cls, source: PropertySource, *, clock: Clock = SYSTEM_CLOCK, **overrides: Any
    ) -> Self:
        """Returns a client configured by properties: the path of a file, or a mapping by name.

        The names are those of Kafka's Java clients and of librdkafka; the documentation lists them.
        `overrides` are `bootstrap` and fields of ClientSettings, including `tls` and `sasl`: each
        override replaces all properties that configure the same setting. Producers and consumers of
        this client take their defaults from the properties. If the properties have `group.id`,
        consumers join that group, unless `consumer` is called with another `group`, or with
        `group=None`. Raises ConfigurationError for an unreadable file, an unknown name or an
        invalid value; the text of the error has the name of the property, but no secret.
        """
        # Imported here, because it loads a table that few clients need.
        from .properties import client_arguments

        arguments = client_arguments(source, overrides)
        client = cls(arguments.bootstrap, arguments.settings, clock=clock)
        client._producer_defaults = arguments.producer
        client._consumer_defaults = arguments.consumer
        client._group_defaults = arguments.group
        client._share_defaults = arguments.share
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
        if error is None:
            await self.close()
            return
        for fault in await self._close(None, after=error):
            error.add_note(f"besides: {fault}")

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Closes the producers and consumers of this client, then every connection.

        Producers send all of their records first, then consumers commit and leave their groups.
        Raises the first error of a producer or consumer, such as DeliveryError, once everything is
        closed; the other errors are added to it as notes. `timeout_ms` is the time that producers
        have to send their records, by default `delivery_timeout_ms`, and consumers, in the rest of
        it, for their requests, by default `api_timeout_ms`. If an `async with` block
        ends with an exception, each producer and consumer has `error_flush_ms` to close.

        Requests in flight raise BrokerConnectionError; later requests, and retries, raise
        ConfigurationError. Raises ConfigurationError if the call is made in another event loop
        while the client's own event loop is not closed yet.
        """
        if timeout_ms is not None:
            check_whole_number("timeout_ms", timeout_ms, 0)
        errors = await self._close(timeout_ms)
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"besides: {other}")
            raise errors[0]

    async def _close(
        self, timeout_ms: int | None, *, after: BaseException | None = None
    ) -> list[BaseException]:
        """Closes the client, and returns the errors of its producers and consumers.

        `after` is the exception that ended the block of the client. Raises ConfigurationError, and
        closes nothing, if a handler or callback makes the call.
        """
        guard = self._view.loop_guard
        has_parts = guard.loop is not None and not guard.is_gone
        if has_parts:
            guard.check()
            self._parts.check_may_close()
        try:
            if not has_parts:
                return []
            if after is not None:
                is_cancelled = isinstance(after, asyncio.CancelledError)
                return await self._parts.close_after_error(is_cancelled=is_cancelled)
            return await self._parts.close(timeout_ms)
        finally:
            limit_ms = self.settings.max_cancelled_close_ms
            await shielded(
                self._view.close(), self._view.clock, limit_ms, what="the close of the connections"
            )

    # The cluster

    @property
    def cluster(self) -> Cluster:
        """The brokers and topics of the latest metadata."""
        return self._view.cluster

    @cached_property
    def admin(self) -> Admin:
        """The operations of Kafka's Admin interface; see `Admin`."""
        from .admin.admin import Admin  # few clients need it
        from .admin.requester import AdminRequester

        return Admin(AdminRequester(self._view))

    @property
    def message_format(self) -> int:
        """The newest record format that all connected brokers accept, as the magic of batches.

        2 has headers. Brokers before Kafka 0.11 accept 1, and brokers before 0.10 accept 0; both
        lack headers. Before the first connection, the value follows from `broker_version`, and is
        2 if `broker_version` is not set.
        """
        return self._view.message_magic

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of this client, as data that JSON can express.

        Counts start when the client is created; the documentation lists all metrics with units.
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
        """Sends any request of Kafka's protocol; returns the response, with its error codes.

        The request is sent to the broker with node id `broker`. Without `broker` the request type
        determines the brokers: leaders, coordinators, the controller, any broker, or every broker.
        A request for several brokers is split, its parts are sent concurrently, and the responses
        are merged in the order of the request. `version` is by default negotiated with each broker.
        `timeout_ms` is the time for each response, by default `request_timeout_ms`.

        Raises ConfigurationError if the request type requires `broker`, EncodeError if the version
        cannot express the request, UnsupportedVersionError, BrokerConnectionError and
        RequestTimeoutError. With several brokers, the call raises the first error after all brokers
        have answered; a note on the error names its broker.
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
        """Sends a request as `request` does; returns the response or the error of each broker.

        Raises an error only if the brokers cannot be determined.
        """
        return await self._view.request_by_broker(request, version=version, timeout_ms=timeout_ms)

    async def connection(self, broker: int | None = None) -> BrokerConnection:
        """Returns the connection to the broker with node id `broker`, or by default to any broker.

        Raises ConfigurationError if no metadata of the cluster has named such a broker so far, and
        BrokerConnectionError if the broker cannot be reached.
        """
        return await self._view.connection(broker)

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Requests metadata of `topics`, or of all topics if `topics` is None.

        Returns the topics, with their error codes. The request creates no topics, except at brokers
        before Kafka 0.11. The request also refreshes the brokers; if `topics` is empty, it
        refreshes only the brokers. Raises ConfigurationError if `topics` is no iterable of names,
        for example if `topics` is a single name.
        """
        if topics is not None:
            if isinstance(topics, str | bytes | Mapping) or not isinstance(topics, Iterable):
                raise ConfigurationError(f"topics is {topics!r:.80}; pass a list of names")
            topics = [checked_topic(name) for name in topics]
        return await self._view.refresh(topics)

    async def topic(self, name: str) -> TopicInfo:
        """Returns a topic and its partitions; requests the metadata if it is missing or too old.

        Raises BrokerResponseError if the topic does not exist. An unknown topic is requested again
        for `unknown_topic_wait_ms`, because the topic may just have been created. After a lost
        connection, the request is retried for `api_timeout_ms`. Raises ConfigurationError if `name`
        is no str.
        """
        checked_topic(name)
        return await self._view.retrying(lambda: self._view.topic(name), responses=False)

    async def retrying(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Calls `operation` until it succeeds, for up to `api_timeout_ms`; returns its result.

        The operation is retried after lost connections, timeouts and the error codes that Kafka
        calls retriable. Any other error is raised at once. No retry starts after the deadline. An
        attempt that still runs at the deadline is cancelled, but a retry always has at least 0.1 s.
        After the deadline the call raises the error of the last failed attempt, or
        RequestTimeoutError if no attempt has failed. A broker may process the operation twice, if
        the response to the first attempt was lost.
        """
        return await self._view.retrying(operation)

    # Topics and offsets

    async def create_topics(
        self, *topics: str | NewTopic, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> None:
        """Creates topics; a topic given by name alone gets the broker's defaults.

        The broker waits up to `timeout_ms` until the topics are created. With `validate_only` the
        broker only checks the request, and creates no topic. Raises BrokerResponseError for the
        first topic that was refused; other topics may have been created. Raises
        UnsupportedVersionError if a topic needs defaults of a broker before Kafka 2.4, which has
        none for the numbers of partitions and replicas.
        """
        from .admin.client_topics import create_topics

        await create_topics(self._view, topics, timeout_ms, validate_only=validate_only)

    async def delete_topics(self, *names: str, timeout_ms: int = 30_000) -> None:
        """Deletes topics; the broker waits up to `timeout_ms` until they are deleted.

        Raises BrokerResponseError for the first topic that was not deleted.
        """
        from .admin.client_topics import delete_topics

        await delete_topics(self._view, names, timeout_ms)

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, OffsetSpec],
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """Returns the offsets of partitions: the log start, the log end, or an offset by time.

        `partitions` maps a partition to "earliest" for its log start, "latest" for its log end, or
        a time in ms since 1970. For a time, the result is the offset of the first record with a
        timestamp at or after this time; -1 if there is no such record. The end is the high
        watermark, or with `read_committed` the last stable offset. Retries for `api_timeout_ms`.
        Raises BrokerResponseError.
        """
        from .fetch.list_offsets import list_offsets

        wanted = {checked_tp(tp): its for tp, its in checked_mapping("offsets", partitions).items()}
        return await list_offsets(self._view, wanted, read_committed=read_committed)

    async def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        topic_ids: Mapping[TopicPartition, Uuid] | None = None,
    ) -> None:
        """Commits offsets for a group without members, as Kafka's admin client does (KIP-396).

        `offsets` maps partitions to the offset of the next record to be read; an offset may be a
        `CommittedOffset` with metadata. `topic_ids` are the ids that the topics had when the caller
        determined the offsets. By default, the client
        requests metadata, and takes the topic ids from the response. Retries for `api_timeout_ms`.
        Raises BrokerResponseError for the first error, such as UNKNOWN_MEMBER_ID for a group that
        has members, and ConfigurationError for invalid partitions and offsets.
        """
        from .commits.group_offsets import commit_group_offsets
        from .commits.offset_requests import checked_commits

        commits = checked_commits(checked_mapping("offsets", offsets))
        await commit_group_offsets(self._view, group, commits, topic_ids)

    async def committed_offsets(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        """Returns all committed offsets of a group, also of a group without members.

        While a transaction that commits offsets of the group is open, and for other retriable
        errors, the request is retried for `api_timeout_ms`. Raises BrokerResponseError.
        """
        from .commits.group_offsets import all_committed_offsets

        return await all_committed_offsets(self._view, group)

    async def end_transaction(self, transaction: OpenTransaction, *, committed: bool) -> None:
        """Commits or aborts a transaction that `Transaction.leave_open` has left open.

        Any process can make the call, also again with the same arguments, until a new producer with
        the transactional id starts. Retries for `api_timeout_ms`.

        Raises ProducerFencedError if a new producer with the transactional id has started, or if
        brokers have aborted the transaction after its timeout. Raises TransactionAbortedError if
        the coordinator has refused to commit the transaction, which is then aborted. Raises
        FatalTransactionError for other errors; it is then unknown whether the transaction is
        committed if the text says so.
        """
        from .producer.transactions.open_transaction import end_transaction

        self._view.loop_guard.check()
        await end_transaction(self._view, transaction, committed=committed)

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
        """Fetches the batches of one partition from `offset` on, as the broker stores them.

        The broker waits up to `max_wait_ms` for `min_bytes`. The first batch may start before
        `offset`, and is complete even if it is larger than `max_bytes`; the last batch may be
        incomplete. Brokers before 0.10.1 cut a first message that is larger than `max_bytes`; in
        this case the call raises ConfigurationError. The client sends one request; `retrying` can
        retry it. Raises BrokerResponseError for an error code, such as OFFSET_OUT_OF_RANGE.
        """
        from .fetch.single_fetch import fetch_partition

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
        key: AnyEncoder[K] | None = None,
        value: AnyEncoder[V] | None = None,
        compression: CompressionName | None = None,
        batch_bytes: int | None = None,
        buffer_bytes: int | None = None,
        undelivered_bytes: int | None = None,
        linger_ms: int | None = None,
        max_in_flight: int | None = None,
        idempotent: bool | None = None,
        acks: RequiredAcks | None = None,
        partitioner: PartitionerName | Partitioner | None = None,
        allow_auto_create_topics: bool | None = None,
        transactional_id: str | None = None,
        transaction_timeout_ms: int | None = None,
        two_phase_commit: bool | None = None,
        **kafka_names: Unpack[ProducerNames],
    ) -> Producer[K, V]:
        """Creates a producer, to be used with `async with`; see `Producer`.

        `key` and `value` are the codecs of keys and values: encoders, see `kproto.codecs`. Without
        a codec, keys or values are bytes. The other arguments are the fields of
        `kproto.client.producer.settings.ProducerSettings`, and have the defaults of these fields;
        properties of `from_properties` override the defaults. Kafka's names are accepted, too:
        `compression_type`, `batch_size`, `buffer_memory`, `enable_idempotence`,
        `max_in_flight_requests_per_connection`. With a `transactional_id` the producer sends
        records in transactions; see `Producer.transaction`. Raises ConfigurationError for an
        invalid argument, for the `transactional_id` of an open producer of this client, and once
        the client is closed.
        """
        self._view.raise_if_closed()
        arguments = {
            "compression": compression,
            "batch_bytes": batch_bytes,
            "buffer_bytes": buffer_bytes,
            "undelivered_bytes": undelivered_bytes,
            "linger_ms": linger_ms,
            "max_in_flight": max_in_flight,
            "idempotent": idempotent,
            "acks": acks,
            "partitioner": partitioner,
            "allow_auto_create_topics": allow_auto_create_topics,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": transaction_timeout_ms,
            "two_phase_commit": two_phase_commit,
        }
        arguments = resolve_aliases("Client.producer", arguments, kafka_names, PRODUCER_NAMES)
        from .producer_factory import create_producer

        return create_producer(
            self._view, self._parts, {**self._producer_defaults, **arguments}, key, value
        )

    def _forward_producer(self) -> Producer:
        """Creates the producer for retry and dead letter topics, without a transactional id."""
        self._view.raise_if_closed()
        from .producer_factory import create_producer

        arguments = {**self._producer_defaults, "transactional_id": None}
        return create_producer(self._view, self._parts, arguments)

    def _run_producer(self, transactional_id: str, transaction_timeout_ms: int) -> RunProducer:
        """Creates the producer for a call of `GroupConsumer.run` that has a `transactional_id`."""
        self._view.raise_if_closed()
        from .producer_factory import create_run_producer

        arguments = {
            **self._producer_defaults,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": transaction_timeout_ms,
        }
        return create_run_producer(self._view, self._parts, arguments)

    @overload
    def consumer(
        self,
        topics: str | Iterable[str] | Iterable[TopicPartition],
        *,
        key: AnyDecoder[K] | None = None,
        value: AnyDecoder[V] | None = None,
        undecodable: type[U] | None = None,
        group: None = None,
        start: Start = "earliest",
        stop_at_end: bool = False,
        max_partition_fetch_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 500,
        read_committed: bool = False,
        fetch_min_bytes: int = 1,
        fetch_max_bytes: int = 52_428_800,
        queued_max_bytes: int = 67_108_864,
        max_poll_records: int = 500,
        allow_auto_create_topics: bool = False,
        **kafka_names: Unpack[ConsumerNames],
    ) -> Consumer[K, V, U]: ...

    @overload
    def consumer(
        self,
        topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
        *,
        key: AnyDecoder[K] | None = None,
        value: AnyDecoder[V] | None = None,
        undecodable: type[U] | None = None,
        group: str,
        start: GroupStart = "earliest",
        max_partition_fetch_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 500,
        read_committed: bool = False,
        fetch_min_bytes: int = 1,
        fetch_max_bytes: int = 52_428_800,
        queued_max_bytes: int = 67_108_864,
        max_poll_records: int = 500,
        allow_auto_create_topics: bool = False,
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
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
        **kafka_names: Unpack[GroupConsumerNames],
    ) -> GroupConsumer[K, V, U]: ...

    def consumer(
        self,
        topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
        *,
        key: AnyDecoder[K] | None = None,
        value: AnyDecoder[V] | None = None,
        undecodable: type[U] | None = None,
        group: str | None = _UNSET,
        start: Start | GroupStart | None = _UNSET,
        stop_at_end: bool = False,
        max_partition_fetch_bytes: int | None = None,
        max_wait_ms: int | None = None,
        read_committed: bool | None = None,
        fetch_min_bytes: int | None = None,
        fetch_max_bytes: int | None = None,
        queued_max_bytes: int | None = None,
        max_poll_records: int | None = None,
        allow_auto_create_topics: bool | None = None,
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
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
        **kafka_names: Any,
    ) -> Consumer[K, V, U] | GroupConsumer[K, V, U]:
        """Creates a consumer of whole topics, or of single partitions; to be used with `async for`.

        `start` is "earliest", "latest", an offset for each partition, or a time. A time is an aware
        datetime, or a timedelta before now; the timedelta may also be Kafka's text
        "by_duration:PT1H" (KIP-1106). With a time, a partition starts at its first record with a
        timestamp at or after the time, or at the log end if there is no such record. With
        `stop_at_end` iterations end at the log ends that the consumer finds when it looks up its
        start positions. `max_wait_ms` is the time for which a broker may delay a fetch response
        with less than `fetch_min_bytes`. A response has at most `max_partition_fetch_bytes` of each
        partition and `fetch_max_bytes` in all, except for a larger first batch. `queued_max_bytes`
        limits the memory for fetched records, for all partitions together; with `GroupConsumer.run`
        the limit includes records that wait for a handler. A call of `poll` returns at most
        `max_poll_records`. With `allow_auto_create_topics` brokers with auto.create.topics.enable
        create missing topics.

        With `group` the consumer shares the topics with the other members of that group, or reads
        manually assigned partitions, and commits offsets. With `group`, `start` applies only to
        partitions without a committed offset: "earliest", "latest", "none" (an error), a datetime,
        or a timedelta. With "latest", partitions that are created while the consumer runs start at
        their log start. `on_assigned`, `on_revoked` and `on_lost` are functions or coroutine
        functions. Their argument is a list of partitions, each a (topic, number). `on_revoked` is
        called before partitions are revoked, while their offsets can still be committed;
        `on_assigned` and `on_lost` are called after partitions are assigned or lost. If `on_lost`
        is None, `on_revoked` is called instead.

        `key` and `value` are the codecs of keys and values: decoders, see `kproto.codecs`. Without
        a codec, keys or values are bytes. For a record that a codec cannot decode, an iteration
        raises UndecodableRecordError, and the next call continues after the record; with
        `undecodable=kproto.Undecodable` it returns an `Undecodable`, a record with the bytes and
        the error. In `GroupConsumer.run` such a record is a dead letter.

        The other arguments are those of `kproto.client.groups.settings.GroupSettings`, with times
        in ms. Kafka's names are accepted, too, such as `auto_offset_reset`, `isolation_level`,
        `group_instance_id`. See `Consumer` and `GroupConsumer`. Raises ConfigurationError for an
        invalid argument, and once the client is closed.
        """
        self._view.raise_if_closed()
        decoder = record_decoder(key, value, undecodable)
        arguments: dict[str, Any] = {
            "start": None if start is _UNSET else start,
            "max_partition_fetch_bytes": max_partition_fetch_bytes,
            "max_wait_ms": max_wait_ms,
            "read_committed": read_committed,
            "fetch_min_bytes": fetch_min_bytes,
            "fetch_max_bytes": fetch_max_bytes,
            "queued_max_bytes": queued_max_bytes,
            "max_poll_records": max_poll_records,
            "allow_auto_create_topics": allow_auto_create_topics,
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
        arguments = resolve_aliases("Client.consumer", arguments, kafka_names, GROUP_CONSUMER_NAMES)
        if start is None:  # an explicit None is refused as any other invalid start
            arguments["start"] = None
        callbacks = {"on_assigned": on_assigned, "on_revoked": on_revoked, "on_lost": on_lost}
        if group is _UNSET:
            group = self._group_defaults.get("group")
        if group is None:
            from .consumer_factory import create_consumer

            consumer: Consumer[K, V, U] = create_consumer(
                self._view,
                topics,
                {**arguments, **{name: each for name, each in callbacks.items() if each}},
                self._consumer_defaults,
                stop_at_end=stop_at_end,
                decoder=decoder,
            )
            return self._parts.add_consumer(consumer)
        if stop_at_end:
            raise ConfigurationError(
                f"a consumer of a group ({group}) has no end: leave out stop_at_end, or set "
                "group=None"
            )
        from .group_consumer_factory import create_group_consumer

        group_consumer: GroupConsumer[K, V, U] = create_group_consumer(
            self._view,
            topics,
            group,
            arguments,
            callbacks,
            self._consumer_defaults,
            self._group_defaults,
            decoder=decoder,
            make_forward_producer=self._forward_producer,
            make_transactional_producer=self._run_producer,
            on_background_close=self._parts.add_background_close,
        )
        return self._parts.add_consumer(group_consumer)

    def share_consumer(
        self,
        topics: str | Iterable[str],
        *,
        key: AnyDecoder[K] | None = None,
        value: AnyDecoder[V] | None = None,
        undecodable: type[U] | None = None,
        group: str | None = None,
        acknowledgement: AcknowledgementMode | None = None,
        acquire_mode: AcquireMode | None = None,
        max_poll_records: int | None = None,
        max_wait_ms: int | None = None,
        fetch_min_bytes: int | None = None,
        fetch_max_bytes: int | None = None,
        max_poll_interval_ms: int | None = None,
        leave_timeout_ms: int | None = None,
        on_acknowledged: ResultCallback | None = None,
        **kafka_names: Unpack[ShareConsumerNames],
    ) -> ShareConsumer[K, V, U]:
        """Creates a consumer of a share group (KIP-932, Kafka 4.2); see `ShareConsumer`.

        `on_acknowledged` is called with an `AcknowledgeResult` for each partition whose
        acknowledgements were answered. The next poll raises its exception; an exception is only
        logged if another error waits for the next poll, and lost without a further poll. `key` and
        `value` are codecs, as in `consumer`: for an undecodable record, an iteration raises
        UndecodableRecordError or returns an `Undecodable`, and in `run` the record is a dead
        letter, or rejected. The other arguments are those of
        `kproto.client.groups.share.settings.ShareGroupSettings`, with times in ms; properties of
        `from_properties` override the defaults that both kinds of groups have, and have the default
        `group`. Kafka's names are accepted, too: `share_acknowledgement_mode`,
        `share_acquire_mode`, `fetch_max_wait_ms`. The isolation level and the duration of locks are
        configs of the group (`share.isolation.level`, `share.record.lock.duration.ms`). Raises
        ConfigurationError for an invalid argument, without a group, and once the client is closed.
        """
        self._view.raise_if_closed()
        decoder = record_decoder(key, value, undecodable)
        arguments = {
            "acknowledgement": acknowledgement,
            "acquire_mode": acquire_mode,
            "max_poll_records": max_poll_records,
            "max_wait_ms": max_wait_ms,
            "fetch_min_bytes": fetch_min_bytes,
            "fetch_max_bytes": fetch_max_bytes,
            "max_poll_interval_ms": max_poll_interval_ms,
            "leave_timeout_ms": leave_timeout_ms,
        }
        defaults = {**self._consumer_defaults, **self._group_defaults, **self._share_defaults}
        given = {name: defaults[name] for name in arguments if name in defaults}
        given |= resolve_aliases(
            "Client.share_consumer", arguments, kafka_names, SHARE_CONSUMER_NAMES
        )
        group = self._group_defaults.get("group") if group is None else group
        if group is None:
            raise ConfigurationError("a share consumer needs a group: set group")
        from .consumer.share_consumer import ShareConsumer
        from .groups.share.settings import ShareGroupSettings

        share_consumer: ShareConsumer[K, V, U] = ShareConsumer(
            self._view,
            topics,
            ShareGroupSettings(group, **given),
            decoder=decoder,
            on_acknowledged=on_acknowledged,
            make_forward_producer=self._forward_producer,
            on_background_close=self._parts.add_background_close,
        )
        return self._parts.add_consumer(share_consumer)
