"""Tests blocking consumers: iterations, commits, callbacks and `run`."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

import kproto
import kproto.sync
from tests.support.embedded import ThreadedBroker

RECORDS = 2_000


@pytest.fixture
def client(broker: ThreadedBroker) -> Iterator[kproto.sync.Client]:
    with kproto.sync.Client(broker.bootstrap) as opened:
        with opened.producer() as producer:
            producer.send_many("one", [b"%d" % number for number in range(RECORDS)])
        yield opened


def test_every_kind_of_iteration_returns_all_records(client: kproto.sync.Client) -> None:
    def read() -> kproto.sync.Consumer:
        return client.consumer("one", stop_at_end=True)

    assert [int(each.value or b"") for each in read()] == [*range(RECORDS)]
    assert sum(len(each.records) for each in read().record_lists()) == RECORDS
    assert sum(len(each.values) for each in read().values()) == RECORDS
    assert sum(len(each.batch.records()) for each in read().raw_batches()) == RECORDS
    with read() as consumer:
        polled = consumer.poll(10_000, max_records=7)
        assert [each.offset for each in polled["one", 0]] == [*range(7)]


def test_iteration_continues_after_the_last_returned_record(client: kproto.sync.Client) -> None:
    with client.consumer("one", stop_at_end=True) as consumer:
        iteration = iter(consumer)
        for expected in range(10):
            assert next(iteration).offset == expected
        iteration.close()
        assert next(iter(consumer)).offset == 10
        assert consumer.positions == {("one", 0): 11}
        assert next(consumer.record_lists()).records[0].offset == 11


def test_record_counts_as_processed_when_the_next_is_asked_for(
    client: kproto.sync.Client,
) -> None:
    with client.consumer("one", group="g", auto_commit=False) as consumer:
        iteration = iter(consumer)
        for expected in range(700):
            assert next(iteration).offset == expected
            if expected % 97 == 0:
                consumer.commit()
                committed = consumer.committed(("one", 0))[("one", 0)]
                assert (0 if committed is None else committed.offset) == expected
    with client.consumer("one", group="g") as consumer:
        assert next(iter(consumer)).offset == 679


def test_end_of_the_block_commits_the_last_record_and_an_exception_does_not(
    client: kproto.sync.Client,
) -> None:
    with client.consumer("one", group="g") as consumer:
        for record in consumer:
            if record.offset == 9:
                break
    assert client.committed_offsets("g")[("one", 0)].offset == 10
    with pytest.raises(LookupError), client.consumer("one", group="g") as consumer:  # noqa: PT012
        for record in consumer:
            if record.offset == 19:
                raise LookupError
    assert client.committed_offsets("g")[("one", 0)].offset == 19


def test_callbacks_run_in_threads_and_may_block(client: kproto.sync.Client) -> None:
    called: list[tuple[str, list[kproto.client.TopicPartition], str]] = []
    errors: list[str] = []

    def on_assigned(partitions: list[kproto.client.TopicPartition]) -> None:
        consumer.seek(("one", 0), 5)
        assert client.topic("one").name == "one"
        with pytest.raises(kproto.ConfigurationError) as refused:
            consumer.close()
        errors.append(str(refused.value))
        called.append(("assigned", partitions, threading.current_thread().name))

    def on_revoked(partitions: list[kproto.client.TopicPartition]) -> None:
        consumer.commit()
        called.append(("revoked", partitions, threading.current_thread().name))

    consumer = client.consumer("one", group="g", on_assigned=on_assigned, on_revoked=on_revoked)
    with consumer:
        assert next(iter(consumer)).offset == 5
    assert [(kind, partitions) for kind, partitions, _ in called] == [
        ("assigned", [("one", 0)]),
        ("revoked", [("one", 0)]),
    ]
    assert all(name.startswith("kproto.sync worker") for *_, name in called)
    assert errors == ["a callback cannot close: it would wait for its own end"]


def test_error_of_a_callback_is_raised_by_the_poll(client: kproto.sync.Client) -> None:
    def on_assigned(partitions: object) -> None:
        raise LookupError("not today")

    consumer = client.consumer("one", group="g", on_assigned=on_assigned)
    with consumer, pytest.raises(LookupError, match="not today"):
        consumer.poll(10_000)
    wrong: Any = asyncio.sleep
    with pytest.raises(kproto.ConfigurationError, match="on_lost is an async function"):
        client.consumer("one", group="g", on_lost=wrong)
    with pytest.raises(kproto.ConfigurationError, match="must be a function"):
        client.consumer("one", group="g", on_lost=cast(Any, 5))


def test_run_calls_plain_handlers_in_threads(client: kproto.sync.Client) -> None:
    threads: set[str] = set()

    def handle(value: int) -> None:
        threads.add(threading.current_thread().name)
        time.sleep(0.001)
        assert client.topic("one").name == "one"
        if value == 300:
            raise kproto.Stop(done=True)

    with client.consumer("one", group="g") as consumer:
        summary = consumer.run(
            handle, decode=lambda record: int(record.value or b""), order="none", workers=4
        )
    assert summary.handled >= 250
    assert 1 < len(threads) <= 4
    assert client.committed_offsets("g")[("one", 0)].offset >= 290


def test_run_in_transactions_and_batches(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    def handle(record: kproto.Record, transaction: kproto.sync.HandlerTransaction) -> None:
        transaction.send("t", record.value, partition=0)
        if record.offset == 50:
            raise kproto.Stop(done=True)

    with client.consumer("one", group="g") as consumer:
        consumer.run(handle, transactional_id="tx")
    assert len(broker.call(lambda it: it.records("t", 0))) >= 51

    sizes: list[int] = []

    def handle_batch(records: list[kproto.Record]) -> dict[int, Exception]:
        sizes.append(len(records))
        if len(sizes) == 3:
            raise kproto.Stop(done=True)
        return {}

    with client.consumer("one", group="other") as consumer:
        consumer.run_batches(handle_batch, batch_size=20)
        cases: list[tuple[Any, str]] = [
            (asyncio.sleep, "handler is an async function"),
            (5, "must be a"),
        ]
        for wrong, match in cases:
            with pytest.raises(kproto.ConfigurationError, match=match):
                consumer.run(wrong)
    assert max(sizes) == 20


def test_handler_cannot_close_its_consumer(client: kproto.sync.Client) -> None:
    refused: list[str] = []

    def handle(record: kproto.Record) -> None:
        try:
            consumer.close()
        except kproto.ConfigurationError as error:
            refused.append(str(error))
        raise kproto.Stop

    with client.consumer("one", group="g") as consumer:
        consumer.run(handle)
    assert "a handler cannot close its consumer" in refused[0]


def test_handler_that_does_not_end_is_left_and_its_next_call_is_cancelled(
    client: kproto.sync.Client,
) -> None:
    started, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def handle(record: kproto.Record) -> None:
        started.set()
        goes_on.wait(30)
        try:
            client.topic("one")
        except asyncio.CancelledError:
            ended.set()
            raise

    with client.consumer("one", group="g") as consumer:

        def close() -> None:
            started.wait(10)
            consumer.close()

        stopping = threading.Thread(target=close)
        stopping.start()
        consumer.run(handle, drain_timeout_ms=100)
        stopping.join()
        goes_on.set()
        assert ended.wait(10)
    committed = client.committed_offsets("g").get(("one", 0))
    assert committed is None or committed.offset == 0


def test_signal_stops_run_and_gets_its_handler_back(client: kproto.sync.Client) -> None:
    before = signal.getsignal(signal.SIGUSR1)

    def handle(record: kproto.Record) -> None:
        if record.offset == 3:
            os.kill(os.getpid(), signal.SIGUSR1)

    with client.consumer("one", group="g") as consumer:
        summary = consumer.run(handle, stop_on=[signal.SIGUSR1])
        assert summary.handled >= 4
        outcome: list[BaseException] = []

        def run() -> None:
            try:
                consumer.run(handle, stop_on=[signal.SIGUSR1])
            except kproto.ConfigurationError as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert "only the main thread handles signals" in str(outcome[0])
        with pytest.raises(kproto.ConfigurationError, match="SIGKILL cannot be handled"):
            consumer.run(handle, stop_on=[signal.SIGKILL])
    assert signal.getsignal(signal.SIGUSR1) is before


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration()])
def test_handler_does_not_end_the_event_loop(
    client: kproto.sync.Client, error: BaseException
) -> None:
    def handle(record: kproto.Record) -> None:
        raise error

    consumer = client.consumer("one", group="g")
    text = f"handler <function test_handler_does_not.* raised {type(error).__name__}"
    with consumer, pytest.raises(kproto.ConfigurationError, match=text):
        consumer.run(handle, retries=0)
    assert client.topic("one")
