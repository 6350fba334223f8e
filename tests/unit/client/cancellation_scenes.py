"""Prepares the coroutines that `test_cancellation` cancels: every public coroutine of the client.

`ROWS` maps the name of a coroutine to one or more functions. Each function prepares a client and
returns the coroutine under test.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import kproto
from kproto.client import EncodedRecords
from kproto.client.network.connection import BrokerConnection
from kproto.messages import (
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from tests.support.leaders import leader_of

WRITTEN = "written"
FIXED = "fixed"
RECORDS = 12

_names = itertools.count()


class Event:
    """A minimal event that `send_event` accepts."""

    def to_kafka_record(
        self, mode: Literal["binary", "structured"] | None = None, **options: Any
    ) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
        return None, b"event", []


@dataclass(eq=False)
class Scene:
    """A client, and the producer, consumer and iteration that a row of `ROWS` creates with it."""

    bootstrap: str
    client: kproto.Client
    closes: bool = False  #: The row closes the client.
    closes_if_cancelled: bool = False
    producer: kproto.Producer | None = None
    iteration: AsyncIterator[Any] | None = None
    consumer: kproto.Consumer | None = None
    count: Callable[[Any], int] = lambda record: 1
    found: int = 0  #: The number of records that the coroutine under test has read.
    made: list[str] = field(default_factory=list)

    def produce(self, **options: Any) -> kproto.Producer:
        self.producer = self.client.producer(**options)
        return self.producer

    def consume(self) -> kproto.Consumer:
        self.consumer = self.client.consumer(FIXED, stop_at_end=True, max_wait_ms=50)
        return self.consumer

    def iterate(
        self, iteration: AsyncIterator[Any], count: Callable[[Any], int] = lambda record: 1
    ) -> AsyncIterator[Any]:
        self.iteration, self.count = iteration, count
        return iteration


Row = Callable[[Scene], Any]
ROWS: dict[str, list[Row]] = {}


def row(name: str) -> Callable[[Row], Row]:
    def add(function: Row) -> Row:
        ROWS.setdefault(name, []).append(function)
        return function

    return add


# The client


@row("Client.__aenter__")
def entering(scene: Scene) -> Awaitable[object]:
    scene.closes_if_cancelled = True
    return scene.client.__aenter__()


@row("Client.__aexit__")
def leaving(scene: Scene) -> Awaitable[object]:
    scene.closes = True
    return scene.client.__aexit__(None, None, None)


@row("Client.close")
def closing(scene: Scene) -> Awaitable[object]:
    scene.closes = True
    return scene.client.close()


@row("Client.close")
async def closing_while_it_is_used(scene: Scene) -> Awaitable[object]:
    scene.closes = True
    task = asyncio.create_task(scene.client.refresh())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.sleep(0)
    return scene.client.close()


@row("Client.request")
def requesting_any(scene: Scene) -> Awaitable[object]:
    return scene.client.request(MetadataRequest())


@row("Client.request")
def requesting_one(scene: Scene) -> Awaitable[object]:
    return scene.client.request(InitProducerIdRequest(), broker=1)


@row("Client.request_by_broker")
def requesting_all_by_broker(scene: Scene) -> Awaitable[object]:
    return scene.client.request_by_broker(
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=FIXED,
                    partitions=[
                        ListOffsetsPartition(partition_index=at, timestamp=-1) for at in (0, 1)
                    ],
                )
            ],
        )
    )


@row("Client.connection")
def connecting(scene: Scene) -> Awaitable[object]:
    return scene.client.connection(1)


@row("ClusterView.connection")
def connecting_as_owner(scene: Scene) -> Awaitable[object]:
    return scene.client._view.connection(1, owner=scene)


@row("ClusterView.release")
async def releasing(scene: Scene) -> Awaitable[object]:
    await scene.client._view.connection(1, owner=scene)
    return scene.client._view.release(scene)


@row("Client.refresh")
def refreshing(scene: Scene) -> Awaitable[object]:
    return scene.client.refresh([FIXED])


@row("Client.topic")
def finding_a_topic(scene: Scene) -> Awaitable[object]:
    return scene.client.topic(FIXED)


@row("ClusterView.leader")
def finding_a_leader(scene: Scene) -> Awaitable[object]:
    return leader_of(scene.client, FIXED, 1)


@row("Client.retrying")
def retrying(scene: Scene) -> Awaitable[object]:
    failures = iter([kproto.BrokerConnectionError("away", address="a:1")] * 2)

    async def sometimes() -> object:
        for failure in failures:
            raise failure
        return await scene.client.refresh([FIXED])

    return scene.client.retrying(sometimes)


@row("Client.create_topics")
def creating(scene: Scene) -> Awaitable[object]:
    scene.made.append(f"new-{next(_names)}")
    return scene.client.create_topics(*scene.made)


@row("Client.delete_topics")
async def deleting(scene: Scene) -> Awaitable[object]:
    name = f"old-{next(_names)}"
    async with kproto.Client(scene.bootstrap) as other:
        await other.create_topics(name)
    scene.made.append(name)
    return scene.client.delete_topics(name)


@row("Client.list_offsets")
def listing(scene: Scene) -> Awaitable[object]:
    return scene.client.list_offsets({(FIXED, 0): "latest", (FIXED, 1): "earliest"})


@row("Client.commit_offsets")
def committing_for_a_group(scene: Scene) -> Awaitable[object]:
    return scene.client.commit_offsets("without-members", {(FIXED, 0): 1})


@row("Client.committed_offsets")
async def requesting_committed_offsets(scene: Scene) -> Awaitable[object]:
    async with kproto.Client(scene.bootstrap) as other:
        await other.commit_offsets("committed", {(FIXED, 0): 1})
    return scene.client.committed_offsets("committed")


@row("Client.end_transaction")
async def ending_a_transaction_of_another_process(scene: Scene) -> Awaitable[object]:
    async with (
        kproto.Client(scene.bootstrap) as other,
        other.producer(transactional_id="left-open") as producer,
        producer.transaction() as transaction,
    ):
        await producer.send(WRITTEN, b"left open", partition=1)
        opened = await transaction.leave_open()
    return scene.client.end_transaction(opened, committed=True)


@row("Client.fetch")
def fetching(scene: Scene) -> Awaitable[object]:
    return scene.client.fetch(FIXED, 0, 0, max_wait_ms=20)


@row("Client.fetch")
def fetching_beyond_the_end(scene: Scene) -> Awaitable[object]:
    return scene.client.fetch(FIXED, 0, RECORDS // 2, max_wait_ms=20)


# The producer


@row("Producer.__aenter__")
def producing(scene: Scene) -> Awaitable[object]:
    return scene.produce().__aenter__()


async def enqueued(scene: Scene, **options: Any) -> kproto.Producer:
    """Returns a producer whose records are enqueued and not yet sent."""
    producer = scene.produce(linger_ms=100_000, **options)
    for at in range(3):
        await producer.enqueue(WRITTEN, b"%d" % at, partition=at % 2)
    return producer


@row("Producer.__aexit__")
async def leaving_the_producer(scene: Scene) -> Awaitable[object]:
    producer, scene.producer = await enqueued(scene), None
    return producer.__aexit__(None, None, None)


@row("Producer.__aexit__")
async def leaving_the_producer_by_an_error(scene: Scene) -> Awaitable[object]:
    producer, scene.producer = await enqueued(scene), None
    return producer.__aexit__(ValueError, ValueError(), None)


@row("Producer.close")
async def closing_the_producer(scene: Scene) -> Awaitable[object]:
    producer, scene.producer = await enqueued(scene), None
    return producer.close()


@row("Producer.close")
async def closing_the_producer_in_time(scene: Scene) -> Awaitable[object]:
    producer, scene.producer = await enqueued(scene), None
    return producer.close(timeout_ms=5_000)


@row("Producer.flush")
async def flushing(scene: Scene) -> Awaitable[object]:
    return (await enqueued(scene)).flush()


@row("Producer.flush")
async def flushing_in_time(scene: Scene) -> Awaitable[object]:
    return (await enqueued(scene)).flush(timeout_ms=5_000)


@row("Producer.send")
def sending(scene: Scene) -> Awaitable[object]:
    return scene.produce().send(WRITTEN, b"x")


@row("Producer.send")
def sending_without_idempotence(scene: Scene) -> Awaitable[object]:
    return scene.produce(idempotent=False).send(WRITTEN, b"x", partition=1)


@row("Producer.enqueue")
def enqueueing(scene: Scene) -> Awaitable[object]:
    return scene.produce().enqueue(WRITTEN, b"x")


@row("Producer.enqueue")
async def enqueueing_into_a_full_buffer(scene: Scene) -> Awaitable[object]:
    producer = scene.produce(buffer_bytes=100)
    await producer.enqueue(WRITTEN, bytes(90))
    return producer.enqueue(WRITTEN, bytes(90))


@row("Producer.send_event")
def sending_an_event(scene: Scene) -> Awaitable[object]:
    return scene.produce().send_event(WRITTEN, Event())


@row("Producer.send_events")
def sending_events(scene: Scene) -> Awaitable[object]:
    return scene.produce().send_events(WRITTEN, [Event()] * 3)


@row("Producer.send_batch")
async def sending_a_batch_into_a_full_buffer(scene: Scene) -> Awaitable[object]:
    producer = scene.produce(buffer_bytes=100)
    await producer.enqueue(WRITTEN, bytes(90))
    data = b"".join((b"\x0e\x00\x00\x00\x01\x02x\x00",))
    return producer.send_batch(WRITTEN, 0, EncodedRecords(data, 1))


@row("Producer.send_many")
def sending_many(scene: Scene) -> Awaitable[object]:
    return scene.produce().send_many(WRITTEN, [b"x"] * 10)


@row("Producer.send_many")
def sending_many_through_a_small_buffer(scene: Scene) -> Awaitable[object]:
    return scene.produce(buffer_bytes=300, batch_bytes=100).send_many(WRITTEN, [bytes(90)] * 12)


@row("Delivery.__await__")
async def waiting_for_a_delivery(scene: Scene) -> Awaitable[object]:
    return await scene.produce().enqueue(WRITTEN, b"x")


# The consumer


@row("Consumer.__aenter__")
def consuming(scene: Scene) -> Awaitable[object]:
    consumer = scene.consume()
    scene.iterate(aiter(consumer))
    return consumer.__aenter__()


async def started(scene: Scene) -> kproto.Consumer:
    """Returns a started consumer whose next fetch waits at the broker for several seconds."""
    consumer = scene.client.consumer(FIXED, max_wait_ms=5_000)
    async for _ in consumer:
        break
    return consumer


@row("Consumer.__aexit__")
async def leaving_the_consumer(scene: Scene) -> Awaitable[object]:
    return (await started(scene)).__aexit__(None, None, None)


@row("Consumer.close")
async def closing_the_consumer(scene: Scene) -> Awaitable[object]:
    return (await started(scene)).close()


@row("Consumer.close")
async def closing_the_consumer_while_it_polls(scene: Scene) -> Awaitable[object]:
    consumer = scene.client.consumer(FIXED, start="latest", max_wait_ms=5_000)
    task = asyncio.create_task(anext(aiter(consumer)))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait([task], timeout=0.02)
    return consumer.close()


def first(iteration: AsyncIterator[Any]) -> Awaitable[object]:
    next_item: Awaitable[object] = iteration.__anext__()
    return next_item


@row("RecordIteration.__anext__")
def the_first_record(scene: Scene) -> Awaitable[object]:
    return first(scene.iterate(aiter(scene.consume())))


@row("RecordListIteration.__anext__")
def the_first_records(scene: Scene) -> Awaitable[object]:
    iteration = scene.consume().record_lists()
    return first(scene.iterate(iteration, lambda fetched: len(fetched.records)))


@row("ValueIteration.__anext__")
def the_first_values(scene: Scene) -> Awaitable[object]:
    return first(scene.iterate(scene.consume().values(), lambda fetched: len(fetched.values)))


@row("RawBatchIteration.__anext__")
def the_first_batch(scene: Scene) -> Awaitable[object]:
    iteration = scene.consume().raw_batches()
    return first(scene.iterate(iteration, lambda fetched: fetched.batch.record_count))


@row("RecordIteration.__anext__")
def all_records(scene: Scene) -> Awaitable[object]:
    iteration = scene.iterate(aiter(scene.consume()))

    async def read() -> None:
        async for _ in iteration:
            scene.found += 1

    return read()


@row("Consumer.poll")
def polling(scene: Scene) -> Awaitable[object]:
    consumer = scene.consume()
    scene.iterate(aiter(consumer))

    async def read() -> None:
        while scene.found < 4:
            polled = await consumer.poll(60_000, max_records=2)
            scene.found += sum(map(len, polled.values()))

    return read()


for _kind, _iterate in {
    "RecordIteration": aiter,
    "RecordListIteration": kproto.Consumer.record_lists,
    "ValueIteration": kproto.Consumer.values,
    "RawBatchIteration": kproto.Consumer.raw_batches,
}.items():

    async def closing_an_iteration(scene: Scene, iterate: Any = _iterate) -> Awaitable[object]:
        iteration = iterate(scene.client.consumer(FIXED, max_wait_ms=5_000))
        await anext(iteration)
        return iteration.aclose()  # type: ignore[no-any-return]

    row(f"{_kind}.aclose")(closing_an_iteration)


# A connection


@row("BrokerConnection.open")
async def opening(scene: Scene) -> Awaitable[object]:
    await scene.client.refresh([])
    address = scene.client.cluster.brokers[1]

    async def open_and_close() -> None:
        connection = await BrokerConnection.open(address, scene.client.settings)
        await connection.close()

    return open_and_close()


@row("BrokerConnection.request")
async def requesting_on_a_connection(scene: Scene) -> Awaitable[object]:
    connection = await scene.client.connection(1)
    return connection.request(MetadataRequest())


@row("BrokerConnection.request")
async def queueing_on_a_connection(scene: Scene) -> Awaitable[object]:
    connection = await scene.client.connection(1)
    others = [asyncio.create_task(connection.request(MetadataRequest())) for _ in range(16)]
    await asyncio.sleep(0)
    asyncio.gather(*others)
    return connection.request(MetadataRequest())


@row("BrokerConnection.send_only")
async def sending_only_on_a_connection(scene: Scene) -> Awaitable[object]:
    connection = await scene.client.connection(1)
    return connection.send_only(ProduceRequest(acks=0, timeout_ms=1000), version=9)


@row("BrokerConnection.drain")
async def draining_a_connection(scene: Scene) -> Awaitable[object]:
    connection = await scene.client.connection(1)
    await connection.send_only(ProduceRequest(acks=0, timeout_ms=1000), version=9)
    return connection.drain()


@row("BrokerConnection.close")
async def closing_a_connection(scene: Scene) -> Awaitable[object]:
    connection = await scene.client.connection(1)
    return connection.close()
