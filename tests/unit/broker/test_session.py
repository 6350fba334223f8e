"""What a connection does with good, bad and too many bytes; the broker outlives them all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import socket
import struct
import tracemalloc
from collections.abc import Iterator

import pytest

from kproto.broker import Broker, BrokerSettings, Delay
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.api_versions_response import ApiVersionsResponse
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchResponse
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP, batch_bytes
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.patience import until
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

UNKNOWN_API = 999
HEADER = struct.Struct(">hhih")


def produce_request(
    *, acks: int = -1, topic: str = "t", records: bytes | None = None
) -> ProduceRequest:
    data = PartitionProduceData(records=batch_bytes() if records is None else records)
    return ProduceRequest(
        acks=acks, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def fetch_request(
    offset: int = 0, *, max_wait_ms: int = 10_000, min_bytes: int = 1
) -> FetchRequest:
    wanted = FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )


def watchers(broker: Broker) -> int:
    """How many fetches wait for records."""
    return len(broker.topics["t"].partitions[0].log.watchers)


def is_alive(broker: ThreadedBroker) -> bool:
    with RawConnection(broker.bootstrap) as another:
        return another.exchange(ApiVersionsRequest(), 0).error_code == 0


async def stalls(broker: Broker) -> None:
    """Wait until a client of the broker takes no more: the sockets' buffers are full."""
    waited = 0
    async with asyncio.timeout(20):
        while waited < 20:  # what the kernel still takes may come in between
            await asyncio.sleep(0.002)
            writable = all(session._writable.is_set() for session in broker._node._sessions)
            waited = 0 if writable else waited + 1


def closes(connection: RawConnection) -> bool:
    try:
        connection.receive_frame()
    except ClosedByBrokerError:
        return True
    return False


# Unknown and unsupported


@pytest.mark.parametrize("version", [6, 99, -1, 32767])
def test_api_versions_in_an_unknown_version_is_answered_in_v0(
    connection: RawConnection, version: int
) -> None:
    connection.send_bytes(frame(HEADER.pack(18, version, 7, -1), b"\0whatever"))
    answer = connection.receive_frame()
    assert answer[:4] == (7).to_bytes(4, "big")
    message = ApiVersionsResponse.decode(answer[4:], 0)
    assert message.error_code == 35
    assert [(key.api_key, key.min_version, key.max_version) for key in message.api_keys] == [
        (18, 0, 5)
    ]
    assert connection.exchange(ApiVersionsRequest(), 4).error_code == 42, "the connection goes on"


@pytest.mark.parametrize(
    ("api_key", "version"), [(UNKNOWN_API, 0), (-5, 0), (3, 14), (3, -1), (22, 6), (11, 0)]
)
def test_anything_else_unsupported_closes_the_connection(
    broker: ThreadedBroker, connection: RawConnection, api_key: int, version: int
) -> None:
    connection.send_bytes(frame(HEADER.pack(api_key, version, 1, -1), bytes(20)))
    assert closes(connection)
    assert is_alive(broker)


def test_bytes_behind_a_request_are_ignored(connection: RawConnection) -> None:
    header = encode_request_header(MetadataRequest, 1, 0, "raw")
    body = MetadataRequest(topics=[]).encode(1)
    connection.send_bytes(frame(header, body, b"\0\0\0"))
    assert connection.receive_frame()[:4] == bytes(4)


# Broken


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">ihh", 4, 18, 0),
        struct.pack(">i", 104_857_601),
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        bytes([22, 3, 1, 0, 200]) + bytes(200),
        frame(HEADER.pack(3, 1, 1, -1), struct.pack(">i", 1000)),
        frame(HEADER.pack(0, 9, 1, -1), b"\xff" * 50),
        frame(HEADER.pack(3, 9, 1, 30_000), b"name cut short"),
    ],
    ids=[
        "a negative size",
        "an empty frame",
        "half a header",
        "over the limit",
        "http",
        "tls",
        "more elements than bytes",
        "a broken body",
        "a broken header",
    ],
)
def test_broken_frames_close_the_connection(
    broker: ThreadedBroker, connection: RawConnection, data: bytes
) -> None:
    connection.send_bytes(data)
    assert closes(connection)
    assert is_alive(broker)


def test_requests_before_a_broken_one_are_answered(connection: RawConnection) -> None:
    connection.send(ApiVersionsRequest(), 0)
    connection.send(MetadataRequest(topics=[]), 1)
    connection.send_bytes(frame(HEADER.pack(3, 1, 1, -1), b"?"))
    connection.receive()
    connection.receive()
    assert closes(connection)


