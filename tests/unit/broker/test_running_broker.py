"""Tests the broker that runs in a thread: its methods, its thread, its clock and its end."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time

import pytest

from kproto import Client
from kproto.broker import BrokerSettings, Close, Cluster, ErrorCode, RunningBroker, running
from kproto.messages import FetchRequest, MetadataRequest, ProduceRequest
from kproto.testing.clock import ManualClock, SkewedClock
from kproto.wire.errors import BrokerConnectionError, BrokerResponseError, ConfigurationError
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

#: Members of `Cluster` that only make sense in its event loop.
ONLY_IN_THE_LOOP = {"broker", "close", "settings", "start"}


def wait_for_fetch(broker: RunningBroker) -> None:
    while not broker.requests(FetchRequest):
        time.sleep(0.001)


def test_running_broker_has_the_methods_of_cluster() -> None:
    public = {name for name in dir(Cluster) if not name.startswith("_")} - ONLY_IN_THE_LOOP
    assert public - set(dir(RunningBroker)) == set()
    for name in sorted(public):
        theirs, ours = getattr(Cluster, name), getattr(RunningBroker, name)
        if isinstance(theirs, property):
            assert isinstance(ours, property), name
        else:
            assert inspect.signature(ours) == inspect.signature(theirs), name
            assert not inspect.iscoroutinefunction(ours), name


def test_blocking_test_produces_and_reads_records() -> None:
    with running() as broker:
        broker.create_topic("orders", partitions=2)
        assert broker.produce("orders", b"one", key=b"k", headers=[("h", None)], partition=1) == 0
        assert broker.produce("orders", b"two", timestamp=1_000) == 0
        first, second = broker.records("orders")
        assert (first.value, first.partition, first.timestamp) == (b"two", 0, 1_000)
        assert (second.value, second.partition, second.key) == (b"one", 1, b"k")
        assert broker.records("orders", 1) == [second]
        assert broker.end_offset("orders", 1) == 1
        with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            broker.produce("bills", b"one")


async def test_async_test_calls_the_broker_without_await() -> None:
    with running() as broker:
        broker.create_topic("orders")
        async with Client(broker.bootstrap) as client:
            async with client.producer() as producer:
                await producer.send("orders", b"one")
            broker.produce("orders", b"two")
            consumer = client.consumer("orders", start="earliest", stop_at_end=True)
            async with consumer:
                assert [record.value async for record in consumer] == [b"one", b"two"]


async def test_waiting_consumer_gets_a_produced_record_at_once() -> None:
    with running() as broker:
        broker.create_topic("orders")
        async with (
            Client(broker.bootstrap) as client,
            client.consumer("orders", start="earliest", max_wait_ms=60_000) as consumer,
        ):
            task = asyncio.create_task(anext(aiter(consumer)))
            await asyncio.to_thread(wait_for_fetch, broker)
            broker.produce("orders", b"one")
            assert (await task).value == b"one"


def test_cluster_of_three_runs_in_one_thread() -> None:
    with running(brokers=3, racks=("a", "b", "c")) as broker:
        broker.create_topic("orders")
        assert broker.nodes == (1, 2, 3)
        assert len(broker.bootstrap.split(",")) == 3
        broker.stop_broker(1)
        assert (broker.leader("orders"), broker.leader_epoch("orders")) == (2, 1)
        broker.start_broker(1)
        assert set(broker.in_sync("orders")) == {1, 2, 3}


def test_frozen_clock_changes_only_by_advance() -> None:
    with running() as broker:
        broker.freeze()
        before = broker.now_ms()
        time.sleep(0.005)
        assert broker.now_ms() == before
        broker.advance(3_600_000)
        assert broker.now_ms() == before + 3_600_000
        broker.create_topic("orders", configs={"message.timestamp.type": "LogAppendTime"})
        broker.produce("orders", b"one")
        assert broker.records("orders")[0].timestamp == before + 3_600_000
        broker.resume()
        while broker.now_ms() == before + 3_600_000:
            time.sleep(0.001)


def test_advance_expires_a_member_session() -> None:
    with running() as broker:
        broker.freeze()
        broker.create_topic("orders", configs={"retention.ms": "1000"})
        broker.produce("orders", b"old")
        broker.advance(400_000)
        assert broker.records("orders") == []


@pytest.mark.parametrize("clock", [SkewedClock(), ManualClock()])
def test_clock_that_cannot_be_frozen_is_refused(clock: SkewedClock | ManualClock) -> None:
    with running(clock=clock) as broker:
        for method in (broker.freeze, broker.resume):
            with pytest.raises(ConfigurationError, match="leave out clock="):
                method()
        if isinstance(clock, ManualClock):
            broker.advance(1_000)
        else:
            with pytest.raises(ConfigurationError, match="cannot be advanced"):
                broker.advance(1_000)


def test_requests_are_logged_even_if_a_fault_refuses_them() -> None:
    with running() as broker, RawConnection(broker.bootstrap) as connection:
        fault = broker.control(ErrorCode("UNKNOWN_SERVER_ERROR"), request=MetadataRequest)
        connection.exchange(MetadataRequest(allow_auto_topic_creation=False), 12)
        assert fault.times == 0
        (logged,) = broker.requests(MetadataRequest)
        assert (logged.version, logged.message.allow_auto_topic_creation) == (12, False)
        assert broker.requests(ProduceRequest) == []
        broker.remove_control(fault)
        broker.clear_requests()
        assert broker.requests() == []


def test_control_function_that_calls_the_broker_gets_an_error() -> None:
    with running() as broker:

        def ask(request: object) -> Close:
            broker.end_offset("orders")
            return Close()

        control = broker.control(ask)
        with RawConnection(broker.bootstrap) as connection, pytest.raises(ClosedByBrokerError):
            connection.exchange(MetadataRequest(), 12)
        assert isinstance(control.fault, ConfigurationError)
        assert "would wait for ever" in str(control.fault)


def test_thread_ends_with_the_block_and_later_calls_are_refused() -> None:
    before = threading.active_count()
    with running() as broker:
        assert threading.active_count() == before + 1
        address = broker.bootstrap
    assert threading.active_count() == before
    with pytest.raises(ConfigurationError, match="does not run"):
        broker.records("orders")
    host, _, port = address.partition(":")
    with running(BrokerSettings(host=host, port=int(port))) as again:  # the port is free again
        assert again.bootstrap == address


def test_failed_start_raises_its_error_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with running() as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        with pytest.raises(BrokerConnectionError), running(BrokerSettings(port=port)):
            pass
    with pytest.raises(ConfigurationError), running(brokers=0):
        pass
    assert threading.active_count() == before


def test_error_in_the_block_stops_the_broker() -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), running() as broker:
        broker.call(lambda _: 1 / 0)
    assert threading.active_count() == before


def test_cluster_of_a_running_broker_is_reached_by_call() -> None:
    with running() as broker:
        node_id, thread = broker.call(lambda it: (it.broker(1).node_id, threading.current_thread()))
        assert node_id == 1
        assert thread is not threading.current_thread()


@pytest.mark.parametrize("in_loop", [True, False])
def test_wait_that_blocks_an_event_loop_says_so(in_loop: bool) -> None:
    with running() as broker:

        def wait() -> None:
            with pytest.raises(TimeoutError, match="no such group") as raised:
                broker.wait_for_group("billing", timeout_s=0.001)
            notes = getattr(raised.value, "__notes__", [])
            assert any("asyncio.to_thread" in note for note in notes) is in_loop

        async def wait_in_loop() -> None:
            wait()

        if in_loop:
            asyncio.run(wait_in_loop())
        else:
            wait()
