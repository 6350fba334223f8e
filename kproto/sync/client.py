"""`Client` without `await`.

`python -m tools.sync` writes this module from `kproto/client/client.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from ..client.admin.topics import NewTopic
from ..client.client import _UNSET
from ..client.client import Client as _Client
from ..client.commits.offset_requests import CommittedOffset
from ..client.consumer.consumer import Consumer as _Consumer
from ..client.consumer.consumer import Start
from ..client.consumer.group_consumer import GroupConsumer as _GroupConsumer
from ..client.consumer.share_consumer import ShareConsumer as _ShareConsumer
from ..client.consumer.share_parts import ResultCallback
from ..client.fetch.fetch_options import FETCH_BYTES
from ..client.fetch.fetch_requests import FetchedPartition
from ..client.fetch.list_offsets import OffsetSpec
from ..client.fetch.start_options import GroupStart
from ..client.groups.assignor import Assignor
from ..client.groups.default_assignors import DEFAULT_ASSIGNORS
from ..client.groups.share.settings import AcknowledgementMode, AcquireMode
from ..client.groups.subscription import TopicPattern
from ..client.kafka_names import (
    ConsumerNames,
    GroupConsumerNames,
    ProducerNames,
    ShareConsumerNames,
)
from ..client.metadata.cluster import Cluster, TopicInfo, TopicPartition
from ..client.metadata.request_router import BrokerAnswer
from ..client.producer.partitioner import Partitioner, PartitionerName
from ..client.producer.settings import CompressionName, RequiredAcks
from ..client.producer.transactions.open_transaction import OpenTransaction
from ..client.settings import ClientSettings
from ..clock import SYSTEM_CLOCK, Clock
from ..codecs.protocols import AnyDecoder, AnyEncoder
from ..messages.base import Request, Response
from ..records.type_variables import K, U, V
from ..security.properties import PropertySource
from ..security.sasl import Sasl
from ..security.tls import AnyTls
from ..wire.uuid import Uuid
from .broker_connection import BrokerConnection
from .client_wrapper import ClientWrapper
from .consumer import Consumer
from .group_consumer import GroupConsumer
from .producer import Producer
from .share_consumer import ShareConsumer
from .threaded_functions import RebalanceCallback, threaded, threaded_callback

if TYPE_CHECKING:
    from .admin.admin import Admin

__all__ = ["Client"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


class Client(ClientWrapper):
    """A client of one Kafka cluster, to be used with `with`.

    `bootstrap` is `host:port`, several of these joined by commas, or a list of them; one reachable
    broker of the cluster suffices. A prefix as in `SASL_SSL://host:port` has no effect. `tls`,
    `sasl`, `rack` and `broker_version` override the fields with the same names in `settings`: see
    `ClientSettings`, `Tls`, `Plain`, `ScramSha512` and `OAuthBearer`. `clock` is for tests that
    control the time. Raises ConfigurationError if `bootstrap` is no address.
    """

    __slots__ = ()

    @property
    def settings(self) -> ClientSettings:
        """The settings."""
        return self._wrapped.settings

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
        self._bind(
            lambda: _Client(
                bootstrap,
                settings,
                tls=tls,
                sasl=sasl,
                rack=rack,
                broker_version=broker_version,
                clock=clock,
            )
        )

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
        client = cls.__new__(cls)
        client._bind(lambda: _Client.from_properties(source, clock=clock, **overrides))
        return client

    def close(self, *, timeout_ms: int | None = None) -> None:
        """Closes the producers and consumers of this client, then every connection.

        Producers send all of their records first, then consumers commit and leave their groups.
        Raises the first error of a producer or consumer, such as DeliveryError, once everything is
        closed; the other errors are added to it as notes. `timeout_ms` is the time that producers
        have to send their records, by default `delivery_timeout_ms`, and consumers, in the rest of
        it, for their requests, by default `api_timeout_ms`. If an `with` block ends with an
        exception, each producer and consumer has `error_flush_ms` to close.

        Requests in flight raise BrokerConnectionError; later requests, and retries, raise
        ConfigurationError. The close of the last open client of the process ends the thread of the
        event loop.
        """
        self._close(lambda: self._wrapped.close(timeout_ms=timeout_ms))

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
        """Creates a producer, to be used with `with`; see `Producer`.

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
        producer, create_again = self._create_part(
            lambda client: client.producer(
                key=key,
                value=value,
                compression=compression,
                batch_bytes=batch_bytes,
                buffer_bytes=buffer_bytes,
                undelivered_bytes=undelivered_bytes,
                linger_ms=linger_ms,
                max_in_flight=max_in_flight,
                idempotent=idempotent,
                acks=acks,
                partitioner=partitioner,
                allow_auto_create_topics=allow_auto_create_topics,
                transactional_id=transactional_id,
                transaction_timeout_ms=transaction_timeout_ms,
                two_phase_commit=two_phase_commit,
                **kafka_names,
            )
        )
        return Producer(self._binding, producer, create_again)

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
        fetch_max_bytes: int = 52428800,
        queued_max_bytes: int = 67108864,
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
        fetch_max_bytes: int = 52428800,
        queued_max_bytes: int = 67108864,
        max_poll_records: int = 500,
        allow_auto_create_topics: bool = False,
        instance_id: str | None = None,
        auto_commit: bool = True,
        auto_commit_interval_ms: int = 5000,
        group_protocol: Literal["auto", "consumer", "classic"] = "auto",
        server_assignor: str | None = None,
        assignors: Sequence[str | Assignor] = DEFAULT_ASSIGNORS,
        session_timeout_ms: int = 45000,
        heartbeat_interval_ms: int = 3000,
        max_poll_interval_ms: int = 300000,
        leave: bool | Literal["auto"] = "auto",
        leave_timeout_ms: int = 5000,
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
        """Creates a consumer of whole topics, or of single partitions; to be used with `for`.

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
        their log start. `on_assigned`, `on_revoked` and `on_lost` are plain functions, which run in
        threads. Their argument is a list of partitions, each a (topic, number). `on_revoked` is
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
        arguments: dict[str, Any] = {
            "topics": topics,
            "key": key,
            "value": value,
            "undecodable": undecodable,
            "group": group,
            "start": start,
            "stop_at_end": stop_at_end,
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
            "on_assigned": on_assigned,
            "on_revoked": on_revoked,
            "on_lost": on_lost,
            **kafka_names,
        }
        for name in ("on_assigned", "on_revoked", "on_lost"):
            arguments[name] = threaded_callback(name, arguments[name])

        def create_consumer(client: _Client) -> _Consumer[K, V, U] | _GroupConsumer[K, V, U]:
            created: _Consumer[K, V, U] | _GroupConsumer[K, V, U] = client.consumer(**arguments)
            return created

        consumer, create_again = self._create_part(create_consumer)
        again: Any = create_again
        if isinstance(consumer, _GroupConsumer):
            return GroupConsumer(self._binding, consumer, again)
        return Consumer(self._binding, consumer, again)

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
        `share_acquire_mode`, `fetch_max_wait_ms`. The isolation level, the start and the duration
        of locks are configs of the group (`share.isolation.level`, `share.auto.offset.reset`,
        `share.record.lock.duration.ms`): `isolation.level` and `auto.offset.reset` of the
        properties have no effect, and the client logs a warning for each. Raises ConfigurationError
        for an invalid argument, without a group, and once the client is closed.
        """

        def create_consumer(client: _Client) -> _ShareConsumer[K, V, U]:
            created: _ShareConsumer[K, V, U] = client.share_consumer(
                topics,
                key=key,
                value=value,
                undecodable=undecodable,
                group=group,
                acknowledgement=acknowledgement,
                acquire_mode=acquire_mode,
                max_poll_records=max_poll_records,
                max_wait_ms=max_wait_ms,
                fetch_min_bytes=fetch_min_bytes,
                fetch_max_bytes=fetch_max_bytes,
                max_poll_interval_ms=max_poll_interval_ms,
                leave_timeout_ms=leave_timeout_ms,
                on_acknowledged=on_acknowledged,
                **kafka_names,
            )
            return created

        consumer, create_again = self._create_part(create_consumer)
        return ShareConsumer(self._binding, consumer, create_again)

    @property
    def cluster(self) -> Cluster:
        """The brokers and topics of the latest metadata."""
        return self._read(lambda: self._wrapped.cluster)

    @property
    def admin(self) -> Admin:
        """The operations of Kafka's Admin interface; see `Admin`."""
        from .admin.admin import Admin  # few programs need it

        admin = self._read(lambda: self._wrapped.admin)
        return Admin(self._binding, admin, lambda: self._binding.client.admin)

    @property
    def message_format(self) -> int:
        """The newest record format that all connected brokers accept, as the magic of batches.

        2 has headers. Brokers before Kafka 0.11 accept 1, and brokers before 0.10 accept 0; both
        lack headers. Before the first connection, the value follows from `broker_version`, and is 2
        if `broker_version` is not set.
        """
        return self._read(lambda: self._wrapped.message_format)

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of this client, as data that JSON can express.

        Counts start when the client is created; the documentation lists all metrics with units.
        """
        return self._read(self._wrapped.metrics)

    def request(
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
        return self._call(
            self._wrapped.request, request, broker=broker, version=version, timeout_ms=timeout_ms
        )

    def request_by_broker(
        self, request: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> list[BrokerAnswer[R]]:
        """Sends a request as `request` does; returns the response or the error of each broker.

        Raises an error only if the brokers cannot be determined.
        """
        return self._call(
            self._wrapped.request_by_broker, request, version=version, timeout_ms=timeout_ms
        )

    def connection(self, broker: int | None = None) -> BrokerConnection:
        """Returns the connection to the broker with node id `broker`, or by default to any broker.

        Raises ConfigurationError if no metadata of the cluster has named such a broker so far, and
        BrokerConnectionError if the broker cannot be reached.
        """
        connection = self._call(self._wrapped.connection, broker)
        return BrokerConnection(self._binding, connection)

    def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Requests metadata of `topics`, or of all topics if `topics` is None.

        Returns the topics, with their error codes. The request creates no topics, except at brokers
        before Kafka 0.11. The request also refreshes the brokers; if `topics` is empty, it
        refreshes only the brokers. Raises ConfigurationError if `topics` is no iterable of names,
        for example if `topics` is a single name.
        """
        return self._call(self._wrapped.refresh, topics)

    def topic(self, name: str) -> TopicInfo:
        """Returns a topic and its partitions; requests the metadata if it is missing or too old.

        Raises BrokerResponseError if the topic does not exist. An unknown topic is requested again
        for `unknown_topic_wait_ms`, because the topic may just have been created. After a lost
        connection, the request is retried for `api_timeout_ms`. Raises ConfigurationError if `name`
        is no str.
        """
        return self._call(self._wrapped.topic, name)

    def retrying(self, operation: Callable[[], T]) -> T:
        """Calls `operation` until it succeeds, for up to `api_timeout_ms`; returns its result.

        The operation is retried after lost connections, timeouts and the error codes that Kafka
        calls retriable. Any other error is raised at once. No retry starts after the deadline. The
        call does not wait for an attempt that still runs at the deadline, but a retry always has at
        least 0.1 s. After the deadline the call raises the error of the last failed attempt, or
        RequestTimeoutError if no attempt has failed. A broker may process the operation twice, if
        the response to the first attempt was lost.
        """
        return self._call(self._wrapped.retrying, threaded("operation", operation))

    def create_topics(
        self, *topics: str | NewTopic, timeout_ms: int = 30000, validate_only: bool = False
    ) -> None:
        """Creates topics; a topic given by name alone gets the broker's defaults.

        The broker waits up to `timeout_ms` until the topics are created. With `validate_only` the
        broker only checks the request, and creates no topic. Raises BrokerResponseError for the
        first topic that was refused; other topics may have been created. Raises
        UnsupportedVersionError if a topic needs defaults of a broker before Kafka 2.4, which has
        none for the numbers of partitions and replicas.
        """
        self._call(
            self._wrapped.create_topics, *topics, timeout_ms=timeout_ms, validate_only=validate_only
        )

    def delete_topics(self, *names: str, timeout_ms: int = 30000) -> None:
        """Deletes topics; the broker waits up to `timeout_ms` until they are deleted.

        Raises BrokerResponseError for the first topic that was not deleted.
        """
        self._call(self._wrapped.delete_topics, *names, timeout_ms=timeout_ms)

    def list_offsets(
        self, partitions: Mapping[TopicPartition, OffsetSpec], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Returns the offsets of partitions: the log start, the log end, or an offset by time.

        `partitions` maps a partition to "earliest" for its log start, "latest" for its log end, or
        a time in ms since 1970. For a time, the result is the offset of the first record with a
        timestamp at or after this time; -1 if there is no such record. The end is the high
        watermark, or with `read_committed` the last stable offset. Retries for `api_timeout_ms`.
        Raises BrokerResponseError.
        """
        return self._call(self._wrapped.list_offsets, partitions, read_committed=read_committed)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        topic_ids: Mapping[TopicPartition, Uuid] | None = None,
    ) -> None:
        """Commits offsets for a group without members, as Kafka's admin client does (KIP-396).

        `offsets` maps partitions to the offset of the next record to be read; an offset may be a
        `CommittedOffset` with metadata. `topic_ids` are the ids that the topics had when the caller
        determined the offsets. By default, the client requests metadata, and takes the topic ids
        from the response. Retries for `api_timeout_ms`. Raises BrokerResponseError for the first
        error, such as UNKNOWN_MEMBER_ID for a group that has members, and ConfigurationError for
        invalid partitions and offsets.
        """
        self._call(self._wrapped.commit_offsets, group, offsets, topic_ids=topic_ids)

    def committed_offsets(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        """Returns all committed offsets of a group, also of a group without members.

        While a transaction that commits offsets of the group is open, and for other retriable
        errors, the request is retried for `api_timeout_ms`. Raises BrokerResponseError.
        """
        return self._call(self._wrapped.committed_offsets, group)

    def end_transaction(self, transaction: OpenTransaction, *, committed: bool) -> None:
        """Commits or aborts a transaction that `Transaction.leave_open` has left open.

        Any process can make the call, also again with the same arguments, until a new producer with
        the transactional id starts. Retries for `api_timeout_ms`.

        Raises ProducerFencedError if a new producer with the transactional id has started, or if
        brokers have aborted the transaction after its timeout. Raises TransactionAbortedError if
        the coordinator has refused to commit the transaction, which is then aborted. Raises
        FatalTransactionError for other errors; it is then unknown whether the transaction is
        committed if the text says so.
        """
        self._call(self._wrapped.end_transaction, transaction, committed=committed)

    def fetch(
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
        return self._call(
            self._wrapped.fetch,
            topic,
            partition,
            offset,
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            max_wait_ms=max_wait_ms,
            read_committed=read_committed,
        )
