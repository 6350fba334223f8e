"""Tests the client at old brokers: request versions, the message format, and missing features."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kproto import Client, ClientSettings, NewTopic, ProducerRecord
from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.client import DeliveryError
from kproto.client.release import version_ranges_of
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.records import LegacyBatch
from kproto.wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    EncodeError,
    UnsupportedVersionError,
)
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, Stored


def capped(broker: ScriptedBroker, release: str) -> ScriptedBroker:
    """Limits the broker to the versions of a release.

    Before 0.10, the broker closes the connection on ApiVersions.
    """
    ranges = version_ranges_of(release)
    broker.answers[ApiVersionsRequest] = lambda asked: (
        ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=each.lowest, max_version=each.highest)
                for key, each in ranges.items()
            ]
        )
        if ApiVersionsRequest.API_KEY in ranges
        else HANG_UP
    )
    return broker


def settings(release: str | None) -> ClientSettings:
    return ClientSettings(broker_version=release, retry_backoff_ms=1, reconnect_backoff_ms=1)


async def test_apiversions_is_not_sent_to_a_broker_of_0_9() -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(capped(broker, "0.9").bootstrap, settings("0.9")) as client,
    ):
        await client.topic("t")
        assert broker.count(ApiVersionsRequest) == 0
        assert {asked.version for asked in broker.asked} == {0}
        with pytest.raises(UnsupportedVersionError, match="does not offer api key 19"):
            await client.create_topics("new")


@pytest.mark.parametrize("configured", [True, False])
async def test_broker_of_0_10_gets_message_sets(configured: bool) -> None:
    """The client gets the release from its settings, or the versions from the broker."""
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(
            capped(broker, "0.10.2").bootstrap, settings("0.10.2" if configured else None)
        ) as client,
    ):
        sent: list[Any] = []
        stored = Stored(broker)
        answer = stored.answer

        def noted(asked: Any) -> Any:
            sent.append((asked.version, asked.message.topic_data[0].partition_data[0].records))
            return answer(asked)

        broker.answers[ProduceRequest] = noted
        async with client.producer() as producer:
            ack = await producer.send("t", b"v", key=b"k", timestamp=12)
            assert ack.timestamp == 12
        version, records = sent[0]
        assert version == 2
        message = LegacyBatch(records)
        assert message.magic == 1
        assert [(each.key, each.value, each.timestamp) for each in message.records()] == [
            (b"k", b"v", 12)
        ]
        assert broker.count(InitProducerIdRequest) == 0


async def test_missing_producer_ids_of_an_old_broker_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(capped(broker, "0.10.2").bootstrap, settings(None)) as client,
    ):
        with caplog.at_level(logging.WARNING, "kproto.client"):
            async with client.producer() as producer:
                for _ in range(3):
                    await producer.send("t", b"v")
        assert sum("has no producer ids" in text for text in caplog.messages) == 1


async def test_explicit_idempotence_fails_at_an_old_broker() -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(capped(broker, "0.10.2").bootstrap, settings(None)) as client,
    ):
        async with client.producer(idempotent=True) as producer:
            with pytest.raises(DeliveryError, match="does not offer api key 22"):
                await producer.send("t", b"v")
        assert broker.count(ProduceRequest) == 0


@pytest.mark.parametrize("pairs", [[("h", b"1")], (("h", b"1"),)])
async def test_headers_are_refused_by_every_send_method(pairs: Any) -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(capped(broker, "0.10.2").bootstrap, settings(None)) as client,
    ):
        stored = Stored(broker)
        async with client.producer() as producer:
            with pytest.raises(EncodeError, match=r"has headers \('h'\)"):
                await producer.send("t", b"v", headers=pairs)
            with pytest.raises(EncodeError, match=r"has headers \('h'\)"):
                await producer.enqueue("t", b"v", headers=pairs)
            element: list[bytes | ProducerRecord | None] = [ProducerRecord(b"x", headers=pairs)]
            for records in ([b"a", *element], iter([b"c", *element])):
                with pytest.raises(EncodeError, match=r"element 1, .*headers"):
                    await producer.send_many("t", records)
        assert stored.values() == [b"a", b"c"]


async def test_broker_version_limits_a_newer_broker() -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings("2.8")) as client,
    ):
        connection = await client.connection()
        assert connection.version_of(ProduceRequest) == 9
        assert connection.version_of(ListOffsetsRequest) == 6
        assert connection.version_of(MetadataRequest) == 11
        assert broker.count(ApiVersionsRequest) == 1


@pytest.mark.parametrize("release", ["0.8.2", "0.9", "0.10.0", "0.10.2", "0.11", "2.8", "4.4"])
async def test_embedded_broker_of_each_release_works(release: str) -> None:
    async with Broker(BrokerSettings(release=release)) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, settings(release)) as client:
            async with client.producer(compression="gzip") as producer:
                await producer.send("t", b"one", key=b"k")
                acks = await producer.send_many("t", [b"%d" % number for number in range(50)])
                assert acks[-1].offset == 50
            records = [record async for record in client.consumer("t", stop_at_end=True)]
            assert [record.offset for record in records] == list(range(51))
            assert (records[0].key, records[0].value, records[-1].value) == (b"k", b"one", b"49")
            assert (records[0].timestamp == -1) == (release in ("0.8.2", "0.9"))


async def test_broker_of_0_9_needs_the_broker_version() -> None:
    async with Broker(BrokerSettings(release="0.9")) as broker:
        client = Client(broker.bootstrap, settings(None))
        with pytest.raises(BrokerConnectionError, match="broker_version"):
            await client.refresh([])
        await client.close()


@pytest.mark.parametrize(("release", "epoch"), [("2.3", -1), ("2.4", 1)])
async def test_leader_epochs_are_used_since_2_4(release: str, epoch: int) -> None:
    async with Cluster(2, release=release) as cluster:
        cluster.create_topic("t", 1)
        cluster.move_leader("t", 0, 3 - cluster.leader("t"))
        async with Client(cluster.bootstrap) as client:
            await client.refresh(["t"])
            assert client.cluster.leader_epoch("t", 0) == epoch
            async with client.producer() as producer:
                await producer.send("t", b"a")
            consumer = client.consumer("t", stop_at_end=True)
            assert [record.value async for record in consumer] == [b"a"]


async def test_partitions_missing_in_a_full_response_are_fetched_later() -> None:
    settings = BrokerSettings(release="0.9", fetch_max_bytes=3_000)
    async with (
        Broker(settings=settings) as broker,
        Client(broker.bootstrap, broker_version="0.9") as client,
    ):
        broker.create_topic("t", 6)
        async with client.producer() as producer:
            for number in range(24):
                await producer.send("t", bytes([number]) * 900, partition=number % 6)
        consumer = client.consumer("t", stop_at_end=True)
        found = [record.value async for record in consumer]
        assert sorted(value[0] for value in found if value) == list(range(24))


async def test_a_starting_broker_of_0_8_is_asked_again() -> None:
    """It answers UNKNOWN_SERVER_ERROR for a topic while no broker is registered."""
    async with ScriptedBroker({"t": 1}) as broker:
        scripted = capped(broker, "0.8.2")
        metadata = scripted.answers[MetadataRequest]
        answered = 0

        def starting(asked: Any) -> Any:
            nonlocal answered
            answered += 1
            answer = metadata(asked)
            for topic in answer.topics:
                if answered < 4:
                    topic.error_code, topic.partitions = -1, []
            return answer

        scripted.answers[MetadataRequest] = starting
        async with Client(scripted.bootstrap, settings("0.8.2")) as client:
            assert len((await client.topic("t")).partitions) == 1


@pytest.mark.parametrize(
    ("topic", "missing"),
    [
        ("new", "no partitions and no replication_factor"),
        (NewTopic("new", partitions=3), "no replication_factor"),
        (NewTopic("new", replication_factor=1), "no partitions"),
    ],
)
async def test_topics_need_both_numbers_before_2_4(topic: str | NewTopic, missing: str) -> None:
    async with Broker(BrokerSettings(release="2.3")) as broker, Client(broker.bootstrap) as client:
        with pytest.raises(UnsupportedVersionError, match=rf"'new' has {missing}, .*Kafka 2\.4"):
            await client.create_topics(NewTopic("other", 1, 1), topic)
        await client.create_topics(NewTopic("new", 3, 1))
        assert len((await client.topic("new")).partitions) == 3
        with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await client.topic("other")  # nothing was sent before all topics were checked


@pytest.mark.parametrize(
    ("release", "timeout_ms"), [("0.9", 30_000), ("0.10.0", 45_000), (None, 45_000)]
)
async def test_session_timeout_fits_the_release(release: str | None, timeout_ms: int) -> None:
    client = Client("localhost:9092", broker_version=release)
    assert client.consumer("t", group="g")._settings.session_timeout_ms == timeout_ms
    explicit = client.consumer("t", group="g", session_timeout_ms=10_000)
    assert explicit._settings.session_timeout_ms == 10_000
    await client.close()
