"""Tests the client's log: one line, at its level, for each change of state."""

from __future__ import annotations

import asyncio
import logging

import pytest

import kproto
from kproto.broker import Broker
from kproto.broker import Cluster as Brokers
from kproto.broker.faults import Close, ErrorCode
from kproto.client.metadata.cluster import Cluster, PartitionInfo, TopicInfo
from kproto.client.metadata.cluster_changes import MAX_FORGOTTEN, MetadataChangeLogger
from kproto.client.observing.log_lines import RetryLog, log
from kproto.client.settings import Address
from kproto.messages import MetadataRequest, ProduceRequest
from kproto.messages.metadata_response import MetadataResponse
from kproto.wire.errors import KprotoError
from kproto.wire.uuid import Uuid

FIRST, SECOND = (Uuid(bytes([number] * 16)) for number in (1, 2))
REFUSED = KprotoError("refused")


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """Returns the lines that `kproto.client` logged at `level`."""
    return [
        each.getMessage()
        for each in caplog.records
        if each.name == "kproto.client" and each.levelno == level
    ]


async def test_undisturbed_run_logs_connections_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "kproto.client"):
        async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
            broker.create_topic("t")
            async with client.producer() as producer:
                for _ in range(20):
                    await producer.send("t", b"v")
            read = [record async for record in client.consumer("t", stop_at_end=True)]
    assert len(read) == 20
    infos = lines(caplog, logging.INFO)
    assert [line.partition("127.0.0.1")[0] for line in infos] == [
        "connected to ",
        "the producer has id 0, epoch 0",
        "connected to ",
    ]
    assert lines(caplog, logging.WARNING) == []
    requests = sum(each["requests"] for each in client.metrics()["requests"].values())
    closed = [line for line in lines(caplog, logging.DEBUG) if line.startswith("closed the")]
    assert len(closed) == 2
    assert len(lines(caplog, logging.DEBUG)) == requests + len(closed)


async def test_lost_connection_is_logged_until_its_recovery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = kproto.ClientSettings(retry_backoff_ms=5, retry_backoff_max_ms=5)
    with caplog.at_level(logging.INFO, "kproto.client"):
        async with Broker() as broker, kproto.Client(broker.bootstrap, settings) as client:
            address = broker.bootstrap
            broker.create_topic("t")
            broker.control(lambda asked: Close(), request=ProduceRequest, times=3)
            async with client.producer() as producer:
                await producer.send("t", b"v")
    warnings = lines(caplog, logging.WARNING)
    assert warnings[:2] == [
        warnings[0],
        f"producing to t[0] is retried: {address}: the broker closed the connection",
    ]
    assert warnings[0].startswith(f"lost the connection to {address} after ")
    assert ", 1 requests were in flight: the broker closed the connection" in warnings[0]
    assert sum("is retried" in line for line in warnings) == 1
    assert any("has recovered" in line for line in lines(caplog, logging.INFO))


async def test_refused_connection_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker() as broker:
        address = broker.bootstrap
    client = kproto.Client(address)
    for _ in range(3):
        with pytest.raises(kproto.BrokerConnectionError):
            await client.refresh()
    await client.close()
    (line,) = lines(caplog, logging.WARNING)
    assert line.startswith(f"no connection to {address}: cannot connect: ")


async def test_start_and_end_of_throttling_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kproto.client"):
        async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
            address = broker.bootstrap
            broker.control(
                lambda asked: MetadataResponse(throttle_time_ms=70),
                request=MetadataRequest,
                times=3,
            )
            for _ in range(5):
                await client.request(MetadataRequest())
    assert lines(caplog, logging.WARNING) == [
        f"{address} throttles this client, by 70 ms for Metadata"
    ]
    assert lines(caplog, logging.INFO)[-1] == f"{address} throttles this client no more"


async def test_moved_leader_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    settings = kproto.ClientSettings(retry_backoff_ms=5)
    with caplog.at_level(logging.INFO, "kproto.client"):
        async with (
            Brokers(brokers=3) as brokers,
            kproto.Client(brokers.bootstrap, settings) as client,
        ):
            brokers.create_topic("t", partitions=1)
            async with client.producer() as producer:
                await producer.send("t", b"v")
                before = brokers.leader("t", 0)
                after = next(node for node in brokers.nodes if node != before)
                brokers.move_leader("t", 0, after)
                await producer.send("t", b"v")
    moved = [line for line in lines(caplog, logging.INFO) if "leaders moved" in line]
    assert moved == [f"topic t: leaders moved: [0] from {before} to {after} (epoch 1)"]


async def test_fenced_producer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kproto.client"):
        async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
            broker.create_topic("t")
            fault = ErrorCode("INVALID_PRODUCER_EPOCH")
            broker.control(fault, request=ProduceRequest)
            async with client.producer() as producer:
                with pytest.raises(kproto.DeliveryError):
                    await producer.send("t", b"v")
                await producer.send("t", b"v")
    (line,) = lines(caplog, logging.WARNING)
    assert line.startswith("the producer was fenced at t[0]: ")
    infos = lines(caplog, logging.INFO)
    assert any(line.startswith("1 record for t[0] was not stored: ") for line in infos)
    assert sum(line.startswith("the producer has id") for line in infos) == 2


def cluster(
    leaders: tuple[int, ...] = (1,), topic_id: Uuid = FIRST, nodes: tuple[int, ...] = (1, 2)
) -> Cluster:
    """Returns a cluster with topic t; `leaders` has the leader of each partition."""
    parts = {
        format_target: PartitionInfo(format_target, leader, 5 + leader, (1, 2), (1, 2))
        for format_target, leader in enumerate(leaders)
    }
    return Cluster(
        cluster_id="c",
        controller=nodes[0],
        brokers={node: Address("b", 9_000 + node) for node in nodes},
        topics={"t": TopicInfo("t", topic_id, parts)},
    )


