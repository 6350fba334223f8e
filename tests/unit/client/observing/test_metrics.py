"""`Client.metrics`: what docs/how-to/observability.md says of it, and what is counted when."""

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
from kproto.broker.faults import Close, Delay, Throttled
from kproto.client.groups.settings import GroupSettings
from kproto.client.metadata import cluster_view as view
from kproto.client.network.connection import BrokerConnection
from kproto.client.observing.observer import MOST_ADDRESSES, NullObserver, Observer
from kproto.messages import (
    MetadataRequest,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.messages.metadata_response import MetadataResponse
from kproto.protocol.connection import ClientConnection
from kproto.protocol.error_codes import code_of
from kproto.testing.clock import ManualClock
from tests.support.group_owner import made
from tests.support.pages import page_text

PAGE = page_text("docs/how-to/observability.md")
HISTOGRAM = {"count", "sum", "buckets"}

#: What stands in place of names that depend on the run, by the key above them.
NAMED = {
    ("requests",): "API",
    ("requests", "API", "errors"): "ERROR",
    ("brokers",): "HOST:PORT",
    ("retries",): "WHAT",
    ("consumers", "lag"): "TOPIC",
    ("consumers", "lag", "TOPIC"): "PARTITION",
    ("groups",): "GROUP",
    ("runs",): "GROUP",
}


def paths(told: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Where the values stand, as the page writes it."""
    for name, value in told.items():
        path = (*above, NAMED.get(above, name))
        if isinstance(value, dict) and value.keys() != HISTOGRAM:
            yield from paths(value, path)
        else:
            yield ".".join(path)


def lose_one(broker: Broker) -> None:
    """Let the next Produce be handled, and its answer be lost."""
    broker.control(lambda asked: Close(after_handling=True), request=ProduceRequest, times=1)


async def _ends(record: kproto.Record) -> None:
    raise kproto.Stop(done=True)


async def test_the_page_lists_what_a_run_gives() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        lose_one(broker)
        async with client.producer() as producer:
            await producer.send("t", b"v")
        async with client.consumer("t") as consumer:
            assert (await anext(aiter(consumer))).value == b"v"
            made(client, GroupSettings("g"), "t")
        async with client.consumer("t", group="g") as consumer:
            await consumer.run(_ends)
            told = client.metrics()
    assert json.loads(json.dumps(told)) == told
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    listed = {name: unit for name, unit in rows if "." in name}
    assert set(paths(told)) == set(listed)
    histograms = {name for name, unit in listed.items() if "histogram" in unit}
    assert histograms == {
        "requests.API.latency_ms",
        "producers.batch_records",
        "producers.batch_bytes",
    }


async def test_requests_bytes_and_errors() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            await producer.send("t", bytes(1_000))
            await producer.send_many("t", [bytes(10)] * 500)
        with pytest.raises(kproto.BrokerResponseError):
            await client.fetch("t", 0, 9_999)
        await client.fetch("t", 0, 0, max_wait_ms=0)
        told = client.metrics()
    produce, fetch = told["requests"]["Produce"], told["requests"]["Fetch"]
    # A busy machine may have the 500 go out in parts.
    assert produce["requests"] == produce["latency_ms"]["count"] >= 2
    assert 1_500 < produce["bytes_out"] < 20_000
    assert 0 < produce["bytes_in"] < 100 * produce["requests"]
    assert produce["errors"] == {}
    assert fetch["errors"] == {"OFFSET_OUT_OF_RANGE": 1}
    assert fetch["requests"] == 2
    assert fetch["bytes_in"] > 1_000
    made = told["producers"]
    assert made["records_acknowledged"] == made["batch_records"]["sum"] == 501
    assert made["batch_records"]["buckets"]["1"] == 1
    assert made["batch_records"]["buckets"]["500"] == produce["requests"]
    assert made["batch_bytes"]["count"] == produce["requests"]
    assert (made["buffered_bytes"], made["buffered_records"]) == (0, 0)


async def test_bytes_are_those_of_the_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    came = 0
    before = BrokerConnection.buffer_updated

    def count(self: BrokerConnection, nbytes: int) -> None:
        nonlocal came
        came += nbytes
        before(self, nbytes)

    monkeypatch.setattr(BrokerConnection, "buffer_updated", count)
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        told = client.metrics()["requests"]
        version = (await client.connection()).version_of(MetadataRequest)
    assert sum(each["bytes_in"] for each in told.values()) == came
    asked = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    _, frame = ClientConnection("kproto").send(asked, version)
    assert told["Metadata"]["bytes_out"] == len(frame)


async def test_connections_that_are_lost_and_that_fail() -> None:
    async with Broker() as broker:
        address = broker.bootstrap
        client = kproto.Client(address)
        async with client:
            told = client.metrics()["brokers"][address]
            assert (told["node"], told["open"], told["opened"]) == (1, 1, 1)
            await broker.close()
            with pytest.raises(kproto.BrokerConnectionError):
                await client.refresh()
    told = client.metrics()["brokers"][address]
    assert (told["open"], told["closed"], told["lost"], told["in_flight"]) == (0, 1, 1, 0)
    assert told["failed"] >= 1


async def test_what_the_client_closes_is_not_lost() -> None:
    async with Broker() as broker:
        async with kproto.Client(broker.bootstrap) as client:
            pass
        told = client.metrics()["brokers"][broker.bootstrap]
    assert (told["closed"], told["lost"], told["failed"]) == (1, 0, 0)


async def test_retries_and_errors_in_place_of_a_response() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        lose_one(broker)
        async with client.producer() as producer:
            await producer.send("t", b"v")
        told = client.metrics()
        assert len(broker.records("t")) == 1
    assert told["retries"] == {"produce": 1}
    produce = told["requests"]["Produce"]
    assert (produce["requests"], produce["latency_ms"]["count"]) == (2, 1)
    assert produce["errors"] == {"BrokerConnectionError": 1}
    assert told["producers"]["batch_records"]["count"] == 2
    assert told["producers"]["records_acknowledged"] == 1


async def test_a_batch_counts_when_it_goes_out() -> None:
    """Not when it is made, and its connection opened or its turn waited for."""
    settings = kproto.ClientSettings(retry_backoff_ms=1)
    async with Brokers(brokers=3) as brokers, kproto.Client(brokers.bootstrap, settings) as client:
        brokers.create_topic("t", partitions=3)
        async with client.producer() as producer:
            for partition in range(3):
                await producer.send("t", b"v", partition=partition)
            brokers.control(Throttled(30), request=ProduceRequest, times=1)
            for _ in range(3):
                await producer.send("t", b"v", partition=0)
        told = client.metrics()
    assert told["requests"]["Produce"]["requests"] == 6
    assert told["producers"]["batch_records"]["sum"] == 6
    assert told["producers"]["batch_records"]["count"] == told["producers"]["batch_bytes"]["count"]


async def test_failed_records() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"max.message.bytes": "200"})
        async with client.producer() as producer:
            with pytest.raises(kproto.DeliveryError):
                await producer.send_many("t", [b"small", bytes(500), b"small"])
        told = client.metrics()["producers"]
    assert told["records_acknowledged"] + told["records_failed"] == 3
    assert told["records_failed"] == 1


async def test_what_is_in_flight_and_buffered() -> None:
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
            told = client.metrics()
            assert told["brokers"][broker.bootstrap]["in_flight"] == 1
            assert told["producers"]["buffered_records"] == 1
            assert told["producers"]["buffered_bytes"] > 100
            broker.remove_control(control)
            await delivery
        assert client.metrics()["producers"]["buffered_records"] == 0


async def test_the_lag_is_what_is_left() -> None:
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


async def test_throttle_times_add_up() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.control(
            lambda asked: MetadataResponse(throttle_time_ms=70), request=MetadataRequest, times=2
        )
        for _ in range(3):
            await client.request(MetadataRequest())
        told = client.metrics()["brokers"][broker.bootstrap]
    assert (told["throttled"], told["throttle_ms"]) == (2, 140)


async def test_the_age_of_metadata() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker:
        async with kproto.Client(broker.bootstrap, clock=clock) as client:
            await clock.advance(5_000)
            told = client.metrics()["metadata"]
            assert told == {"refreshes": 1, "age_ms": 5_000, "rebootstraps": 0}
            await client.refresh([])
            assert client.metrics()["metadata"]["refreshes"] == 2
        assert kproto.Client("127.0.0.1:1").metrics()["metadata"]["age_ms"] is None


async def test_going_back_to_the_bootstrap_list() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        code = code_of("REBOOTSTRAP_REQUIRED")
        broker.control(
            lambda asked: MetadataResponse(error_code=code), request=MetadataRequest, times=1
        )
        await client.refresh([])
        told = client.metrics()
    assert told["metadata"]["rebootstraps"] == 1
    assert told["requests"]["Metadata"]["errors"] == {"REBOOTSTRAP_REQUIRED": 1}


async def test_error_codes_of_any_response() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.request(SaslHandshakeRequest(mechanism="NONE"))
        assert list(client.metrics()["requests"]["SaslHandshake"]["errors"].values()) == [1]


async def test_codes_that_nobody_knows_have_one_name() -> None:
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


async def test_nothing_is_counted_where_nothing_is_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "Observer", NullObserver)
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t")
        lose_one(broker)
        async with client.producer() as producer:
            await producer.send("t", b"v")
        async for _ in client.consumer("t", stop_at_end=True):
            pass
        told = client.metrics()
    assert (told["requests"], told["brokers"], told["retries"]) == ({}, {}, {})
    assert told["producers"]["batch_records"]["count"] == 0


async def test_acks_0_is_counted_without_a_latency() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        connection = await client.connection()
        await connection.send_only(ProduceRequest(acks=0, timeout_ms=1), version=9)
        told = client.metrics()
        assert told["brokers"][broker.bootstrap]["in_flight"] == 0
    produce = told["requests"]["Produce"]
    assert (produce["requests"], produce["latency_ms"]["count"], produce["bytes_in"]) == (1, 0, 0)


async def test_a_batch_that_waits_for_its_connection_is_counted_once() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        port = broker.bootstrap.rpartition(":")[2]
        # By another name, so that the broker itself is connected to for the batch.
        async with kproto.Client(f"localhost:{port}") as client, client.producer() as producer:
            await producer.send("t", b"v")
            await producer.send("t", b"w")
            told = client.metrics()
    assert told["producers"]["batch_records"]["count"] == 2
    assert told["producers"]["batch_records"]["sum"] == 2
    assert told["producers"]["batch_bytes"]["count"] == 2


def test_addresses_that_are_met_do_not_fill_the_memory() -> None:
    observer = Observer(None, lambda: 0.0)
    used = observer.connection("kept:1")
    used.written(ProduceRequest, 13, 100, 0.0)
    for port in range(2 * MOST_ADDRESSES):
        observer.connection(f"moving:{port}")
    told = observer.metrics({})["brokers"]
    assert len(told) == MOST_ADDRESSES
    assert "kept:1" in told
    assert f"moving:{2 * MOST_ADDRESSES - 1}" in told
    assert "moving:0" not in told


@pytest.mark.parametrize("order", ["partition", "none"])
async def test_a_run_counts_what_it_has_handled_at_once(order: Any) -> None:
    """Also in the midst of a portion that fast handlers have had at once."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.create_topics("t")
        async with client.producer() as producer:
            await producer.send_many("t", [b"%d" % at for at in range(900)])
        told: list[int] = []

        async def handle(record: kproto.Record) -> None:
            told.append(client.metrics()["runs"]["g"]["handled"])
            if record.offset == 899:
                raise kproto.Stop(done=True)

        async with client.consumer("t", group="g") as consumer:
            assert (await consumer.run(handle, order=order, workers=1)).handled == 900
    assert told == list(range(900))


async def test_runs_count_processed_and_in_flight_records() -> None:
    """Of one that is under way, and of those of before."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.create_topics("t", kproto.NewTopic("dead", 1))
        async with client.producer() as producer:
            await producer.send_many("t", [b"%d" % at for at in range(4)])
        told: list[dict[str, int]] = []

        async def handle(record: kproto.Record) -> None:
            if record.value == b"3":
                told.append(client.metrics()["runs"]["g"])
                raise kproto.Stop
            if record.value == b"1":
                raise ValueError

        retries = kproto.Retries(1, backoff_ms=0)
        async with client.consumer("t", group="g") as consumer:
            for _ in range(2):
                await consumer.run(handle, retries=retries, dead_letter_topic="dead")
            told.append(client.metrics()["runs"]["g"])
    assert [each.pop("in_flight") for each in told] == [1, 1, 0]
    assert told[-1] == {"handled": 2, "retried": 1, "sent_to_retry": 0, "dead_letters": 1}
    assert told[1] == told[2]
