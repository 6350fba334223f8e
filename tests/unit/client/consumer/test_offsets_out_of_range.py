"""Tests positions outside the range of the log: offset resets, errors and warnings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import (
    BrokerResponseError,
    Client,
    ClientSettings,
    OffsetOutOfRangeError,
)
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    MetadataRequest,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.uuid import Uuid
from tests.unit.client.consumer.reading import first_of, read
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


@pytest.mark.slow
async def test_deleted_offset_is_reset_to_the_log_start() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(5, [b"a"]))
        async with client.consumer("t", stop_at_end=True) as consumer:
            log.starts["t", 0] = 5
            assert [record.offset async for record in consumer] == [5]


@pytest.mark.slow
async def test_deleted_start_offset_raises() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(5, [b"a"]))
        log.starts["t", 0] = 5
        with pytest.raises(BrokerResponseError, match=r"from offset 2: the log begins after"):
            await read(client, start={("t", 0): 2})


@pytest.mark.parametrize("stop_at_end", [True, False])
async def test_start_offset_after_the_log_end_raises(stop_at_end: bool) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a", b"b"]))
        consumer = client.consumer("t", start={("t", 0): 9}, stop_at_end=stop_at_end)
        with pytest.raises(OffsetOutOfRangeError, match=r" t\[0\] (at|from) offset 9"):
            await first_of(consumer)


async def test_start_offset_after_the_last_stable_offset_ends_without_records() -> None:
    """The offset is in the log: a fetch from this offset would be valid, and return no record."""
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a", b"b", b"c"]))
        log.stable["t", 0] = 1
        assert await read(client, start={("t", 0): 2}, read_committed=True) == []
        with pytest.raises(OffsetOutOfRangeError, match="the log ends at offset 3"):
            await read(client, start={("t", 0): 4}, read_committed=True)


@pytest.mark.slow
async def test_persistent_offset_out_of_range_raises_at_the_timeout() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.errors = [1] * 10_000
        with pytest.raises(BrokerResponseError, match="OFFSET_OUT_OF_RANGE"):
            await read(client)
        assert len(log.fetches) < QUICK.delivery_timeout_ms


async def test_position_before_the_log_start_is_reset_to_earliest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Even a consumer that started at latest resets to earliest, so that it skips no record."""
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"old"]))
        async with client.consumer("t", start="latest", max_wait_ms=5) as consumer:
            log.append(batch(5, [b"a"]))
            log.append(batch(6, [b"b"]))
            log.starts["t", 0] = 5
            assert [(await first_of(consumer)).offset for _ in range(2)] == [5, 6]
        assert "t[0]: the log no longer has offsets 1 to 4" in caplog.text


@pytest.mark.parametrize(("start", "offset"), [("latest", 3), ("earliest", 0)])
async def test_position_after_the_log_end_is_reset_to_start(
    start: Any, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"x"] * 9))
        async with client.consumer("t", start=start, max_wait_ms=5) as consumer:
            if start == "earliest":
                assert len([await first_of(consumer) for _ in range(9)]) == 9
            log.batches["t", 0] = [batch(0, [b"x"] * 3)]
            log.following["t", 0] = [3]
            reading = asyncio.create_task(first_of(consumer))
            if start == "latest":
                await broker.until(lambda: last_fetch_offset(log) == 3)
                log.append(batch(3, [b"y"]))
            assert (await reading).offset == offset
    assert f"t[0]: offset 9 is not in the log; the consumer continues at offset {offset}" in (
        caplog.text
    )


def last_fetch_offset(log: ScriptedLog) -> int | None:
    if not log.fetches:
        return None
    return log.fetches[-1].topics[0].partitions[0].fetch_offset


async def test_recreated_topic_is_read_from_its_start() -> None:
    settings = ClientSettings(metadata_max_age_ms=10)

    def by_name(request: ReceivedRequest) -> ApiVersionsResponse:
        found = api_versions()
        for key in found.api_keys.find_all(api_key=FetchRequest.API_KEY):
            key.max_version = 12  # Fetch v13 has topic ids; the scripted log has none
        return found

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        broker.answers[ApiVersionsRequest] = by_name
        topic_id = [Uuid(bytes(15) + b"\x01")]

        def metadata(request: ReceivedRequest) -> Any:
            response = broker.metadata(request)
            for topic in response.topics:
                topic.topic_id = topic_id[0]
            return response

        broker.answers[MetadataRequest] = metadata
        log.append(batch(0, [b"old"] * 3))
        async with client.consumer("t", max_wait_ms=5) as consumer:
            async for record in consumer:
                if record.offset == 2:
                    topic_id[0] = Uuid(bytes(15) + b"\x02")
                    log.batches["t", 0] = [batch(0, [b"new"] * 5)]
                    log.following["t", 0] = [5]
                if record.value == b"new" and record.offset == 0:
                    break
