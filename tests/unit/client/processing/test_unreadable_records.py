"""Tests that unreadable records become dead letters, and that large dead letters are cut."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from kproto import (
    DeliveryError,
    NewTopic,
    ProducerRecord,
    Record,
    Retries,
    Stop,
    UnreadableRecordError,
    failure_of,
)
from kproto.client.processing.handlers import UNREADABLE_HEADER
from kproto.clock import SYSTEM_CLOCK
from kproto.messages import ProduceRequest
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import RecordBatch
from kproto.records.varints import encode_varint
from tests.unit.client.processing.orders import DEAD, TOPIC, Orders, orders, read_all
from tests.unit.records.batches import batch_bytes, record_bytes

SOON = Retries(2, backoff_ms=1)


def with_unreadable(count: int, *unreadable: int) -> tuple[bytes, dict[int, bytes]]:
    """Returns a gzip batch of `count` records, and the bytes of its `unreadable` records.

    Brokers store such a batch, because they do not verify the lengths of compressed records.
    """
    records = {at: numbered(at, length=1 if at in unreadable else None) for at in range(count)}
    batch = batch_bytes(
        gzip.compress(b"".join(records.values())),
        attributes=1,
        record_count=count,
        last_offset_delta=count - 1,
    )
    return batch, {at: records[at] for at in unreadable}


def numbered(at: int, *, length: int | None = None, header_block: bytes = b"\x00") -> bytes:
    value = b"%d" % at
    return record_bytes(
        offset_delta=encode_varint(at),
        value=encode_varint(len(value)) + value,
        length=length,
        header_block=header_block,
    )


async def append(it: Orders, batch: bytes, topic: str = TOPIC) -> None:
    """Produces a batch of any bytes, which the broker must store."""
    data = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    response = await it.client.request(request, version=9)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == 0, answer


def until_last(it: Orders, last: bytes = b"end") -> Any:
    async def handle(record: Record) -> None:
        it.note(record)
        if record.value == last:
            raise Stop(done=True)

    return handle


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_unreadable_record_becomes_a_dead_letter_with_its_bytes(order: Any) -> None:
    batch, raw = with_unreadable(6, 2, 4)
    async with orders(0) as it:
        await append(it, batch)
        await it.send([ProducerRecord(b"end", b"k")])
        async with it.consumer() as consumer:
            summary = await consumer.run(
                until_last(it), order=order, workers=1, retries=SOON, dead_letter_topic=DEAD
            )
        assert sorted(it.handled) == [(0, at) for at in (0, 1, 3, 5, 6)]
        assert (summary.dead_letters, summary.retried) == (2, 0)
        assert await it.committed(0) == [7]
        letters = await read_all(it.client, DEAD)
        assert [letter.value for letter in letters] == list(raw.values())
        for letter, offset in zip(letters, raw, strict=True):
            failure = failure_of(letter)
            assert failure is not None
            assert (failure.topic, failure.partition, failure.offset) == (TOPIC, 0, offset)
            assert failure.error_type == "kproto.wire.errors.UnreadableRecordError"
            assert failure.error_message.startswith(f"{TOPIC}[0] at offset {offset}: ")
            assert failure.headers == ((UNREADABLE_HEADER, b"record"),)
            assert letter.key is None


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_unreadable_record_is_not_in_a_batch_and_becomes_a_dead_letter(order: Any) -> None:
    batch, raw = with_unreadable(6, 2, 4)
    async with orders(0) as it:
        await append(it, batch)
        await it.send([ProducerRecord(b"end", b"k")])

        async def handle(records: list[Record]) -> None:
            for record in records:
                it.note(record)
            if records[-1].value == b"end":
                raise Stop(done=True)

        async with it.consumer() as consumer:
            summary = await consumer.run_batches(
                handle, order=order, workers=1, retries=SOON, dead_letter_topic=DEAD
            )
        assert sorted(it.handled) == [(0, at) for at in (0, 1, 3, 5, 6)]
        assert (summary.handled, summary.dead_letters, summary.retried) == (5, 2, 0)
        assert await it.committed(0) == [7]
        assert [letter.value for letter in await read_all(it.client, DEAD)] == list(raw.values())


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_unreadable_record_without_dead_letter_topic_is_raised(order: Any) -> None:
    batch, _ = with_unreadable(4, 2)
    async with orders(0) as it:
        await append(it, batch)
        for _ in range(2):
            async with it.consumer() as consumer:
                with pytest.raises(UnreadableRecordError, match=r"orders\[0\] at offset 2: "):
                    await consumer.run(until_last(it), order=order, workers=1, retries=SOON)
        assert await it.committed(0) == [2]
        async with it.consumer() as consumer:
            await consumer.run(
                until_last(it, b"3"), order=order, retries=SOON, dead_letter_topic=DEAD
            )
        assert await it.committed(0) == [4]


async def test_unreadable_record_of_a_retry_topic_becomes_a_dead_letter() -> None:
    async with orders(1, topics=(DEAD, "orders.retry.1ms")) as it:
        batch, raw = with_unreadable(1, 0)
        await append(it, batch, "orders.retry.1ms")

        async def handle(record: Record) -> None:
            it.note(record)
            if record.topic == TOPIC:
                raise ValueError
            raise Stop(done=True)

        async with it.consumer() as consumer:
            await consumer.run(
                handle, retries=0, retry_topics=["orders.retry.1ms"], dead_letter_topic=DEAD
            )
        assert [letter.value for letter in await read_all(it.client, DEAD)] == [raw[0]]


async def test_async_for_commits_an_unreadable_record_at_the_next_poll() -> None:
    batch, _ = with_unreadable(4, 1)
    async with orders(0) as it:
        await append(it, batch)
        async with it.consumer() as consumer:
            records = aiter(consumer)
            seen = [(await anext(records)).offset]
            with pytest.raises(UnreadableRecordError):
                await anext(records)
            await consumer.commit()
            assert await it.committed(0) == [1]
            async for record in consumer:
                seen.append(record.offset)
                await consumer.commit()
                if record.offset == 3:
                    break
            assert seen == [0, 2, 3]
        assert await it.committed(0) == [4]


async def test_record_with_unreadable_headers_becomes_a_dead_letter_without_retry() -> None:
    block = b"\x04\x02a\x02b"
    batch = batch_bytes(numbered(0, header_block=block))
    async with orders(0, topics=(DEAD, "orders.retry.1ms")) as it:
        # Kafka's brokers refuse such a batch, but their logs may have it from other sources.
        log = it.broker._cluster.topics.named(TOPIC).partitions[0].log
        log.append(RecordBatch(batch), now_ms=SYSTEM_CLOCK.now_ms())
        await it.send([ProducerRecord(b"end", b"k")])

        async def handle(record: Record) -> None:
            _ = record.headers
            await until_last(it)(record)

        async with it.consumer() as consumer:
            summary = await consumer.run(
                handle, retries=SOON, retry_topics=["orders.retry.1ms"], dead_letter_topic=DEAD
            )
        assert summary == (1, 0, 0, 1)
        (letter,) = await read_all(it.client, DEAD)
        failure = failure_of(letter)
        assert failure is not None
        assert failure.headers == (("kproto.unreadable.headers", block),)
        assert (letter.key, letter.value) == (b"k", b"0")


@pytest.mark.parametrize("order", ["partition", "key", "none"])
@pytest.mark.parametrize("odd", [-(2**31), -1, 0, 2, 1000, 2**31 - 1])
async def test_record_outside_of_its_batch_becomes_a_dead_letter_and_hides_none(
    odd: int, order: Any
) -> None:
    """Brokers do not check the offsets of the records in uncompressed batches.

    The consumer reads the records after such a record.
    """
    records = [
        record_bytes(offset_delta=encode_varint(delta), key=key)
        for delta, key in ((0, b"\x02a"), (odd, b"\x02b"), (2, b"\x02c"))
    ]
    batch = batch_bytes(b"".join(records), record_count=3, last_offset_delta=2)
    async with orders(3) as it:
        await append(it, batch)
        await it.send([b"x", b"x", b"x"])

        async def stop_at_5(record: Record) -> None:
            if record.offset == 5:
                raise Stop
            it.note(record)

        async with it.consumer() as consumer:
            await consumer.run(stop_at_5, order=order, dead_letter_topic=DEAD)
        await it.send([b"%d" % at for at in range(300)] + [b"end"])
        async with it.consumer() as consumer:
            await consumer.run(until_last(it), order=order, dead_letter_topic=DEAD)
        handled = {offset for _, offset in it.handled}
        assert handled == {0, 1, 2, 3, *range(5, 310)}
        (letter,) = await read_all(it.client, DEAD)
        assert letter.value == records[1]
        failure = failure_of(letter)
        assert failure is not None
        assert failure.offset == 4


async def test_header_name_that_is_no_utf8_is_forwarded_byte_for_byte() -> None:
    async with orders(0) as it:
        await append(it, batch_bytes(numbered(0, header_block=b"\x02\x04\xff\xfe\x02v")))

        async def handle(record: Record) -> None:
            if record.value == b"0":
                raise ValueError(record.headers[0][0])
            raise Stop(done=True)

        await it.send([ProducerRecord(b"end", b"k")])
        async with it.consumer() as consumer:
            await consumer.run(handle, retries=0, dead_letter_topic=DEAD)
        (letter,) = await read_all(it.client, DEAD)
        failure = failure_of(letter)
        assert failure is not None
        assert failure.headers == (("\udcff\udcfe", b"v"),)
        assert failure.headers[0][0].encode("utf-8", "surrogateescape") == b"\xff\xfe"


@pytest.mark.parametrize(
    ("size", "has_failure", "message"),
    [(100, True, "no money" * 40), (500, True, ""), (800, False, None), (1000, None, None)],
)
async def test_dead_letter_that_is_too_large_is_sent_with_fewer_headers(
    size: int, has_failure: bool | None, message: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with orders(0, topics=()) as it:
        await it.client.create_topics(NewTopic(DEAD, 1, configs={"max.message.bytes": "950"}))
        await it.send([ProducerRecord(b"v" * size, b"k", headers=[("h", b"1")]), b"end"])

        async def handle(record: Record) -> None:
            if record.offset == 0:
                raise ValueError("no money" * 40)
            raise Stop(done=True)

        async with it.consumer() as consumer:
            if has_failure is None:
                with pytest.raises(DeliveryError) as raised:
                    await consumer.run(handle, retries=0, dead_letter_topic=DEAD)
                assert any("orders[0] at offset 0" in note for note in raised.value.__notes__)
                return
            summary = await consumer.run(handle, retries=0, dead_letter_topic=DEAD)
        assert summary.dead_letters == 1
        (letter,) = await read_all(it.client, DEAD)
        assert (letter.key, letter.value, letter.headers[0]) == (b"k", b"v" * size, ("h", b"1"))
        failure = failure_of(letter)
        assert (failure is not None) == has_failure
        if failure is not None:
            assert (failure.offset, failure.error_message) == (0, message)
        assert ("orders[0] at offset 0 was too large" in caplog.text) == (
            message != "no money" * 40
        )


async def test_decode_that_raises_makes_a_dead_letter_and_run_goes_on() -> None:
    async with orders(3) as it:

        def decode(record: Record) -> int:
            if record.offset == 1:
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text")
            return record.offset

        async def handle(number: int) -> None:
            it.handled.append((0, number))
            if number == 2:
                raise Stop(done=True)

        async with it.consumer() as consumer:
            summary = await consumer.run(handle, decode=decode, dead_letter_topic=DEAD)
        assert (it.handled, summary.dead_letters) == ([(0, 0), (0, 2)], 1)
