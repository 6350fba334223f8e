"""Tests that a refused record fails alone (KIP-467): the rest of its batch is sent again."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from kproto.clock import SYSTEM_CLOCK
from tests.unit.client.producer.test_encoded_batches import TWO

COMPACTED = {"cleanup.policy": "compact"}


def record(number: int, *, valid: bool) -> kproto.ProducerRecord:
    return kproto.ProducerRecord(b"%d" % number, key=b"k" if valid else None)


def values(broker: Broker) -> list[bytes | None]:
    return [each.value for each in broker.records("t")]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("invalid", [{0}, {9}, {3, 4}, {0, 2, 9}, {*range(9)}, {*range(10)}])
async def test_valid_records_of_a_refused_batch_are_stored(
    *, idempotent: bool, invalid: set[int]
) -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", configs=COMPACTED)
        async with client.producer(idempotent=idempotent) as producer:
            records = [record(number, valid=number not in invalid) for number in range(10)]
            with pytest.raises(kproto.DeliveryError, match="no record without a key") as caught:
                await producer.send_many("t", records)
            assert [each.value for each in caught.value.records] == [
                b"%d" % number for number in sorted(invalid)
            ]
            ack = await producer.send("t", b"after", key=b"k")
    stored = [b"%d" % number for number in range(10) if number not in invalid]
    assert values(broker) == [*stored, b"after"]
    assert ack.offset == len(stored)


async def test_each_call_gets_the_outcome_of_its_record() -> None:
    """Concurrent calls share a batch; only the calls with an invalid record fail."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"message.timestamp.after.max.ms": "1000"})
        late = SYSTEM_CLOCK.now_ms() + 10_000_000
        async with client.producer(linger_ms=50) as producer:
            outcomes: Any = await asyncio.gather(
                producer.send("t", b"0"),
                producer.send("t", b"1", timestamp=late),
                producer.send("t", b"2"),
                producer.send("t", b"3", timestamp=late + 1),
                return_exceptions=True,
            )
        assert [each.offset for each in (outcomes[0], outcomes[2])] == [0, 1]
        assert f"the timestamp is {late} ms" in str(outcomes[1])
        assert f"the timestamp is {late + 1} ms" in str(outcomes[3])
        assert values(broker) == [b"0", b"2"]


@pytest.mark.parametrize("seed", range(8))
async def test_order_and_count_with_several_batches_in_flight(seed: int) -> None:
    """Valid records are stored once and in order, although many batches are refused."""
    chance = random.Random(seed)
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", configs=COMPACTED)
        deliveries = []
        async with client.producer(batch_bytes=300) as producer:
            for number in range(200):
                valid = chance.random() < 0.9
                each = record(number, valid=valid)
                delivery = await producer.enqueue("t", each.value, key=each.key)
                deliveries.append((number, valid, delivery))
                if chance.random() < 0.1:
                    await asyncio.sleep(0)
            for number, valid, delivery in deliveries:
                if valid:
                    ack = await delivery
                    assert broker.records("t")[ack.offset].value == b"%d" % number
                else:
                    with pytest.raises(kproto.DeliveryError) as caught:
                        await delivery
                    assert [each.value for each in caught.value.records] == [b"%d" % number]
    assert values(broker) == [b"%d" % number for number, valid, _ in deliveries if valid]


async def test_many_invalid_records_take_little_time() -> None:
    """Every second record of large batches is invalid.

    The producer resends the valid records of each batch in one new batch.
    """
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", configs=COMPACTED)
        async with client.producer(batch_bytes=80_000, linger_ms=50) as producer:
            deliveries = [
                await producer.enqueue("t", b"%d" % at, key=b"k" if at % 2 else None)
                for at in range(4_000)
            ]
            await asyncio.wait_for(asyncio.gather(*deliveries, return_exceptions=True), timeout=30)
        failed = [at for at, each in enumerate(deliveries) if each.failure() is not None]
    assert failed == list(range(0, 4_000, 2))
    assert values(broker) == [b"%d" % at for at in range(1, 4_000, 2)]


async def test_encoded_batch_shares_no_batch_with_other_calls() -> None:
    """Otherwise `send_batch` would report the record of another call as its own."""
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"message.timestamp.after.max.ms": "1000"})
        late = SYSTEM_CLOCK.now_ms() + 10_000_000
        async with client.producer(linger_ms=50) as producer:
            await producer.send("t", b"first")
            batch = await producer.send_batch("t", 0, TWO)
            single = await producer.enqueue("t", b"late", timestamp=late)
            assert (await batch).offset == 1
            with pytest.raises(kproto.DeliveryError, match="the timestamp is"):
                await single
    assert values(broker) == [b"first", b"x", b"y"]
