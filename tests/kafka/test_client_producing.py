"""Tests the producer on every broker.

An idempotent producer must store records once and in order, despite faults.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from typing import Any

import pytest

import kproto
from kproto.messages import MetadataRequest, ProduceRequest, ProduceResponse
from kproto.protocol.error_codes import code_of
from kproto.records import RecordBatch, read_batches
from kproto.testing.clock import ManualClock
from tests.support.brokers import StartKafka
from tests.support.middleman import Middleman, cut, drop, other_correlation_id, scramble
from tests.unit.client.producer.test_partitioner import JAVA_PARTITIONS

PATIENT = kproto.ClientSettings(retry_backoff_ms=10)


async def stored(client: kproto.Client, topic: str, partition: int = 0) -> list[RecordBatch]:
    """Returns the batches that the broker has stored for a partition."""
    tp = (topic, partition)
    end = (await client.list_offsets({tp: "latest"}))[tp]
    position, found = 0, []
    while position < end:
        fetched = await client.fetch(topic, partition, position)
        found += [batch for batch in read_batches(fetched.records) if batch.base_offset >= position]
        position = found[-1].next_offset
    return found


async def until_ready(client: kproto.Client, topic: str) -> None:
    """Waits until the leader of a new topic stores records."""
    async with client.producer() as producer:
        await producer.send(topic, b"ready", partition=0)


async def until_end(client: kproto.Client, topic: str, end: int) -> None:
    """Waits until the log of partition 0 ends at `end`."""
    tp = (topic, 0)
    while (await client.list_offsets({tp: "latest"}))[tp] < end:
        pass


def values(batches: list[RecordBatch]) -> list[bytes | None]:
    return [record.value for batch in batches for record in batch.records()]


async def test_keyed_records_get_the_partitions_of_the_java_client(client: kproto.Client) -> None:
    topic = f"six-{uuid.uuid4().hex}"
    await client.create_topics(kproto.NewTopic(topic, 6, 1))
    async with client.producer() as producer:
        records = [kproto.ProducerRecord(b"", b"key-%d" % at) for at in range(len(JAVA_PARTITIONS))]
        acks = await producer.send_many(topic, records)
    assert [ack.partition for ack in acks] == JAVA_PARTITIONS
    consumer = client.consumer(topic, stop_at_end=True)
    found = {record.key: record.partition async for record in consumer}
    assert [found[b"key-%d" % at] for at in range(len(JAVA_PARTITIONS))] == JAVA_PARTITIONS
    await client.delete_topics(topic)


async def test_refused_record_fails_alone(client: kproto.Client) -> None:
    """KIP-467: a compacted topic refuses records without a key and stores the others in order."""
    topic = f"compacted-{uuid.uuid4().hex}"
    await client.create_topics(kproto.NewTopic(topic, 1, 1, configs={"cleanup.policy": "compact"}))
    refused = (2, 3, 7)
    async with client.producer(linger_ms=50) as producer:
        outcomes = await asyncio.gather(
            *(
                producer.send(topic, b"%d" % at, key=None if at in refused else b"k")
                for at in range(9)
            ),
            return_exceptions=True,
        )
        assert (await producer.send(topic, b"after", key=b"k")).offset == 6
    failed = [at for at, each in enumerate(outcomes) if isinstance(each, BaseException)]
    assert failed == [*refused]
    for at in refused:
        error = outcomes[at]
        assert isinstance(error, kproto.DeliveryError)
        assert [each.value for each in error.records] == [b"%d" % at]
        assert "INVALID_RECORD" in str(error)
        assert "key" in str(error)
    assert values(await stored(client, topic)) == [b"0", b"1", b"4", b"5", b"6", b"8", b"after"]
    await client.delete_topics(topic)


async def test_records_without_a_key_are_spread(client: kproto.Client, topic: str) -> None:
    async with client.producer(batch_bytes=1_000) as producer:
        acks = await producer.send_many(topic, [b"x" * 100] * 300)
    counts = [sum(ack.partition == at for ack in acks) for at in range(3)]
    assert min(counts) > 50
    positions = {(ack.partition, ack.offset) for ack in acks}
    assert positions == {(at, offset) for at in range(3) for offset in range(counts[at])}


async def test_a_thousand_sends_at_once_share_few_batches(
    client: kproto.Client, topic: str
) -> None:
    async with client.producer() as producer:
        acks = await asyncio.gather(
            *(producer.send(topic, b"%d" % at, partition=1) for at in range(1000))
        )
    assert [ack.offset for ack in acks] == list(range(1000))
    batches = await stored(client, topic, 1)
    assert values(batches) == [b"%d" % at for at in range(1000)]
    assert len(batches) <= 3


async def test_sequence_numbers_count_records(client: kproto.Client, topic: str) -> None:
    async with client.producer(batch_bytes=500) as producer:
        await producer.send_many(
            topic, [kproto.ProducerRecord(b"x" * 100, partition=0) for _ in range(20)]
        )
        await producer.send(topic, b"last", partition=0)
    batches = await stored(client, topic)
    assert len(batches) > 3
    assert len({(batch.producer_id, batch.producer_epoch) for batch in batches}) == 1
    assert batches[0].producer_id >= 0
    assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]


async def test_without_idempotence_batches_carry_no_producer(
    client: kproto.Client, topic: str
) -> None:
    async with client.producer(idempotent=False) as producer:
        await producer.send(topic, b"x", partition=0)
    (batch,) = await stored(client, topic)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


@pytest.mark.parametrize("fault", [drop, cut], ids=["lost", "cut"])
async def test_a_lost_acknowledgement_stores_nothing_twice(
    bootstrap: str, client: kproto.Client, topic: str, fault: Any
) -> None:
    """The broker recognizes the sequence number of a batch whose acknowledgement was lost."""
    async with (
        Middleman(bootstrap) as middleman,
        kproto.Client(middleman.bootstrap, PATIENT) as through,
        through.producer() as producer,
    ):
        await producer.send(topic, b"0", partition=0)  # retried while the topic is new
        before = len(middleman.versions("ProduceRequest"))
        middleman.spoil(ProduceResponse, fault, times=2)
        acks = [await producer.send(topic, b"%d" % at, partition=0) for at in range(1, 4)]
        assert middleman.left == 0
    assert [ack.offset for ack in acks] == [1, 2, 3]
    assert values(await stored(client, topic)) == [b"0", b"1", b"2", b"3"]
    assert len(middleman.versions("ProduceRequest")) - before == 5


async def acknowledged(clock: ManualClock, sending: Coroutine[Any, Any, kproto.Ack]) -> kproto.Ack:
    """Returns the ack of a send.

    Until the ack arrives, advances the clock by 50 ms after each wait of 50 ms, so that the broker
    can respond before a timeout of the client expires.
    """
    task = asyncio.create_task(sending)
    while not task.done():
        await asyncio.wait([task], timeout=0.05)
        await clock.advance(50)
    return await task


async def test_failed_record_is_not_stored_after_later_records(
    bootstrap: str, client: kproto.Client, topic: str
) -> None:
    """The network holds back the failed record's request until a later record is acknowledged."""
    clock = ManualClock()
    async with (
        Middleman(bootstrap) as middleman,
        kproto.Client(middleman.bootstrap, clock=clock) as through,
        through.producer() as producer,
    ):
        await acknowledged(clock, producer.send(topic, b"0", partition=0))
        middleman.holds = ProduceRequest
        late = asyncio.create_task(producer.send(topic, b"1", partition=0))
        await middleman.has_held.wait()
        await clock.advance(through.settings.delivery_timeout_ms)
        with pytest.raises(kproto.DeliveryError):
            await late
        middleman.holds = None
        assert (await acknowledged(clock, producer.send(topic, b"2", partition=0))).offset == 1
        for answer in await middleman.deliver():
            assert isinstance(answer, ProduceResponse)
            outcome = answer.responses[0].partition_responses[0].error_code
            assert outcome == code_of("INVALID_PRODUCER_EPOCH")
        assert (await acknowledged(clock, producer.send(topic, b"3", partition=0))).offset == 2
    batches = await stored(client, topic)
    assert values(batches) == [b"0", b"2", b"3"]
    assert len({batch.producer_id for batch in batches}) == 1
    assert [(batch.producer_epoch, batch.base_sequence) for batch in batches] == [
        (0, 0),
        (1, 0),
        (1, 1),
    ]


