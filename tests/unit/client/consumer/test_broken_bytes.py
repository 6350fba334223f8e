"""Tests corrupt bytes: after the good records, the consumer raises an error with the position."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from kproto import (
    Client,
    ClientSettings,
    CorruptBatchError,
    ProtocolError,
)
from kproto.messages import (
    FetchRequest,
    FetchResponse,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.records import encode_batch
from tests.unit.client.consumer.reading import first_of, read
from tests.unit.client.scripted_broker import ScriptedBroker, quick
from tests.unit.client.scripted_log import COMMIT, ScriptedLog, batch, marker

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=500)


async def test_garbage_in_a_response_raises_and_later_fetches_work() -> None:
    from kproto import DecodeError
    from kproto.protocol.framing import frame

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        broker.answers[FetchRequest] = lambda request: frame(
            request.correlation_id.to_bytes(4, "big") + b"\x00" + b"\xff" * 30
        )
        with pytest.raises(DecodeError, match="FetchResponse"):
            await read(client)
        broker.answers[FetchRequest] = log.fetch
        assert await read(client) == [b"a"]


async def test_batch_beyond_the_decompression_bound_raises_after_the_good_ones() -> None:
    settings = ClientSettings(max_decompressed_bytes=10_000)
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"small"], compression="gzip"))
        log.append(batch(1, [bytes(20_000)], compression="gzip"))
        consumer = client.consumer("t", stop_at_end=True)
        assert (await first_of(consumer)).value == b"small"
        with pytest.raises(CorruptBatchError, match="more than the bound of 10000 bytes") as raised:
            await first_of(consumer)
        assert str(raised.value).startswith("t[0] at offset 1: ")


@pytest.mark.parametrize("good", [0, 2])
async def test_corrupt_batch_is_located_and_logged_once(
    good: int, caplog: pytest.LogCaptureFixture
) -> None:
    """If the corrupt batch is the first batch of a response, the fetch detects it.

    If good batches precede the corrupt batch, the poll that decodes the corrupt batch detects it.
    """
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        if good:
            log.append(batch(0, [b"good"] * good))
        log.append(batch(good, [b"bad"]))
        log.damage(70, b"\xff")
        async with client.consumer("t") as consumer:
            for _ in range(good):
                await first_of(consumer)
            for _ in range(2):
                with pytest.raises(CorruptBatchError) as raised:
                    await first_of(consumer)
                assert (raised.value.topic, raised.value.partition) == ("t", 0)
                assert str(raised.value).startswith(f"t[0] at offset {good}: ")
                copied = pickle.loads(pickle.dumps(raised.value))
                assert (str(copied), copied.topic) == (str(raised.value), "t")
        (line,) = [each for each in caplog.messages if "cannot read" in each]
        assert f"t[0] at offset {good}: " in line


async def test_batch_with_an_excessive_length_raises_after_the_good_ones() -> None:
    """The consumer must not treat the batch as cut off by the fetch limit.

    Otherwise it would fetch again and again, to get the rest of the batch.
    """
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"good"]))
        log.append(batch(1, [b"bad"]))
        log.damage(8, (2**31 - 13).to_bytes(4, "big"))
        consumer = client.consumer("t", start="earliest")
        async with asyncio.timeout(10):
            assert (await first_of(consumer)).value == b"good"
            with pytest.raises(CorruptBatchError, match="the data ends inside a batch") as raised:
                await first_of(consumer)
        assert (raised.value.offset, raised.value.base_offset) == (0, 1)
        assert len(log.fetches) <= 3


async def test_fetch_with_only_earlier_records_raises() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.append(batch(1, [b"b"]))

        async def old(request: ReceivedRequest) -> FetchResponse:
            response = await log.fetch(request)
            response.responses[0].partitions[0].records = batch(0, [b"a"])
            return response

        broker.answers[FetchRequest] = old
        consumer = client.consumer("t", start="earliest")
        async with asyncio.timeout(10):
            assert (await first_of(consumer)).value == b"a"
            with pytest.raises(
                ProtocolError, match=r"t\[0\]: all batches of the fetch from offset 1 "
            ):
                await first_of(consumer)


async def test_decompression_bound_applies_to_control_batches() -> None:
    settings = ClientSettings(max_decompressed_bytes=10_000)
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        log = ScriptedLog(broker)
        marker = [(bytes(4), bytes(20_000), (), 0)]
        log.append(encode_batch(marker, compression="gzip", is_control=True, is_transactional=True))
        with pytest.raises(CorruptBatchError, match="more than the bound of 10000 bytes"):
            await read(client, read_committed=True)


async def test_corrupt_batch_after_the_end_is_ignored() -> None:
    """The last batch before the end offset is a control batch: no record is at the last offset."""
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(marker(0, COMMIT, 4))
        async with client.consumer("t", stop_at_end=True) as consumer:
            log.append(batch(1, [b"a"]))
            log.damage(61, b"\xff")
            assert [record.value async for record in consumer] == []
            assert consumer.positions == {("t", 0): 1}
