"""The producer: acknowledgements, partitions, sequence numbers, and what no record can hold."""

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


async def test_a_send_and_its_acknowledgement() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            ack = await producer.send("t", b"v", timestamp=1234)
            assert ack == ("t", 0, 0, 1234)
            assert (await producer.send("t", b"v")).offset == 1


async def test_log_append_time_is_the_broker_s() -> None:
    def answer(asked: ReceivedRequest) -> Any:
        response = produced(asked, base_offset=5)
        response.responses[0].partition_responses[0].log_append_time_ms = 99
        return response

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            assert await producer.send("t", b"v", timestamp=1) == ("t", 0, 5, 99)


async def test_calls_at_the_same_time_share_a_batch_and_each_has_its_own_place() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            acks = await asyncio.gather(*(producer.send("t", b"%d" % at) for at in range(100)))
        assert [ack.offset for ack in acks] == list(range(100))
        assert len(stored.batches) == 1


async def test_two_that_fill_one_batch_in_turn_get_the_right_offsets() -> None:
    """`send_many` pauses when the buffer is full; another's records may then follow its own."""

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


async def test_many_go_in_order_and_within_the_bound_of_a_batch() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        values = [b"%05d" % at for at in range(2000)]
        async with client.producer(batch_bytes=1000) as producer:
            acks = await producer.send_many("t", values)
        assert stored.values() == values
        assert [ack.offset for ack in acks] == list(range(2000))
        assert max(batch.size_in_bytes for *_, batch in stored.batches) <= 1000
        assert len(stored.batches) >= 20


async def test_a_record_over_the_bound_travels_alone() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(batch_bytes=100) as producer:
            await producer.send_many("t", [b"a", bytes(5000), b"b"])
        assert [batch.record_count for *_, batch in stored.batches] == [1, 1, 1]


async def test_nothing_to_send() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        async with client.producer() as producer:
            assert list(await producer.send_many("t", [])) == []
            await producer.flush()
        assert broker.count(ProduceRequest) == 0


# --- Partitions ---


async def test_keys_decide_and_named_partitions_are_kept() -> None:
    from tests.unit.client.producer.test_partitioner import PLACES

    async with ScriptedBroker({"t": 6}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            records = [ProducerRecord(b"", b"key-%d" % at) for at in range(len(PLACES))]
            acks = await producer.send_many("t", records)
            assert [ack.partition for ack in acks] == PLACES
            assert (await producer.send("t", b"", key=b"key-0", partition=4)).partition == 4


async def test_records_without_a_key_use_every_partition_in_turn() -> None:
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(batch_bytes=100) as producer:
            await producer.send_many("t", [b"x" * 20] * 60)
        per_partition = [len(stored.values(at)) for at in range(3)]
        assert sum(per_partition) == 60
        assert min(per_partition) > 5


async def test_a_partition_without_a_leader_stops_nobody_else() -> None:
    """Keyless records pass it by; others wait for its leader, up to the delivery time-out."""
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
            with pytest.raises(DeliveryError) as told:
                await producer.send("t", b"v", partition=1)
            assert isinstance(told.value.cause, BrokerResponseError)
            assert told.value.cause.name == "LEADER_NOT_AVAILABLE"


# --- What no record can hold ---


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
async def test_a_bad_record_spoils_nobody_else_s_batch(bad: dict[str, Any]) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            good = [asyncio.create_task(producer.send("t", b"%d" % at)) for at in range(3)]
            with pytest.raises(EncodeError):
                await producer.send("t", **bad)
            with pytest.raises(EncodeError):
                await producer.send_many("t", [b"before", ProducerRecord(**bad), b"behind"])
            await asyncio.gather(*good)
        assert sorted(map(bytes, filter(None, stored.values()))) == [b"0", b"1", b"2", b"before"]


@pytest.mark.parametrize("bad", BAD, ids=repr)
async def test_of_many_the_bad_one_is_named(bad: dict[str, Any]) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            records: list[Any] = [b"0", b"1", ProducerRecord(**bad), b"3"]
            for given in (records, iter(records)):
                with pytest.raises(EncodeError, match=r"^element 2, counted from 0: ") as told:
                    await producer.send_many("t", given)
                assert type(told.value) is EncodeError
        assert stored.values() == [b"0", b"1"] * 2


async def test_an_error_of_an_iterator_is_its_own() -> None:
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
async def test_a_topic_is_a_str(topic: Any) -> None:
    async with Client("localhost:1").producer() as producer:
        for call in (producer.send, producer.enqueue):
            with pytest.raises(EncodeError, match="no name of a topic"):
                await call(topic, b"")
        with pytest.raises(EncodeError, match="no name of a topic"):
            await producer.send_many(topic, [b""])


async def test_what_a_record_can_hold() -> None:
    headers: list[Any] = [("", b""), ("null", None), ("ü", b"x"), ("array", bytearray(b"y"))]
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        value: Any = bytearray(b"changed later")
        key: Any = memoryview(b"key")
        async with client.producer() as producer:
            sending = asyncio.create_task(
                producer.send("t", value, key=key, headers=iter(headers), timestamp=0)  # type: ignore[arg-type]  # as users do
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
async def test_a_bound_that_cannot_work(name: str) -> None:
    client = Client("localhost:1")
    with pytest.raises(ConfigurationError, match=name):
        client.producer(**{name: 0})  # type: ignore[arg-type]  # one of two int parameters


async def test_a_compression_that_is_not_known() -> None:
    with pytest.raises(ConfigurationError, match="'brotli' is not known"):
        Client("localhost:1").producer(compression="brotli")  # type: ignore[arg-type]  # what is tested


async def test_a_missing_codec_is_told_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(MissingCodecError, match=r"kproto\[compression\]"):
        Client("localhost:1").producer(compression="snappy")


# --- Idempotence ---


async def test_sequences_go_on_and_begin_again_behind_the_largest(
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


async def test_one_producer_id_is_asked_for_by_many_lanes() -> None:
    async with ScriptedBroker({"t": 20}) as broker, Client(broker.bootstrap, QUICK) as client:
        async with client.producer() as producer:
            records = [ProducerRecord(b"", partition=at) for at in range(20)]
            await producer.send_many("t", records)
        assert broker.count(InitProducerIdRequest) == 1


async def test_without_idempotence_nothing_is_numbered() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(idempotent=False) as producer:
            await producer.send("t", b"")
        ((_, _, batch),) = stored.batches
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
        assert broker.count(InitProducerIdRequest) == 0


async def test_a_producer_id_that_is_refused_for_a_moment() -> None:
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


async def test_a_producer_id_that_is_refused_for_good() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[InitProducerIdRequest] = lambda asked: InitProducerIdResponse(error_code=31)
        async with client.producer() as producer:
            with pytest.raises(DeliveryError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await producer.send("t", b"")
