"""Tests that signals during an uninterrupted block are deferred, and that cleanup completes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from kproto_pipeline.demo.publishing import embedded_broker, topic_removed
from kproto_pipeline.job import interrupts
from kproto_pipeline.job.interrupts import (
    enter_uninterrupted,
    run_coroutine_in_thread,
    signals_as_interrupts,
    uninterrupted,
)

from kproto.client import Client

MAIN = threading.main_thread().ident or 0


@pytest.fixture(autouse=True)
def _as_python_begins() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_deferred_interrupt_is_raised_after_the_block() -> None:
    ended = []

    @uninterrupted()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert ended == [True]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_error_of_the_block_precedes_a_deferred_interrupt() -> None:
    @uninterrupted()
    def fail() -> None:
        signal.raise_signal(signal.SIGINT)
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        fail()


def test_without_an_interrupt_nothing_is_raised() -> None:
    with uninterrupted():
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ending_signals_interrupt(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), signals_as_interrupts():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # nohup ignores the signal, too
        with signals_as_interrupts():
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)


def test_signals_after_the_first_do_nothing() -> None:
    """Later signals are ignored, also during cleanup, and also if the first signal was deferred."""
    tidied = []

    def work() -> None:
        try:
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            with uninterrupted():
                signal.raise_signal(signal.SIGTERM)
            tidied.append(True)

    with signals_as_interrupts():
        with pytest.raises(KeyboardInterrupt):
            work()
        signal.raise_signal(signal.SIGINT)
    assert tidied == [True]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


#: A program whose exit handler runs until standard input is closed. It ignores no signal at first,
#: even if the tests run under nohup.
SLOW_TO_END = """
import atexit, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from kproto_pipeline.demo import command

def slow():
    print("ending", flush=True)
    sys.stdin.read()

def run(output, flights, *, batch):
    print("at work", flush=True)
    while True:
        time.sleep(0.01)

atexit.register(slow)
command.run = run
sys.argv = ["demo"]
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_during_exit_do_not_change_the_exit_code(number: signal.Signals) -> None:
    end = "from kproto_pipeline.job.interrupts import run_as_process\nrun_as_process(command.main)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{SLOW_TO_END}\n{end}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        for line in ("at work\n", "ending\n"):
            assert process.stdout.readline() == line
            process.send_signal(number)
        said, told = process.communicate(timeout=60)
    assert (process.returncode, said, told) == (128 + signal.SIGINT, "", "interrupted\n")


def test_entered_context_is_exited_after_an_interrupt() -> None:
    told = []

    @contextmanager
    def begun() -> Iterator[None]:
        signal.raise_signal(signal.SIGINT)
        try:
            yield
        finally:
            told.append("ended")

    with pytest.raises(KeyboardInterrupt), ExitStack() as closing:
        enter_uninterrupted(closing, begun())
    assert told == ["ended"]


def topics_of(bootstrap: str) -> list[str]:
    async def ask() -> list[str]:
        async with Client(bootstrap) as client:
            return [info.name for info in await client.refresh()]

    return asyncio.run(ask())


def create(bootstrap: str, topic: str) -> None:
    async def ask() -> None:
        async with Client(bootstrap) as client:
            await client.create_topics(topic)

    asyncio.run(ask())


@pytest.mark.slow
def test_topic_is_deleted_after_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    with embedded_broker() as bootstrap:

        @topic_removed(bootstrap, "t")
        def interrupted() -> None:
            create(bootstrap, "t")
            assert topics_of(bootstrap) == ["t"]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert topics_of(bootstrap) == []
        with topic_removed(bootstrap, "not created yet"):
            pass
    assert capsys.readouterr().err == ""


def test_topic_that_cannot_be_deleted_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # the socket never listens
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(KeyboardInterrupt), topic_removed(address, "t"):
            raise KeyboardInterrupt
    assert capsys.readouterr().err.startswith("topic t was not deleted: ")


def test_second_interrupt_does_not_abort_asyncio_cleanup() -> None:
    ended = []

    async def work() -> None:
        try:
            signal.pthread_kill(MAIN, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            signal.pthread_kill(MAIN, signal.SIGINT)
            await asyncio.sleep(0)
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_coroutine_in_thread(work)
    assert ended == [True]


def test_result_is_returned_without_an_interrupt() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert run_coroutine_in_thread(work) == 7


def test_interrupted_thread_start_leaves_no_coroutine_unawaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the interrupt comes before the thread starts, the coroutine must be closed.

    Otherwise Python would warn of a coroutine that was never awaited.
    """

    async def work() -> None:
        await asyncio.sleep(0)

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupts, "uninterrupted", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_coroutine_in_thread(work)
    gc.collect()
