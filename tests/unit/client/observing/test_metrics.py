"""Tests `Client.metrics`, and that docs/how-to/observability.md names each metric."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from kproto.broker import Cluster as Brokers
from kproto.broker.faults import Close, Delay, ErrorCode, Throttled
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from kproto.client.fetch.fetch_requests import log_end_of
from kproto.client.groups.settings import GroupSettings
from kproto.client.metadata import cluster_view as view
from kproto.client.network.connection import BrokerConnection
from kproto.client.observing.observer import MAX_ADDRESSES, NullObserver, Observer
from kproto.messages import (
    MetadataRequest,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from kproto.messages.fetch_response import PartitionData
from kproto.messages.metadata_response import MetadataResponse
from kproto.protocol.connection import ClientConnection
from kproto.protocol.error_codes import code_of
from kproto.testing.clock import ManualClock
from tests.support.pages import page_text
from tests.support.recording_listener import new_classic_member
from tests.unit.client.scripted_broker import ScriptedBroker
from tests.unit.client.scripted_log import ScriptedLog, batch

PAGE = page_text("docs/how-to/observability.md")
HISTOGRAM = {"count", "sum", "buckets"}

#: The placeholder in the docs for each name that depends on the run, by path.
NAMED = {
    ("requests",): "API",
    ("requests", "API", "errors"): "ERROR",
    ("brokers",): "HOST:PORT",
    ("retries",): "WHAT",
    ("consumers", "lag"): "TOPIC",
    ("consumers", "lag", "TOPIC"): "PARTITION",
    ("groups",): "GROUP",
    ("runs",): "GROUP",
    ("share_groups",): "GROUP",
}


def paths(metrics: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the path of each metric, as docs/how-to/observability.md writes it."""
    for name, value in metrics.items():
        path = (*above, NAMED.get(above, name))
        if isinstance(value, dict) and value.keys() != HISTOGRAM:
            yield from paths(value, path)
        else:
            yield ".".join(path)


def lose_one_response(broker: Broker) -> None:
    """Makes the broker handle the next Produce request, but hang up instead of responding."""
    broker.control(lambda asked: Close(after_handling=True), request=ProduceRequest, times=1)


async def _ends(record: kproto.Record) -> None:
    raise kproto.Stop(done=True)


async def test_page_lists_the_metrics_of_a_run() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        lose_one_response(broker)
        async with client.producer() as producer:
            await producer.send("t", b"v")
        async with client.consumer("t") as consumer:
            assert (await anext(aiter(consumer))).value == b"v"
            new_classic_member(client, GroupSettings("g"), "t")
        async with client.consumer("t", group="g") as consumer:
            await consumer.run(_ends)
            client.share_consumer("t", group="s")
            metrics = client.metrics()
    assert json.loads(json.dumps(metrics)) == metrics
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    listed = {name: unit for name, unit in rows if "." in name}
    assert set(paths(metrics)) == set(listed)
    histograms = {name for name, unit in listed.items() if "histogram" in unit}
    assert histograms == {
        "requests.API.latency_ms",
        "producers.batch_records",
        "producers.batch_bytes",
    }


async def test_requests_count_bytes_and_errors() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            await producer.send("t", bytes(1_000))
            await producer.send_many("t", [bytes(10)] * 500)
        with pytest.raises(kproto.BrokerResponseError):
            await client.fetch("t", 0, 9_999)
        await client.fetch("t", 0, 0, max_wait_ms=0)
        metrics = client.metrics()
    produce, fetch = metrics["requests"]["Produce"], metrics["requests"]["Fetch"]
    # On a busy machine the 500 records may be split over several requests.
    assert produce["requests"] == produce["latency_ms"]["count"] >= 2
    assert 1_500 < produce["bytes_out"] < 20_000
    assert 0 < produce["bytes_in"] < 100 * produce["requests"]
    assert produce["errors"] == {}
    assert fetch["errors"] == {"OFFSET_OUT_OF_RANGE": 1}
    assert fetch["requests"] == 2
    assert fetch["bytes_in"] > 1_000
    made = metrics["producers"]
    assert made["records_acknowledged"] == made["batch_records"]["sum"] == 501
    assert made["batch_records"]["buckets"]["1"] == 1
    assert made["batch_records"]["buckets"]["500"] == produce["requests"]
    assert made["batch_bytes"]["count"] == produce["requests"]
    assert (made["buffered_bytes"], made["buffered_records"]) == (0, 0)


