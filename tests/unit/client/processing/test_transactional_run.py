"""Tests `run` with a transactional id: output and offsets are committed together, or aborted."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import pytest

import kproto
from kproto import (
    Client,
    ConfigurationError,
    GroupConsumer,
    HandlerTransaction,
    ProducerRecord,
    Record,
    Retries,
    Stop,
)
from kproto.broker import Broker, Cluster
from kproto.broker.faults import CutFrame, Delay, ErrorCode
from kproto.messages import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    Scene,
    committed,
    scene,
    state_of,
    written,
)

Protocol = Literal["classic", "consumer"]

BOTH_PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])

GROUP = "g"
SOON = Retries(2, backoff_ms=1)


@asynccontextmanager
async def orders(
    version: int = 2, count: int = 20, *, partitions: int = 1, nodes: int = 1
) -> AsyncIterator[Scene]:
    """Yields topics `t` and `out`; each partition of `t` has `count` values PARTITION-OFFSET."""
    async with scene(version, partitions=partitions, nodes=nodes) as it:
        await it.client.create_topics(kproto.NewTopic("out", 1), kproto.NewTopic("dead", 1))
        async with it.client.producer() as producer:
            await producer.send_many(
                "t",
                [
                    ProducerRecord(b"%d-%d" % (partition, at), partition=partition)
                    for partition in range(partitions)
                    for at in range(count)
                ],
            )
        yield it


def grouped(client: Client, protocol: Protocol = "consumer", **others: Any) -> GroupConsumer:
    return client.consumer("t", group=GROUP, group_protocol=protocol, **others)


async def offsets(client: Client, partitions: int = 1) -> list[int | None]:
    """Returns the group's committed offset of each partition."""
    tps = [("t", partition) for partition in range(partitions)]
    async with client.consumer(tps, group=GROUP, auto_commit=False) as consumer:
        found = await consumer.committed(*tps)
        return [None if its is None else its.offset for its in found.values()]


