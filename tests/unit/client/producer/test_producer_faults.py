"""Tests the producer under faults: it retries, and loses no record."""

from __future__ import annotations

import asyncio
import gc
import pickle
from typing import Any

import pytest

import kproto
from kproto import (
    BrokerConnectionError,
    BrokerResponseError,
    Client,
    ClientSettings,
    ConfigurationError,
    DeliveryError,
    EncodeError,
    ProducerRecord,
    RequestTimeoutError,
)
from kproto.client.producer import request_builder
from kproto.messages import InitProducerIdRequest, MetadataRequest
from kproto.messages.produce_request import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, Stored, produced, quick

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=2_000)
IMPATIENT = quick(metadata_wait_ms=50, delivery_timeout_ms=100)


# --- Retries ---


@pytest.mark.parametrize(
    "fault", ["hang up", "NOT_ENOUGH_REPLICAS", "NOT_LEADER", "REQUEST_TIMED_OUT"]
)
async def test_same_bytes_are_sent_again(fault: str) -> None:
    sent: list[bytes] = []
    code = {"NOT_ENOUGH_REPLICAS": 19, "NOT_LEADER": 6, "REQUEST_TIMED_OUT": 7}.get(fault, 0)

    def answer(asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, ProduceRequest)
        sent.append(request.topic_data[0].partition_data[0].records or b"")
        if len(sent) <= 2:
            return HANG_UP if fault == "hang up" else produced(asked, error_code=code)
        return produced(asked)

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            ack, later = await asyncio.gather(producer.send("t", b"1"), producer.send("t", b"2"))
        assert (ack.offset, later.offset) == (0, 1)
    assert len(sent) == 3
    assert len(set(sent)) == 1


async def test_duplicate_batch_is_acknowledged() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, 46, base_offset=-1)
        async with client.producer() as producer:
            assert (await producer.send("t", b"", timestamp=1)) == ("t", 0, -1, 1)


async def test_records_survive_a_restart_of_the_broker() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"before")
            await broker.stop()
            first = asyncio.create_task(producer.send("t", b"meanwhile"))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(producer.send("t", b"too"))
            await asyncio.sleep(0.05)
            await broker.start_again()
            await first
            await second
        assert stored.values() == [b"before", b"meanwhile", b"too"]


# --- Failures ---


async def test_each_failed_send_has_its_own_record() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=10)
        async with client.producer() as producer:
            errors = await asyncio.gather(
                *(
                    producer.send("t", b"%d" % at, key=b"k", headers=[("h", None)])
                    for at in range(5)
                ),
                return_exceptions=True,
            )
    for at, error in enumerate(errors):
        assert isinstance(error, DeliveryError)
        (record,) = error.records
        assert (record.value, record.key, record.headers) == (b"%d" % at, b"k", (("h", None),))
        assert record.partition == 0
        assert record.timestamp is not None
        assert (error.topic, error.partition) == ("t", 0)
        assert isinstance(error.cause, BrokerResponseError)
        assert error.cause.name == "MESSAGE_TOO_LARGE"
        assert "1 record for t[0] was not acknowledged: MESSAGE_TOO_LARGE" in str(error)
    assert len({id(error) for error in errors}) == 5


async def test_send_many_error_has_exactly_the_failed_records() -> None:
    def answer(asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, ProduceRequest)
        response = produced(asked)
        for part in response.responses[0].partition_responses:
            part.error_code = 10 if part.index else 0
        return response

    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            records = [ProducerRecord(b"%d" % at, partition=at % 3) for at in range(30)]
            other = asyncio.create_task(
                producer.send_many("t", [ProducerRecord(b"other", partition=1)])
            )
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", records)
            with pytest.raises(DeliveryError) as of_other:
                await other
    assert [record.value for record in raised.value.records] == [
        b"%d" % at for at in range(30) if at % 3
    ]
    assert [record.partition for record in raised.value.records] == [
        at % 3 for at in range(30) if at % 3
    ]
    assert [record.value for record in of_other.value.records] == [b"other"]


