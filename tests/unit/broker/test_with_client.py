"""Tests the broker with the kproto client: topics, records, offsets, fetches and addresses."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from kproto import (
    BrokerConnectionError,
    BrokerResponseError,
    Client,
    ConfigurationError,
    NewTopic,
    ProducerRecord,
)
from kproto.broker import Broker, BrokerSettings
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from tools.setup.ports import free_ports


async def test_a_record_is_written_and_read() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics("greetings")
        async with client.producer() as producer:
            ack = await producer.send("greetings", b"hello", key=b"k", headers=[("a", b"1")])
        assert (ack.topic, ack.partition, ack.offset) == ("greetings", 0, 0)
        async for record in client.consumer("greetings", start="earliest"):
            assert (record.key, record.value, list(record.headers)) == (
                b"k",
                b"hello",
                [("a", b"1")],
            )
            break
        (stored,) = broker.records("greetings")
        assert (stored.value, stored.timestamp) == (b"hello", ack.timestamp)


async def test_many_records_of_many_partitions_are_read() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics(NewTopic("many", partitions=4))
        records = [ProducerRecord(b"%d" % index, b"%d" % (index % 50)) for index in range(20_000)]
        async with client.producer() as producer:
            acks = await producer.send_many("many", records)
        assert len(acks) == len(records)
        ends = [broker.end_offset("many", index) for index in range(4)]
        assert sum(ends) == len(records)
        read: list[bytes | None] = []
        async for record in client.consumer("many", start="earliest"):
            read.append(record.value)
            if len(read) == len(records):
                break
        assert sorted(read, key=lambda value: int(value or b"")) == [r.value for r in records]
        found = await client.list_offsets({("many", index): "latest" for index in range(4)})
        assert [found["many", index] for index in range(4)] == ends


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_batches_are_stored_unchanged(compression: str) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer(compression=compression) as producer:  # type: ignore[arg-type]  # a parameter's str is no Literal
            await producer.send_many("t", [b"value" * 20] * 100)
        (batch, *_) = broker.topics["t"].partitions[0].log
        assert batch.compression == compression
        assert len(broker.records("t")) == 100


async def test_a_waiting_consumer_receives_new_records() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")

        async def read_one() -> bytes | None:
            async for record in client.consumer("t", start="earliest"):
                return record.value
            return None

        reading = asyncio.create_task(read_one())
        log = broker.topics["t"].partitions[0].log
        async with asyncio.timeout(60):
            while not log.watchers:  # noqa: ASYNC110 - that a fetch waits is the broker's own affair
                await asyncio.sleep(0.001)
        async with Client(broker.bootstrap) as other, other.producer() as producer:
            await producer.send("t", b"now")
        assert await asyncio.wait_for(reading, 60) == b"now"


async def test_client_sees_cluster_metadata() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics("t")
        with pytest.raises(BrokerResponseError, match="TOPIC_ALREADY_EXISTS"):
            await client.create_topics("t")
        with pytest.raises(BrokerResponseError, match="INVALID_TOPIC_EXCEPTION"):
            await client.create_topics("no good")
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            await client.fetch("t", 0, 5)
        await client.delete_topics("t")
        with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await client.delete_topics("t")
        answer = await client.request(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        )
        assert answer.producer_id >= 0


async def test_deleted_records_are_out_of_range() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            for index in range(5):
                await producer.send("t", b"%d" % index)
        broker.delete_records("t", 0, 3)
        assert await client.list_offsets({("t", 0): "earliest"}) == {("t", 0): 3}
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            await client.fetch("t", 0, 2)
        assert [record.value for record in broker.records("t")] == [b"3", b"4"]


async def test_broker_methods_raise_client_errors() -> None:
    broker = Broker()
    with pytest.raises(ConfigurationError, match="does not listen"):
        _ = broker.bootstrap
    broker.create_topic("t", 2)
    for act in (
        lambda: broker.create_topic("t"),
        lambda: broker.create_topic("u", 0),
        lambda: broker.create_topic("u", configs={"nope": "1"}),
        lambda: broker.delete_topic("u"),
        lambda: broker.records("u"),
        lambda: broker.end_offset("t", 2),
        lambda: broker.delete_records("t", 0, 1),
    ):
        with pytest.raises(BrokerResponseError):
            act()
    assert list(broker.topics) == ["t"]


async def test_used_port_raises() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = Broker(port=taken.getsockname()[1])
        with pytest.raises(BrokerConnectionError, match="cannot listen"):
            await broker.start()
    async with Broker() as running:
        with pytest.raises(ConfigurationError, match="already"):
            await running.start()


async def test_ipv6_and_an_advertised_host_are_reachable() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    async with Broker(host="::1") as broker:
        assert broker.bootstrap.startswith("[::1]:")
        async with Client(broker.bootstrap) as client:
            await client.create_topics("t")
    settings = BrokerSettings(host="0.0.0.0", advertised_host="localhost")
    async with Broker(settings) as broker:
        assert broker.bootstrap.startswith("localhost:")
        async with Client(broker.bootstrap) as client:
            await client.create_topics("t")
            assert client.cluster.brokers[1].host == "localhost"


async def test_metadata_has_the_advertised_port() -> None:
    """Clients behind a proxy need the proxy's port in metadata."""
    (front,) = free_ports(1)
    async with Broker(BrokerSettings(advertised_port=front)) as broker:
        host, _, port = broker.listens_at.partition(":")
        assert broker.bootstrap == f"127.0.0.1:{front}" != broker.listens_at
        async with Client(broker.listens_at) as client:
            assert [(at.host, at.port) for at in client.cluster.brokers.values()] == [
                ("127.0.0.1", front)
            ]

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            behind = await asyncio.open_connection(host, int(port))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(pump(reader, behind[1]))
                tasks.create_task(pump(behind[0], writer))

        server = await asyncio.start_server(forward, "127.0.0.1", front)
        async with server, Client(broker.bootstrap) as client:
            await client.create_topics("t")
            async with client.producer() as producer:
                assert (await producer.send("t", b"v")).offset == 0
    with pytest.raises(ConfigurationError, match="does not listen"):
        _ = broker.listens_at


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forwards bytes until the connection ends."""
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
