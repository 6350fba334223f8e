"""Tests lazy decoding of batches: lists of records, lists of values, raw batches, and faults."""

from __future__ import annotations

import asyncio
import copy
import gzip
import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import (
    Client,
    Consumer,
    CorruptBatchError,
    FetchedBatch,
    FetchedValues,
    UnreadableRecordError,
)
from kproto.broker import Broker
from kproto.client.fetch.completed_fetch import _LIST_RECORDS
from kproto.messages.fetch_response import AbortedTransaction
from kproto.records import LegacyBatch, encode_batch, encode_message_set
from kproto.tasks import start_task
from kproto.testing.clock import ManualClock
from kproto.wire.errors import MissingCodecError
from tests.unit.client.scripted_broker import ScriptedBroker, quick
from tests.unit.client.scripted_log import ABORT, COMMIT, ScriptedLog, batch, marker
from tests.unit.records.batches import batch_bytes, record_bytes

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


@asynccontextmanager
async def cluster(**topics: int) -> AsyncIterator[tuple[ScriptedLog, Client]]:
    async with ScriptedBroker(topics) as broker, Client(broker.bootstrap, QUICK) as client:
        yield ScriptedLog(broker), client


def numbers(first: int, end: int) -> list[Any]:
    return [b"%d" % number for number in range(first, end)]


def iteration(consumer: Consumer, kind: str) -> Any:
    kinds: dict[str, Callable[[], Any]] = {
        "records": lambda: aiter(consumer),
        "record_lists": consumer.record_lists,
        "values": consumer.values,
        "raw": consumer.raw_batches,
    }
    return kinds[kind]()


def values_of(fetched: Any) -> list[bytes | None]:
    """Returns the record values of one item that an iteration of any kind in `KINDS` yields."""
    if isinstance(fetched, FetchedValues):
        return fetched.values
    if isinstance(fetched, FetchedBatch):
        return fetched.batch.values()
    records = getattr(fetched, "records", None) or [fetched]
    return [record.value for record in records]


async def all_values(consumer: Consumer, kind: str) -> list[bytes | None]:
    return [value async for fetched in iteration(consumer, kind) for value in values_of(fetched)]


KINDS = ["records", "record_lists", "values", "raw"]
OPENING = ["records", "record_lists", "values"]


# --- Lists ---


async def test_large_batch_is_split_and_small_ones_are_joined() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, numbers(0, 1200)))
        for at in range(1200, 2300):
            log.append(batch(at, numbers(at, at + 1)))
        async with client.consumer("t", stop_at_end=True) as consumer:
            sizes = []
            seen = 0
            async for fetched in consumer.record_lists():
                sizes.append(len(fetched.records))
                assert [record.offset for record in fetched.records] == [
                    *range(seen, seen + len(fetched.records))
                ]
                seen += len(fetched.records)
                assert consumer.positions == {("t", 0): seen}
            assert seen == 2300
            assert max(sizes) == _LIST_RECORDS
            assert len(sizes) <= 6
            assert len(log.fetches) == 1


async def test_empty_batch_between_others_is_skipped() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        log.append(batch_bytes(b"", record_count=0, base_offset=1, last_offset_delta=8))
        log.append(batch(10, [b"b"]))
        for kind in KINDS:
            consumer = client.consumer("t", stop_at_end=True)
            assert await all_values(consumer, kind) == [b"a", b"b"]
            assert consumer.positions == {("t", 0): 11}


# --- Values ---


async def test_values_have_their_partition_and_next_offset() -> None:
    async with cluster(t=1) as (log, client):
        log.append(encode_batch([(b"k", None, (), 1), (None, b"a", [("h", b"")], 2)]))
        log.append(batch(9, numbers(0, 700)))
        async with client.consumer("t", stop_at_end=True) as consumer:
            values = consumer.values()
            first = await anext(values)
            assert first == ("t", 0, [None, b"a"], 2, 709)
            assert consumer.positions == {("t", 0): 9}, "the base offset of the next batch"
            assert await anext(values) == FetchedValues("t", 0, numbers(0, 700), 709, 709)
            with pytest.raises(StopAsyncIteration):
                await anext(values)


