"""Tests the offsets of group consumers in transactions, with both group protocols."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Literal

import pytest

from kproto import (
    Client,
    CommitFailedError,
    ConfigurationError,
    DeliveryError,
    FatalTransactionError,
    GroupConsumer,
    Producer,
    TransactionAbortedError,
)
from kproto.broker import BrokerSettings
from kproto.broker.faults import CutFrame, Delay, ErrorCode
from kproto.client.commits.transactional_commit import TransactionalCommit
from kproto.messages import (
    EndTxnRequest,
    OffsetCommitRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    committed,
    scene,
)

Protocol = Literal["classic", "consumer"]

BOTH_PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


async def filled(client: Client, count: int, topic: str = "t") -> list[bytes]:
    """Sends `count` values to a topic; returns them."""
    values = [b"%d" % at for at in range(count)]
    async with client.producer() as producer:
        await producer.send_many(topic, values)
    return values


def grouped(client: Client, protocol: Protocol = "classic", **others: Any) -> GroupConsumer:
    return client.consumer("t", group="g", group_protocol=protocol, read_committed=True, **others)


async def committed_offset(client: Client, partition: int = 0) -> int | None:
    async with client.consumer([("t", partition)], group="g", auto_commit=False) as consumer:
        found = (await consumer.committed(("t", partition)))["t", partition]
        return None if found is None else found.offset


async def transform(
    producer: Producer, consumer: GroupConsumer, before_commit: Callable[[], None] = lambda: None
) -> int:
    """Polls records, and sends them to `out` in one transaction; returns the number of records."""
    polled = await consumer.poll(timeout_ms=300, max_records=7)
    if not polled:
        return 0
    async with producer.transaction() as transaction:
        for records in polled.values():
            await producer.send_many("out", [record.value for record in records])
        await transaction.commit_offsets(consumer)
        before_commit()
    return sum(map(len, polled.values()))


# --- The offsets that are committed ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_offset_after_the_last_returned_record_is_committed(
    version: int, protocol: Protocol
) -> None:
    async with scene(version) as (_, client):
        await filled(client, 10)
        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, protocol) as consumer,
        ):
            read = 0
            async for record in consumer:
                read += 1
                if read == 4:
                    async with producer.transaction() as transaction:
                        await producer.send("t", record.value)
                        await transaction.commit_offsets(consumer)
                        await transaction.commit_offsets(consumer)
                        # A pending offset is not known yet.
                    assert await committed_offset(client) == 4
                if read == 7:
                    break
        # The end of the consumer commits nothing.
        assert await committed_offset(client) == 4


@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_aborted_offsets_are_not_committed(version: int, protocol: Protocol) -> None:
    async with scene(version) as (_, client):
        values = await filled(client, 3)
        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, protocol) as consumer,
        ):

            async def block() -> None:
                async with producer.transaction() as transaction:
                    await consumer.poll(timeout_ms=5_000)
                    await transaction.commit_offsets(consumer)
                    raise ValueError("x")

            with pytest.raises(ValueError, match="x"):
                await block()
            assert await committed_offset(client) is None
            assert await consumer.position(("t", 0)) == 3
            await consumer.seek_to_committed()
            assert await consumer.position(("t", 0)) == 0
            polled = await consumer.poll(timeout_ms=5_000)
            assert [record.value for record in polled["t", 0]] == values


@BOTH_VERSIONS
async def test_manually_assigned_partitions_have_no_member(version: int) -> None:
    async with scene(version) as (_, client):
        await filled(client, 5)
        async with (
            client.producer(transactional_id=ID) as producer,
            client.consumer([("t", 0)], group="g", auto_commit=False) as consumer,
        ):
            await consumer.poll(timeout_ms=5_000)
            async with producer.transaction() as transaction:
                await transaction.commit_offsets(consumer)
        assert await committed_offset(client) == 5


@BOTH_VERSIONS
async def test_consumer_without_new_records_sends_no_offsets(version: int) -> None:
    asked: list[str] = []

    def note(request: ReceivedRequest) -> None:
        asked.append(request.name)

    async with scene(version) as (broker, client):
        await filled(client, 3)
        broker.control(note, request=TxnOffsetCommitRequest)
        async with client.producer(transactional_id=ID) as producer, grouped(client) as consumer:
            await consumer.poll(timeout_ms=5_000)
            for _ in range(3):
                async with producer.transaction() as transaction:
                    await transaction.commit_offsets(consumer)
    assert len(asked) == 1


@BOTH_VERSIONS
async def test_start_offset_is_committed_with_the_transaction(version: int) -> None:
    async with scene(version) as (_, client):
        await filled(client, 3)
        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, start="latest", auto_commit=False) as consumer,
        ):
            consumer._subscriptions.commit_state.is_transactional = True
            while not consumer.assignment:
                await consumer.poll(timeout_ms=50)
            assert await consumer.position(("t", 0)) == 3
            await filled(client, 2)
            await consumer.poll(timeout_ms=5_000)
            await consumer.seek_to_committed()
            assert await consumer.position(("t", 0)) == 3
            async with producer.transaction() as transaction:
                await transaction.commit_offsets(consumer)
        assert await committed_offset(client) == 3


# --- The consumer commits nothing by itself ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_auto_commit_is_off_after_the_first_commit(version: int, protocol: Protocol) -> None:
    async with scene(version) as (broker, client):
        await filled(client, 20)
        commits = 0

        def count(request: ReceivedRequest) -> None:
            nonlocal commits
            commits += 1

        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, protocol, auto_commit=True, auto_commit_interval_ms=20) as consumer,
        ):
            await consumer.poll(timeout_ms=5_000, max_records=3)
            async with producer.transaction() as transaction:
                await transaction.commit_offsets(consumer)
            broker.control(count, request=OffsetCommitRequest)
            await consumer.poll(timeout_ms=5_000, max_records=3)
            await consumer.poll(timeout_ms=5_000, max_records=3)
            await asyncio.sleep(0.1)
        assert commits == 0
        assert await committed_offset(client) == 3


@BOTH_VERSIONS
async def test_auto_commit_in_flight_is_awaited(version: int) -> None:
    async with scene(version) as (broker, client):
        await filled(client, 20)
        order: list[str] = []
        commits = asyncio.Event()

        def slow(request: ReceivedRequest) -> Delay:
            order.append(request.name)
            commits.set()
            return Delay(100)

        def note(request: ReceivedRequest) -> None:
            order.append(request.name)

        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, auto_commit=True, auto_commit_interval_ms=10) as consumer,
        ):
            broker.control(slow, request=OffsetCommitRequest)
            broker.control(note, request=TxnOffsetCommitRequest)
            await consumer.poll(timeout_ms=5_000, max_records=3)
            await consumer.poll(timeout_ms=5_000, max_records=3)
            await commits.wait()
            async with producer.transaction() as transaction:
                await transaction.commit_offsets(consumer)
        assert order == ["OffsetCommitRequest", "TxnOffsetCommitRequest"]
        assert await committed_offset(client) == 6


# --- Rebalances ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_member_that_the_group_has_removed_commits_no_offsets(
    version: int, protocol: Protocol
) -> None:
    async with scene(version) as (broker, client):
        await filled(client, 5)
        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, protocol) as consumer,
        ):
            await consumer.poll(timeout_ms=5_000)
            name = "ILLEGAL_GENERATION" if protocol == "classic" else "STALE_MEMBER_EPOCH"
            broker.control(ErrorCode(name), request=TxnOffsetCommitRequest)

            async def block() -> None:
                async with producer.transaction() as transaction:
                    await producer.send("t", b"x")
                    await transaction.commit_offsets(consumer)

            with pytest.raises(TransactionAbortedError, match=name):
                await block()
            await consumer.seek_to_committed()
        assert await committed_offset(client) is None


@pytest.mark.slow
@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_records_of_a_revoked_partition_abort_the_transaction(
    version: int, protocol: Protocol
) -> None:
    async with scene(version, partitions=2) as (_, client):
        async with client.producer() as plain:
            for partition in (0, 1):
                await plain.send("t", b"%d" % partition, partition=partition)
        revoked = asyncio.Event()
        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(
                client, protocol, auto_commit=False, on_revoked=lambda tps: revoked.set()
            ) as consumer,
        ):
            seen: set[tuple[str, int]] = set()

            async def block() -> None:
                async with producer.transaction() as transaction:
                    while len(seen) < 2:
                        seen.update(await consumer.poll(timeout_ms=1_000))
                    async with grouped(client, protocol, auto_commit=False) as other:
                        while not revoked.is_set():
                            await consumer.poll(timeout_ms=50)
                            await other.poll(timeout_ms=50)
                        while not other.assignment:
                            await consumer.poll(timeout_ms=50)
                            await other.poll(timeout_ms=50)
                        await transaction.commit_offsets(consumer)

            with pytest.raises(TransactionAbortedError, match="not assigned") as raised:
                await block()
            assert isinstance(raised.value.__cause__, CommitFailedError)
        for partition in (0, 1):
            assert await committed_offset(client, partition) is None


@pytest.mark.slow
@BOTH_VERSIONS
async def test_revoked_partition_of_an_aborted_transaction_is_not_committed_later(
    version: int,
) -> None:
    """The revocation is pending while the next transaction is committed."""
    async with scene(version, partitions=2) as (_, client):
        async with client.producer() as plain:
            for partition in (0, 1):
                await plain.send("t", b"%d" % partition, partition=partition)
        is_called, may_return = asyncio.Event(), asyncio.Event()

        async def on_revoked(tps: list[tuple[str, int]]) -> None:
            is_called.set()
            await may_return.wait()

        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, "consumer", auto_commit=False, on_revoked=on_revoked) as consumer,
        ):

            async def aborted() -> None:
                seen: set[tuple[str, int]] = set()
                async with producer.transaction():
                    while len(seen) < 2:
                        seen.update(await consumer.poll(timeout_ms=1_000))
                    raise ValueError("x")

            with pytest.raises(ValueError, match="x"):
                await aborted()
            async with grouped(client, "consumer", auto_commit=False) as other:
                while len(consumer.assignment) == 2:  # the records that were returned are in flight
                    await other.poll(timeout_ms=20)
                ((_, left),) = consumer.assignment
                await consumer.seek_to_committed()
                again = await consumer.poll(timeout_ms=1_000)
                await is_called.wait()
                async with producer.transaction() as transaction:
                    await transaction.commit_offsets(consumer)
                may_return.set()
        assert [*again] == [("t", left)]
        assert await committed_offset(client, left) == 1
        assert await committed_offset(client, 1 - left) is None


# --- Exactly once ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_loop_with_faults_processes_each_record_once(
    version: int, protocol: Protocol
) -> None:
    chance = random.Random(7)
    async with scene(version) as (broker, client):
        broker.create_topic("out")
        values = await filled(client, 75)
        aborts = done = 0

        def fail() -> None:
            if chance.random() < 0.15:
                raise ValueError("a failure of the program")

        def disturb(request: ReceivedRequest) -> Any:
            drawn = chance.random()
            if drawn < 0.05:
                return CutFrame(0)(request)
            message = request.message
            is_abort = isinstance(message, EndTxnRequest) and not message.committed
            if drawn < 0.08 and not is_abort:
                return ErrorCode("TRANSACTION_ABORTABLE")(request)
            return None

        for each in (ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest):
            broker.control(disturb, request=each)
        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, protocol, auto_commit_interval_ms=5) as consumer,
        ):
            while done < len(values):
                try:
                    done += await transform(producer, consumer, fail)
                except (ValueError, TransactionAbortedError, DeliveryError):
                    aborts += 1
                    await consumer.seek_to_committed()
        assert aborts > 0
        assert await committed(client, "out") == values
        assert await committed_offset(client) == len(values)


@pytest.mark.slow
@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_members_that_come_and_go_process_each_record_once(
    version: int, protocol: Protocol
) -> None:
    async with scene(version, partitions=3) as (broker, client):
        broker.create_topic("out")
        values = [b"%d" % at for at in range(300)]
        async with client.producer() as plain:
            for value in values:
                await plain.enqueue("t", value, key=value)
        count = 0

        async def member(name: str, rounds: int) -> None:
            nonlocal count
            async with (
                Client(broker.bootstrap, client.settings) as own,
                own.producer(transactional_id=name) as producer,
                grouped(own, protocol, auto_commit=False) as consumer,
            ):
                while count < len(values) and rounds:
                    try:
                        done = await transform(producer, consumer)
                        count += done
                        rounds -= done > 0
                    except (TransactionAbortedError, DeliveryError):
                        await consumer.seek_to_committed()

        await asyncio.gather(member("a", 10), member("b", 1_000), _later(member("c", 1_000)))
        found = await committed(client, "out")
        assert sorted(filter(None, found)) == sorted(values)


async def _later(member: Any) -> None:
    await asyncio.sleep(0.2)
    await member


# --- Calls that last longer than the block of their transaction ---


class SlowSource:
    """A consumer whose call of `commit_offsets` waits for `ended` and then raises an error."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def _transactional_commit(self) -> TransactionalCommit:
        await self.ended.wait()
        raise CommitFailedError("a commit of the consumer did not end in time", retriable=True)


