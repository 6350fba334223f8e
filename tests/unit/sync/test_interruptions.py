"""Tests calls that Ctrl-C interrupts: they return at once, and lose no record."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import kproto
import kproto.sync
from kproto.broker import SilentConnection
from kproto.messages import ProduceRequest
from kproto.sync.calls import Call, PlainCall, TaskLoop
from tests.support.embedded import ThreadedBroker
from tests.unit.sync.programs import WARNINGS, run_program


@contextmanager
def ctrl_c(after_s: float) -> Iterator[None]:
    """Sends SIGINT to this process after a time; the block must raise KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_interrupted_poll_returns_at_once_and_the_next_one_works(broker: ThreadedBroker) -> None:
    with (
        kproto.sync.Client(broker.bootstrap) as client,
        client.producer() as producer,
        client.consumer("one", group="g") as consumer,
    ):
        begun = time.monotonic()
        with ctrl_c(0.2):
            consumer.poll(600_000)
        assert time.monotonic() - begun < 10
        with ctrl_c(0.1):
            next(iter(consumer))
        producer.send("one", b"x")
        assert next(iter(consumer)).value == b"x"
        consumer.commit()


@pytest.mark.slow
def test_interrupted_send_may_still_be_sent(broker: ThreadedBroker) -> None:
    broker.call(lambda it: it.control(SilentConnection(), request=ProduceRequest))
    settings = kproto.ClientSettings(error_flush_ms=100, cancelled_close_ms=100)
    opened = kproto.sync.Client(broker.bootstrap, settings)
    with pytest.raises(KeyboardInterrupt), opened as client:  # noqa: PT012
        producer = client.producer()
        with ctrl_c(0.2):
            producer.send("one", b"x")
        raise KeyboardInterrupt
    assert producer.is_closed


@pytest.mark.parametrize("kind", ["records", "record_lists", "values", "raw_batches", "poll"])
def test_records_of_an_interrupted_call_are_returned_again(
    kind: str, broker: ThreadedBroker
) -> None:
    with kproto.sync.Client(broker.bootstrap) as client:
        with client.producer() as producer:
            producer.send_many("one", [b"%d" % number for number in range(50)])
        for consumer in (
            client.consumer("one"),
            client.consumer("one", group=kind, auto_commit=False),
        ):
            with consumer:
                assert next(iter(consumer)).offset == 0

                def take(consumer: kproto.sync.Consumer | kproto.sync.GroupConsumer) -> object:
                    if kind == "poll":
                        return consumer.poll(10_000)
                    if kind == "records":
                        return next(iter(consumer))
                    return next(getattr(consumer, kind)())

                first = take(consumer)
                consumer._call_plain(consumer._wrapped._return_in_flight)
                assert repr(take(consumer)) == repr(first)


def test_call_that_has_succeeded_is_undone_if_its_thread_is_interrupted() -> None:
    loop = TaskLoop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    undone = threading.Event()

    async def succeed() -> int:
        return 5

    def interrupted(call: PlainCall) -> None:
        loop.call_soon_threadsafe(call.start)
        while call.result != 5:
            time.sleep(0.001)
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            Call(loop, succeed, (), {}, undone.set).wait(interrupted)
        assert undone.wait(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


PROGRAM = """
import time, threading

with kproto.sync.Client(bootstrap) as client:
    with client.producer() as producer:
        producer.send_many("one", [b"%d" % number for number in range(20)])

    def handle(record):
        if record.offset == 10:
            print("running")
        time.sleep(0.01 if record.offset < 10 else 0.3)

    try:
        with client.consumer("one", group="g") as consumer:
            consumer.run(handle, workers=1)
    except KeyboardInterrupt:
        print("interrupted")
    print(10 <= client.committed_offsets("g")["one", 0].offset <= 12)
print([each.name for each in threading.enumerate()])
"""


@pytest.mark.slow
def test_interrupted_run_ends_its_handlers_and_commits(broker: ThreadedBroker) -> None:
    def interrupt(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGINT)

    ended = run_program(PROGRAM, broker.bootstrap, *WARNINGS, on_start=interrupt)
    assert ended == (0, "running\ninterrupted\nTrue\n['MainThread']\n", "")


@pytest.mark.slow
def test_termination_stops_run(broker: ThreadedBroker) -> None:
    def terminate(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGTERM)

    ended = run_program(PROGRAM, broker.bootstrap, *WARNINGS, on_start=terminate)
    assert ended == (0, "running\nTrue\n['MainThread']\n", "")