async def test_byte_counts_are_the_sizes_of_the_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    received = 0
    before = BrokerConnection.buffer_updated

    def count(self: BrokerConnection, nbytes: int) -> None:
        nonlocal received
        received += nbytes
        before(self, nbytes)

    monkeypatch.setattr(BrokerConnection, "buffer_updated", count)
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        metrics = client.metrics()["requests"]
        version = (await client.connection()).version_of(MetadataRequest)
    assert sum(each["bytes_in"] for each in metrics.values()) == received
    asked = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    _, frame = ClientConnection("kproto").send(asked, version)
    assert metrics["Metadata"]["bytes_out"] == len(frame)


async def test_lost_and_failed_connections_are_counted() -> None:
    async with Broker() as broker:
        address = broker.bootstrap
        client = kproto.Client(address)
        async with client:
            metrics = client.metrics()["brokers"][address]
            assert (metrics["node"], metrics["open"], metrics["opened"]) == (1, 1, 1)
            await broker.close()
            with pytest.raises(kproto.BrokerConnectionError):
                await client.refresh()
    metrics = client.metrics()["brokers"][address]
    assert (metrics["open"], metrics["closed"], metrics["lost"], metrics["in_flight"]) == (
        0,
        1,
        1,
        0,
    )
    assert metrics["failed"] >= 1


async def test_connection_closed_by_the_client_is_not_lost() -> None:
    async with Broker() as broker:
        async with kproto.Client(broker.bootstrap) as client:
            pass
        metrics = client.metrics()["brokers"][broker.bootstrap]
    assert (metrics["closed"], metrics["lost"], metrics["failed"]) == (1, 0, 0)


async def test_retries_and_missing_responses_are_counted() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        lose_one_response(broker)
        async with client.producer() as producer:
            await producer.send("t", b"v")
        metrics = client.metrics()
        assert len(broker.records("t")) == 1
    assert metrics["retries"] == {"produce": 1}
    produce = metrics["requests"]["Produce"]
    assert (produce["requests"], produce["latency_ms"]["count"]) == (2, 1)
    assert produce["errors"] == {"BrokerConnectionError": 1}
    assert metrics["producers"]["batch_records"]["count"] == 2
    assert metrics["producers"]["records_acknowledged"] == 1


async def test_batch_is_counted_when_it_is_written() -> None:
    """A batch counts when it is written to the socket.

    It does not count when it is built, or while a throttle delays it.
    """
    settings = kproto.ClientSettings(retry_backoff_ms=1)
    async with Brokers(brokers=3) as brokers, kproto.Client(brokers.bootstrap, settings) as client:
        brokers.create_topic("t", partitions=3)
        async with client.producer() as producer:
            for partition in range(3):
                await producer.send("t", b"v", partition=partition)
            brokers.control(Throttled(30), request=ProduceRequest, times=1)
            for _ in range(3):
                await producer.send("t", b"v", partition=0)
        metrics = client.metrics()
    assert metrics["requests"]["Produce"]["requests"] == 6
    assert metrics["producers"]["batch_records"]["sum"] == 6
    assert (
        metrics["producers"]["batch_records"]["count"]
        == metrics["producers"]["batch_bytes"]["count"]
    )


async def test_failed_records_are_counted() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"max.message.bytes": "200"})
        async with client.producer() as producer:
            with pytest.raises(kproto.DeliveryError):
                await producer.send_many("t", [b"small", bytes(500), b"small"])
        metrics = client.metrics()["producers"]
    assert metrics["records_acknowledged"] + metrics["records_failed"] == 3
    assert metrics["records_failed"] == 1


async def test_requests_in_flight_and_buffered_records_are_counted() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        arrived = asyncio.Event()

        def slow(asked: object) -> Delay:
            arrived.set()
            return Delay(50)

        control = broker.control(slow, request=ProduceRequest)
        async with client.producer() as producer:
            delivery = await producer.enqueue("t", bytes(100))
            await arrived.wait()
            metrics = client.metrics()
            assert metrics["brokers"][broker.bootstrap]["in_flight"] == 1
            assert metrics["producers"]["buffered_records"] == 1
            assert metrics["producers"]["buffered_bytes"] > 100
            broker.remove_control(control)
            await delivery
        assert client.metrics()["producers"]["buffered_records"] == 0


async def test_lag_is_the_number_of_unread_records() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=2)
        async with client.producer() as producer:
            await producer.send_many("t", [kproto.ProducerRecord(b"v", partition=1)] * 5)
        async with client.consumer("t") as consumer:
            records = aiter(consumer)
            for left in (4, 3, 2, 1, 0):
                await anext(records)
                assert client.metrics()["consumers"]["lag"]["t"]["1"] == left
        assert client.metrics()["consumers"] == {"lag": {}}
        consumer = client.consumer("t")
        await anext(aiter(consumer))
        await consumer.close()
        del consumer
        gc.collect()
        assert client.metrics()["consumers"] == {"lag": {}}


