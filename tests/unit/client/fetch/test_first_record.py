"""Tests the start of a consumer of many partitions, up to its first record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, Consumer, ProducerRecord
from kproto.broker import Broker
from kproto.client.fetch.fetch_plan import FetchPlanner
from kproto.client.fetch.fetcher import Fetcher
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.wire.errors import CorruptBatchError
from tests.support.embedded import threaded_broker
from tests.support.steps import Steps, counted_steps

MANY = 300

#: The functions without the checks of all client tests, which look at all partitions.
PLAN = FetchPlanner.plan
FETCH_AT = Fetcher._fetch_at


class Processed:
    """Counts the partitions of responses that a fetcher has processed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states: list[TopicPartitionState] = []
        self.broken: int | None = None
        take = Fetcher._take_partition

        def count(fetcher: Fetcher, node: int, state: TopicPartitionState, *rest: Any) -> None:
            self.states.append(state)
            if state.partition == self.broken:
                raise CorruptBatchError("broken")
            take(fetcher, node, state, *rest)

        monkeypatch.setattr(Fetcher, "_take_partition", count)


@pytest.fixture
def processed(monkeypatch: pytest.MonkeyPatch) -> Processed:
    return Processed(monkeypatch)


@asynccontextmanager
async def consumer_of_many(count: int = MANY) -> AsyncIterator[Consumer]:
    """Yields a consumer of `count` partitions, each with one record: its own number."""
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", count)
        async with client.producer() as producer:
            records = [ProducerRecord(b"%d" % at, partition=at) for at in range(count)]
            await producer.send_many("t", records)
        yield client.consumer("t")


async def test_first_record_is_returned_before_the_rest_of_the_response(
    processed: Processed,
) -> None:
    async with consumer_of_many() as consumer:
        records = aiter(consumer)
        found = [(await anext(records)).partition]
        assert len(processed.states) == 1
        found += [(await anext(records)).partition for _ in range(MANY - 1)]
    assert sorted(found) == list(range(MANY))
    assert len(processed.states) == MANY, "each partition of the response is processed once"


async def test_rest_of_the_response_is_processed_while_the_caller_waits(
    processed: Processed,
) -> None:
    async with consumer_of_many() as consumer:
        records = aiter(consumer)
        await anext(records)
        await asyncio.sleep(0)
        assert len(processed.states) == MANY
        _, fetch = next(iter(consumer._in_flight.fetches.values()))
        assert fetch.response is None, "the next fetch is in flight"
        await consumer.close()


async def test_response_with_few_partitions_is_processed_at_once(processed: Processed) -> None:
    async with consumer_of_many(100) as consumer:
        await anext(aiter(consumer))
        assert len(processed.states) == 100


async def test_error_in_the_rest_of_the_response_loses_no_record(processed: Processed) -> None:
    processed.broken = 200
    async with consumer_of_many() as consumer:
        records = aiter(consumer)
        found = [(await anext(records)).partition for _ in range(MANY - 1)]
        assert sorted(found) == [at for at in range(MANY) if at != 200]
        with pytest.raises(CorruptBatchError, match="broken"):
            await anext(records)


async def test_iteration_that_ends_after_the_first_record_loses_no_record() -> None:
    async with consumer_of_many() as consumer:
        records = aiter(consumer)
        found = [(await anext(records)).partition]
        await records.aclose()
        records = aiter(consumer)
        found += [(await anext(records)).partition for _ in range(MANY - 1)]
    assert sorted(found) == list(range(MANY))


async def test_seek_before_the_rest_of_the_response_moves_the_position() -> None:
    """The response of a partition is not used if the partition was moved meanwhile."""
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", MANY)
        async with client.producer() as producer:
            for value in (b"a", b"b"):
                records = [ProducerRecord(value, partition=at) for at in range(MANY)]
                await producer.send_many("t", records)
        tps = [("t", at) for at in range(MANY)]
        async with client.consumer(tps, group="g", start="earliest") as consumer:
            polled = aiter(consumer)
            first = await anext(polled)
            other = (first.partition + 1) % MANY
            consumer.seek(("t", other), 1)
            values = [first.value or b""]
            while len(values) < 2 * MANY - 1:
                record = await anext(polled)
                values.append(record.value or b"")
                assert record.partition != other or record.value == b"b"
    assert sorted(values) == [b"a"] * (MANY - 1) + [b"b"] * MANY


async def test_start_takes_few_steps_of_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts the client's lines from its start to the first record, of 1,000 partitions."""
    monkeypatch.setattr(FetchPlanner, "plan", PLAN)
    monkeypatch.setattr(Fetcher, "_fetch_at", FETCH_AT)
    found = [await steps_to_the_first_record(count) for count in (200, 1_200)]
    assert 0 < (found[1] - found[0]) / 1_000 < 280


async def steps_to_the_first_record(partitions: int) -> int:
    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic("t", partitions))
        async with Client(broker.bootstrap) as client:
            async with client.producer() as producer:
                await producer.send("t", b"", partition=0)
            steps = Steps()
            with counted_steps(steps):
                await anext(aiter(client.consumer("t")))
    return steps.count
