"""`Client`, the entry point: creates producers and consumers, and sends any request.

Producers and consumers share the metadata and the connections of their client. The modules of a
producer, a consumer or a group are imported when a program first creates one: a program that only
consumes does not load the producer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, Unpack, overload

from ..clock import SYSTEM_CLOCK, Clock
from ..records.type_variables import K, U, V
from ..wire.checks import check_whole_number
from ..wire.errors import ConfigurationError
from .cluster_calls import ClusterCalls
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
    from .consumer.consumer import Consumer, Start
    from .consumer.group_consumer import GroupConsumer
    from .consumer.rebalance_listener import RebalanceCallback
    from .consumer.share_consumer import ShareConsumer
    from .consumer.share_parts import ResultCallback
    from .fetch.start_options import GroupStart
    from .groups.assignor import Assignor
    from .groups.share.settings import AcknowledgementMode, AcquireMode
    from .groups.subscription import TopicPattern
    from .metadata.cluster import TopicPartition
    from .producer.partitioner import Partitioner, PartitionerName
    from .producer.producer import Producer
    from .producer.run_producer import RunProducer
    from .producer.settings import CompressionName, RequiredAcks

__all__ = ["Client"]

#: The default of arguments for which None is a valid value: the caller omitted the argument.
_UNSET: Final[Any] = object()


class Client(ClusterCalls):
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
        `share_acquire_mode`, `fetch_max_wait_ms`. The isolation level, the start and the duration
        of locks are configs of the group (`share.isolation.level`, `share.auto.offset.reset`,
        `share.record.lock.duration.ms`): `isolation.level` and `auto.offset.reset` of the
        properties have no effect, and the client logs a warning for each. Raises
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
        from .groups.share.settings import ShareGroupSettings, warn_of_group_configs

        warn_of_group_configs(group, self._consumer_defaults)
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