class Copy:
    """A handler that sends each record to `out`, and ends `run` after `count` different records."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._seen: set[bytes | None] = set()
        self.calls: Counter[bytes | None] = Counter()

    async def __call__(self, record: Record, transaction: HandlerTransaction) -> None:
        await transaction.send("out", record.value)
        self.calls[record.value] += 1
        self._seen.add(record.value)
        if len(self._seen) == self._left:
            raise Stop(done=True)


async def run_until(
    client: Client, consumer: GroupConsumer, handler: Any, wanted: list[int], **settings: Any
) -> None:
    """Runs the handler until the group has committed the `wanted` offsets, then cancels the run."""
    task = asyncio.ensure_future(consumer.run(handler, transactional_id=ID, **settings))
    while await offsets(client, len(wanted)) != wanted:
        assert not task.done(), await task
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def recorded(broker: Broker | Cluster, request: Any) -> list[Any]:
    """Returns a list to which each later request of this type is added."""
    found: list[Any] = []

    def record(received: ReceivedRequest) -> None:
        found.append(received.message)

    broker.control(record, request=request)
    return found


def values(count: int = 20, partitions: int = 1) -> list[bytes]:
    return [b"%d-%d" % (part, at) for part in range(partitions) for at in range(count)]


# --- Committed ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_output_and_offsets_are_committed(version: int, protocol: Protocol) -> None:
    async with orders(version) as (broker, client), grouped(client, protocol) as consumer:
        others = recorded(broker, OffsetCommitRequest)
        summary = await consumer.run(Copy(20), transactional_id=ID)
        assert summary.handled == 20
        assert await committed(client, "out") == values()
        assert await offsets(client) == [20]
        assert await state_of(client) == "CompleteCommit"
        assert not others


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_each_order_with_several_partitions(order: Any) -> None:
    async with orders(partitions=3) as (_, client), grouped(client) as consumer:
        chance = random.Random(5)
        copy = Copy(60)

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await asyncio.sleep(chance.random() / 100)
            await copy(record, transaction)

        await consumer.run(handle, transactional_id=ID, order=order, commit_interval_ms=10)
        assert sorted(filter(None, await committed(client, "out"))) == sorted(values(20, 3))
        assert await offsets(client, 3) == [20, 20, 20]


async def test_offsets_are_committed_without_output() -> None:
    async with orders() as (_, client), grouped(client) as consumer:

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            if record.offset == 19:
                raise Stop(done=True)

        await consumer.run(handle, transactional_id=ID)
        assert await offsets(client) == [20]


async def test_handlers_are_slower_than_the_transaction_timeout() -> None:
    """No transaction is open while handlers run: their output is appended afterwards."""
    async with orders(count=2) as (_, client), grouped(client) as consumer:
        copy = Copy(2)

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await asyncio.sleep(0.3)
            await copy(record, transaction)

        await consumer.run(handle, transactional_id=ID, transaction_timeout_ms=200)
        assert await committed(client, "out") == values(2)


async def test_batches_with_failed_records() -> None:
    async with orders() as (_, client), grouped(client) as consumer:

        async def handle(
            records: list[Record], transaction: HandlerTransaction
        ) -> dict[int, Exception]:
            await transaction.send_many(
                "out", [each.value for each in records if each.offset % 5 != 3]
            )
            if records[-1].offset == 19:
                asyncio.get_running_loop().call_later(0.2, task.cancel)
            return {at: ValueError("x") for at, each in enumerate(records) if each.offset % 5 == 3}

        running = consumer.run_batches(
            handle,
            transactional_id=ID,
            retries=0,
            dead_letter_topic="dead",
            batch_size=7,
        )
        task = asyncio.ensure_future(running)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await committed(client, "out") == [
            value for at, value in enumerate(values()) if at % 5 != 3
        ]
        assert await committed(client, "dead") == values()[3::5]
        assert await offsets(client) == [20]


async def test_events_and_lists_and_decoded_records() -> None:
    class Event:
        def to_kafka_record(self, mode: object, **_: Any) -> tuple[bytes, bytes, list[Any]]:
            return b"key", b"event", [("h", b"v")]

    async with orders(count=1) as (_, client), grouped(client) as consumer:

        async def handle(number: int, transaction: HandlerTransaction) -> None:
            await transaction.send_many("out", [b"%d" % number, ProducerRecord(b"2", b"k"), None])
            await transaction.send_event("out", Event())  # type: ignore[arg-type]
            raise Stop(done=True)

        await consumer.run(handle, transactional_id=ID, decode=lambda each: each.offset + 1)
        reader = client.consumer("out", stop_at_end=True, read_committed=True)
        found = [(each.key, each.value) async for each in reader]
        assert found == [(None, b"1"), (b"k", b"2"), (None, None), (b"key", b"event")]


# --- Failed handlers ---


async def test_failed_handler_has_sent_nothing_and_aborts_nothing() -> None:
    async with orders() as (broker, client), grouped(client) as consumer:
        ends = recorded(broker, EndTxnRequest)
        copy = Copy(20)
        failed: set[int] = set()

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await copy(record, transaction) if record.offset != 19 else None
            if record.offset % 3 == 0 and record.offset not in failed:
                failed.add(record.offset)
                raise ValueError("x")
            if record.offset == 19:
                await copy(record, transaction)

        summary = await consumer.run(handle, transactional_id=ID, retries=SOON)
        assert summary.retried == 7
        assert await committed(client, "out") == await written(client, "out") == values()
        assert ends
        assert all(each.committed for each in ends)


async def test_dead_letter_is_in_the_transaction() -> None:
    async with orders() as (broker, client), grouped(client) as consumer:
        requests = recorded(broker, ProduceRequest)

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("out", record.value)
            if record.offset in (3, 4):
                raise ValueError("x")
            if record.offset == 19:
                raise Stop(done=True)

        run = consumer.run(handle, transactional_id=ID, retries=0, dead_letter_topic="dead")
        assert (await run).dead_letters == 2
        assert await committed(client, "dead") == [b"0-3", b"0-4"]
        assert await committed(client, "out") == values()[:3] + values()[5:]
        assert {each.transactional_id for each in requests} == {ID}


async def test_run_raises_the_error_of_a_handler_and_commits_the_records_before() -> None:
    async with orders() as (_, client), grouped(client) as consumer:

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("out", record.value)
            if record.offset == 7:
                raise ValueError("x")

        with pytest.raises(ValueError, match="x"):
            await consumer.run(handle, transactional_id=ID, retries=0)
        assert await committed(client, "out") == values()[:7]
        assert await offsets(client) == [7]
        await consumer.run(Copy(13), transactional_id=ID)
        assert await committed(client, "out") == values()


async def test_stop_drops_the_output_of_its_handler() -> None:
    async with orders() as (_, client), grouped(client) as consumer:

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("out", record.value)
            if record.offset == 7:
                raise Stop

        await consumer.run(handle, transactional_id=ID)
        assert await committed(client, "out") == values()[:7]
        assert await offsets(client) == [7]


# --- Aborted transactions ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
@pytest.mark.parametrize("order", ["partition", "key"])
async def test_aborted_records_are_handled_again(
    version: int, protocol: Protocol, order: Any
) -> None:
    async with orders(version) as (broker, client), grouped(client, protocol) as consumer:
        request = TxnOffsetCommitRequest if version else AddOffsetsToTxnRequest
        broker.control(ErrorCode("TRANSACTION_ABORTABLE"), request=request, times=2)
        await run_until(client, consumer, Copy(99), [20], commit_interval_ms=1, order=order)
        found = await committed(client, "out")
        if order == "key":  # it orders no records without a key
            found.sort(key=lambda each: values().index(each or b""))
        assert found == values()
        assert len(await written(client, "out")) > 20


async def test_refused_output_fails_its_record_alone() -> None:
    """After the retries the record is a dead letter; the other records are committed once."""
    async with orders() as (_, client), grouped(client) as consumer:
        calls: Counter[int] = Counter()

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            calls[record.offset] += 1
            large = bytes(2_000_000)
            await transaction.send("out", large if record.offset == 5 else record.value)

        await run_until(client, consumer, handle, [20], retries=SOON, dead_letter_topic="dead")
        assert await committed(client, "dead") == [b"0-5"]
        assert await committed(client, "out") == values()[:5] + values()[6:]
        assert calls[5] == 3


async def test_invalid_output_is_a_failure_of_the_handler() -> None:
    async with orders(count=3) as (_, client), grouped(client) as consumer:

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("out", record.value)
            if record.offset == 1:
                await transaction.send("out", b"x", partition=99)
            if record.offset == 2:
                raise Stop(done=True)

        await consumer.run(handle, transactional_id=ID, retries=SOON, dead_letter_topic="dead")
        assert await committed(client, "out") == [b"0-0", b"0-2"]
        assert await committed(client, "dead") == [b"0-1"]


async def test_dead_letter_that_is_too_large_is_sent_without_failure_headers() -> None:
    async with scene(2) as (_, client):
        await client.create_topics(
            kproto.NewTopic("out", 1),
            kproto.NewTopic("dead", 1, configs={"max.message.bytes": "1000"}),
        )
        async with client.producer() as producer:
            await producer.send_many("t", [b"a", bytes(900), b"b"])
        async with grouped(client) as consumer:

            async def handle(record: Record, transaction: HandlerTransaction) -> None:
                await transaction.send("out", record.value)
                if record.offset == 1:
                    raise ValueError("x" * 500)
                if record.offset == 2:
                    raise Stop(done=True)

            run = consumer.run(handle, transactional_id=ID, retries=0, dead_letter_topic="dead")
            await run
        assert await committed(client, "dead") == [bytes(900)]
        assert await committed(client, "out") == [b"a", b"b"]


@BOTH_VERSIONS
@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_refused_output_of_several_partitions_ends_in_dead_letters(
    version: int, order: Any
) -> None:
    """Records in flight after a refused record do not become dead letters."""
    async with orders(version, 12, partitions=4) as (_, client), grouped(client) as consumer:
        large = {b"%d-%d" % (partition, 3 + partition) for partition in range(4)}

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            refused = record.value in large
            await transaction.send("out", bytes(2_000_000) if refused else record.value)

        await run_until(
            client,
            consumer,
            handle,
            [12] * 4,
            retries=Retries(1, backoff_ms=1),
            dead_letter_topic="dead",
            order=order,
            commit_interval_ms=20,
        )
        assert set(await committed(client, "dead")) == large
        assert Counter(await committed(client, "out")) == Counter({*values(12, 4)} - large)


async def test_refused_output_of_a_batch_makes_one_dead_letter() -> None:
    async with orders() as (_, client), grouped(client) as consumer:

        async def handle(records: list[Record], transaction: HandlerTransaction) -> None:
            for record in records:
                large = record.offset == 5
                await transaction.send("out", bytes(2_000_000) if large else record.value)

        task = asyncio.ensure_future(
            consumer.run_batches(
                handle,
                transactional_id=ID,
                retries=Retries(1, backoff_ms=1),
                dead_letter_topic="dead",
                batch_size=8,
            )
        )
        while await offsets(client) != [20]:
            await asyncio.wait([task], timeout=0.01)
            assert not task.done(), await task
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await committed(client, "dead") == [b"0-5"]
        assert await committed(client, "out") == values()[:5] + values()[6:]


async def test_output_to_a_missing_topic_aborts_nothing() -> None:
    async with orders(count=5) as (broker, client), grouped(client) as consumer:
        ends = recorded(broker, EndTxnRequest)

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("missing" if record.offset == 2 else "out", record.value)

        await run_until(client, consumer, handle, [5], retries=0, dead_letter_topic="dead")
        assert await committed(client, "dead") == [b"0-2"]
        assert await committed(client, "out") == [b"0-0", b"0-1", b"0-3", b"0-4"]
        assert all(each.committed for each in ends)


async def test_dead_letter_that_is_always_too_large_ends_run() -> None:
    async with orders(count=3) as (_, client), grouped(client) as consumer:
        await client.create_topics(kproto.NewTopic("small", 1, configs={"max.message.bytes": "70"}))
        calls = Counter[int]()

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            calls[record.offset] += 1
            await transaction.send("out", record.value)
            if record.offset == 1:
                raise ValueError("x")

        run = consumer.run(handle, transactional_id=ID, retries=0, dead_letter_topic="small")
        with pytest.raises(kproto.DeliveryError, match="MESSAGE_TOO_LARGE"):
            await run
        assert calls[1] == 1
        assert await offsets(client) in ([1], [None])


@pytest.mark.parametrize("order", ["key", "none"])
async def test_loop_after_run_skips_what_run_has_processed(order: Any) -> None:
    """The commit of the caller's transaction keeps the later offsets that `run` processed."""
    async with orders(count=30) as (_, client):
        done = asyncio.Event()

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            if record.offset == 3:
                await done.wait()
            await transaction.send("out", record.value)

        async with grouped(client) as consumer:
            run = consumer.run(handle, transactional_id=ID, order=order, drain_timeout_ms=0)
            task = asyncio.ensure_future(run)
            while len(await committed(client, "out")) < 29:
                await asyncio.wait([task], timeout=0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for _ in range(2):
            async with (
                grouped(client, auto_commit=False) as consumer,
                client.producer(transactional_id=ID) as producer,
            ):
                polled = await consumer.poll(timeout_ms=500, max_records=1)
                async with producer.transaction() as transaction:
                    for record in polled.get(("t", 0), []):
                        await producer.send("out", record.value)
                    await transaction.commit_offsets(consumer)
        assert Counter(await committed(client, "out")) == Counter(values(30))


async def test_stop_before_the_coordinator_answers_ends_run() -> None:
    async with orders(count=1) as (broker, client), grouped(client) as consumer:
        asked = asyncio.Event()

        def freeze(received: ReceivedRequest) -> Delay:
            asked.set()
            return Delay(60_000)

        broker.control(freeze, request=InitProducerIdRequest)
        run = consumer.run(Copy(1), transactional_id=ID)
        task = asyncio.ensure_future(run)
        await asked.wait()
        pool = consumer._processing.pool
        assert pool is not None
        pool.on_signal()
        assert (await task).handled == 0


async def test_cancelled_run_commits_what_is_processed() -> None:
    async with orders() as (_, client), grouped(client) as consumer:
        hangs = asyncio.Event()

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("out", record.value)
            if record.offset == 10:
                hangs.set()
                await asyncio.sleep(60)

        run = consumer.run(handle, transactional_id=ID, drain_timeout_ms=50)
        task = asyncio.ensure_future(run)
        await hangs.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await committed(client, "out") == values()[:10]
        assert await offsets(client) == [10]


async def test_fenced_run_raises_and_the_records_are_redelivered() -> None:
    async with (
        orders() as (broker, client),
        Client(broker.bootstrap, client.settings) as other,
        grouped(client) as consumer,
    ):

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("out", record.value)
            if record.offset == 5:
                async with other.producer(transactional_id=ID):
                    pass

        with pytest.raises(kproto.ProducerFencedError):
            await consumer.run(handle, transactional_id=ID)
        left = 20 - len(await committed(client, "out"))
        await consumer.run(Copy(left), transactional_id=ID)
        assert await committed(client, "out") == values()
        assert await offsets(client) == [20]


# --- Rebalances ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
@pytest.mark.slow
async def test_members_come_and_go(version: int, protocol: Protocol) -> None:
    """Each member has its own transactional id; each record is committed exactly once."""
    async with orders(version, 200, partitions=4, nodes=2) as (broker, client):
        heartbeats: Any = {"classic": {"heartbeat_interval_ms": 50}, "consumer": {}}
        wanted = [200] * 4

        async def member(number: int, starts_after: float, seconds: float = 60.0) -> None:
            await asyncio.sleep(starts_after)
            async with (
                Client(broker.bootstrap, client.settings) as its,
                grouped(its, protocol, **heartbeats[protocol]) as consumer,
            ):

                async def handle(record: Record, transaction: HandlerTransaction) -> None:
                    await transaction.send("out", record.value)
                    await asyncio.sleep(0.002)

                run = consumer.run(handle, transactional_id=f"{ID}-{number}", commit_interval_ms=5)
                task = asyncio.ensure_future(run)
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        while await offsets(client, 4) != wanted:
                            await asyncio.wait([task], timeout=0.02)
                            assert not task.done(), await task
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        await asyncio.gather(
            member(0, 0, 0.4), member(1, 0, 0.7), member(2, 0, 0.2), member(3, 0.3)
        )
        assert Counter(await committed(client, "out")) == Counter(values(200, 4))


@BOTH_VERSIONS
@BOTH_PROTOCOLS
@pytest.mark.parametrize("order", ["partition", "none"])
@pytest.mark.slow
async def test_run_with_faults_commits_each_record_once(
    version: int, protocol: Protocol, order: Any
) -> None:
    """Loses responses, refuses requests, fails handlers, and cancels `run` at any time."""
    chance = random.Random(11)
    async with orders(version, 100, partitions=2) as (broker, client):

        def disturb(request: ReceivedRequest) -> Any:
            drawn = chance.random()
            if drawn < 0.05:
                return CutFrame(0)(request)
            # A commit whose response was lost cannot be refused afterwards.
            if drawn < 0.08 and not isinstance(request.message, EndTxnRequest):
                return ErrorCode("TRANSACTION_ABORTABLE")(request)
            return None

        for each in (ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest):
            broker.control(disturb, request=each)

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            await transaction.send("out", record.value)
            await asyncio.sleep(chance.random() / 100)
            if chance.random() < 0.05:
                raise ValueError("a failure of the program")
            await transaction.send("out", record.value)

        retries = Retries(20, backoff_ms=1)
        async with grouped(client, protocol) as consumer:
            while await offsets(client, 2) != [100, 100]:
                run = consumer.run(
                    handle,
                    transactional_id=ID,
                    commit_interval_ms=5,
                    order=order,
                    retries=retries,
                    drain_timeout_ms=10,
                )
                task = asyncio.ensure_future(run)
                await asyncio.wait([task], timeout=chance.random())
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        found = await committed(client, "out")
        assert Counter(found) == Counter(2 * values(100, 2))
        if order == "partition":
            for partition in range(2):
                its = [each for each in found if each and each.startswith(b"%d-" % partition)]
                assert its == [b"%d-%d" % (partition, at // 2) for at in range(200)]


# --- Invalid use ---


async def test_commits_of_the_program_are_refused() -> None:
    async with orders(count=1) as (_, client), grouped(client) as consumer:
        refused: list[str] = []

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            with pytest.raises(ConfigurationError, match="in its transactions") as raised:
                await consumer.commit()
            refused.append(str(raised.value))
            raise Stop(done=True)

        await consumer.run(handle, transactional_id=ID)
        assert len(refused) == 1


async def test_sends_after_the_handler_are_refused() -> None:
    async with orders(count=1) as (_, client), grouped(client) as consumer:
        kept: list[HandlerTransaction] = []

        async def handle(record: Record, transaction: HandlerTransaction) -> None:
            kept.append(transaction)
            raise Stop(done=True)

        await consumer.run(handle, transactional_id=ID)
        with pytest.raises(ConfigurationError, match="has returned"):
            await kept[0].send("out", b"late")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"transaction_timeout_ms": 10_000}, "needs a transactional_id"),
        (
            {"transactional_id": ID, "transaction_timeout_ms": 1_000, "commit_interval_ms": 501},
            "half",
        ),
        ({"transactional_id": ID, "transaction_timeout_ms": 10**12}, "transaction_timeout_ms"),
        ({"transactional_id": ID, "max_offset_gap": 24_001}, "at most 24000"),
        ({"transactional_id": "x" * 40_000}, "at most 32767 bytes"),
    ],
)
async def test_settings_that_do_not_fit(wrong: Any, match: str) -> None:
    async with orders(count=1) as (_, client), grouped(client) as consumer:
        with pytest.raises(ConfigurationError, match=match):
            await consumer.run(Copy(1), **wrong)


