"""Tests the setting `acks`: acks by all in-sync replicas, by the leader alone, and none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import kproto
from kproto import Client, ConfigurationError, DeliveryError
from kproto.broker import Broker, Cluster, ErrorCode
from kproto.client.network.connection import BrokerConnection
from kproto.client.producer.settings import ProducerSettings
from kproto.messages import InitProducerIdRequest, MetadataRequest, ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.scripted_broker import ScriptedBroker, Stored, quick

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=2_000)


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.records("t")]


def acks_of(broker: ScriptedBroker) -> list[int]:
    """Returns the `acks` of the Produce requests that the broker has received."""
    return [each.message.acks for each in broker.asked if isinstance(each.message, ProduceRequest)]


# --- Settings ---


@pytest.mark.parametrize(
    ("acks", "number"), [("all", -1), (-1, -1), ("-1", -1), (1, 1), ("1", 1), (0, 0), ("0", 0)]
)
def test_kafkas_values_are_accepted(acks: Any, number: int) -> None:
    assert ProducerSettings(acks=acks).required_acks == number


@pytest.mark.parametrize("acks", [2, "none", True, False, None, 1.0, b"1"])
def test_other_values_are_refused(acks: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"acks is .*; it is 'all', -1, 1 or 0"):
        ProducerSettings(acks=acks)


@pytest.mark.parametrize("acks", [0, 1])
def test_explicit_idempotence_needs_acks_by_all_replicas(acks: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"acks is {acks}, and idempotent is True"):
        ProducerSettings(acks=acks, idempotent=True)
    ProducerSettings(acks=acks, idempotent=False)


@pytest.mark.parametrize(("text", "number"), [("all", -1), ("-1", -1), ("1", 1), ("0", 0)])
def test_properties_set_acks(text: str, number: int) -> None:
    client = Client.from_properties({"bootstrap.servers": "b:1", "acks": text})
    assert client.producer().settings.required_acks == number
    assert client.producer(acks=1).settings.required_acks == 1


def test_properties_with_idempotence_refuse_fewer_acks() -> None:
    properties = {"bootstrap.servers": "b:1", "acks": "1", "enable.idempotence": "true"}
    with pytest.raises(ConfigurationError, match="acks is 1, and idempotent is True"):
        Client.from_properties(properties).producer()


# --- acks=1 ---


@pytest.mark.parametrize(("acks", "number"), [("all", -1), (1, 1)])
async def test_requests_have_the_acks_of_the_setting(acks: Any, number: int) -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer(acks=acks) as producer:
            await producer.send("t", b"single", partition=0)
            await asyncio.gather(
                *(producer.send("t", b"both", partition=partition) for partition in (0, 1))
            )
        assert acks_of(broker)
        assert {*acks_of(broker)} == {number}
        assert broker.count(InitProducerIdRequest) == (acks == "all")


async def test_acks_of_the_leader_have_offsets() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer(acks=1) as producer:
            assert (await producer.send("t", b"1")).offset == 0
            assert [ack.offset for ack in await producer.send_many("t", [b"2", b"3"])] == [1, 2]
        assert values(broker) == [b"1", b"2", b"3"]


async def test_leader_acknowledges_although_the_isr_is_too_small() -> None:
    """`min.insync.replicas` applies only to acks=all."""
    async with Cluster(brokers=2) as cluster, Client(cluster.bootstrap, QUICK) as client:
        configs = {"min.insync.replicas": "2"}
        await client.create_topics(kproto.NewTopic("t", 1, 2, configs=configs))
        leader = (await client.topic("t")).partitions[0].leader
        await cluster.stop_broker(3 - leader)  # the ids are 1 and 2
        async with client.producer(acks=1) as one, client.producer() as every:
            assert (await one.send("t", b"1")).offset == 0
            with pytest.raises(DeliveryError, match="NOT_ENOUGH_REPLICAS"):
                await every.send("t", b"2")


async def test_error_with_acks_1_is_raised() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(ErrorCode("TOPIC_AUTHORIZATION_FAILED"), request=ProduceRequest)
        async with client.producer(acks=1) as producer:
            with pytest.raises(DeliveryError, match="TOPIC_AUTHORIZATION_FAILED"):
                await producer.send("t", b"1")


# --- acks=0 ---


async def test_acks_without_a_response_have_no_offset() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer(acks=0) as producer:
            assert await producer.send("t", b"1", timestamp=5) == ("t", 0, -1, 5)
            assert [ack.offset for ack in await producer.send_many("t", [b"2", b"3"])] == [-1, -1]
            delivery = await producer.enqueue("t", b"4")
            await producer.flush()
            assert (await delivery).offset == -1
        async for record in client.consumer("t"):
            if record.offset == 3:
                break
        assert values(broker) == [b"1", b"2", b"3", b"4"]
        counts = client.metrics()["producers"]
        assert (counts["records_acknowledged"], counts["records_failed"]) == (4, 0)


async def test_records_larger_than_the_socket_buffer_are_sent_before_the_client_closes() -> None:
    """A large request does not fit into the buffers of both sockets, so the close must wait."""
    async with Broker() as broker:
        broker.create_topic("t", partitions=3)
        async with Client(broker.bootstrap) as client, client.producer(acks=0) as producer:
            for _ in range(3):
                records = [
                    kproto.ProducerRecord(bytes(900_000), partition=partition)
                    for partition in (0, 1, 2)
                ]
                await producer.send_many("t", records * 4)
        async with Client(broker.bootstrap) as client:
            wanted = {("t", partition): 12 for partition in range(3)}
            ends = await client.list_offsets(dict.fromkeys(wanted, "latest"))
            while ends != wanted:
                ends = await client.list_offsets(dict.fromkeys(wanted, "latest"))


async def test_refused_records_without_a_response_are_lost() -> None:
    """The broker closes the connection; the next records are sent on a new connection."""
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(ErrorCode("TOPIC_AUTHORIZATION_FAILED"), request=ProduceRequest)
        async with client.producer(acks=0) as producer:
            leader = (await client.topic("t")).partitions[0].leader
            connection = await client.connection(leader)
            await producer.send("t", b"lost")
            with pytest.raises(kproto.BrokerConnectionError):
                await connection.request(MetadataRequest(topics=[]))
            await producer.send("t", b"stored")
            async for record in client.consumer("t"):
                assert record.value == b"stored"
                break


async def test_metadata_is_refreshed_after_a_lost_connection() -> None:
    """The broker may have closed the connection because it is not the leader any more."""
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: None
        async with client.producer(acks=0) as producer:
            await producer.send("t", b"1")
            await broker.until(lambda: broker.count(ProduceRequest) == 1)
            requested = broker.count(MetadataRequest)
            connection = await client.connection(0)
            broker.hang_up()
            await broker.until(lambda: not connection.usable)
            await producer.send("t", b"2")
            assert broker.count(MetadataRequest) == requested + 1
            await broker.until(lambda: broker.count(ProduceRequest) == 2)


async def test_records_keep_their_order_while_the_broker_does_not_read() -> None:
    release = asyncio.Event()

    async def answer(asked: ReceivedRequest) -> Any:
        await release.wait()
        stored.answer(asked)

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        broker.answers[ProduceRequest] = answer
        producer = client.producer(acks=0, batch_bytes=400_000, buffer_bytes=1 << 30)
        expected = [b"%03d" % at + bytes(300_000) for at in range(60)]
        sending = asyncio.create_task(producer.send_many("t", expected))
        await broker.until(lambda: broker.count(ProduceRequest) == 1)
        connection = await client.connection(0)
        await broker.until(lambda: connection.has_unsent_bytes)
        assert not sending.done()
        release.set()
        assert len(await sending) == 60
        await producer.close()
        await broker.until(lambda: len(stored.values()) == 60)
        assert stored.values() == expected


async def test_records_that_were_not_written_are_sent_again() -> None:
    """The connection is lost while the socket has not taken all bytes of the request."""
    reads = asyncio.Event()

    async def answer(asked: ReceivedRequest) -> Any:
        await reads.wait()
        stored.answer(asked)

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        broker.answers[ProduceRequest] = answer
        async with client.producer(acks=0, batch_bytes=1_000_000) as producer:
            large = [bytes(900_000)] * 20
            sending = asyncio.create_task(producer.send_many("t", large))
            await broker.until(lambda: broker.count(ProduceRequest) == 1)
            connection: BrokerConnection = await client.connection(0)
            await broker.until(lambda: connection.has_unsent_bytes)
            reads.set()
            broker.hang_up()
            assert len(await sending) == 20
            await producer.send("t", b"last")
            await broker.until(lambda: b"last" in stored.values())


async def test_lost_broker_fails_records_that_were_not_written() -> None:
    async with ScriptedBroker({"t": 1}) as broker:
        settings = quick(metadata_wait_ms=50, delivery_timeout_ms=200)
        async with Client(broker.bootstrap, settings) as client:
            producer = client.producer(acks=0)
            await producer.send("t", b"1")
            connection = await client.connection(0)
            await broker.stop()
            await broker.until(lambda: not connection.usable)
            with pytest.raises(DeliveryError) as raised:
                await producer.send("t", b"2")
            assert [each.value for each in raised.value.records] == [b"2"]
            await producer.close()