def test_a_client_that_leaves_inside_a_frame(broker: ThreadedBroker) -> None:
    for data in (b"\0", struct.pack(">i", 100), struct.pack(">i", 90_000_000) + bytes(100_000)):
        with RawConnection(broker.bootstrap) as leaving:
            leaving.send_bytes(data)
    assert is_alive(broker)


def test_the_limit_of_a_frame_is_a_setting() -> None:
    with (
        threaded_broker(BrokerSettings(max_frame_bytes=200)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        header = encode_request_header(MetadataRequest, 1, 0, None)
        body = MetadataRequest(topics=[]).encode(1)
        connection.send_bytes(frame(header, body, bytes(200 - len(header) - len(body))))
        connection.receive_frame()
        connection.send_bytes(frame(bytes(201)))
        assert closes(connection)
        assert is_alive(broker)


def test_random_bytes(broker: ThreadedBroker) -> None:
    seed = random.Random(18)
    for _ in range(100):
        body = seed.randbytes(seed.randrange(60))
        key = struct.pack(">h", seed.choice([0, 1, 2, 3, 18, 19, 20, 22]))
        version = struct.pack(">h", seed.randrange(14))
        with RawConnection(broker.bootstrap) as connection:
            with contextlib.suppress(ConnectionError):
                connection.send_bytes(frame(key, version, body))
                # A request that can be read by chance must not make the test wait.
                connection.send_bytes(struct.pack(">i", -1))
            with contextlib.suppress(ClosedByBrokerError):
                while True:
                    connection.receive_frame()
    assert is_alive(broker)


# Order


def test_answers_come_in_the_order_of_the_requests() -> None:
    clock = ManualClock(TIMESTAMP)
    with (
        threaded_broker(clock=clock) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        broker.call(lambda it: it.create_topic("t"))
        connection.send(produce_request(), 9)
        connection.send(fetch_request(1, max_wait_ms=300), 12)
        connection.send(produce_request(), 9)
        connection.send(MetadataRequest(topics=[]), 9)
        broker.until(lambda _: clock.next_timer_ms == 300)
        broker.advance(clock, 299)
        assert broker.call(lambda it: it.end_offset("t")) == 1, "the waiting fetch holds up"
        broker.advance(clock, 1)
        names = [type(connection.receive()).__name__ for _ in range(4)]
        assert names == ["ProduceResponse", "FetchResponse", "ProduceResponse", "MetadataResponse"]


def test_produce_without_acks_is_not_answered(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    broker.call(lambda it: it.create_topic("t"))
    for _ in range(3):
        connection.send(produce_request(acks=0), 9)
    connection.exchange(ApiVersionsRequest(), 0)
    assert broker.call(lambda it: it.end_offset("t")) == 3


def test_a_failed_produce_without_acks_closes_the_connection(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    connection.send(produce_request(acks=0, topic="nope"), 9)
    assert closes(connection)
    assert is_alive(broker)


# Waiting fetches


def test_a_fetch_is_woken_by_an_append(broker: ThreadedBroker, connection: RawConnection) -> None:
    broker.call(lambda it: it.create_topic("t"))
    connection.send(fetch_request(max_wait_ms=20_000), 12)
    with RawConnection(broker.bootstrap) as other:
        other.exchange(produce_request(), 9)
    answer = connection.receive()
    assert isinstance(answer, FetchResponse)
    assert answer.responses[0].partitions[0].records
    assert broker.call(watchers) == 0


def test_a_fetch_waits_for_min_bytes(broker: ThreadedBroker, connection: RawConnection) -> None:
    broker.call(lambda it: it.create_topic("t"))
    size = len(batch_bytes())
    connection.send(fetch_request(max_wait_ms=20_000, min_bytes=3 * size), 12)
    with RawConnection(broker.bootstrap) as other:
        for _ in range(3):
            other.exchange(produce_request(), 9)
    answer = connection.receive()
    assert isinstance(answer, FetchResponse)
    assert len(answer.responses[0].partitions[0].records or b"") == 3 * size


def test_a_fetch_gives_what_there_is_when_its_time_is_over() -> None:
    clock = ManualClock(TIMESTAMP)
    with (
        threaded_broker(clock=clock) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        broker.call(lambda it: it.create_topic("t"))
        connection.exchange(produce_request(), 9)
        connection.send(fetch_request(max_wait_ms=200, min_bytes=10_000), 12)
        broker.until(lambda _: clock.next_timer_ms == 200)
        broker.advance(clock, 199)
        assert broker.call(watchers) == 1
        broker.advance(clock, 1)
        answer = connection.receive()
        assert isinstance(answer, FetchResponse)
        assert answer.responses[0].partitions[0].records
        assert broker.call(watchers) == 0


def test_a_fetch_ends_when_its_topic_is_deleted(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    broker.call(lambda it: it.create_topic("t"))
    connection.send(fetch_request(max_wait_ms=20_000), 12)
    connection.send(MetadataRequest(topics=[]), 1)
    with RawConnection(broker.bootstrap) as other:
        while not broker.call(watchers):
            other.exchange(MetadataRequest(topics=[]), 1)
        broker.call(lambda it: it.delete_topic("t"))
    answer = connection.receive()
    assert isinstance(answer, FetchResponse)
    assert answer.responses[0].partitions[0].error_code == 3


def test_a_client_that_leaves_while_its_fetch_waits(broker: ThreadedBroker) -> None:
    broker.call(lambda it: it.create_topic("t"))
    with RawConnection(broker.bootstrap) as connection:
        connection.send(fetch_request(max_wait_ms=20_000), 12)
        broker.until(watchers)
    broker.until(lambda it: watchers(it) == 0)
    assert is_alive(broker)


@pytest.mark.parametrize(("max_wait_ms", "min_bytes"), [(0, 1), (20_000, 0), (-1, 1)])
def test_fetches_that_do_not_wait(
    broker: ThreadedBroker, connection: RawConnection, max_wait_ms: int, min_bytes: int
) -> None:
    broker.call(lambda it: it.create_topic("t"))
    request = fetch_request(max_wait_ms=max_wait_ms, min_bytes=min_bytes)
    assert connection.exchange(request, 12).responses[0].partitions[0].records == b""


def test_one_fetch_of_many_partitions_keeps_to_its_limit(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    broker.call(lambda it: it.create_topic("t", 3))
    size = len(batch_bytes())
    for index in range(3):
        request = produce_request()
        request.topic_data[0].partition_data[0].index = index
        for _ in range(2):
            connection.exchange(request, 9)
    wanted = [FetchPartition(partition=index, partition_max_bytes=1000) for index in (2, 0, 1)]
    fetch = FetchRequest(max_bytes=3 * size + 1, topics=[FetchTopic(topic="t", partitions=wanted)])
    (topic,) = connection.exchange(fetch, 12).responses
    found = [(part.partition_index, len(part.records or b"")) for part in topic.partitions]
    assert found == [(2, 2 * size), (0, size), (1, 0)], "in the order of the request"


# Slow and silent clients, and the end


async def test_reading_stops_while_too_much_is_queued() -> None:
    clock = ManualClock(TIMESTAMP)
    async with Broker(BrokerSettings(max_queued_bytes=10_000), clock=clock) as broker:
        broker.create_topic("t")
        held = broker.control(lambda request: Delay(200), request=MetadataRequest, times=1)
        reader, writer = await asyncio.open_connection(*broker.bootstrap.split(":"))
        header = encode_request_header(MetadataRequest, 1, 5, None)
        writer.write(frame(header, MetadataRequest(topics=[]).encode(1)))
        request = produce_request(records=batch_bytes(value=bytes(9_000)))
        produce = frame(encode_request_header(ProduceRequest, 9, 6, None), request.encode(9))
        count = 3_000  # 27 MB: more than the sockets' buffers take
        writer.write(produce * count)
        await until(lambda: any(not session._reading for session in broker._node._sessions))
        assert writer.transport.get_write_buffer_size() > 0, "the broker does not read on"
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


async def test_sizes_that_clients_announce_take_no_memory() -> None:
    async with Broker() as broker:
        tracemalloc.start()
        try:
            peers = [await asyncio.open_connection(*broker.bootstrap.split(":")) for _ in range(50)]
            for _, writer in peers:
                writer.write(struct.pack(">i", 100_000_000) + b"x")
                writer.close()  # the broker has read what came when it sees the end
                await writer.wait_closed()
            await until(lambda: broker.connections == 0)
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert taken < 10_000_000, "some 64 KiB a connection, whatever it announces"


async def test_small_requests_with_large_answers_wait_for_their_client_too() -> None:
    """Each answer is small enough to be gathered with others; together they are 60 MB."""
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
        await stalls(broker)
        assert 0 < answered < 1_000
        writer.close()
        reader.feed_eof()
        await writer.wait_closed()


async def slow_client(broker: Broker, seen: list[int]) -> socket.socket:
    """A client that asks fifty times for 900 kB and takes nothing."""
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


async def test_work_stops_while_a_client_does_not_take_its_answers() -> None:
    seen: list[int] = []
    async with Broker(BrokerSettings(max_unsent_bytes=50_000)) as broker:
        with await slow_client(broker, seen):
            await stalls(broker)
            assert 0 < len(seen) < 50, "45 MB of answers are not piled up in memory"


async def test_a_client_that_takes_nothing_is_idle_too() -> None:
    seen: list[int] = []
    clock = ManualClock(TIMESTAMP)
    async with Broker(BrokerSettings(max_unsent_bytes=50_000), clock=clock) as broker:
        with await slow_client(broker, seen):
            await stalls(broker)
            await clock.advance(599_999)
            assert broker.connections == 1
            await clock.advance(1)
            await until(lambda: broker.connections == 0)
    assert len(seen) < 50


async def test_a_broken_frame_of_a_client_that_takes_nothing() -> None:
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


async def test_who_waits_for_an_answer_is_not_idle() -> None:
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


async def test_a_client_that_leaves_while_its_request_is_delayed() -> None:
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
        assert clock.next_timer_ms is None, "nothing waits for the time any more"


async def test_closing_ends_every_connection_and_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with Broker() as broker:
        broker.create_topic("t")
        peers = [await asyncio.open_connection(*broker.bootstrap.split(":")) for _ in range(5)]
        fetch = frame(encode_request_header(FetchRequest, 12, 1, None), fetch_request().encode(12))
        for _, writer in peers[:3]:
            writer.write(fetch)
        peers[3][1].write(b"\0\0\1\0abc")
        await until(lambda: (watchers(broker), broker.connections) == (3, 5))
    assert broker.connections == 0
    assert asyncio.all_tasks() == before
    assert not broker.topics["t"].partitions[0].log.watchers
    for reader, writer in peers:
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_clients_that_come_while_the_broker_closes() -> None:
    before = asyncio.all_tasks()
    for turns in range(6):
        broker = Broker()
        await broker.start()
        host, port = broker.bootstrap.split(":")
        with socket.create_connection((host, int(port))) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            async with asyncio.timeout(20):
                await broker.close()
            assert broker.connections == 0
            assert asyncio.all_tasks() == before
            with contextlib.suppress(ConnectionError):
                assert client.recv(1) == b""


@contextlib.contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Let this process open no further file or socket."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_too_many_open_files_are_waited_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The listener stays readable meanwhile, and must not keep the loop busy."""
    clock = ManualClock()
    async with Broker(clock=clock) as broker:
        host, port = broker.bootstrap.split(":")
        with socket.create_connection((host, int(port))):
            with no_descriptor_left():
                await until(lambda: "Too many open files" in caplog.text)
                await clock.advance(3_000)
                assert broker.connections == 0
            assert len(caplog.records) == 4, "at first, and once a second"
            await clock.advance(1_000)
            await until(lambda: broker.connections == 1)


async def test_closing_while_files_are_short(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The next attempt, for which the time has not come, is called off."""
    clock = ManualClock()
    broker = Broker(clock=clock)
    await broker.start()
    host, port = broker.bootstrap.split(":")
    with socket.create_connection((host, int(port))) as client:
        with no_descriptor_left():
            await until(lambda: "Too many open files" in caplog.text)
        await broker.close()
        with contextlib.suppress(ConnectionError):
            assert client.recv(1) == b""
    assert clock.next_timer_ms is None
    await clock.advance(1_000)
    assert broker.connections == 0
    assert "Exception in callback" not in caplog.text


async def test_close_may_be_cancelled() -> None:
    broker = Broker()
    await broker.start()
    _, writer = await asyncio.open_connection(*broker.bootstrap.split(":"))
    await until(lambda: broker.connections == 1)
    closing = asyncio.create_task(broker.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await broker.close()
    assert broker.connections == 0
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_broker_that_is_started_again_still_has_its_topics() -> None:
    broker = Broker()
    await broker.close()
    async with broker:
        broker.create_topic("t")
        first = broker.bootstrap
    async with broker:
        assert list(broker.topics) == ["t"]
        assert first.split(":")[0] == broker.bootstrap.split(":")[0]