async def test_without_idempotence_a_lost_acknowledgement_stores_twice(
    bootstrap: str, client: kproto.Client, topic: str
) -> None:
    """Shows that `test_a_lost_acknowledgement_stores_nothing_twice` would notice a duplicate."""
    async with (
        Middleman(bootstrap) as middleman,
        kproto.Client(middleman.bootstrap, PATIENT) as through,
        through.producer(idempotent=False) as producer,
    ):
        await producer.send(topic, b"0", partition=0)  # retried while the topic is new
        middleman.spoil(ProduceResponse, drop)
        await producer.send(topic, b"twice", partition=0)
    assert values(await stored(client, topic)) == [b"0", b"twice", b"twice"]


async def test_acks_of_the_leader_have_offsets(client: kproto.Client, topic: str) -> None:
    async with client.producer(acks=1) as producer:
        assert (await producer.send(topic, b"0", partition=0)).offset == 0
        records = [kproto.ProducerRecord(b"%d" % at, partition=0) for at in range(1, 100)]
        acks = await producer.send_many(topic, records)
    assert [ack.offset for ack in acks] == list(range(1, 100))
    batches = await stored(client, topic)
    assert values(batches) == [b"%d" % at for at in range(100)]
    assert {batch.producer_id for batch in batches} == {-1}