@pytest.mark.parametrize("kind", KINDS)
async def test_control_and_aborted_batches_are_hidden(kind: str) -> None:
    """Control batches are always hidden; aborted batches are hidden only with `read_committed`."""

    def mine(base_offset: int, value: bytes, producer_id: int) -> bytes:
        return batch(
            base_offset, [value], producer_id=producer_id, producer_epoch=0, is_transactional=True
        )

    async with cluster(t=1) as (log, client):
        log.append(mine(0, b"aborted", 4))
        log.append(mine(1, b"committed", 5))
        log.append(mine(2, b"aborted too", 4))
        log.append(marker(3, ABORT, 4))
        log.append(mine(4, b"second try", 4))
        log.append(marker(5, COMMIT, 5))
        log.append(marker(6, COMMIT, 4))
        log.aborted = [AbortedTransaction(producer_id=4, first_offset=0)]
        consumer = client.consumer("t", stop_at_end=True, read_committed=True)
        assert await all_values(consumer, kind) == [b"committed", b"second try"]
        assert consumer.positions == {("t", 0): 7}
        consumer = client.consumer("t", stop_at_end=True)
        assert len(await all_values(consumer, kind)) == 4


@pytest.mark.parametrize("size", [5, 1000])
@pytest.mark.parametrize("kind", OPENING)
async def test_start_and_end_inside_batches_are_exact(kind: str, size: int) -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, numbers(0, size)))
        log.append(batch(size, numbers(size, size + 2)))
        async with client.consumer("t", stop_at_end=True, start={("t", 0): 3}) as consumer:
            log.batches["t", 0][1] = batch(size, numbers(size, size + 700))
            log.following["t", 0][1] = size + 700
            assert await all_values(consumer, kind) == numbers(3, size + 2)
            assert consumer.positions == {("t", 0): size + 2}


# --- Raw batches ---


