"""Tests hooks: their events, the changes that interceptors may make, and errors in hooks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from kproto.broker.faults import Close, Delay
from kproto.client.observing.calls import HookCalls
from kproto.client.observing.hooks import Hooks, overridden
from kproto.messages import InitProducerIdRequest, MetadataRequest, ProduceRequest
from kproto.wire.errors import ConfigurationError

MARK = ("mark", b"1")


class Recorder(Hooks):
    """A hook that records all events."""

    def __init__(self) -> None:
        self.requests: list[kproto.RequestEvent] = []
        self.retries: list[kproto.RetryEvent] = []
        self.connections: list[kproto.ConnectionEvent] = []
        self.sent: list[kproto.ProducerRecord] = []
        self.acks: list[kproto.AckEvent] = []

    def on_request(self, event: kproto.RequestEvent) -> None:
        self.requests.append(event)

    def on_retry(self, event: kproto.RetryEvent) -> None:
        self.retries.append(event)

    def on_connection(self, event: kproto.ConnectionEvent) -> None:
        self.connections.append(event)

    def on_send(self, topic: str, record: kproto.ProducerRecord) -> kproto.ProducerRecord:
        changed = record._replace(headers=(*record.headers, MARK))
        self.sent.append(changed)
        return changed

    def on_ack(self, event: kproto.AckEvent) -> None:
        self.acks.append(event)


def client_of(broker: Broker, hooks: Hooks, **settings: Any) -> kproto.Client:
    return kproto.Client(broker.bootstrap, kproto.ClientSettings(hooks=hooks, **settings))


async def test_requests_and_connections_are_observed() -> None:
    hooks = Recorder()
    async with Broker() as broker:
        address = broker.bootstrap
        async with client_of(broker, hooks) as client:
            with pytest.raises(kproto.BrokerResponseError):
                await client.delete_topics("none")
    assert [each.api for each in hooks.requests] == ["ApiVersions", "Metadata", "DeleteTopics"]
    last = hooks.requests[-1]
    assert (last.broker, last.error) == (address, "UNKNOWN_TOPIC_OR_PARTITION")
    assert last.bytes_out > 20
    assert last.bytes_in > 20
    assert last.latency_ms > 0
    assert hooks.requests[0].error is None
    assert [(each.kind, each.broker, each.error) for each in hooks.connections] == [
        ("opened", address, None),
        ("closed", address, None),
    ]


async def test_lost_connection_and_its_retry_are_observed() -> None:
    hooks = Recorder()
    async with Broker() as broker, client_of(broker, hooks, retry_backoff_ms=100) as client:
        broker.create_topic("t")
        broker.control(lambda asked: Close(), request=ProduceRequest, times=1)
        async with client.producer() as producer:
            await producer.send("t", b"v")
    (retry,) = hooks.retries
    assert retry[:4] == ("produce", "t", 0, 1)
    assert 0 < retry.wait_ms <= 120
    assert isinstance(retry.error, kproto.BrokerConnectionError)
    lost = next(each for each in hooks.connections if each.kind == "closed")
    assert isinstance(lost.error, kproto.BrokerConnectionError)
    assert "BrokerConnectionError" in [each.error for each in hooks.requests]
    assert len(hooks.acks) == 1


async def test_failed_connection_is_observed() -> None:
    hooks = Recorder()
    async with Broker() as broker:
        client = client_of(broker, hooks)
    with pytest.raises(kproto.BrokerConnectionError):
        await client.refresh()
    await client.close()
    (failed,) = hooks.connections
    assert failed.kind == "failed"
    assert failed.took_ms > 0
    assert isinstance(failed.error, kproto.BrokerConnectionError)


async def test_record_returned_by_on_send_is_sent() -> None:
    hooks = Recorder()
    async with Broker() as broker, client_of(broker, hooks) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            await producer.send("t", b"0", headers=[("own", None)])
            delivery = await producer.enqueue("t", b"1")
            acks = await producer.send_many("t", [b"2", kproto.ProducerRecord(b"3", key=b"k")])
            more = await producer.send_many("t", iter([b"4", b"5"]))
            await delivery
        stored = broker.records("t")
    assert [each.value for each in stored] == [b"%d" % number for number in range(6)]
    assert stored[0].headers == [("own", None), MARK]
    assert all(each.headers == [MARK] for each in stored[1:])
    assert [each.offset for each in (*acks, *more)] == [2, 3, 4, 5]
    assert [each.value for each in hooks.sent] == [each.value for each in stored]
    assert [(each.offset, each.error) for each in hooks.acks] == [(at, None) for at in range(6)]
    assert all(
        each.record.headers == tuple(record.headers)
        for each, record in zip(hooks.acks, stored, strict=True)
    )


async def test_each_record_is_acknowledged_once_also_when_it_fails() -> None:
    hooks = Recorder()
    async with Broker() as broker, client_of(broker, hooks, metadata_wait_ms=20) as client:
        broker.create_topic("t", configs={"max.message.bytes": "300"})
        async with client.producer() as producer:
            with pytest.raises(kproto.DeliveryError):
                await producer.send("none", b"no topic")
            with pytest.raises(kproto.DeliveryError):
                await producer.send_many("none", [b"no topic", b"not taken"])
            with pytest.raises(kproto.EncodeError):
                await producer.send("t", "no bytes")  # type: ignore[arg-type]
            with pytest.raises(kproto.EncodeError):
                await producer.send_many("t", [b"good", 5, b"not taken"])  # type: ignore[list-item]
            with pytest.raises(kproto.DeliveryError):
                await producer.send_many("t", [b"small", bytes(500), b"small"])
            broker.control(lambda asked: Delay(5_000), request=MetadataRequest)
            waiting = asyncio.create_task(producer.send("later", b"cancelled"))
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert len(hooks.acks) == len(hooks.sent)
    assert all(sent.value != b"not taken" for sent in hooks.sent)
    by_value = [(each.record.value, type(each.error).__name__) for each in hooks.acks]
    assert sorted(by_value, key=str) == sorted(
        [
            (b"no topic", "DeliveryError"),
            ("no bytes", "EncodeError"),
            (5, "EncodeError"),
            (b"good", "NoneType"),
            (b"small", "NoneType"),
            (bytes(500), "RecordTooLargeError"),
            (b"small", "NoneType"),
            (b"cancelled", "CancelledError"),
        ],
        key=str,
    )


async def test_closed_producer_reports_abandoned_records() -> None:
    hooks = Recorder()
    async with Broker() as broker, client_of(broker, hooks) as client:
        broker.create_topic("t")
        broker.control(lambda asked: Delay(5_000), request=InitProducerIdRequest)
        producer = client.producer()
        await producer.enqueue("t", b"v")
        with pytest.raises(kproto.DeliveryError):
            await producer.close(timeout_ms=10)
    (ack,) = hooks.acks
    assert (ack.record.value, ack.offset, ack.timestamp) == (b"v", -1, -1)
    assert isinstance(ack.error, kproto.KprotoError)


class Raising(Hooks):
    """A hook that raises an error in each call."""

    def on_request(self, event: object) -> None:
        raise RuntimeError("on_request")

    on_retry = on_connection = on_ack = on_request

    def on_send(self, topic: str, record: kproto.ProducerRecord) -> kproto.ProducerRecord:
        raise RuntimeError("on_send")

    def on_records(
        self, topic: str, partition: int, records: list[kproto.Record]
    ) -> Sequence[kproto.Record]:
        raise RuntimeError("on_records")


class WrongTypes(Hooks):
    """An interceptor that returns values of a wrong type."""

    def on_send(self, topic: str, record: kproto.ProducerRecord) -> Any:
        return None

    def on_records(self, topic: str, partition: int, records: list[kproto.Record]) -> Any:
        return [record.value for record in records]


class Cancelled(Hooks):
    """A hook that raises CancelledError, as `result()` of a cancelled future does."""

    def on_request(self, event: object) -> None:
        raise asyncio.CancelledError

    on_retry = on_connection = on_ack = on_request

    def on_send(self, topic: str, record: kproto.ProducerRecord) -> kproto.ProducerRecord:
        raise asyncio.CancelledError

    def on_records(
        self, topic: str, partition: int, records: list[kproto.Record]
    ) -> Sequence[kproto.Record]:
        raise asyncio.CancelledError


@pytest.mark.parametrize(
    "hooks",
    [Raising(), Cancelled(), WrongTypes()],
    ids=["raises", "raises CancelledError", "returns wrong types"],
)
async def test_failing_hooks_change_nothing(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    async with Broker() as broker, client_of(broker, hooks, retry_backoff_ms=1) as client:
        broker.create_topic("t")
        broker.control(lambda asked: Close(), request=ProduceRequest, times=1)
        async with client.producer() as producer:
            await producer.send("t", b"0")
            await producer.send_many("t", [b"1", b"2"])
        read = [record.value async for record in client.consumer("t", stop_at_end=True)]
        failures = client.metrics()["hooks"]["failures"]
    assert read == [b"0", b"1", b"2"]
    errors = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert len(errors) == (2 if isinstance(hooks, WrongTypes) else 6)
    assert all(each.exc_info for each in errors)
    assert failures > len(errors) or isinstance(hooks, WrongTypes)


class EveryOther(Hooks):
    """An interceptor that drops records with odd offsets, and changes the other values."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_records(
        self, topic: str, partition: int, records: list[kproto.Record]
    ) -> Sequence[kproto.Record]:
        self.seen += [record.offset for record in records]
        kept = [record for record in records if record.offset % 2 == 0 and record.offset < 60]
        for record in kept:
            record.value = b"changed"
        return kept