@pytest.mark.parametrize(("read_committed", "lag"), [(False, 3), (True, 1)])
async def test_lag_is_counted_to_the_log_end_of_the_isolation_level(
    read_committed: bool, lag: int
) -> None:
    async with ScriptedBroker({"t": 1}) as broker, kproto.Client(broker.bootstrap) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a", b"b"]))
        log.append(batch(2, [b"in an open transaction"] * 2))
        log.stable["t", 0] = 2
        async with client.consumer("t", read_committed=read_committed) as consumer:
            await anext(aiter(consumer))
            assert client.metrics()["consumers"]["lag"] == {"t": {"0": lag}}


@pytest.mark.parametrize(("stable", "end"), [(2, 2), (-1, 5)])
def test_log_end_is_the_high_watermark_if_no_last_stable_offset_is_sent(
    stable: int, end: int
) -> None:
    data = PartitionData(high_watermark=5, last_stable_offset=stable)
    assert log_end_of(data, read_committed=True) == end
    assert log_end_of(data, read_committed=False) == 5


async def test_throttle_times_are_added_up() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.control(
            lambda asked: MetadataResponse(throttle_time_ms=70), request=MetadataRequest, times=2
        )
        for _ in range(3):
            await client.request(MetadataRequest())
        metrics = client.metrics()["brokers"][broker.bootstrap]
    assert (metrics["throttled"], metrics["throttle_ms"]) == (2, 140)


async def test_age_of_metadata_is_measured() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker:
        async with kproto.Client(broker.bootstrap, clock=clock) as client:
            await clock.advance(5_000)
            metrics = client.metrics()["metadata"]
            assert metrics == {"refreshes": 1, "age_ms": 5_000, "rebootstraps": 0}
            await client.refresh([])
            assert client.metrics()["metadata"]["refreshes"] == 2
        assert kproto.Client("127.0.0.1:1").metrics()["metadata"]["age_ms"] is None


async def test_rebootstrap_is_counted() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        code = code_of("REBOOTSTRAP_REQUIRED")
        broker.control(
            lambda asked: MetadataResponse(error_code=code), request=MetadataRequest, times=1
        )
        await client.refresh([])
        metrics = client.metrics()
    assert metrics["metadata"]["rebootstraps"] == 1
    assert metrics["requests"]["Metadata"]["errors"] == {"REBOOTSTRAP_REQUIRED": 1}


async def test_error_code_of_any_response_is_counted() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.request(SaslHandshakeRequest(mechanism="NONE"))
        assert list(client.metrics()["requests"]["SaslHandshake"]["errors"].values()) == [1]


async def test_unknown_error_codes_share_one_name() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        codes = iter((9_001, 9_002, 9_003))
        broker.control(
            lambda asked: SaslHandshakeResponse(error_code=next(codes)),
            request=SaslHandshakeRequest,
        )
        for _ in range(3):
            await client.request(SaslHandshakeRequest(mechanism="PLAIN"))
        errors = client.metrics()["requests"]["SaslHandshake"]["errors"]
    assert errors == {"UNKNOWN_CODE": 3}


async def test_null_observer_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "Observer", NullObserver)
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        lose_one_response(broker)
        async with client.producer() as producer:
            await producer.send("t", b"v")
        async for _ in client.consumer("t", stop_at_end=True):
            pass
        metrics = client.metrics()
    assert (metrics["requests"], metrics["brokers"], metrics["retries"]) == ({}, {}, {})
    assert metrics["producers"]["batch_records"]["count"] == 0


async def test_acks_0_is_counted_without_latency() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        connection = await client.connection()
        await connection.send_only(ProduceRequest(acks=0, timeout_ms=1), version=9)
        metrics = client.metrics()
        assert metrics["brokers"][broker.bootstrap]["in_flight"] == 0
    produce = metrics["requests"]["Produce"]
    assert (produce["requests"], produce["latency_ms"]["count"], produce["bytes_in"]) == (1, 0, 0)


async def test_batch_that_waits_for_its_connection_is_counted_once() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        port = broker.bootstrap.rpartition(":")[2]
        # With another host name, the client opens a new connection for the batch.
        async with kproto.Client(f"localhost:{port}") as client, client.producer() as producer:
            await producer.send("t", b"v")
            await producer.send("t", b"w")
            metrics = client.metrics()
    assert metrics["producers"]["batch_records"]["count"] == 2
    assert metrics["producers"]["batch_records"]["sum"] == 2
    assert metrics["producers"]["batch_bytes"]["count"] == 2