async def test_async_generator_is_no_handler() -> None:
    async with orders(count=1) as (_, client), grouped(client) as consumer:

        async def handle(record: Record, transaction: HandlerTransaction) -> Any:
            yield record

        with pytest.raises(ConfigurationError, match="async generator"):
            await consumer.run(handle, transactional_id=ID)


@pytest.mark.parametrize("wrong", ["", 5])
async def test_invalid_transactional_id(wrong: Any) -> None:
    async with orders(count=1) as (_, client), grouped(client) as consumer:
        with pytest.raises(ConfigurationError, match="transactional_id"):
            await consumer.run(Copy(1), transactional_id=wrong)


async def test_id_of_an_open_producer_is_refused() -> None:
    async with orders(count=1) as (_, client), grouped(client) as consumer:
        async with client.producer(transactional_id=ID):
            with pytest.raises(ConfigurationError, match="open producer"):
                await consumer.run(Copy(1), transactional_id=ID)
        await consumer.run(Copy(1), transactional_id=ID)


async def test_transaction_timeout_above_the_limit_of_the_broker() -> None:
    async with orders(count=1) as (_, client), grouped(client) as consumer:
        with pytest.raises(kproto.FatalTransactionError, match="transaction_timeout_ms"):
            await consumer.run(Copy(1), transactional_id=ID, transaction_timeout_ms=10**9)
