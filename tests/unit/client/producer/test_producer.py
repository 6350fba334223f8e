"""Tests the producer: acknowledgements, partitions, sequence numbers, and invalid records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kproto import (
    BrokerResponseError,
    Client,
    ConfigurationError,
    DeliveryError,
    EncodeError,
    MissingCodecError,
    ProducerRecord,
)
from kproto.messages import InitProducerIdRequest, InitProducerIdResponse, MetadataRequest
from kproto.messages.metadata_response import MetadataResponsePartition
from kproto.messages.produce_request import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, Stored, produced, quick

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=2_000)
IMPATIENT = quick(metadata_wait_ms=50, delivery_timeout_ms=100)


# --- Acknowledgements ---


async def test_send_returns_its_acknowledgement() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            ack = await producer.send("t", b"v", timestamp=1234)
            assert ack == ("t", 0, 0, 1234)
            assert (await producer.send("t", b"v")).offset == 1


async def test_log_append_time_comes_from_the_broker() -> None:
    def answer(asked: ReceivedRequest) -> Any:
        response = produced(asked, base_offset=5)
        response.responses[0].partition_responses[0].log_append_time_ms = 99
        return response

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            assert await producer.send("t", b"v", timestamp=1) == ("t", 0, 5, 99)


async def test_concurrent_calls_share_a_batch_with_their_own_offsets() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            acks = await asyncio.gather(*(producer.send("t", b"%d" % at) for at in range(100)))
        assert [ack.offset for ack in acks] == list(range(100))
        assert len(stored.batches) == 1


async def test_calls_that_fill_one_batch_alternately_get_their_offsets() -> None:
    """`send_many` pauses when the buffer is full; then another call may append records."""

    def paused(name: bytes) -> Iterator[bytes]:
        for at in range(40):
            yield b"%s-%d" % (name, at)

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(buffer_bytes=200) as producer:
            acks = await asyncio.gather(
                *(producer.send_many("t", paused(name)) for name in (b"a", b"b", b"c"))
            )
        values = stored.values()
        for name, mine in zip((b"a", b"b", b"c"), acks, strict=True):
            assert len(mine) == 40
            for at, ack in enumerate(mine):
                assert values[ack.offset] == b"%s-%d" % (name, at)


async def test_send_many_keeps_the_order_and_the_batch_size() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        values = [b"%05d" % at for at in range(2000)]
        async with client.producer(batch_bytes=1000) as producer:
            acks = await producer.send_many("t", values)
        assert stored.values() == values
        assert [ack.offset for ack in acks] == list(range(2000))
        assert max(batch.size_in_bytes for *_, batch in stored.batches) <= 1000
        assert len(stored.batches) >= 20


async def test_record_beyond_the_batch_size_is_sent_alone() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(batch_bytes=100) as producer:
            await producer.send_many("t", [b"a", bytes(5000), b"b"])
        assert [batch.record_count for *_, batch in stored.batches] == [1, 1, 1]


async def test_empty_send_many_sends_no_request() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        async with client.producer() as producer:
            assert list(await producer.send_many("t", [])) == []
            await producer.flush()
        assert broker.count(ProduceRequest) == 0


# --- Partitions ---


async def test_key_selects_the_partition_unless_it_is_named() -> None:
    from tests.unit.client.producer.test_partitioner import JAVA_PARTITIONS

    async with ScriptedBroker({"t": 6}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            records = [ProducerRecord(b"", b"key-%d" % at) for at in range(len(JAVA_PARTITIONS))]
            acks = await producer.send_many("t", records)
            assert [ack.partition for ack in acks] == JAVA_PARTITIONS
            assert (await producer.send("t", b"", key=b"key-0", partition=4)).partition == 4


async def test_records_without_a_key_use_every_partition() -> None:
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(batch_bytes=100) as producer:
            await producer.send_many("t", [b"x" * 20] * 60)
        per_partition = [len(stored.values(at)) for at in range(3)]
        assert sum(per_partition) == 60
        assert min(per_partition) > 5


async def test_partition_without_a_leader_blocks_no_other_partition() -> None:
    """Records without a key go to the partitions that have a leader.

    A record whose caller names the partition without a leader waits until the delivery timeout.
    """
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, IMPATIENT) as client:
        Stored(broker)

        def metadata(asked: ReceivedRequest) -> Any:
            response = broker.metadata(asked)
            for topic in response.topics:
                topic.partitions[1] = MetadataResponsePartition(
                    partition_index=1, leader_id=-1, error_code=5
                )
            return response

        broker.answers[MetadataRequest] = metadata
        async with client.producer() as producer:
            acks = [await producer.send("t", b"v") for _ in range(10)]
            assert {ack.partition for ack in acks} == {0, 2}
            with pytest.raises(DeliveryError) as raised:
                await producer.send("t", b"v", partition=1)
            assert isinstance(raised.value.cause, BrokerResponseError)
            assert raised.value.cause.name == "LEADER_NOT_AVAILABLE"


# --- Invalid records ---


BAD: list[dict[str, Any]] = [
    {"value": "text"},
    {"value": 5},
    {"value": [b"x"]},
    {"value": b"", "key": "text"},
    {"value": b"", "headers": [("name", "text")]},
    {"value": b"", "headers": [(b"name", b"")]},
    {"value": b"", "headers": [("name",)]},
    {"value": b"", "headers": [("lone surrogate \ud800", b"")]},
    {"value": b"", "headers": {"name": b"value"}},
    {"value": b"", "headers": 5},
    {"value": b"", "timestamp": -1},
    {"value": b"", "timestamp": 1 << 63},
    {"value": b"", "timestamp": 1.5},
    {"value": b"", "timestamp": "now"},
    {"value": b"", "partition": 7},
    {"value": b"", "partition": -1},
    {"value": b"", "partition": "0"},
    {"value": b"", "partition": 0.0},
    {"value": b"", "partition": [0]},
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
async def test_invalid_record_does_not_affect_the_batch_of_others(bad: dict[str, Any]) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            good = [asyncio.create_task(producer.send("t", b"%d" % at)) for at in range(3)]
            with pytest.raises(EncodeError):
                await producer.send("t", **bad)
            with pytest.raises(EncodeError):
                await producer.send_many("t", [b"before", ProducerRecord(**bad), b"after"])
            await asyncio.gather(*good)
        assert sorted(map(bytes, filter(None, stored.values()))) == [b"0", b"1", b"2", b"before"]


@pytest.mark.parametrize("bad", BAD, ids=repr)
async def test_send_many_error_names_the_invalid_element(bad: dict[str, Any]) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            records: list[Any] = [b"0", b"1", ProducerRecord(**bad), b"3"]
            for values in (records, iter(records)):
                with pytest.raises(EncodeError, match=r"^element 2, counted from 0: ") as raised:
                    await producer.send_many("t", values)
                assert type(raised.value) is EncodeError
        assert stored.values() == [b"0", b"1"] * 2


async def test_error_of_an_iterator_is_raised_unchanged() -> None:
    def broken() -> Iterator[bytes]:
        yield b"0"
        raise EncodeError("of the iterator")

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            with pytest.raises(EncodeError, match=r"^of the iterator$"):
                await producer.send_many("t", broken())
        assert stored.values() == [b"0"]


@pytest.mark.parametrize("topic", [None, 5, ["t"], b"t"])
async def test_topic_must_be_a_str(topic: Any) -> None:
    async with Client("localhost:1").producer() as producer:
        for call in (producer.send, producer.enqueue):
            with pytest.raises(EncodeError, match="no name of a topic"):
                await call(topic, b"")
        with pytest.raises(EncodeError, match="no name of a topic"):
            await producer.send_many(topic, [b""])


async def test_record_with_unusual_values_is_sent() -> None:
    headers: list[Any] = [("", b""), ("null", None), ("ü", b"x"), ("array", bytearray(b"y"))]
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        value: Any = bytearray(b"changed later")
        key: Any = memoryview(b"key")
        async with client.producer() as producer:
            sending = asyncio.create_task(
                producer.send("t", value, key=key, headers=iter(headers), timestamp=0)  # type: ignore[arg-type]  # users pass it, too
            )
            await broker.until(lambda: broker.count(MetadataRequest) > 1)
            await asyncio.sleep(0)
            await sending
            value[:7] = b"CHANGED"
            await producer.send("t", None)
        (first, second) = (records for *_, batch in stored.batches for records in batch.records())
        assert (first.value, first.key, first.timestamp) == (b"changed later", b"key", 0)
        assert first.headers == [("", b""), ("null", None), ("ü", b"x"), ("array", b"y")]
        assert (second.value, second.key, second.headers) == (None, None, [])


# --- Settings ---


@pytest.mark.parametrize("name", ["batch_bytes", "buffer_bytes"])
async def test_invalid_bound_is_refused(name: str) -> None:
    client = Client("localhost:1")
    with pytest.raises(ConfigurationError, match=name):
        client.producer(**{name: 0})  # type: ignore[arg-type]  # one of two int parameters


async def test_unknown_compression_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'brotli' is not known"):
        Client("localhost:1").producer(compression="brotli")  # type: ignore[arg-type]  # the tested value


async def test_missing_codec_raises_before_any_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(MissingCodecError, match=r"kproto\[compression\]"):
        Client("localhost:1").producer(compression="snappy")


# --- Idempotence ---


async def test_sequence_numbers_continue_and_wrap_after_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send_many("t", [ProducerRecord(b"", partition=0)] * 3)
            await producer.send("t", b"", partition=0)
            await producer.send("t", b"", partition=1)
            producer._accumulator.queues["t", 0].sequence.next_sequence = 0x7FFFFFFE
            await producer.send_many("t", [ProducerRecord(b"", partition=0)] * 5)
            await producer.send("t", b"", partition=0)
        found = [
            (at, batch.producer_id, batch.producer_epoch, batch.base_sequence)
            for _, at, batch in stored.batches
        ]
    assert found == [
        (0, 7, 0, 0),
        (0, 7, 0, 3),
        (1, 7, 0, 0),
        (0, 7, 0, 0x7FFFFFFE),
        (0, 7, 0, 3),
    ]


async def test_partitions_share_one_producer_id_request() -> None:
    async with ScriptedBroker({"t": 20}) as broker, Client(broker.bootstrap, QUICK) as client:
        async with client.producer() as producer:
            records = [ProducerRecord(b"", partition=at) for at in range(20)]
            await producer.send_many("t", records)
        assert broker.count(InitProducerIdRequest) == 1


async def test_batch_without_idempotence_has_no_sequence_number() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(idempotent=False) as producer:
            await producer.send("t", b"")
        ((_, _, batch),) = stored.batches
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
        assert broker.count(InitProducerIdRequest) == 0


async def test_producer_id_request_is_retried() -> None:
    answers = [
        InitProducerIdResponse(error_code=14),
        HANG_UP,
        InitProducerIdResponse(producer_id=3),
    ]
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[InitProducerIdRequest] = lambda asked: answers.pop(0)
        async with client.producer() as producer:
            await producer.send("t", b"")
    assert answers == []


async def test_refused_producer_id_fails_the_send() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[InitProducerIdRequest] = lambda asked: InitProducerIdResponse(error_code=31)
        async with client.producer() as producer:
            with pytest.raises(DeliveryError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await producer.send("t", b"")
