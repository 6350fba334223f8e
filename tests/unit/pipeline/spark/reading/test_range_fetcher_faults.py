"""Tests reading a range during faults: each record is read exactly once, or the read fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kproto_pipeline.columns import RECORD_SCHEMA
from kproto_pipeline.columns.chunks import column_chunks
from kproto_pipeline.spark.options.option_table import ReadOptions, parse_read_options
from kproto_pipeline.spark.planning.offset_ranges import DataLossError, OffsetRange
from kproto_pipeline.spark.reading.batch_reader import KprotoReader
from kproto_pipeline.spark.reading.partition_reader import KprotoInputPartition
from kproto_pipeline.spark.reading.range_fetcher import fetch_ranges

from kproto import ClientSettings, CorruptBatchError, RequestTimeoutError
from kproto.messages import FetchRequest, ListOffsetsRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch
from tests.unit.pipeline.spark.conftest import SettingsForAll

BATCHES = 6


@pytest.fixture(autouse=True)
def _retry_at_once(settings_for_all: SettingsForAll) -> None:
    settings_for_all(settings())


def settings(**others: int) -> ClientSettings:
    return quick(metadata_wait_ms=1_000, delivery_timeout_ms=10_000, **others)


@asynccontextmanager
async def log_of(batches: int = BATCHES) -> AsyncIterator[ScriptedLog]:
    async with ScriptedBroker({"t": 1}) as broker:
        log = ScriptedLog(broker)
        for number in range(batches):
            log.append(batch(2 * number, [b"%d" % (2 * number), b"%d" % (2 * number + 1)]))
        yield log


def options_for(log: ScriptedLog, **others: str) -> ReadOptions:
    size = len(log.batches["t", 0][0])
    return parse_read_options(
        {
            "kafka.bootstrap.servers": log.broker.bootstrap,
            "subscribe": "t",
            "kafka.max.partition.fetch.bytes": str(size),
            "kafka.fetch.max.wait.ms": "10",
            **others,
        }
    )


async def offsets_of(log: ScriptedLog, start: int, end: int, **others: str) -> list[int]:
    """Returns the offsets of the records that a task reads from a range as columns."""
    options = options_for(log, **others)

    def read() -> list[int]:
        return [
            offset
            for _, fetched in fetch_ranges(options, [OffsetRange("t", 0, start, end)])
            for chunk in column_chunks(fetched.records, start=fetched.offset, end=end)
            for offset in chunk.offsets.tolist()
        ]

    return await asyncio.to_thread(read)


@pytest.mark.parametrize(
    "name",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ],
)
async def test_leader_change_is_retried(name: str) -> None:
    async with log_of() as log:
        log.errors = [0, code_of(name), code_of(name), 0, code_of(name)]
        assert await offsets_of(log, 1, 11) == list(range(1, 11))


@pytest.mark.parametrize("lost", [1, 2, 5])
async def test_lost_connection_is_retried(lost: int) -> None:
    async with log_of() as log:
        count = 0

        async def answer(asked: ReceivedRequest) -> Any:
            nonlocal count
            count += 1
            return HANG_UP if count in (lost, lost + 1) else await log.fetch(asked)

        log.broker.answers[FetchRequest] = answer
        assert await offsets_of(log, 0, 12) == list(range(12))


async def test_unreachable_broker_is_retried_during_the_read() -> None:
    async with log_of() as log:
        away: list[asyncio.Task[None]] = []

        async def restart() -> None:
            log.broker._server.close()
            log.broker.hang_up()
            await log.broker._server.wait_closed()
            await log.broker.start_again()

        async def answer(asked: ReceivedRequest) -> Any:
            if len(log.fetches) == 2 and not away:
                away.append(asyncio.create_task(restart()))
                return HANG_UP
            return await log.fetch(asked)

        log.broker.answers[FetchRequest] = answer
        assert await offsets_of(log, 0, 12) == list(range(12))
        assert away


async def test_unreachable_broker_is_retried_at_the_start_of_a_task() -> None:
    async with log_of() as log:
        log.broker._server.close()
        await log.broker._server.wait_closed()
        came = asyncio.Event()

        def turn_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()
            came.set()

        other = await asyncio.start_server(turn_away, "127.0.0.1", log.broker.port)
        async with other:
            reading = asyncio.create_task(offsets_of(log, 0, 12))
            await came.wait()
        await log.broker.start_again()
        assert await reading == list(range(12))


async def test_fatal_error_is_raised_at_once() -> None:
    async with log_of() as log:
        log.errors = [0, code_of("TOPIC_AUTHORIZATION_FAILED")]
        with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
            await offsets_of(log, 0, 12)
        assert len(log.fetches) == 2


async def test_lagging_high_watermark_of_a_new_leader_is_no_data_loss() -> None:
    """The reader takes the end of the log from ListOffsets, not from a fetch's high watermark."""
    async with log_of() as log:
        lagging = 2

        async def answer(asked: ReceivedRequest) -> Any:
            nonlocal lagging
            response = await log.fetch(asked)
            if len(log.fetches) > 2 and lagging:
                lagging -= 1
                part = response.responses[0].partitions[0]
                part.records, part.high_watermark = b"", 3
            return response

        log.broker.answers[FetchRequest] = answer
        assert await offsets_of(log, 0, 12) == list(range(12))
        assert not lagging


async def test_log_that_ends_before_the_range_is_data_loss() -> None:
    async with log_of(2) as log:
        with pytest.raises(
            DataLossError, match="the log was truncated after planning: it now ends at 4"
        ):
            await offsets_of(log, 0, 12)
        assert await offsets_of(log, 0, 12, failOnDataLoss="false") == [0, 1, 2, 3]
        assert log.broker.count(ListOffsetsRequest)


async def test_empty_responses_time_out(settings_for_all: SettingsForAll) -> None:
    settings_for_all(settings(request_timeout_ms=40))
    async with log_of() as log:

        async def answer(asked: ReceivedRequest) -> Any:
            response = await log.fetch(asked)
            response.responses[0].partitions[0].records = b""
            return response

        log.broker.answers[FetchRequest] = answer
        with pytest.raises(RequestTimeoutError, match="no records arrived from offset 0 on"):
            await offsets_of(log, 0, 12)


async def test_records_before_the_fetch_offset_are_dropped() -> None:
    """A fetch response may begin with earlier records, which must not become rows."""
    async with log_of() as log:

        async def answer(asked: ReceivedRequest) -> Any:
            response = await log.fetch(asked)
            part = response.responses[0].partitions[0]
            whole = len(log.fetches)
            part.records = b"".join(log.batches["t", 0][:whole])
            return response

        log.broker.answers[FetchRequest] = answer
        reader = KprotoReader(options_for(log), RECORD_SCHEMA)

        def read() -> list[int]:
            wanted = KprotoInputPartition(OffsetRange("t", 0, 1, 11))
            return [o for rows in reader.read(wanted) for o in rows["offset"].to_pylist()]

        assert await asyncio.to_thread(read) == list(range(1, 11))
        assert len(log.fetches) == BATCHES


async def test_batches_in_reversed_order_are_an_error() -> None:
    """The first batch has the last offsets of the range, and earlier offsets follow."""
    async with log_of() as log:
        whole = b"".join(reversed(log.batches["t", 0]))

        async def answer(asked: ReceivedRequest) -> Any:
            response = await log.fetch(asked)
            response.responses[0].partitions[0].records = whole
            return response

        log.broker.answers[FetchRequest] = answer
        with pytest.raises(CorruptBatchError, match="offsets do not rise"):
            await offsets_of(log, 0, 12)