async def test_records_without_acks_are_stored(client: kproto.Client, topic: str) -> None:
    """The test waits for the log's end: after the close, the broker may still receive records."""
    expected = [b"%d" % at for at in range(1_000)]
    await until_ready(client, topic)
    async with client.producer(acks=0, batch_bytes=1_000) as producer:
        ack = await producer.send(topic, b"first", partition=0)
        assert (ack.partition, ack.offset) == (0, -1)
        records = [kproto.ProducerRecord(each, partition=0) for each in expected]
        assert {each.offset for each in await producer.send_many(topic, records)} == {-1}
    await until_end(client, topic, 1_002)
    assert values(await stored(client, topic)) == [b"ready", b"first", *expected]


async def test_broker_closes_the_connection_after_a_refused_record_without_acks(
    client: kproto.Client, topic: str
) -> None:
    """With acks=0, closing the connection is the broker's only way to report an error.

    The producer then connects again.
    """
    await until_ready(client, topic)
    leader = (await client.topic(topic)).partitions[0].leader
    connection = await client.connection(leader)
    async with client.producer(acks=0, batch_bytes=10_000_000) as producer:
        await producer.send(topic, bytes(3_000_000), partition=0)  # over max.message.bytes
        with pytest.raises(kproto.BrokerConnectionError):
            await connection.request(MetadataRequest(topics=[]))
        await producer.send(topic, b"next", partition=0)
    await until_end(client, topic, 2)
    assert values(await stored(client, topic)) == [b"ready", b"next"]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [(scramble, kproto.DecodeError), (other_correlation_id, kproto.ProtocolError)],
    ids=["scrambled", "of another request"],
)
async def test_unreadable_acknowledgement_fails_with_the_records(
    bootstrap: str, topic: str, fault: Any, cause: type[kproto.KprotoError]
) -> None:
    async with (
        Middleman(bootstrap) as middleman,
        kproto.Client(middleman.bootstrap, PATIENT) as through,
        through.producer() as producer,
    ):
        middleman.spoil(ProduceResponse, fault)
        with pytest.raises(kproto.DeliveryError) as outcome:
            await producer.send(topic, b"kept", key=b"k", headers=[("h", b"v")], partition=0)
        assert isinstance(outcome.value.cause, cause)
        (record,) = outcome.value.records
        assert (record.value, record.key, record.headers) == (b"kept", b"k", (("h", b"v"),))
        ack = await producer.send(topic, b"next", partition=0)
        assert ack.partition == 0


async def test_failed_record_can_be_sent_again(client: kproto.Client, topic: str) -> None:
    large = kproto.ProducerRecord(bytes(3_000_000), b"key", partition=2)
    small = kproto.ProducerRecord(b"small", b"key", partition=1)
    async with client.producer(batch_bytes=10_000_000) as producer:
        with pytest.raises(kproto.DeliveryError, match="MESSAGE_TOO_LARGE") as outcome:
            await producer.send_many(topic, [small, large])
        (record,) = outcome.value.records
        assert (len(record.value or b""), record.key, record.partition) == (3_000_000, b"key", 2)
        again = record._replace(value=(record.value or b"")[:10])
        acks = await producer.send_many(topic, [again])
    assert (acks[0].partition, acks[0].offset) == (2, 0)


async def test_values_larger_than_a_batch_are_stored(client: kproto.Client, topic: str) -> None:
    sizes = [10, 60_000, 500, 60_000, 1]
    async with client.producer(batch_bytes=20_000) as producer:
        records = [
            kproto.ProducerRecord(bytes([at]) * size, partition=0) for at, size in enumerate(sizes)
        ]
        acks = await producer.send_many(topic, records)
    assert [ack.offset for ack in acks] == list(range(5))
    found = values(await stored(client, topic))
    assert [len(value or b"") for value in found] == sizes


