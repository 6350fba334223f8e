"""Tests a client that is pinned to the API versions of an old release, on real brokers.

Kafka 3.9.2 still answers the requests of 0.8.2 clients. Kafka 4.4.0 answers the requests of clients
from about 2.1 on.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import kproto
from kproto.messages import FetchRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest
from kproto.wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    EncodeError,
    UnsupportedVersionError,
)
from tests.support.any_broker import real_broker
from tests.support.brokers import Brokers

OLD = ("0.8.2", "0.9", "0.10.0", "0.10.2")
"""Releases whose brokers accept only message sets."""

NEWER = ("0.11", "1.0", "2.0", "2.8", "3.9", "4.4")
"""Releases whose brokers accept record batches."""

CODECS = (
    "none",
    "lz4",  # the lz4 framing differs between releases
    *(pytest.param(codec, marks=pytest.mark.exhaustive) for codec in ("gzip", "snappy")),
)

HIGHEST = {  # Produce, Fetch, ListOffsets, Metadata
    "0.8.2": (0, 0, 0, 0),
    "0.9": (1, 1, 0, 0),
    "0.10.0": (2, 2, 0, 1),
    "0.10.2": (2, 3, 1, 2),
    "0.11": (3, 5, 2, 4),
    "1.0": (5, 6, 2, 5),
    "2.0": (6, 8, 3, 6),
    "2.8": (9, 12, 6, 11),
    "3.9": (11, 17, 9, 12),
}


@asynccontextmanager
async def pinned(
    brokers: Brokers, release: str | None, version: str = "3.9.2", **settings: Any
) -> AsyncIterator[tuple[kproto.Client, str]]:
    """Yields a client of a broker of release `version`, and a new topic.

    The client is pinned to the API versions of `release`, or not pinned if `release` is None.
    """
    bootstrap = real_broker(version, brokers).bootstrap
    topic = f"old-{uuid.uuid4().hex}"
    async with kproto.Client(bootstrap) as admin:
        await admin.create_topics(kproto.NewTopic(topic, partitions=2))
        pinned_settings = kproto.ClientSettings(broker_version=release, **settings)
        try:
            async with kproto.Client(bootstrap, pinned_settings) as client:
                yield client, topic
        finally:
            await admin.delete_topics(topic)


async def read(client: kproto.Client, topic: str, **options: Any) -> list[kproto.Record]:
    return [record async for record in client.consumer(topic, stop_at_end=True, **options)]


@pytest.mark.parametrize("release", HIGHEST)
async def test_client_uses_the_highest_versions_of_the_release(
    kafka_brokers: Brokers, release: str
) -> None:
    async with pinned(kafka_brokers, release) as (client, _):
        connection = await client.connection()
        requests: tuple[Any, ...] = (
            ProduceRequest,
            FetchRequest,
            ListOffsetsRequest,
            MetadataRequest,
        )
        found = tuple(connection.version_of(each) for each in requests)
        assert found == HIGHEST[release]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("release", [*OLD, *NEWER])
async def test_produced_records_are_read(kafka_brokers: Brokers, release: str, codec: Any) -> None:
    async with pinned(kafka_brokers, release) as (client, topic):
        values = [b"%d " % number * 50 for number in range(300)]
        async with client.producer(compression=codec, batch_bytes=4_000) as producer:
            ack = await producer.send(topic, b"first", key=b"k", partition=1)
            assert (ack.partition, ack.offset) == (1, 0)
            assert (ack.timestamp == -1) == (release in ("0.8.2", "0.9"))
            acks = await producer.send_many(
                topic, [kproto.ProducerRecord(value, partition=0) for value in values]
            )
            assert acks[-1].offset == len(values) - 1
        by_partition: dict[int, list[kproto.Record]] = {0: [], 1: []}
        for record in await read(client, topic):
            by_partition[record.partition].append(record)
        assert [record.value for record in by_partition[0]] == values
        assert [record.offset for record in by_partition[0]] == list(range(len(values)))
        (first,) = by_partition[1]
        assert (first.key, first.value) == (b"k", b"first")


@pytest.mark.parametrize("release", OLD)
async def test_records_of_a_newer_client_are_read(kafka_brokers: Brokers, release: str) -> None:
    async with pinned(kafka_brokers, release) as (client, topic):
        bootstrap = real_broker("3.9.2", kafka_brokers).bootstrap
        async with kproto.Client(bootstrap) as newer, newer.producer() as producer:
            await producer.send(topic, b"v", headers=[("h", b"1")])
        (record,) = await read(client, topic)
        assert (record.value, list(record.headers)) == (b"v", [])  # message sets have no headers


@pytest.mark.parametrize("release", OLD)
async def test_headers_are_refused_without_losing_other_records(
    kafka_brokers: Brokers, release: str
) -> None:
    async with pinned(kafka_brokers, release) as (client, topic):
        async with client.producer() as producer:
            with pytest.raises(EncodeError, match=rf"'{topic}' has headers \('h'\)"):
                await producer.send(topic, b"v", headers=[("h", b"1")])
            records: list[Any] = [b"one", kproto.ProducerRecord(b"two", headers=[("h", b"1")])]
            with pytest.raises(EncodeError, match=r"element 1, .* older than Kafka 0\.11"):
                await producer.send_many(topic, records)
        assert [record.value for record in await read(client, topic)] == [b"one"]


@pytest.mark.parametrize("release", OLD)
async def test_offsets_are_listed_by_old_versions(kafka_brokers: Brokers, release: str) -> None:
    async with pinned(kafka_brokers, release) as (client, topic):
        async with client.producer() as producer:
            await producer.send_many(
                topic, [kproto.ProducerRecord(b"v", timestamp=1_000, partition=0)] * 3
            )
        tp = (topic, 0)
        assert await client.list_offsets({tp: "latest"}) == {tp: 3}
        assert await client.list_offsets({tp: "earliest"}) == {tp: 0}
        if HIGHEST[release][2] == 0:
            with pytest.raises(UnsupportedVersionError, match="by time needs ListOffsets v1"):
                await client.list_offsets({tp: 500})
        else:
            assert await client.list_offsets({tp: 500}) == {tp: 0}


@pytest.mark.parametrize("release", OLD)
async def test_transactions_are_refused(kafka_brokers: Brokers, release: str) -> None:
    async with pinned(kafka_brokers, release) as (client, topic):
        async with client.producer() as producer:
            await producer.send(topic, b"v", partition=0)
        with pytest.raises(UnsupportedVersionError, match="read_committed needs"):
            await read(client, topic, read_committed=True)
        with pytest.raises(UnsupportedVersionError, match="read_committed needs"):
            await client.list_offsets({(topic, 0): "latest"}, read_committed=True)
        with pytest.raises(ConfigurationError, match=r"idempotent=True requires Kafka 0\.11"):
            client.producer(idempotent=True)
        with pytest.raises(ConfigurationError, match=r"'zstd' requires Kafka 2\.1"):
            client.producer(compression="zstd")


@pytest.mark.parametrize("release", ["0.8.2", "0.9", "0.10.0"])
async def test_message_larger_than_a_fetch_raises(kafka_brokers: Brokers, release: str) -> None:
    async with pinned(kafka_brokers, release) as (client, topic):
        async with client.producer() as producer:
            await producer.send(topic, bytes(5_000), partition=0)
        with pytest.raises(ConfigurationError, match=r"\[0\]: the message at offset 0 is larger"):
            await read(client, topic, max_partition_fetch_bytes=1_000)
        assert len(await read(client, topic, max_partition_fetch_bytes=10_000)) == 1


async def test_producer_is_idempotent_if_the_release_supports_it(kafka_brokers: Brokers) -> None:
    """Brokers have producer ids since 0.11."""
    for release, idempotent in (("0.10.2", False), ("0.11", True), (None, True)):
        async with (
            pinned(kafka_brokers, release) as (client, topic),
            client.producer() as producer,
        ):
            await producer.send(topic, b"v")
            identity = producer._accumulator.producer_state.identity
            assert identity is not None
            assert (identity.producer_id >= 0) == idempotent


@pytest.mark.parametrize("release", ["2.8", "3.9", "4.4"])
async def test_newer_broker_serves_a_pinned_client(kafka_brokers: Brokers, release: str) -> None:
    async with pinned(kafka_brokers, release, "4.4.0") as (client, topic):
        async with client.producer() as producer:
            await producer.send(topic, b"v", headers=[("h", b"1")])
        (record,) = await read(client, topic, read_committed=True)
        assert list(record.headers) == [("h", b"1")]


@pytest.mark.parametrize("release", ["0.8.2", "0.9"])
async def test_too_new_broker_raises_with_a_hint(kafka_brokers: Brokers, release: str) -> None:
    bootstrap = real_broker("4.4.0", kafka_brokers).bootstrap
    settings = kproto.ClientSettings(broker_version=release)
    client = kproto.Client(bootstrap, settings)
    async with client:  # 4.4.0 still supports every version of Metadata
        with pytest.raises(BrokerConnectionError) as caught:
            await client.request(ListOffsetsRequest(replica_id=-1, topics=[]))
    assert f"is it a Kafka {release} (broker_version)?" in str(caught.value)