async def test_raw_batches_are_whole_and_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch begins before the start offset; the last batch ends after the end offset."""
    import sys

    async with cluster(t=1) as (log, client):
        log.append(batch(0, numbers(0, 4), compression="snappy"))
        log.append(batch(4, numbers(4, 6)))
        async with client.consumer("t", stop_at_end=True, start={("t", 0): 2}) as consumer:
            log.batches["t", 0][1] = batch(4, numbers(4, 9))
            monkeypatch.setitem(sys.modules, "cramjam", None)  # raw batches are not decompressed
            raw = consumer.raw_batches()
            first, second = [fetched async for fetched in raw]
            assert [first.batch.raw, second.batch.raw] == log.batches["t", 0]
            assert first[:2] == ("t", 0)
            assert first.high_watermark == 6
            assert [record.offset for record in second.batch.records()] == [4, 5, 6, 7, 8]
            assert consumer.positions == {("t", 0): 6}
            with pytest.raises(MissingCodecError):
                first.batch.records()


async def test_copy_of_a_fetched_item_equals_it() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, numbers(0, 4)))
        for kind in KINDS:
            consumer = client.consumer("t", stop_at_end=True, start={("t", 0): 0})
            fetched = await anext(iteration(consumer, kind))
            assert copy.copy(fetched) == copy.deepcopy(fetched) == fetched
            assert pickle.loads(pickle.dumps(fetched)) == fetched


async def test_raw_batch_with_a_wrong_checksum_raises_after_the_good_ones() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        log.append(batch(1, [b"b"]))
        log.damage(67, b"\xff")
        raw = client.consumer("t").raw_batches()
        assert (await anext(raw)).batch.values() == [b"a"]
        for _ in range(2):
            with pytest.raises(CorruptBatchError, match="CRC"):
                await anext(raw)


@pytest.mark.parametrize("magic", [0, 1])
async def test_message_set_is_read_by_every_kind(magic: int) -> None:
    """Each raw batch is one entry of the set; a wrapper has only the offset of its last message."""
    written: list[Any] = [(b"k", b"%d" % number, (), 5) for number in range(4)]
    async with cluster(t=1) as (log, client):
        plain = encode_message_set(written[:1], magic=magic)
        wrapper = encode_message_set(written[1:], magic=magic, base_offset=1, compression="gzip")
        log.batches["t", 0] = [plain + wrapper]
        log.following["t", 0] = [4]
        for kind in OPENING:
            consumer = client.consumer("t", stop_at_end=True, start={("t", 0): 0})
            assert await all_values(consumer, kind) == numbers(0, 4)
        async with client.consumer("t", stop_at_end=True) as consumer:
            raw = consumer.raw_batches()
            first = (await anext(raw)).batch
            assert isinstance(first, LegacyBatch)
            assert (first.magic, first.record_count, first.base_offset) == (magic, 1, 0)
            assert consumer.positions == {("t", 0): 1}
            second = (await anext(raw)).batch
            assert (second.record_count, second.base_offset) == (-1, 3)
            assert second.values() == numbers(1, 4)


# --- One iteration after another ---


@pytest.mark.parametrize("then", KINDS)
@pytest.mark.parametrize("read", [1, 2, 499, 500, 501, 999, 1000, 1001, 1002])
async def test_another_kind_resumes_at_the_position_of_records(then: str, read: int) -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, numbers(0, 1000)))
        log.append(batch(1000, numbers(1000, 1002)))
        log.append(batch(1002, numbers(1002, 1003)))
        async with client.consumer("t", stop_at_end=True) as consumer:
            records = aiter(consumer)
            found = [(await anext(records)).value for _ in range(read)]
            assert consumer.positions == {("t", 0): read}
            rest = await all_values(consumer, then)
            if then == "raw":  # a partly read batch is returned whole again
                whole = max(begin for begin in (0, 1000, 1002) if begin <= read)
                assert rest == numbers(whole, 1003)
            else:
                assert found + rest == numbers(0, 1003)
            assert consumer.positions == {("t", 0): 1003}


@pytest.mark.parametrize("then", KINDS)
@pytest.mark.parametrize("first", ["record_lists", "values", "raw"])
async def test_another_kind_resumes_at_the_position_of_lists(first: str, then: str) -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, numbers(0, 1000)))
        log.append(batch(1000, numbers(1000, 2000)))
        async with client.consumer("t", stop_at_end=True) as consumer:
            found = values_of(await anext(iteration(consumer, first)))
            position = len(found)
            assert position == (500 if first == "record_lists" else 1000)
            assert consumer.positions == {("t", 0): position}
            rest = await all_values(consumer, then)
            if then == "raw" and first == "record_lists":
                assert rest == numbers(0, 2000)
            else:
                assert found + rest == numbers(0, 2000)


async def test_alternating_kinds_read_each_record_once() -> None:
    async with cluster(t=1) as (log, client):
        for at in range(0, 60, 3):
            log.append(batch(at, numbers(at, at + 3)))
        async with client.consumer(
            "t", stop_at_end=True, max_partition_fetch_bytes=400
        ) as consumer:
            found: list[bytes | None] = []
            part_count = 0
            while True:
                kind = OPENING[part_count % 3]
                part_count += 1
                part = await anext(iteration(consumer, kind), None)
                if part is None:
                    break
                found += values_of(part)
                assert consumer.positions == {("t", 0): len(found)}
            assert found == numbers(0, 60)


# --- Faults ---


def unreadable(base_offset: int, good: int) -> bytes:
    """Returns a batch with a valid checksum: `good` records, and then one invalid record."""
    records = [
        record_bytes(offset_delta=_varint(at), value=_value(base_offset + at)) for at in range(good)
    ]
    payload = b"".join([*records, record_bytes(header_block=b"\x01", offset_delta=_varint(good))])
    return batch_bytes(
        payload, record_count=good + 1, last_offset_delta=good, base_offset=base_offset
    )


def _varint(number: int) -> bytes:
    from kproto.records.varints import encode_varint

    return encode_varint(number)


def _value(number: int) -> bytes:
    value = b"%d" % number
    return _varint(len(value)) + value


async def until_unreadable(
    consumer: Consumer, kind: str
) -> tuple[list[bytes | None], UnreadableRecordError]:
    """Reads until an unreadable record raises; returns the values before the error, and the error.

    Checks that the error names the topic, the partition and the offset of the record.
    """
    found: list[bytes | None] = []

    async def take() -> None:
        async for fetched in iteration(consumer, kind):
            found.extend(values_of(fetched))

    with pytest.raises(UnreadableRecordError) as raised:
        await take()
    error = raised.value
    assert (error.topic, error.partition) == ("t", 0)
    assert f"t[0] at offset {error.record_offset}: " in str(error)
    return found, error


async def until_fault(consumer: Consumer, kind: str) -> list[bytes | None]:
    """Reads until the unreadable record of `unreadable` raises; returns the values before it."""
    found, error = await until_unreadable(consumer, kind)
    assert "header count: negative header count" in str(error)
    assert (error.next_offset, error.content) == (error.record_offset + 1, "record")
    return found


@pytest.mark.parametrize("kind", OPENING)
@pytest.mark.parametrize("max_partition_fetch_bytes", [200, 1_000_000])
async def test_unreadable_record_raises_once_between_the_others(
    kind: str, max_partition_fetch_bytes: int
) -> None:
    async with cluster(t=1) as (log, client):
        for at in range(0, 12, 3):
            log.append(batch(at, numbers(at, at + 3)))
        log.batches["t", 0][2] = unreadable(6, good=2)
        async with client.consumer(
            "t", stop_at_end=True, max_partition_fetch_bytes=max_partition_fetch_bytes
        ) as consumer:
            found: list[bytes | None] = []
            while len(found) < 8:
                found += await until_fault(consumer, kind)
            assert found == numbers(0, 8)
            assert consumer.positions == {("t", 0): 9}
            assert await all_values(consumer, kind) == numbers(9, 12)


@pytest.mark.parametrize("kind", OPENING)
async def test_batch_of_unreadable_records_raises_for_each_of_them(kind: str) -> None:
    record = record_bytes(header_block=b"\x01", offset_delta=b"\x00")
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"0"]))
        log.append(batch_bytes(record * 3, record_count=3, last_offset_delta=2, base_offset=1))
        log.append(batch(4, [b"4"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            assert await until_fault(consumer, kind) == [b"0"]
            for position in (3, 4):
                assert await until_fault(consumer, kind) == []
                assert consumer.positions == {("t", 0): position}
            assert await all_values(consumer, kind) == [b"4"]


@pytest.mark.parametrize("kind", OPENING)
async def test_unreadable_record_inside_a_large_batch_raises_once(kind: str) -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"0"]))
        log.append(batch(1, numbers(1, 1300)))
        log.append(batch(1300, [b"1300"]))
        log.batches["t", 0][1] = unreadable(1, good=1298)
        async with client.consumer("t", stop_at_end=True) as consumer:
            assert await until_fault(consumer, kind) == numbers(0, 1299)
            assert await all_values(consumer, kind) == [b"1300"]


@pytest.mark.parametrize("kind", OPENING)
async def test_records_of_another_kind_of_iteration_continue_after_an_unreadable_one(
    kind: str,
) -> None:
    async with cluster(t=1) as (log, client):
        log.append(unreadable(0, good=3))
        log.append(batch(4, numbers(4, 6)))
        async with client.consumer("t", stop_at_end=True) as consumer:
            records = aiter(consumer)
            assert (await anext(records)).value == b"0"
            assert await until_fault(consumer, kind) == numbers(1, 3)
            assert await all_values(consumer, "raw") == numbers(4, 6)


@pytest.mark.parametrize("kind", OPENING)
async def test_record_with_a_wrong_length_is_unreadable_and_no_other(kind: str) -> None:
    """Brokers store a record with a wrong length if its batch is compressed."""
    records = [record_bytes(offset_delta=_varint(at), value=_value(at)) for at in range(5)]
    broken = b"\x7e" + records[2][1:]
    payload = b"".join([*records[:2], broken, *records[3:]])
    async with cluster(t=1) as (log, client):
        log.append(
            batch_bytes(gzip.compress(payload), record_count=5, last_offset_delta=4, attributes=1)
        )
        async with client.consumer("t", stop_at_end=True) as consumer:
            found, error = await until_unreadable(consumer, kind)
            assert found == numbers(0, 2)
            assert (error.record_offset, error.next_offset, error.content) == (2, 3, "record")
            assert error.raw == broken
            assert await all_values(consumer, kind) == numbers(3, 5)


@pytest.mark.parametrize("kind", OPENING)
@pytest.mark.parametrize("compression", [0, 1])
async def test_records_with_unknown_bounds_are_one_unreadable_record(
    kind: str, compression: int
) -> None:
    """The length and the header count of the third record are wrong."""
    records = [record_bytes(offset_delta=_varint(at), value=_value(at)) for at in range(5)]
    broken = b"\x7e" + records[2][1:-1] + b"\x01"
    payload = b"".join([*records[:2], broken, *records[3:]])
    stored = gzip.compress(payload) if compression else payload
    async with cluster(t=1) as (log, client):
        log.append(batch_bytes(stored, record_count=5, last_offset_delta=4, attributes=compression))
        log.append(batch(5, [b"5"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            found, error = await until_unreadable(consumer, kind)
            assert found == numbers(0, 2)
            assert (error.record_offset, error.next_offset, error.content) == (2, 5, "records")
            assert error.raw == broken + b"".join(records[3:])
            assert await all_values(consumer, kind) == [b"5"]


@pytest.mark.parametrize("kind", OPENING)
async def test_batch_that_cannot_be_decompressed_is_one_unreadable_record(kind: str) -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"0"]))
        broken = batch_bytes(
            b"noise", attributes=1, record_count=3, last_offset_delta=2, base_offset=1
        )
        log.append(broken)
        log.append(batch(4, [b"4"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            found, error = await until_unreadable(consumer, kind)
            assert found == [b"0"]
            assert "gzip" in str(error)
            assert (error.record_offset, error.next_offset, error.content) == (1, 4, "batch")
            assert error.raw == broken
            for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
                assert (twin.record_offset, twin.raw, str(twin)) == (1, broken, str(error))
            assert await all_values(consumer, kind) == [b"4"]


@pytest.mark.parametrize("kind", OPENING)
async def test_unreadable_record_loses_no_record_of_another_partition(kind: str) -> None:
    async with cluster(t=2) as (log, client):
        log.append(batch(0, numbers(0, 3)))
        log.append(unreadable(3, good=1))
        log.append(batch(5, [b"behind"]))
        for at in range(0, 4, 2):
            log.append(batch(at, [b"a%d" % at, b"a%d" % (at + 1)]), partition=1)
        async with client.consumer("t", stop_at_end=True) as consumer:
            found = await until_fault(consumer, kind)
            found += await all_values(consumer, kind)
            others = [value for value in found if value is not None and value[:1] == b"a"]
            assert others == [b"a0", b"a1", b"a2", b"a3"]
            mine = [value for value in found if value not in others]
            assert mine == [*numbers(0, 4), b"behind"]


async def test_poll_raises_for_an_unreadable_record_after_the_records_before_it() -> None:
    """No record is lost, also if the partition is polled in several calls."""
    async with cluster(t=2) as (log, client):
        log.append(batch(0, numbers(0, 3)))
        log.append(unreadable(3, good=1))
        log.append(batch(5, [b"5"]))
        log.append(unreadable(0, good=1), partition=1)
        async with client.consumer("t", stop_at_end=True, max_wait_ms=5) as consumer:
            found: dict[tuple[str, int], list[bytes | None]] = {("t", 0): [], ("t", 1): []}
            errors = []
            while any(
                position < end
                for position, end in zip(
                    (consumer.positions.get(("t", 0), 0), consumer.positions.get(("t", 1), 0)),
                    (6, 2),
                    strict=True,
                )
            ):
                try:
                    polled = await consumer.poll(1_000)
                except UnreadableRecordError as error:
                    errors.append((error.partition, error.record_offset))
                    continue
                for tp, records in polled.items():
                    found[tp] += [record.value for record in records]
            assert found == {("t", 0): [*numbers(0, 4), b"5"], ("t", 1): [b"0"]}
            assert sorted(errors, key=str) == [(0, 4), (1, 1)]


@pytest.mark.parametrize("kind", OPENING)
@pytest.mark.parametrize("size", [3, 1200])
@pytest.mark.parametrize("odd", [-1, 0, 1199, 5000, 2**31 - 1])
async def test_record_outside_of_its_batch_is_unreadable(odd: int, size: int, kind: str) -> None:
    """Brokers store such records in uncompressed batches; no other record may be skipped."""
    at = 1 if size == 3 else 700
    deltas = [*range(at), odd, *range(at + 1, size)]
    payload = b"".join(
        record_bytes(offset_delta=_varint(delta), value=_value(2 + number))
        for number, delta in enumerate(deltas)
    )
    async with cluster(t=1) as (log, client):
        log.append(batch(0, numbers(0, 2)))
        log.append(
            batch_bytes(payload, record_count=size, last_offset_delta=size - 1, base_offset=2)
        )
        log.append(batch(2 + size, numbers(2 + size, 5 + size)))
        async with client.consumer("t", stop_at_end=True) as consumer:
            found, error = await until_unreadable(consumer, kind)
            assert found == numbers(0, 2 + at)
            assert (error.record_offset, error.next_offset) == (2 + at, 3 + at)
            assert f"record {at}, offset delta: {odd} is outside of {at} to {at}" in str(error)
            assert await all_values(consumer, kind) == numbers(3 + at, 5 + size)
            assert consumer.positions == {("t", 0): 5 + size}


async def test_raw_batches_include_unreadable_batches() -> None:
    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        log.append(unreadable(1, good=0))
        log.append(batch(2, [b"b"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            offsets = [fetched.batch.base_offset async for fetched in consumer.raw_batches()]
            assert offsets == [0, 1, 2]


async def test_missing_codec_raises_until_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    async with cluster(t=1) as (log, client):
        log.append(batch(0, [b"a"]))
        log.append(batch(1, [b"b"], compression="snappy"))
        async with client.consumer("t", stop_at_end=True) as consumer:
            with monkeypatch.context() as without:
                without.setitem(sys.modules, "cramjam", None)
                records = aiter(consumer)
                assert (await anext(records)).value == b"a"
                for _ in range(2):
                    with pytest.raises(MissingCodecError) as raised:
                        await anext(records)
                    assert str(raised.value).startswith("t[0] at offset 1: ")
                    assert consumer.positions == {("t", 0): 1}
            assert (await anext(records)).value == b"b"


# --- An embedded broker ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compression", ["none", "gzip"])
async def test_every_kind_reads_produced_records(kind: str, compression: Any) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics("t")
        async with client.producer(compression=compression, batch_bytes=5_000) as producer:
            await producer.send_many("t", numbers(0, 3000))
        consumer = client.consumer("t", stop_at_end=True, max_partition_fetch_bytes=20_000)
        assert await all_values(consumer, kind) == numbers(0, 3000)
        assert consumer.positions == {("t", 0): 3000}


# --- The event loop ---


class RunningClock(ManualClock):
    """A clock that advances by one millisecond at each reading."""

    def monotonic(self) -> float:
        self._elapsed += 0.001
        return self._elapsed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clock", [ManualClock, RunningClock])
async def test_busy_consumer_yields_to_the_event_loop(clock: type[ManualClock], kind: str) -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock()) as client,
    ):
        log = ScriptedLog(broker)
        for at in range(20):  # each list has the records of one batch
            log.append(batch(501 * at, numbers(501 * at, 501 * at + 501)))
        iterations = 0

        async def other() -> None:
            nonlocal iterations
            while True:
                iterations += 1
                await asyncio.sleep(0)

        async with client.consumer("t", max_wait_ms=0) as consumer:
            values = iteration(consumer, kind)
            seen = len(values_of(await anext(values)))
            task = start_task(other())
            while seen < 20 * 501 // 2:
                seen += len(values_of(await anext(values)))
            task.cancel()
        assert iterations == 0 if clock is ManualClock else iterations >= 8


async def test_iteration_ends_when_closed_while_it_yields() -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=RunningClock()) as client,
    ):
        log = ScriptedLog(broker)
        for at in range(4):
            log.append(batch(501 * at, numbers(501 * at, 501 * at + 501)))
        consumer = client.consumer("t", max_wait_ms=0)
        lists = consumer.record_lists()
        for _ in range(2):  # the first poll waited for the broker, so the second does not yield
            await anext(lists)
        closing = asyncio.create_task(consumer.close())
        assert [fetched async for fetched in lists] == []
        await closing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
async def test_polls_cancelled_at_their_first_wait_make_progress(
    iterations: int, kind: str
) -> None:
    """A caller polls with a timeout of 0; the fetch in flight continues between the polls."""
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=RunningClock()) as client,
    ):
        log = ScriptedLog(broker)
        for at in range(4):
            log.append(batch(20 * at, numbers(20 * at, 20 * at + 20)))
        seen: list[bytes | None] = []
        values = iteration(
            client.consumer("t", stop_at_end=True, max_partition_fetch_bytes=600), kind
        )
        while True:
            poll = asyncio.ensure_future(anext(values))
            for _ in range(iterations + 1):
                await asyncio.sleep(0)
            poll.cancel()
            try:
                seen += values_of(await poll)
            except asyncio.CancelledError:
                await asyncio.sleep(0.001)
            except StopAsyncIteration:
                break
        assert seen == numbers(0, 80)