def test_number_of_counted_addresses_is_limited() -> None:
    observer = Observer(None, lambda: 0.0)
    used = observer.connection("kept:1")
    used.written(ProduceRequest, 13, 100, 0.0)
    for port in range(2 * MAX_ADDRESSES):
        observer.connection(f"moving:{port}")
    metrics = observer.metrics({})["brokers"]
    assert len(metrics) == MAX_ADDRESSES
    assert "kept:1" in metrics
    assert f"moving:{2 * MAX_ADDRESSES - 1}" in metrics
    assert "moving:0" not in metrics


@pytest.mark.parametrize("order", ["partition", "none"])
@pytest.mark.slow
async def test_run_counts_each_handled_record_at_once(order: Any) -> None:
    """The counter also rises between records of one list, which fast handlers process together."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.create_topics("t")
        async with client.producer() as producer:
            await producer.send_many("t", [b"%d" % at for at in range(900)])
        metrics: list[int] = []

        async def handle(record: kproto.Record) -> None:
            metrics.append(client.metrics()["runs"]["g"]["handled"])
            if record.offset == 899:
                raise kproto.Stop(done=True)

        async with client.consumer("t", group="g") as consumer:
            assert (await consumer.run(handle, order=order, workers=1)).handled == 900
    assert metrics == list(range(900))


async def test_runs_count_processed_and_in_flight_records() -> None:
    """The metrics of a group add up the counts of its current run and all its former runs."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.create_topics("t", kproto.NewTopic("dead", 1))
        async with client.producer() as producer:
            await producer.send_many("t", [b"%d" % at for at in range(4)])
        metrics: list[dict[str, int]] = []

        async def handle(record: kproto.Record) -> None:
            if record.value == b"3":
                metrics.append(client.metrics()["runs"]["g"])
                raise kproto.Stop
            if record.value == b"1":
                raise ValueError

        retries = kproto.Retries(1, backoff_ms=0)
        async with client.consumer("t", group="g") as consumer:
            for _ in range(2):
                await consumer.run(handle, retries=retries, dead_letter_topic="dead")
            metrics.append(client.metrics()["runs"]["g"])
    assert [each.pop("in_flight") for each in metrics] == [1, 1, 0]
    assert metrics[-1] == {"handled": 2, "retried": 1, "sent_to_retry": 0, "dead_letters": 1}
    assert metrics[1] == metrics[2]


async def start_at_earliest(client: kproto.Client, group_id: str) -> None:
    group = ConfigResource(ConfigResourceType.GROUP, group_id)
    configs = {"share.auto.offset.reset": "earliest"}
    await client.admin.incremental_alter_configs({group: configs})


async def test_share_groups_count_deliveries_and_acknowledgements() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.create_topics("t")
        await start_at_earliest(client, "g")
        async with client.producer() as producer:
            await producer.send_many("t", [b"%d" % at for at in range(6)])
        async with client.share_consumer("t", group="g", acknowledgement="explicit") as consumer:
            iteration = aiter(consumer)
            records = [await anext(iteration) for _ in range(6)]
            await consumer.renew(records[0])
            await consumer.commit()
            await consumer.accept(records[:3])
            await consumer.release(records[3])
            await consumer.reject(records[4:])
            await consumer.commit()
            await consumer.accept(await anext(iteration))
            await consumer.commit()
            counts = client.metrics()["share_groups"]["g"]
            members = client.metrics()["groups"]["g"]
    assert counts.pop("bytes") > 6
    assert counts.pop("fetches") >= 2
    assert counts == {
        "acquired": 7,
        "redelivered": 1,
        "records": 7,
        "accepted": 4,
        "released": 1,
        "rejected": 2,
        "renewed": 1,
        "gaps": 0,
        "refused": 0,
    }
    assert members["joins"] == 1


async def test_share_groups_count_refused_acknowledgements() -> None:
    refuse = ErrorCode("SHARE_SESSION_NOT_FOUND")
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.create_topics("t")
        await start_at_earliest(client, "g")
        async with client.producer() as producer:
            await producer.send_many("t", [b"%d" % at for at in range(3)])
        async with client.share_consumer("t", group="g", acknowledgement="explicit") as consumer:
            iteration = aiter(consumer)
            await consumer.accept([await anext(iteration) for _ in range(3)])
            for request in (ShareFetchRequest, ShareAcknowledgeRequest):
                broker.control(refuse, request=request, times=1)
            (result,) = await consumer.commit()
            assert result.error is not None
            counts = client.metrics()["share_groups"]["g"]
    assert (counts["accepted"], counts["refused"]) == (0, 3)
