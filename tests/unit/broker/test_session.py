"""Tests a connection: broken frames, the order of responses, waiting fetches, and closing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import socket
import struct
from collections.abc import Iterator

import pytest

from kproto.broker import Broker, BrokerSettings
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.api_versions_response import ApiVersionsResponse
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchResponse
from kproto.messages.metadata_request import MetadataRequest
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP, batch_bytes
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.patience import until
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.unit.broker.raw_requests import fetch_request, produce_request, watchers

UNKNOWN_API = 999
HEADER = struct.Struct(">hhih")


def is_alive(broker: ThreadedBroker) -> bool:
    with RawConnection(broker.bootstrap) as another:
        return another.exchange(ApiVersionsRequest(), 0).error_code == 0


def closes(connection: RawConnection) -> bool:
    try:
        connection.receive_frame()
    except ClosedByBrokerError:
        return True
    return False


# Unknown and unsupported


@pytest.mark.parametrize("version", [6, 99, -1, 32767])
def test_unknown_version_of_api_versions_is_answered_in_v0(
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
    assert connection.exchange(ApiVersionsRequest(), 4).error_code == 42, (
        "the connection stays open"
    )


@pytest.mark.parametrize(
    ("api_key", "version"), [(UNKNOWN_API, 0), (-5, 0), (3, 14), (3, -1), (22, 6), (27, 3)]
)
def test_other_unsupported_versions_close_the_connection(
    broker: ThreadedBroker, connection: RawConnection, api_key: int, version: int
) -> None:
    connection.send_bytes(frame(HEADER.pack(api_key, version, 1, -1), bytes(20)))
    assert closes(connection)
    assert is_alive(broker)


def test_bytes_after_a_request_are_ignored(connection: RawConnection) -> None:
    header = encode_request_header(MetadataRequest, 1, 0, "raw")
    body = MetadataRequest(topics=[]).encode(1)
    connection.send_bytes(frame(header, body, b"\0\0\0"))
    assert connection.receive_frame()[:4] == bytes(4)


# Broken frames


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


def test_a_client_may_disconnect_inside_a_frame(broker: ThreadedBroker) -> None:
    for data in (b"\0", struct.pack(">i", 100), struct.pack(">i", 90_000_000) + bytes(100_000)):
        with RawConnection(broker.bootstrap) as leaving:
            leaving.send_bytes(data)
    assert is_alive(broker)


def test_the_frame_size_limit_is_a_setting() -> None:
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


def test_random_bytes_do_not_stop_the_broker(broker: ThreadedBroker) -> None:
    seed = random.Random(18)
    for _ in range(100):
        body = seed.randbytes(seed.randrange(60))
        key = struct.pack(">h", seed.choice([0, 1, 2, 3, 18, 19, 20, 22]))
        version = struct.pack(">h", seed.randrange(14))
        with RawConnection(broker.bootstrap) as connection:
            with contextlib.suppress(ConnectionError):
                connection.send_bytes(frame(key, version, body))
                # If the random bytes are a valid request, its response must not make the test wait.
                connection.send_bytes(struct.pack(">i", -1))
            with contextlib.suppress(ClosedByBrokerError):
                while True:
                    connection.receive_frame()
    assert is_alive(broker)


# Order


def test_responses_are_sent_in_request_order() -> None:
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
        assert broker.call(lambda it: it.end_offset("t")) == 1, (
            "the waiting fetch delays later responses"
        )
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


def test_an_append_completes_a_waiting_fetch(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
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


def test_a_fetch_returns_available_records_after_max_wait() -> None:
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


def test_a_client_may_disconnect_while_its_fetch_waits(broker: ThreadedBroker) -> None:
    broker.call(lambda it: it.create_topic("t"))
    with RawConnection(broker.bootstrap) as connection:
        connection.send(fetch_request(max_wait_ms=20_000), 12)
        broker.until(watchers)
    broker.until(lambda it: watchers(it) == 0)
    assert is_alive(broker)


@pytest.mark.parametrize(("max_wait_ms", "min_bytes"), [(0, 1), (20_000, 0), (-1, 1)])
def test_fetches_without_max_wait_are_answered_at_once(
    broker: ThreadedBroker, connection: RawConnection, max_wait_ms: int, min_bytes: int
) -> None:
    broker.call(lambda it: it.create_topic("t"))
    request = fetch_request(max_wait_ms=max_wait_ms, min_bytes=min_bytes)
    assert connection.exchange(request, 12).responses[0].partitions[0].records == b""


def test_a_fetch_of_many_partitions_respects_its_limit(
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


# Closing


async def test_close_ends_every_connection_and_task() -> None:
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


async def test_connections_during_close_are_closed() -> None:
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
    """Prevents this process from opening another file or socket."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_accepting_resumes_after_too_many_open_files(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The listening socket stays readable, which must not keep the event loop busy."""
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


async def test_close_succeeds_with_too_many_open_files(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Close cancels the next attempt to accept, which is not due yet."""
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


async def test_a_restarted_broker_keeps_its_topics() -> None:
    broker = Broker()
    await broker.close()
    async with broker:
        broker.create_topic("t")
        first = broker.bootstrap
    async with broker:
        assert list(broker.topics) == ["t"]
        assert first.split(":")[0] == broker.bootstrap.split(":")[0]
