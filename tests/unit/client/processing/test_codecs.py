"""Tests `run` and `run_batches` with codecs: handlers get decoded records, faults dead letters."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import (
    GroupConsumer,
    HandlerTransaction,
    ProducerRecord,
    Record,
    Retries,
    RetryTopic,
    Stop,
    UndecodableRecordError,
    failure_of,
)
from kproto.codecs import DecodeContext, StringCodec
from tests.unit.client.processing.orders import DEAD, Orders, orders, read_all

VALUES = [b"0", b"x", b"2", b"y", b"4", b"end"]


def number(data: bytes, context: DecodeContext) -> int:
    return -1 if data == b"end" else int(data)


class Seen:
    """Handlers that note what they get, and stop at the last record."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    async def record(self, record: Record[str, int]) -> None:
        assert record.key == "k"
        self.values.append(record.value)
        if record.value == -1:
            raise Stop(done=True)

    async def batch(self, records: list[Record[str, int]]) -> dict[int, Exception] | None:
        failed: dict[int, Exception] = {}
        for index, record in enumerate(records):
            if record.value == 2 and self.values.count(2) == 0:
                failed[index] = RuntimeError("fails once")
            self.values.append(record.value)
        if len(self.values) == 5:  # four records, one of them twice
            raise Stop(done=True)
        return failed


def typed(it: Orders) -> GroupConsumer[str, int]:
    return it.client.consumer(
        "orders", group="billing", key=StringCodec(), value=number, max_wait_ms=20
    )


async def send(it: Orders) -> None:
    await it.send([ProducerRecord(value, b"k", partition=0) for value in VALUES])


async def check_dead_letters(it: Orders) -> None:
    dead = await read_all(it.client, DEAD)
    assert sorted((each.key, each.value) for each in dead) == [(b"k", b"x"), (b"k", b"y")]
    for each in dead:
        failure = failure_of(each)
        assert failure is not None
        assert failure.attempts == 1
        assert failure.error_type.endswith("UndecodableRecordError")
        assert "the value cannot be decoded: ValueError: invalid literal" in failure.error_message
    assert await it.committed(0) == [len(VALUES)]


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_handler_gets_decoded_records_and_others_are_dead_letters(order: Any) -> None:
    seen = Seen()
    async with orders(0) as it:
        await send(it)
        async with typed(it) as consumer:
            summary = await consumer.run(
                seen.record, order=order, dead_letter_topic=DEAD, retries=Retries(3, backoff_ms=1)
            )
        assert (summary.handled, summary.retried, summary.dead_letters) == (4, 0, 2)
        assert seen.values == [0, 2, 4, -1]
        await check_dead_letters(it)


@pytest.mark.parametrize("order", ["partition", "none"])
async def test_batches_have_decoded_records_and_others_are_dead_letters(order: Any) -> None:
    seen = Seen()
    async with orders(0) as it:
        await send(it)
        async with typed(it) as consumer:
            summary = await consumer.run_batches(
                seen.batch,
                batch_size=3,
                order=order,
                dead_letter_topic=DEAD,
                retries=Retries(3, backoff_ms=1),
            )
        assert (summary.retried, summary.dead_letters) == (1, 2)
        assert sorted(seen.values) == [-1, 0, 2, 2, 4]
        await check_dead_letters(it)


async def test_decode_gets_decoded_records() -> None:
    found: list[Any] = []

    async def handle(doubled: int) -> None:
        found.append(doubled)
        if doubled == -2:
            raise Stop(done=True)

    async with orders(0) as it:
        await send(it)
        async with typed(it) as consumer:
            await consumer.run(
                handle, decode=lambda record: 2 * (record.value or 0), dead_letter_topic=DEAD
            )
        assert found == [0, 4, 8, -2]
        await check_dead_letters(it)


async def test_without_a_dead_letter_topic_run_raises_the_error_of_the_codec() -> None:
    seen = Seen()
    async with orders(0) as it:
        await send(it)
        async with typed(it) as consumer:
            with pytest.raises(UndecodableRecordError, match=r"orders\[0\] at offset 1"):
                await consumer.run(seen.record)
        assert await it.committed(0) == [1]


@pytest.mark.parametrize("batches", [False, True])
async def test_transactions_have_decoded_records_and_dead_letters(batches: bool) -> None:
    found: list[Any] = []

    async def handle(record: Record[str, int], transaction: HandlerTransaction) -> None:
        found.append(record.value)
        await transaction.send("out", str(record.value).encode())
        if record.value == -1:
            raise Stop(done=True)

    async def handle_batch(
        records: list[Record[str, int]], transaction: HandlerTransaction
    ) -> None:
        for record in records:
            found.append(record.value)
            await transaction.send("out", str(record.value).encode())
        if records[-1].value == -1:
            raise Stop(done=True)

    async with orders(0, topics=(DEAD, "out")) as it:
        await send(it)
        async with typed(it) as consumer:
            if batches:
                await consumer.run_batches(
                    handle_batch, transactional_id="t", dead_letter_topic=DEAD
                )
            else:
                await consumer.run(handle, transactional_id="t", dead_letter_topic=DEAD)
        assert sorted(each.value or b"" for each in await read_all(it.client, "out")) == [
            b"-1",
            b"0",
            b"2",
            b"4",
        ]
        await check_dead_letters(it)


async def test_retry_topic_has_the_bytes_of_a_failed_record() -> None:
    found: list[Any] = []

    async def handle(record: Record[str, int]) -> None:
        found.append((record.topic, record.value))
        if record.topic == "orders":
            raise RuntimeError("later")
        raise Stop(done=True)

    async with orders(0, topics=(DEAD, "retry")) as it:
        await it.send([ProducerRecord(b"5", b"k")])
        async with typed(it) as consumer:
            await consumer.run(
                handle, retry_topics=[RetryTopic("retry", delay_ms=1)], dead_letter_topic=DEAD
            )
        (again,) = await read_all(it.client, "retry")
    assert (again.key, again.value) == (b"k", b"5")
    assert found == [("orders", 5), ("retry", 5)]
