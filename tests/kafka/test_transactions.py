"""Tests transactions of the producer on every broker: commit, abort, fencing, offsets, timeouts."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Literal

import pytest

import kproto
from kproto.client.fetch.fetch_options import OffsetSpec
from kproto.client.metadata.cluster import TopicPartition
from kproto.messages import DescribeTransactionsRequest
from tools.kafka import KafkaNode


async def committed(client: kproto.Client, topic: str) -> list[bytes | None]:
    """Returns the committed values of a topic in which no transaction stays open.

    The response to EndTxn comes before the markers are written (KIP-98). So the last stable offset
    has to reach the log end first.
    """
    end: dict[TopicPartition, OffsetSpec] = dict.fromkeys(
        ((topic, index) for index in (await client.topic(topic)).partitions), "latest"
    )
    while True:
        stable = await client.list_offsets(end, read_committed=True)
        if stable == await client.list_offsets(end):
            break
        await asyncio.sleep(0.01)
    consumer = client.consumer(topic, stop_at_end=True, read_committed=True)
    return [record.value async for record in consumer]


async def end_of(client: kproto.Client, transactional_id: str) -> str:
    """Waits until the transaction of a transactional id has ended; returns its final state."""
    while True:
        response = await client.request(
            DescribeTransactionsRequest(transactional_ids=[transactional_id])
        )
        state = response.transaction_states[0].transaction_state
        if state != "Ongoing" and not state.startswith("Prepare"):
            return state
        await asyncio.sleep(0.01)


def new_id() -> str:
    return f"id-{uuid.uuid4().hex}"


async def test_commit_and_abort(client: kproto.Client, topic: str) -> None:
    transactional_id = new_id()
    async with client.producer(transactional_id=transactional_id) as producer:
        async with producer.transaction():
            await producer.send(topic, b"1", partition=0)
            await producer.send_many(topic, [b"2", b"3"])
        assert await end_of(client, transactional_id) == "CompleteCommit"

        async def block() -> None:
            async with producer.transaction():
                await producer.send(topic, b"4")
                raise ValueError("x")

        with pytest.raises(ValueError, match="x"):
            await block()
        assert await end_of(client, transactional_id) == "CompleteAbort"
        async with producer.transaction() as transaction:
            await producer.send(topic, b"5")
            await transaction.abort()
        async with producer.transaction():
            pass
        for value in (b"6", b"7", b"8"):
            async with producer.transaction():
                await producer.send(topic, value)
    await end_of(client, transactional_id)
    assert sorted(filter(None, await committed(client, topic))) == [
        b"1",
        b"2",
        b"3",
        b"6",
        b"7",
        b"8",
    ]


async def test_failed_record_aborts_and_the_producer_continues(
    client: kproto.Client, topic: str
) -> None:
    async with client.producer(transactional_id=new_id()) as producer:

        async def block() -> None:
            async with producer.transaction():
                await producer.send(topic, b"1")
                await producer.enqueue(topic, bytes(2_000_000))

        for _ in range(2):
            with pytest.raises(kproto.TransactionAbortedError, match="MESSAGE_TOO_LARGE"):
                await block()
            async with producer.transaction():
                await producer.send(topic, b"2")
    assert await committed(client, topic) == [b"2", b"2"]


async def test_new_producer_fences_the_earlier_one(
    client: kproto.Client, topic: str, bootstrap: str
) -> None:
    transactional_id = new_id()
    async with (
        kproto.Client(bootstrap) as other,
        client.producer(transactional_id=transactional_id) as fenced,
    ):

        async def block() -> None:
            async with fenced.transaction():
                await fenced.send(topic, b"1")
                async with (
                    other.producer(transactional_id=transactional_id) as producer,
                    producer.transaction(),
                ):
                    await producer.send(topic, b"2")

        with pytest.raises(kproto.ProducerFencedError, match="taken over"):
            await block()
        with pytest.raises(kproto.ProducerFencedError):
            await block()
    assert await committed(client, topic) == [b"2"]


async def test_other_client_ends_a_transaction_that_was_left_open(
    client: kproto.Client, topic: str, bootstrap: str
) -> None:
    transactional_id, group_id = new_id(), new_id()
    for number, is_committed in enumerate((True, False, True)):
        value = b"%d" % number
        async with (
            client.producer(transactional_id=transactional_id) as producer,
            producer.transaction() as transaction,
        ):
            await producer.send(topic, value)
            its = kproto.CommittedOffset(number, -1, "text")
            await transaction.commit_offsets({(topic, 0): its}, group_id=group_id)
            opened = await transaction.leave_open()
        async with kproto.Client(bootstrap) as other:
            for _ in range(2):
                await other.end_transaction(opened, committed=is_committed)
            await end_of(other, transactional_id)
            last = number if is_committed else number - 1
            expected = {(topic, 0): kproto.CommittedOffset(last, -1, "text")}
            assert await other.committed_offsets(group_id) == expected
    assert sorted(filter(None, await committed(client, topic))) == [b"0", b"2"]


async def test_transaction_that_exceeds_its_timeout_is_aborted(
    client: kproto.Client, topic: str
) -> None:
    transactional_id = new_id()
    async with client.producer(
        transactional_id=transactional_id, transaction_timeout_ms=1_000
    ) as producer:

        async def block() -> None:
            async with producer.transaction():
                await producer.send(topic, b"1")
                assert await end_of(client, transactional_id) == "CompleteAbort"

        with pytest.raises(kproto.FatalTransactionError, match=r"transaction_timeout_ms \(1000\)"):
            await block()
    assert await committed(client, topic) == []


async def test_offsets_of_ones_own_are_committed_with_the_records(
    client: kproto.Client, topic: str
) -> None:
    group = f"group-{uuid.uuid4().hex}"
    async with client.producer(transactional_id=new_id()) as producer:
        async with producer.transaction() as transaction:
            await producer.send(topic, b"1", partition=0)
            await transaction.commit_offsets({(topic, 0): 1}, group_id=group)
        async with producer.transaction() as transaction:
            await transaction.commit_offsets({(topic, 0): 2}, group_id=group)
            await transaction.abort()
    async with client.consumer([(topic, 0)], group=group) as consumer:
        found = (await consumer.committed((topic, 0)))[topic, 0]
        assert found is not None
        assert found.offset == 1


async def process_once(
    client: kproto.Client, source: str, target: str, protocol: Literal["classic", "consumer"]
) -> None:
    """Moves records from `source` to `target` in transactions; checks that each arrives once.

    Sends the records to `source` first. Some transactions fail at random and are aborted.
    """
    chance = random.Random(3)
    values = [b"%d" % at for at in range(100)]
    async with client.producer() as plain:
        await plain.send_many(source, [kproto.ProducerRecord(each, partition=0) for each in values])
    done = aborts = 0
    transactional_id = new_id()
    async with (
        client.producer(transactional_id=transactional_id) as producer,
        client.consumer(
            source,
            group=f"group-{uuid.uuid4().hex}",
            group_protocol=protocol,
            read_committed=True,
            auto_commit_interval_ms=10,
        ) as consumer,
    ):
        while done < len(values):
            polled = await consumer.poll(timeout_ms=1_000, max_records=7)
            try:
                async with producer.transaction() as transaction:
                    for records in polled.values():
                        await producer.send_many(
                            target,
                            [
                                kproto.ProducerRecord(record.value, partition=0)
                                for record in records
                            ],
                        )
                    await transaction.commit_offsets(consumer)
                    if chance.random() < 0.3:
                        raise ValueError("a failure of the program")
            except (ValueError, kproto.TransactionAbortedError):  # the latter in a rebalance
                aborts += 1
                await consumer.seek_to_committed()
            else:
                done += sum(map(len, polled.values()))
    assert aborts > 0
    await end_of(client, transactional_id)
    assert await committed(client, target) == values


async def test_loop_of_a_classic_member_processes_each_record_once(
    client: kproto.Client, topic: str
) -> None:
    target = f"{topic}-out"
    await client.create_topics(target)
    await process_once(client, topic, target, "classic")


async def test_loop_of_a_member_of_the_consumer_protocol(node848: KafkaNode) -> None:
    source, target = (f"{name}-{uuid.uuid4().hex}" for name in ("in", "out"))
    async with kproto.Client(node848.bootstrap) as client:
        await client.create_topics(source, target)
        await process_once(client, source, target, "consumer")
