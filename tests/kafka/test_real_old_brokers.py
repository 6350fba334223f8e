"""Tests the client on real brokers of old releases, each with its own ZooKeeper.

The releases are the last of each line that changed the protocol. A broker before 0.10 needs
`broker_version`, and a broker before 0.10.1 creates a topic when a client requests its metadata.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    NotAnEvent,
    Profile,
    events,
    from_kafka,
)

import kproto
from kproto.proxy import Proxy
from kproto.wire.errors import (
    BrokerResponseError,
    EncodeError,
    KprotoError,
    UnsupportedVersionError,
)
from tests.support.old_brokers import FIRST_KEY, broker_version_of, new_topic, old_broker
from tools.kafka import KafkaNode
from tools.kafka.old_releases import has_headers, has_topic_requests

__all__ = ["old_broker"]

pytestmark = pytest.mark.exhaustive

CODECS = ("none", "gzip", "snappy", "lz4")
WITHOUT_GROUPS = ("0.8.2.2",)
EVENT = CloudEvent(id="1", source="/shop", type="order.placed", n=5, data={"total": 12})


def client_of(node: KafkaNode, bootstrap: str | None = None) -> kproto.Client:
    return kproto.Client(bootstrap or node.bootstrap, broker_version=broker_version_of(node))


@pytest.fixture
async def client(old_broker: KafkaNode) -> AsyncIterator[kproto.Client]:
    async with client_of(old_broker) as connected:
        yield connected


@pytest.fixture
async def topic(old_broker: KafkaNode, client: kproto.Client) -> str:
    return await new_topic(old_broker, client)


async def read(client: kproto.Client, topic: str) -> list[kproto.Record]:
    consumer = client.consumer(topic, start="earliest", stop_at_end=True)
    return [record async for record in consumer if record.key != FIRST_KEY]


@pytest.mark.parametrize("codec", CODECS)
async def test_produced_records_are_read(client: kproto.Client, topic: str, codec: str) -> None:
    values = [b"%d " % number * 20 for number in range(2_000)]
    async with client.producer(compression=codec, batch_bytes=16_000) as producer:  # type: ignore[arg-type]
        acks = await producer.send_many(
            topic, [kproto.ProducerRecord(value, b"k", partition=0) for value in values]
        )
        assert await client.list_offsets({(topic, 0): "latest"}) == {
            (topic, 0): acks[-1].offset + 1
        }
    assert [record.value for record in await read(client, topic)] == values


async def test_group_commits_and_continues(
    old_broker: KafkaNode, client: kproto.Client, topic: str
) -> None:
    group = f"group-{uuid.uuid4().hex}"
    async with client.producer() as producer:
        await producer.send_many(topic, [b"%d" % number for number in range(100)])
    found = []
    if old_broker.version in WITHOUT_GROUPS:
        with pytest.raises(KprotoError, match="JoinGroup"):
            async with client.consumer(topic, group=group) as consumer:
                await anext(aiter(consumer))
        return
    for _ in range(2):
        async with client.consumer(topic, group=group, start="earliest") as consumer:
            async for record in consumer:
                if record.value is not None:
                    found.append(int(record.value))
                if len(found) in (50, 100):
                    break
    assert sorted(found) == list(range(100))


async def test_two_members_share_the_partitions(
    old_broker: KafkaNode, client: kproto.Client, topic: str
) -> None:
    if not has_topic_requests(old_broker.version):
        pytest.skip("a topic that the broker creates by itself has one partition")
    group = f"group-{uuid.uuid4().hex}"
    owned: dict[int, set[int]] = {0: set(), 1: set()}

    async def member(number: int) -> None:
        def assigned(partitions: object) -> None:
            owned[number] |= {partition for _, partition in partitions}  # type: ignore[attr-defined]

        def revoked(partitions: object) -> None:
            owned[number] -= {partition for _, partition in partitions}  # type: ignore[attr-defined]

        async with (
            client_of(old_broker) as own,
            own.consumer(topic, group=group, on_assigned=assigned, on_revoked=revoked) as consumer,
        ):
            async for _ in consumer:
                pass

    members = [asyncio.create_task(member(number)) for number in owned]
    try:
        while sorted(map(sorted, owned.values())) != [[0], [1]]:
            assert not any(task.done() for task in members)
            await asyncio.sleep(0.05)
    finally:
        for task in members:
            task.cancel()
        await asyncio.gather(*members, return_exceptions=True)


@pytest.mark.parametrize("mode", [None, "structured"])
async def test_event_is_found_again(
    old_broker: KafkaNode, client: kproto.Client, topic: str, mode: str | None
) -> None:
    """Brokers before 0.11 store no headers: the event is structured JSON (Kafka binding 1.3)."""
    async with client.producer() as producer:
        await producer.send_event(topic, EVENT, mode=mode)  # type: ignore[arg-type]
        await producer.send_events(topic, [EVENT] * 3, mode=mode)  # type: ignore[arg-type]
    records = await read(client, topic)
    assert len(records) == 4
    for record in records:
        if has_headers(old_broker.version):
            found = from_kafka(record.key, record.value, record.headers)
        else:
            assert list(record.headers) == []
            assert isinstance(from_kafka(record.key, record.value), NotAnEvent)
            found = from_kafka(record.key, record.value, mode="structured")
            profile = Profile(json_events=True)
            assert from_kafka(record.key, record.value, profile=profile) == found
        assert isinstance(found, CloudEvent)
        assert (found.id, found.type, found.json()) == ("1", "order.placed", {"total": 12})


async def test_event_of_a_client_that_is_not_connected_yet(old_broker: KafkaNode) -> None:
    async with client_of(old_broker) as admin:
        topic = await new_topic(old_broker, admin)
    lazy = client_of(old_broker)
    try:
        async with lazy.producer() as producer:
            await asyncio.gather(
                *(producer.send_event(topic, EVENT.replace(id=str(n))) for n in range(20))
            )
        mode = None if has_headers(old_broker.version) else "structured"
        async with lazy.consumer(topic, start="earliest", stop_at_end=True) as consumer:
            found = [each async for each in events(consumer, mode=mode)]  # type: ignore[arg-type]
    finally:
        await lazy.close()
    written = [each.outcome.id for each in found if isinstance(each.outcome, CloudEvent)]
    assert sorted(written, key=int) == [str(n) for n in range(20)]


async def test_binary_mode_is_refused_without_headers(
    old_broker: KafkaNode, client: kproto.Client, topic: str
) -> None:
    async with client.producer() as producer:
        if has_headers(old_broker.version):
            await producer.send_event(topic, EVENT, mode="binary")
            return
        with pytest.raises(CloudEventError, match="structured mode in JSON"):
            await producer.send_event(topic, EVENT, mode="binary")
        with pytest.raises(EncodeError, match=r"older than Kafka 0\.11"):
            await producer.send(topic, b"v", headers=[("h", b"1")])


async def test_topic_by_name_alone_needs_defaults_of_the_broker(
    old_broker: KafkaNode, client: kproto.Client
) -> None:
    name = f"old-{uuid.uuid4().hex}"
    if tuple(map(int, old_broker.version.split("."))) >= (2, 4):
        await client.create_topics(name)
        return
    with pytest.raises(UnsupportedVersionError) as caught:
        await client.create_topics(name)
    if has_topic_requests(old_broker.version):
        assert "set partitions and replication_factor of the NewTopic" in str(caught.value)
        with pytest.raises(UnsupportedVersionError, match="has no replication_factor"):
            await client.create_topics(kproto.NewTopic(name, partitions=1))
        await client.create_topics(kproto.NewTopic(name, 1, 1))
        with pytest.raises(BrokerResponseError, match="TOPIC_ALREADY_EXISTS"):
            await client.create_topics(kproto.NewTopic(name, 1, 1))


async def test_clients_stay_behind_the_proxy(old_broker: KafkaNode) -> None:
    from kproto.proxy import ProxySettings

    async with (
        Proxy("127.0.0.1:0", old_broker.bootstrap, ProxySettings(rewrite=True)) as proxy,
        client_of(old_broker, proxy.listens_at) as client,
    ):
        topic = await new_topic(old_broker, client)
        async with client.producer() as producer:
            await producer.send_many(topic, [b"%d" % n for n in range(20)])
        assert sorted(int(each.value or 0) for each in await read(client, topic)) == list(range(20))
        ports = {broker.port for broker in client.cluster.brokers.values()}
        assert int(old_broker.bootstrap.rpartition(":")[2]) not in ports


@pytest.mark.thorough
async def test_broker_that_was_killed_continues_with_its_records(
    old_broker: KafkaNode, client: kproto.Client, topic: str
) -> None:
    async with client.producer() as producer:
        await producer.send(topic, b"before", partition=0)
        await asyncio.to_thread(old_broker.kill)
        later = asyncio.create_task(producer.send(topic, b"after", partition=0))
        await asyncio.to_thread(old_broker.start)
        await later
    assert [record.value for record in await read(client, topic)] == [b"before", b"after"]
