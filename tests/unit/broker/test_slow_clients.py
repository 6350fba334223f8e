"""Tests clients that read no responses, send nothing, or disconnect during a request.

The broker must need little memory for such clients, and must close idle connections.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import tracemalloc

import pytest

from kproto.broker import Broker, BrokerSettings, Delay
from kproto.messages.fetch_request import FetchRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.produce_request import (
    ProduceRequest,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP, batch_bytes
from tests.support.patience import until
from tests.support.raw_connection import RawConnection
from tests.unit.broker.raw_requests import fetch_request, produce_request, watchers


async def until_stalled(broker: Broker) -> None:
    """Waits until a client that does not read has full socket buffers."""
    waited = 0
    async with asyncio.timeout(60):
        while waited < 20:  # the kernel may accept more bytes meanwhile
            await asyncio.sleep(0.002)
            writable = all(session._writable.is_set() for session in broker._node._sessions)
            waited = 0 if writable else waited + 1


@pytest.mark.slow
async def test_reading_pauses_while_too_many_bytes_are_queued() -> None:
    clock = ManualClock(TIMESTAMP)
    async with Broker(BrokerSettings(max_queued_bytes=10_000), clock=clock) as broker:
        broker.create_topic("t")
        held = broker.control(lambda request: Delay(200), request=MetadataRequest, times=1)
        reader, writer = await asyncio.open_connection(*broker.bootstrap.split(":"))
        header = encode_request_header(MetadataRequest, 1, 5, None)
        writer.write(frame(header, MetadataRequest(topics=[]).encode(1)))
        request = produce_request(records=batch_bytes(value=bytes(9_000)))
        produce = frame(encode_request_header(ProduceRequest, 9, 6, None), request.encode(9))
        count = 3_000  # 27 MB, which is more than the socket buffers hold
        writer.write(produce * count)
        await until(lambda: any(not session._reading for session in broker._node._sessions))
        assert writer.transport.get_write_buffer_size() > 0, "the broker has stopped reading"
        assert broker.end_offset("t") == 0
        await clock.advance(200)
        answered = 0
        while answered < count + 1:
            size = struct.unpack(">i", await reader.readexactly(4))[0]
            await reader.readexactly(size)
            answered += 1
        assert broker.end_offset("t") == count
        broker.remove_control(held)
        writer.close()
        await writer.wait_closed()


async def test_announced_frame_sizes_take_no_memory() -> None:
    async with Broker() as broker:
        tracemalloc.start()
        try:
            peers = [await asyncio.open_connection(*broker.bootstrap.split(":")) for _ in range(50)]
            for _, writer in peers:
                writer.write(struct.pack(">i", 100_000_000) + b"x")
                # the broker reads these bytes before it sees the end of the connection
                writer.close()
                await writer.wait_closed()
            await until(lambda: broker.connections == 0)
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert taken < 10_000_000, "each connection may take some 64 KiB, for any announced size"


@pytest.mark.slow
async def test_small_requests_with_large_responses_wait_for_their_client() -> None:
    """Several responses fit into one write; all responses together have 35 MB."""
    async with Broker(BrokerSettings(max_unsent_bytes=100_000)) as broker:
        for number in range(400):
            broker.create_topic(f"topic-{number}")
        answered = 0

        def count(request: ReceivedRequest) -> None:
            nonlocal answered
            answered += 1

        broker.control(count, request=MetadataRequest)
        reader, writer = await asyncio.open_connection(*broker.bootstrap.split(":"), limit=1_000)
        header = encode_request_header(MetadataRequest, 1, 5, None)
        request = frame(header, MetadataRequest(topics=None).encode(1))
        writer.write(request * 2_000)
        await until_stalled(broker)
        assert 0 < answered < 1_000
        writer.close()
        reader.feed_eof()
        await writer.wait_closed()


async def slow_client(broker: Broker, seen: list[int]) -> socket.socket:
    """Returns a client that sends 50 fetches and reads no response; each response has 900 kB.

    `seen` receives the version of each fetch that the broker handles.
    """
    broker.create_topic("t")
    with RawConnection(broker.bootstrap) as filler:
        request = produce_request(records=batch_bytes(value=bytes(900_000)))
        await asyncio.to_thread(filler.exchange, request, 9)
    host, port = broker.bootstrap.split(":")
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect((host, int(port)))
    broker.control(lambda request: seen.append(request.version), request=FetchRequest)
    data = frame(encode_request_header(FetchRequest, 12, 1, None), fetch_request().encode(12))
    slow.sendall(data * 50)
    return slow


async def test_processing_pauses_while_client_does_not_read() -> None:
    seen: list[int] = []
    async with Broker(BrokerSettings(max_unsent_bytes=50_000)) as broker:
        with await slow_client(broker, seen):
            await until_stalled(broker)
            assert 0 < len(seen) < 50, "45 MB of responses are not buffered"


async def test_client_that_reads_nothing_is_idle() -> None:
    seen: list[int] = []
    clock = ManualClock(TIMESTAMP)
    async with Broker(BrokerSettings(max_unsent_bytes=50_000), clock=clock) as broker:
        with await slow_client(broker, seen):
            await until_stalled(broker)
            await clock.advance(599_999)
            assert broker.connections == 1
            await clock.advance(1)
            await until(lambda: broker.connections == 0)
    assert len(seen) < 50


async def test_broken_frame_of_client_that_reads_nothing_closes() -> None:
    seen: list[int] = []
    clock = ManualClock(TIMESTAMP)
    async with Broker(BrokerSettings(max_unsent_bytes=100_000_000), clock=clock) as broker:
        with await slow_client(broker, seen) as slow:
            await until(lambda: len(seen) == 50)
            await clock.advance(300_000)
            slow.sendall(struct.pack(">i", -1))
            await until(lambda: clock.next_timer_ms == 600_000)
            await clock.advance(599_999)
            assert broker.connections == 1
            await clock.advance(1)
            await until(lambda: broker.connections == 0)


async def test_idle_connections_are_closed() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker:
        reader, writer = await asyncio.open_connection(*broker.bootstrap.split(":"))
        header = encode_request_header(MetadataRequest, 1, 0, None)
        data = frame(header, MetadataRequest(topics=[]).encode(1))
        for _ in range(3):
            await clock.advance(400_000)
            writer.write(data)
            await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        await clock.advance(599_999)
        assert broker.connections == 1
        await clock.advance(1)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        assert broker.connections == 0


async def test_waiting_client_is_not_idle() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker:
        broker.create_topic("t")
        reader, writer = await asyncio.open_connection(*broker.bootstrap.split(":"))
        fetch = fetch_request(max_wait_ms=1_000_000)
        writer.write(frame(encode_request_header(FetchRequest, 12, 1, None), fetch.encode(12)))
        await until(lambda: watchers(broker) == 1)
        await clock.advance(1_000_000)
        await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        await clock.advance(599_999)
        assert broker.connections == 1
        await clock.advance(1)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_client_may_disconnect_while_its_request_is_delayed() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker:
        broker.control(lambda request: Delay(300_000))
        _, writer = await asyncio.open_connection(*broker.bootstrap.split(":"))
        header = encode_request_header(MetadataRequest, 1, 0, None)
        writer.write(frame(header, MetadataRequest(topics=[]).encode(1)))
        await until(lambda: clock.next_timer_ms == 300_000)
        writer.close()
        await writer.wait_closed()
        await until(lambda: broker.connections == 0)
        assert clock.next_timer_ms is None, "no timer is left"