@pytest.mark.parametrize("kind", ["records", "batches", "values"])
async def test_records_returned_by_on_records_reach_the_user(kind: str) -> None:
    hooks = EveryOther()
    async with Broker() as broker, client_of(broker, hooks) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            for _ in range(10):  # no record of some batches is left
                await producer.send_many("t", [b"v"] * 10)
        consumer = client.consumer("t", stop_at_end=True, max_partition_fetch_bytes=200)
        values: list[bytes | None] = []
        if kind == "records":
            values = [record.value async for record in consumer]
        elif kind == "batches":
            async for fetched in consumer.record_lists():
                assert fetched.records
                values += [record.value for record in fetched.records]
        else:
            async for found in consumer.values():
                values += found.values
        assert consumer.positions == {("t", 0): 100}
    assert hooks.seen == list(range(100))
    assert values == [b"changed"] * 30


async def test_raw_batches_are_not_decoded_for_a_hook() -> None:
    hooks = EveryOther()
    async with Broker() as broker, client_of(broker, hooks) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            await producer.send_many("t", [b"v"] * 10)
        consumer = client.consumer("t", stop_at_end=True)
        raw = [fetched.batch async for fetched in consumer.raw_batches()]
    assert [len(batch.records()) for batch in raw] == [10]
    assert hooks.seen == []


def test_only_overridden_methods_are_called() -> None:
    assert overridden(None, "on_send") is None
    assert overridden(Hooks(), "on_send") is None
    assert overridden(EveryOther(), "on_send") is None
    assert overridden(EveryOther(), "on_records") is not None
    received: list[kproto.RequestEvent] = []
    by_instance = Hooks()
    by_instance.on_request = received.append  # type: ignore[assignment, method-assign]
    assert overridden(by_instance, "on_request") is not None
    calls = HookCalls(Hooks())
    assert (calls.on_request, calls.on_retry, calls.on_connection) == (None, None, None)
    assert calls.on_records is None
    assert not calls.intercepts


def test_object_without_the_base_class_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"inherits kproto\.Hooks .* on_request, on_retry"):
        kproto.ClientSettings(hooks=object())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["on_request", "on_ack", "on_send", "on_records"])
def test_async_hook_is_refused(name: str) -> None:
    async def hook(self: Hooks, *values: object) -> None:
        pass

    hooks = type("Async", (Hooks,), {name: hook})()
    with pytest.raises(ConfigurationError, match=rf"{name} of Async is an async function"):
        kproto.ClientSettings(hooks=hooks)