async def test_delivery_error_and_invalid_record_are_both_reported() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=10)
        bad: Any = ["text"]
        async with client.producer() as producer:
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", [b"before", *bad])
    assert [record.value for record in raised.value.records] == [b"before"]
    assert isinstance(raised.value.__cause__, EncodeError)


async def test_send_fails_at_the_delivery_timeout() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, IMPATIENT) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=19)
        async with client.producer() as producer:
            with pytest.raises(DeliveryError, match="NOT_ENOUGH_REPLICAS"):
                await producer.send("t", b"")
            stored = Stored(broker)
            ack = await producer.send("t", b"next")
            assert stored.values()[ack.offset] == b"next", "the next record is not affected"
        (_, _, batch) = stored.batches[-1]
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 1, 0)
        assert broker.count(InitProducerIdRequest) == 1


async def test_stopped_broker_fails_the_send() -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, IMPATIENT) as client,
        client.producer() as producer,
    ):
        await producer.send("t", b"")
        await broker.stop()
        with pytest.raises(DeliveryError) as raised:
            await producer.send("t", b"kept")
        assert isinstance(raised.value.cause, BrokerConnectionError)
        assert raised.value.records[0].value == b"kept"


async def test_silent_broker_fails_the_send() -> None:
    settings = ClientSettings(
        request_timeout_ms=50, delivery_timeout_ms=150, retry_backoff_ms=1, retry_backoff_max_ms=5
    )
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        broker.answers[ProduceRequest] = lambda asked: None
        async with client.producer() as producer:
            with pytest.raises(DeliveryError) as raised:
                await producer.send("t", b"kept")
            assert isinstance(raised.value.cause, RequestTimeoutError)


async def test_produce_timeout_is_shorter_than_the_request_timeout() -> None:
    """The broker can report slow replicas before the client closes the connection."""
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        async with client.producer() as producer:
            await producer.send("t", b"")
        (sent,) = [got.message for got in broker.asked if isinstance(got.message, ProduceRequest)]
        assert sent.timeout_ms == 30_000
        assert sent.acks == -1


async def test_unknown_topic_fails_the_send() -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK) as client,
        client.producer() as producer,
    ):
        words = "1 record for nope was not .* UNKNOWN_TOPIC_OR_PARTITION .*; .* create no topics"
        with pytest.raises(DeliveryError, match=words) as raised:
            await producer.send("nope", b"v", key=b"k", timestamp=1, partition=None)
        assert raised.value.records == [ProducerRecord(b"v", b"k", (), 1)]
        assert isinstance(raised.value.cause, BrokerResponseError)
        assert raised.value.cause.name == "UNKNOWN_TOPIC_OR_PARTITION"
        with pytest.raises(DeliveryError) as raised:
            await producer.enqueue("nope", b"later")
        assert raised.value.records == [ProducerRecord(b"later")]
        with pytest.raises(DeliveryError) as raised:
            await producer.send_many("nope", [b"1", ProducerRecord(b"2", b"k")])
        assert raised.value.records == [ProducerRecord(b"1"), ProducerRecord(b"2", b"k")]
        values = iter([b"1", b"2"])
        with pytest.raises(DeliveryError) as raised:
            await producer.send_many("nope", values)
        assert raised.value.records == []
        assert list(values) == [b"1", b"2"], "no value was consumed"