@BOTH_VERSIONS
async def test_commit_waits_for_the_offsets_of_a_call(version: int) -> None:
    async with scene(version) as (broker, client), client.producer(transactional_id=ID) as producer:
        source = SlowSource()

        async def block() -> asyncio.Task[None]:
            async with producer.transaction() as transaction:
                await producer.send("t", b"1")
                call = asyncio.create_task(transaction.commit_offsets(source))
                await asyncio.sleep(0)
                asyncio.get_running_loop().call_later(0.05, source.ended.set)
            return call

        broker.control(lambda _: Delay(100), request=EndTxnRequest, times=1)
        with pytest.raises(TransactionAbortedError, match="did not end in time"):
            await block()
        assert await committed(client) == []


@BOTH_VERSIONS
async def test_late_failure_of_a_call_leaves_the_next_transaction_alone(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:
        source = SlowSource()
        async with producer.transaction() as transaction:
            call = asyncio.create_task(transaction.commit_offsets(source))
            await asyncio.sleep(0)
            await transaction.abort()
        async with producer.transaction():
            await producer.send("t", b"2")
            source.ended.set()
            with pytest.raises(ConfigurationError, match="has ended"):
                await call
        assert await committed(client) == [b"2"]


# --- Other commits, and old brokers ---


@BOTH_VERSIONS
@BOTH_PROTOCOLS
async def test_commit_of_the_consumer_does_not_move_the_offset_back(
    version: int, protocol: Protocol
) -> None:
    async with scene(version) as (_, client):
        await filled(client, 5)
        async with (
            client.producer(transactional_id=ID) as producer,
            grouped(client, protocol, auto_commit=False) as consumer,
        ):
            read = 0
            while read < 5:
                read += sum(map(len, (await consumer.poll(timeout_ms=1_000)).values()))
            async with producer.transaction() as transaction:
                await transaction.commit_offsets(consumer)
            await consumer.commit()
            found = (await consumer.committed(("t", 0)))["t", 0]
            assert found is not None
            assert found.offset == 5


async def test_broker_that_cannot_check_the_member_gets_no_offsets() -> None:
    settings = BrokerSettings(release="2.4.0")
    async with scene(0, broker_settings=settings) as (_, client):
        await filled(client, 5)
        async with grouped(client, auto_commit=False) as consumer:
            await consumer.poll(timeout_ms=1_000)
            producer = client.producer(transactional_id=ID)

            async def block() -> None:
                async with producer.transaction() as transaction:
                    await transaction.commit_offsets(consumer)

            with pytest.raises(FatalTransactionError, match=r"before Kafka 2\.5"):
                await block()
        assert await committed_offset(client) is None


# --- Arguments ---


@BOTH_VERSIONS
async def test_wrong_arguments_are_refused_and_do_not_abort(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:
        wrong: list[tuple[Any, Any]] = [
            ({("t", 0): 1}, None),
            ({("t", 0): 1}, ""),
            ({("t", 0): -1}, "g"),
            ({("t", 0): True}, "g"),
            ({"t": 1}, "g"),
            (None, "g"),
            (client.consumer("t"), None),
            (client.consumer("t", group="g"), "g"),
            (client.consumer("t", group="g"), None),
        ]
        async with producer.transaction() as transaction:
            for offsets, group_id in wrong:
                with pytest.raises(ConfigurationError):
                    await transaction.commit_offsets(offsets, group_id=group_id)
            await producer.send("t", b"1")
        assert await committed(client) == [b"1"]


async def test_seek_to_committed_does_not_wait_for_a_fetch_at_the_end_of_the_log() -> None:
    async with scene(2) as (_, client):
        values = await filled(client, 3)
        async with grouped(client, max_wait_ms=60_000) as consumer:
            (records,) = (await consumer.poll(timeout_ms=60_000)).values()
            assert [each.value for each in records] == values
            assert await consumer.poll(timeout_ms=100) == {}  # a fetch waits at the broker
            await consumer.seek_to_committed()
            (records,) = (await consumer.poll(timeout_ms=20_000)).values()
            assert [each.value for each in records] == values


async def test_seek_to_committed_needs_a_running_consumer() -> None:
    async with scene(2) as (_, client):
        consumer = grouped(client)
        with pytest.raises(ConfigurationError, match="seek in"):
            await consumer.seek_to_committed()
        async with consumer:
            await consumer.seek_to_committed()
        with pytest.raises(ConfigurationError, match="closed"):
            await consumer.seek_to_committed()


@BOTH_VERSIONS
async def test_run_tracks_its_own_offsets(version: int) -> None:
    async with scene(version) as (_, client):
        await filled(client, 1)
        async with client.producer(transactional_id=ID) as producer, grouped(client) as consumer:
            errors: list[BaseException] = []
            handled = asyncio.Event()

            async def handle(record: Any) -> None:
                async with producer.transaction() as transaction:
                    try:
                        await transaction.commit_offsets(consumer)
                    except ConfigurationError as error:
                        errors.append(error)
                    try:
                        await consumer.seek_to_committed()
                    except ConfigurationError as error:
                        errors.append(error)
                handled.set()

            task = asyncio.create_task(consumer.run(handle))
            await handled.wait()
            task.cancel()
            await asyncio.wait([task])
        assert len(errors) == 2
        assert all("run()" in str(each) for each in errors)