async def test_ack_has_the_log_append_time(client: kproto.Client) -> None:
    name = f"stamped-{uuid.uuid4().hex}"
    configs = {"message.timestamp.type": "LogAppendTime"}
    await client.create_topics(kproto.NewTopic(name, 1, 1, configs))
    async with client.producer() as producer:
        ack = await producer.send(name, b"x", timestamp=1000)
    assert ack.timestamp > 1_700_000_000_000
    (batch,) = await stored(client, name)
    assert [record.timestamp for record in batch.records()] == [ack.timestamp]
    await client.delete_topics(name)


async def create_after_deletion(client: kproto.Client, topic: kproto.NewTopic) -> None:
    """Creates a topic; retries until the broker has deleted the former topic."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await client.create_topics(topic)
            except kproto.BrokerResponseError as error:
                if error.name != "TOPIC_ALREADY_EXISTS":
                    raise
            await asyncio.sleep(0.05)


async def test_producer_writes_to_a_recreated_topic(client: kproto.Client) -> None:
    """The new topic has a new id, which the producer learns from an error (KIP-516)."""
    name = f"anew-{uuid.uuid4().hex}"
    new = kproto.NewTopic(name, 1, 1)
    await client.create_topics(new)
    async with client.producer() as producer:
        assert (await producer.send(name, b"old")).offset == 0
        info = await client.topic(name)
        await client.delete_topics(name)
        client.cluster.topics[name] = info  # as after a deletion by another client
        await create_after_deletion(client, new)
        assert (await producer.send(name, b"new")).offset == 0
    # The consumer refreshes the topic id, even if the producer uses only the name.
    assert [record.value async for record in client.consumer(name, stop_at_end=True)] == [b"new"]
    await client.delete_topics(name)


async def test_cancelled_sends_do_not_affect_other_records(
    client: kproto.Client, topic: str
) -> None:
    async with client.producer() as producer:
        sending = [
            asyncio.create_task(producer.send(topic, b"%d" % at, partition=0)) for at in range(100)
        ]
        await asyncio.sleep(0)
        for task in sending[::3]:
            task.cancel()
        outcome = await asyncio.gather(*sending, return_exceptions=True)
    found = values(await stored(client, topic))
    for at, ack in enumerate(outcome):
        if isinstance(ack, kproto.Ack):
            assert found[ack.offset] == b"%d" % at
        else:
            assert isinstance(ack, asyncio.CancelledError)
            assert at % 3 == 0
    assert len(found) == len(set(found))


async def test_closing_the_client_fails_records_in_flight(bootstrap: str, topic: str) -> None:
    client = kproto.Client(bootstrap)
    producer = client.producer()
    sending = asyncio.create_task(producer.send_many(topic, [b"x" * 1000] * 2000))
    await asyncio.sleep(0.01)
    await client.close()
    (outcome,) = await asyncio.gather(sending, return_exceptions=True)
    if isinstance(outcome, BaseException):
        assert isinstance(outcome, kproto.KprotoError)
        assert "closed" in str(outcome)
    else:
        assert len(outcome) == 2000, "it was faster"
    await producer.close()


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.exhaustive
async def test_records_are_stored_and_read_once_while_the_broker_restarts(
    start_kafka: StartKafka,
) -> None:
    """Every record must be stored and read once and in order."""
    # With a longer session the controller would keep the killed broker registered for nine seconds.
    node = start_kafka(config={"broker.session.timeout.ms": "1000"})
    sent = [b"%05d" % at for at in range(3000)]
    async with kproto.Client(node.bootstrap) as client:
        await client.create_topics(kproto.NewTopic("t", 1, 1))
        found: list[bytes | None] = []
        some = asyncio.Event()

        async def send() -> None:
            async with client.producer() as producer:
                for at in range(0, len(sent), 100):
                    await producer.send_many("t", sent[at : at + 100])
                    await asyncio.sleep(0.02)

        async def receive() -> list[bytes | None]:
            async for record in client.consumer("t", max_wait_ms=100):
                found.append(record.value)
                some.set()
                if len(found) == len(sent):
                    break
            return found

        async def restart() -> None:
            await some.wait()
            await asyncio.to_thread(node.kill)
            await asyncio.to_thread(node.start)

        sending, receiving = asyncio.create_task(send()), asyncio.create_task(receive())
        await restart()
        await sending
        assert await receiving == sent
        assert values(await stored(client, "t")) == sent
