"""Tests that the log has the committed transactions, despite random faults and cancellations.

If the block of a transaction ends without an error, the whole transaction is committed. If the
block raises an error, nothing is committed. If the error calls the outcome unknown, the whole
transaction or nothing is committed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from kproto import (
    Client,
    DeliveryError,
    FatalTransactionError,
    Producer,
    TransactionAbortedError,
)
from kproto.broker import Broker
from kproto.broker.faults import Close, CutFrame, Delay, ErrorCode
from kproto.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kproto.protocol.connection import ReceivedRequest
from tests.support.selection import rest_slow
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    scene,
    state_of,
)
from tests.unit.client.scripted_broker import quick

SETTINGS = quick(
    metadata_wait_ms=500, delivery_timeout_ms=5_000, error_flush_ms=2_000, cancelled_close_ms=3_000
)

#: Errors that a broker may return for each request, for as long as a fault lasts.
ERRORS = {
    "ProduceRequest": ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "OUT_OF_ORDER_SEQUENCE_"],
    "EndTxnRequest": ["CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS"],
    "TxnOffsetCommitRequest": ["NOT_COORDINATOR", "ILLEGAL_GENERATION"],
    "AddPartitionsToTxnRequest": ["CONCURRENT_TRANSACTIONS", "NOT_COORDINATOR"],
    "InitProducerIdRequest": ["CONCURRENT_TRANSACTIONS"],
}


def faults(chance: random.Random) -> Any:
    def decide(request: ReceivedRequest) -> Any:
        drawn = chance.random()
        if drawn < 0.04:
            return CutFrame(0)(request)
        if drawn < 0.08:
            return Close()
        if drawn < 0.12:
            return Delay(chance.randrange(30))
        if drawn < 0.18:
            name = chance.choice(ERRORS[request.name])
            return ErrorCode(name + "NUMBER" if name.endswith("_") else name)(request)
        return None

    return decide


async def run_one(producer: Producer, chance: random.Random, values: list[bytes]) -> None:
    """Sends values in a transaction by random calls; aborts or fails at random."""
    async with producer.transaction() as transaction:
        left = list(values)
        while left:
            count = chance.randrange(1, 4)
            some, left = left[:count], left[count:]
            way = chance.randrange(3)
            if way == 0:
                await producer.send_many("t", some)
            elif way == 1:
                await asyncio.gather(*(producer.send("t", value) for value in some))
            else:
                for value in some:
                    await producer.enqueue("t", value)
        if chance.random() < 0.3:
            await transaction.commit_offsets({("t", 0): 1}, group_id="g")
        drawn = chance.random()
        if drawn < 0.1:
            raise ValueError("a failure of the program")
        if drawn < 0.2:
            await transaction.abort()
            raise ValueError("aborted")


async def ended(
    producer: Producer, chance: random.Random, values: list[bytes]
) -> tuple[bool | None, bool]:
    """Runs a transaction, and cancels it at random.

    Returns the outcome, and whether the producer can be used again. The outcome is True if the
    transaction was committed, False if it was not, and None if this is unknown.
    """
    task = asyncio.create_task(run_one(producer, chance, values))
    is_cancelled = chance.random() < 0.25
    if is_cancelled:
        await asyncio.wait([task], timeout=chance.random() * 0.02)
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=chance.random() * 0.01)
    try:
        await task
    except (ValueError, TransactionAbortedError, DeliveryError):
        return False, True
    except FatalTransactionError as error:
        return (None if "unknown whether" in str(error) else False), False
    except asyncio.CancelledError:
        return None, True  # cancelled before or after EndTxn was sent
    return True, True


async def read_committed(client: Client) -> list[bytes]:
    consumer = client.consumer([("t", 0)], stop_at_end=True, read_committed=True)
    return [record.value or b"" async for record in consumer]


@BOTH_VERSIONS
@pytest.mark.parametrize("seed", rest_slow(range(8), few=1, everyday=4))
async def test_log_has_exactly_the_committed_records(version: int, seed: int) -> None:
    chance = random.Random(seed)
    async with scene(version, SETTINGS) as (broker, client):
        assert isinstance(broker, Broker)
        control = faults(chance)
        for each in (
            ProduceRequest,
            EndTxnRequest,
            TxnOffsetCommitRequest,
            AddPartitionsToTxnRequest,
            InitProducerIdRequest,
        ):
            broker.control(control, request=each)
        outcomes: list[tuple[list[bytes], bool | None]] = []
        producer = client.producer(transactional_id=ID, batch_bytes=150)
        for number in range(25):
            values = [b"%d.%d" % (number, at) * 10 for at in range(chance.randrange(12))]
            outcome, continues = await ended(producer, chance, values)
            outcomes.append((values, outcome))
            if not continues:
                await producer.close()
                producer = client.producer(transactional_id=ID, batch_bytes=150)
        await producer.close()
        async with client.producer(transactional_id=ID):
            state = await state_of(client)
            assert state in ("CompleteCommit", "CompleteAbort", "Empty")
        found = await read_committed(client)
    position = 0
    for values, outcome in outcomes:
        there = sorted(found[position : position + len(values)]) == sorted(values)
        if outcome is True:
            assert there, values
        if outcome is not False and there:
            position += len(values)
    assert position == len(found)
    assert sum(outcome is True for _, outcome in outcomes) > 5