def test_cluster_changes_are_reported() -> None:
    changes = MetadataChangeLogger()
    assert changes.log_lines(cluster()) == []
    assert changes.log_lines(cluster()) == []
    assert changes.log_lines(cluster((2,))) == ["topic t: leaders moved: [0] from 1 to 2 (epoch 7)"]
    assert (
        changes.log_lines(Cluster("c", 1, cluster().brokers)) == []
    )  # the client forgot the topic; it is not deleted
    assert changes.log_lines(cluster((1, 1))) == [
        "topic t: leaders moved: [0] from 2 to 1 (epoch 6)",
        "topic t has 2 partitions, before it had 1",
    ]
    assert changes.log_lines(cluster(topic_id=SECOND)) == [
        f"topic t was recreated: its id is {SECOND}, not {FIRST}"
    ]
    assert changes.log_lines(cluster(topic_id=SECOND, nodes=(2, 3))) == [
        "broker 1, at b:9001, has left",
        "broker 3 has joined, at b:9003",
    ]
    other = cluster(topic_id=SECOND, nodes=(2, 3))
    other.controller = 3
    assert changes.log_lines(other) == [], "a KRaft broker names any broker as the controller"
    moved = cluster(topic_id=SECOND, nodes=(2, 3))
    moved.brokers[3] = Address("b", 1)
    assert changes.log_lines(moved) == [
        "broker 3 has moved from b:9003 to b:1",
    ]


def test_number_of_remembered_former_topics_is_limited() -> None:
    changes = MetadataChangeLogger()
    changes.log_lines(cluster())
    for number in range(3 * MAX_FORGOTTEN):
        now = cluster()
        now.topics = {f"t{number}": TopicInfo(f"t{number}", FIRST, {})}
        changes.log_lines(now)
        assert len(changes._topics) <= 1 + MAX_FORGOTTEN
    assert f"t{number - 1}" in changes._topics, "the latest topics are remembered"


def test_many_moved_leaders_are_reported_in_one_line() -> None:
    changes = MetadataChangeLogger()
    changes.log_lines(cluster((1,) * 100))
    (line,) = changes.log_lines(cluster((2,) * 100))
    assert line.endswith("[4] from 1 to 2 (epoch 7) and 95 more")


def test_errors_are_logged_once_and_at_their_end(caplog: pytest.LogCaptureFixture) -> None:
    troubles = RetryLog()
    with caplog.at_level(logging.INFO, "kproto.client"):
        troubles.end("fetch", "t", 0, 0.0)
        for partition in range(3):
            troubles.begin("fetch", "t", partition, REFUSED, 1.0)
        troubles.begin("produce", "t", 0, REFUSED, 1.0)
        for partition in range(3):
            troubles.end("fetch", "t", partition, 3.5)
            troubles.end("fetch", "t", partition, 3.5)
    assert [each.getMessage() for each in caplog.records] == [
        "fetching t[0] is retried: refused",
        "producing to t[0] is retried: refused",
        "fetching t[2] has recovered, the last of 3 partitions, after 2.5 s",
    ]


async def test_abandoned_produce_is_not_logged_as_recovered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = kproto.ClientSettings(retry_backoff_ms=5, delivery_timeout_ms=50)
    with caplog.at_level(logging.INFO, "kproto.client"):
        async with Broker() as broker, kproto.Client(broker.bootstrap, settings) as client:
            broker.create_topic("t")
            broker.control(ErrorCode("NOT_ENOUGH_REPLICAS", times=None), request=ProduceRequest)
            async with client.producer() as producer:
                with pytest.raises(kproto.DeliveryError):
                    await producer.send("t", b"v")
    infos = lines(caplog, logging.INFO)
    assert any("producing to t[0] failed for good, the last of 1 " in line for line in infos)
    assert not any("has recovered" in line for line in infos)


async def test_closing_client_logs_no_retry(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kproto.client"):
        async with Broker() as broker:
            broker.create_topic("t")
            client = kproto.Client(broker.bootstrap)
            consumer = client.consumer("t")
            async with consumer:
                reading = asyncio.ensure_future(anext(aiter(consumer), None))
                await asyncio.sleep(0.05)
                await client.close()
                assert await reading is None
    assert lines(caplog, logging.WARNING) == []
    assert client.metrics()["retries"] == {}


def test_error_that_is_long_past_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    troubles = RetryLog()
    troubles.begin("fetch", "t", 0, REFUSED, 1.0)
    troubles.begin("fetch", "t", 1, REFUSED, 50.0)
    troubles.begin("fetch", "t", 1, REFUSED, 120.0)
    assert len(caplog.records) == 2


async def test_cluster_id_cannot_forge_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.control(
            lambda asked: MetadataResponse(cluster_id="c\nERROR forged\x1b[31m"),
            request=MetadataRequest,
            times=1,
        )
        await client.refresh()
    (line,) = lines(caplog, logging.WARNING)
    assert line.startswith("the cluster has id c?ERROR forged?[31m, and had ")


def test_text_of_peers_cannot_forge_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    log(logging.WARNING, "%s and %d", "a\nb\x1b[31m" + "x" * 1_000, 5)
    (line,) = lines(caplog, logging.WARNING)
    assert line.startswith("a?b?[31mx")
    assert line.endswith("… and 5")
    assert len(line) < 320