@pytest.mark.parametrize(
    ("name", "partitions"), [("ProduceRequestTemplate", 1), ("produce_request", 2)]
)
async def test_unexpected_exception_fails_the_send_and_is_reported(
    monkeypatch: pytest.MonkeyPatch, name: str, partitions: int
) -> None:
    """A bug in the client must be logged, and must not leave a call waiting forever."""
    faults: list[dict[str, Any]] = []

    def broken(*args: Any, **kwargs: Any) -> bytes:
        raise ZeroDivisionError("a bug")

    topics = {"t": partitions}
    async with ScriptedBroker(topics) as broker, Client(broker.bootstrap, QUICK) as client:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: faults.append(context)
        )
        monkeypatch.setattr(request_builder, name, broken)
        async with client.producer() as producer:
            records = [ProducerRecord(b"kept", partition=at) for at in range(partitions)]
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", records)
            assert [each.partition for each in raised.value.records] == list(range(partitions))
        gc.collect()
    assert [type(fault["exception"]) for fault in faults] == [ZeroDivisionError]


# --- Timeouts ---


async def test_refused_connection_is_retried_until_the_delivery_timeout() -> None:
    settings = quick(metadata_wait_ms=100, delivery_timeout_ms=300)
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        await broker.stop()
        async with client.producer() as producer:
            now = asyncio.get_running_loop().time
            begun = now()
            with pytest.raises(DeliveryError) as raised:
                await producer.send("t", b"kept")
            assert 0.28 <= now() - begun <= 5
            assert raised.value.records == [ProducerRecord(b"kept")]
            assert isinstance(raised.value.cause, BrokerConnectionError)


@pytest.mark.parametrize("silent_request", [MetadataRequest, ProduceRequest, InitProducerIdRequest])
async def test_silent_broker_fails_the_send_at_the_delivery_timeout(silent_request: Any) -> None:
    """The request timeout is more than ten times as long as the delivery timeout."""
    clock = ManualClock()
    settings = ClientSettings(delivery_timeout_ms=3_000, request_timeout_ms=40_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        before = broker.count(silent_request)
        broker.answers[silent_request] = lambda asked: None
        producer = client.producer()
        sending = asyncio.create_task(producer.send("t", b"kept"))
        await broker.until(lambda: broker.count(silent_request) > before)
        await clock.advance(2_999)
        assert not sending.done()
        await clock.advance(1)
        with pytest.raises(DeliveryError, match="3000 ms") as raised:
            await sending
        assert raised.value.records[0].value == b"kept"
        assert isinstance(raised.value.cause, RequestTimeoutError)
        await producer.close()


# --- Cancelling and closing ---


def silent(broker: ScriptedBroker) -> None:
    broker.answers[ProduceRequest] = lambda asked: None


async def test_cancelled_send_does_not_disturb_others() -> None:
    release = asyncio.Event()

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        store = stored.answer

        async def answer(asked: ReceivedRequest) -> Any:
            await release.wait()
            return store(asked)

        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            first = asyncio.create_task(producer.send("t", b"1"))
            second = asyncio.create_task(producer.send("t", b"2"))
            await broker.until(lambda: broker.count(ProduceRequest) == 1)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            release.set()
            assert (await second).offset == 1
        assert stored.values() == [b"1", b"2"]


async def test_cancelled_send_many_ends_at_once() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        silent(broker)
        producer = client.producer()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await producer.send_many("t", [b"x"] * 10)
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing


async def test_close_sends_waiting_records() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        producer = client.producer()
        sending = [asyncio.create_task(producer.send("t", b"%d" % at)) for at in range(3)]
        await broker.until(lambda: broker.count(MetadataRequest) > 1)
        await asyncio.gather(*sending)
        sending.append(asyncio.create_task(producer.send("t", b"last")))
        await asyncio.sleep(0)
        await producer.close()
        assert stored.values() == [b"0", b"1", b"2", b"last"]
        with pytest.raises(ConfigurationError, match="the producer is closed"):
            await producer.send("t", b"too late")
        await producer.close()


async def test_cancelled_close_fails_calls_with_their_records() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        silent(broker)
        producer = client.producer(batch_bytes=100, buffer_bytes=500)
        one = asyncio.create_task(producer.send("t", b"one"))
        many = asyncio.create_task(producer.send_many("t", [b"x" * 50] * 100))
        without_room = asyncio.create_task(producer.send("t", b"without room"))
        await broker.until(lambda: broker.count(ProduceRequest) == 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await producer.close()
        with pytest.raises(DeliveryError, match="the producer was closed") as raised:
            await one
        assert raised.value.records[0].value == b"one"
        with pytest.raises(DeliveryError, match="the producer was closed") as raised:
            await many
        assert {record.value for record in raised.value.records} == {b"x" * 50}
        assert len(raised.value.records) == 100
        with pytest.raises(DeliveryError, match="the producer was closed") as raised:
            await without_room
        assert raised.value.records[0].value == b"without room"


async def test_flush_waits_for_earlier_records_only() -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap) as client:
        stored = Stored(broker)
        store = stored.answer
        hold = False

        def answer(asked: ReceivedRequest) -> Any:
            return None if hold else store(asked)

        broker.answers[ProduceRequest] = answer
        producer = client.producer()
        first = asyncio.create_task(producer.send("t", b"1", partition=0))
        await broker.until(lambda: first.done() or bool(producer._accumulator.incomplete))
        await producer.flush()
        assert first.done()
        hold = True
        flushing = asyncio.create_task(producer.flush())
        second = asyncio.create_task(producer.send("t", b"2", partition=1))
        await flushing
        assert not second.done()
        second.cancel()
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(second, closing, return_exceptions=True)


async def test_client_closed_without_time_fails_waiting_sends_at_once() -> None:
    async with ScriptedBroker({"t": 1}) as broker:
        silent(broker)
        client = Client(broker.bootstrap)
        producer = client.producer()
        sending = asyncio.create_task(producer.send("t", b"kept"))
        await broker.until(lambda: broker.count(ProduceRequest) == 1)
        await client.close(timeout_ms=0)
        with pytest.raises(DeliveryError, match="the producer was closed before that"):
            await sending
        await producer.close()


async def test_error_of_a_block_is_raised_after_the_close() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)

        async def block() -> None:
            async with client.producer() as producer:
                await producer.send("t", b"1")
                raise RuntimeError("of the block")

        with pytest.raises(RuntimeError, match="of the block"):
            await block()
        assert stored.values() == [b"1"]


