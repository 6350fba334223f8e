"""Sends requests about configs and deleted records to a real and to the embedded broker."""

from __future__ import annotations

from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.support.batches import batch_bytes

from .conversations import Said
from .talk import Talk, error

__all__ = ["deleting_records", "describing_settings"]

#: Topic configs with equal defaults in both releases, which the nodes of the tests
#: leave at the default.
_COMMON = (
    "cleanup.policy",
    "compression.type",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "max.message.bytes",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "preallocate",
    "retention.bytes",
    "segment.index.bytes",
    "unclean.leader.election.enable",
)
#: Broker configs with equal defaults, which the nodes of the tests leave at the default.
_OF_BROKERS = (
    "broker.rack",
    "connections.max.idle.ms",
    "delegation.token.secret.key",
    "fetch.max.bytes",
    "max.incremental.fetch.session.cache.slots",
    "message.max.bytes",
    "num.partitions",
    "offset.metadata.max.bytes",
    "offsets.retention.check.interval.ms",
    "offsets.retention.minutes",
    "producer.id.expiration.ms",
    "quota.window.num",
    "replica.selector.class",
    "sasl.server.max.receive.size",
    "socket.request.max.bytes",
)


def deleting_records(talk: Talk) -> Said:
    for version in talk.versions(DeleteRecordsRequest):
        name = talk.create(f"t{version}", 2)
        compacted = talk.create(f"c{version}", cleanup_policy="compact")
        for _ in range(3):
            talk.append(name, batch_bytes(2))

        def delete(*wanted: tuple[int, int], topic: str = name, version: int = version) -> object:
            request = DeleteRecordsRequest(
                timeout_ms=10_000,
                topics=[
                    DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            DeleteRecordsPartition(partition_index=index, offset=offset)
                            for index, offset in wanted
                        ],
                    )
                ],
            )
            return [
                sorted(
                    (it.partition_index, error(it.error_code), it.low_watermark)
                    for it in answered.partitions
                )
                for answered in talk.ask(request, version).topics
            ]

        yield (version, "some"), delete((0, 3))
        yield (version, "before the start"), delete((0, 1))
        yield (version, "beyond"), delete((0, 7))
        yield (version, "below 0"), delete((0, -2))
        yield (version, "several"), delete((0, 4), (1, 0), (2, 0))
        yield (version, "twice"), delete((0, 5), (0, 4))
        yield (version, "all"), delete((0, -1))
        yield (version, "again"), delete((0, -1))
        yield (version, "unknown"), delete((0, 0), topic="nope")
        yield (version, "compacted"), delete((0, 0), topic=compacted)


def describing_settings(talk: Talk) -> Said:
    name = talk.create("t", max_message_bytes="5000", cleanup_policy="compact,delete")

    def describe(
        version: int,
        kind: int,
        resource: str,
        keys: tuple[str, ...] = (),
        *,
        synonyms: bool = True,
    ) -> object:
        wanted = DescribeConfigsResource(
            resource_type=kind, resource_name=resource, configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(
            resources=[wanted], include_synonyms=synonyms and version > 0
        )
        (found,) = talk.ask(request, version).results
        return (
            error(found.error_code),
            bool(found.error_message),
            found.resource_type,
            sorted(
                (
                    it.name,
                    it.value or "",
                    it.value is None,
                    it.read_only,
                    it.config_source,
                    it.is_sensitive,
                    it.config_type,
                    [(synonym.name, synonym.value, synonym.source) for synonym in it.synonyms],
                )
                for it in found.configs
                if keys
            ),
        )

    for version in talk.versions(DescribeConfigsRequest):
        yield (version, "topic"), describe(version, 2, name, _COMMON)
        yield (version, "without synonyms"), describe(version, 2, name, _COMMON, synonyms=False)
        yield (version, "no such setting"), describe(version, 2, name, ("nope",))
        yield (version, "broker"), describe(version, 4, "1", _OF_BROKERS)
        for kind, resource in (
            (2, "nope"),
            (2, "a b"),
            (2, ""),
            (4, "1"),
            (4, ""),
            (4, "7"),
            (4, "x"),
            (8, ""),
            (16, ""),
            (16, "m"),
            (32, ""),
            (0, "x"),
            (3, "x"),
            (99, "x"),
        ):
            yield (version, kind, resource), describe(version, kind, resource)