def test_public_names_are_exported() -> None:
    assert kproto.ProducerRecord is ProducerRecord
    assert kproto.DeliveryError is DeliveryError


@pytest.mark.parametrize(
    ("code", "is_unknown"),
    [("REQUEST_TIMED_OUT", True), ("hang up", True), ("TOPIC_AUTHORIZATION_FAILED", False)],
)
async def test_error_tells_records_that_may_be_stored(code: str, is_unknown: bool) -> None:
    def answer(asked: ReceivedRequest) -> Any:
        return HANG_UP if code == "hang up" else produced(asked, error_code=code_of(code))

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, IMPATIENT) as client:
        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            calls = [producer.send_many("t", [b"1", b"2"]), producer.send("t", b"3")]
            errors = await asyncio.gather(*calls, return_exceptions=True)
            delivery = await producer.enqueue("t", b"4")
            errors += await asyncio.gather(delivery, return_exceptions=True)
    assert all(isinstance(each, DeliveryError) for each in errors)
    found = DeliveryError.joined(error for error in errors if isinstance(error, DeliveryError))
    assert found is not None
    assert len(found.records) == 4
    assert found.unknown == (found.records if is_unknown else [])
    assert pickle.loads(pickle.dumps(found)).unknown == found.unknown


async def test_records_in_flight_at_a_timed_close_may_be_stored() -> None:
    arrived = asyncio.Event()

    def answer(asked: ReceivedRequest) -> Any:
        arrived.set()
        return None

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = answer
        producer = client.producer()
        async with producer:
            call = asyncio.ensure_future(producer.send_many("t", [b"1"]))
            await arrived.wait()
            await producer.close(timeout_ms=10)
            with pytest.raises(DeliveryError) as caught:
                await call
    assert caught.value.unknown == caught.value.records
