"""Tests the client pool: shared clients, cancelled tasks, and a new event loop after a fork."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import pytest
from kproto_pipeline.spark.client_pool import (
    LoopTask,
    close_clients,
    run_on_loop,
    shared_client,
    start_on_loop,
    with_client,
)
from kproto_pipeline.spark.options.client_options import ClientOptions, client_options

from kproto import BrokerConnectionError
from kproto.client import Client
from kproto.messages import MetadataRequest
from tests.unit.client.scripted_broker import ScriptedBroker


def options_of(broker: ScriptedBroker) -> ClientOptions:
    return client_options({"bootstrap.servers": broker.bootstrap})


async def test_equal_options_share_a_client_and_its_metadata() -> None:
    async with ScriptedBroker({"t": 1}) as broker:
        met: list[Client] = []

        async def meet(client: Client) -> None:
            met.append(client)

        for _ in range(3):
            await asyncio.to_thread(with_client, options_of(broker), meet)
        assert len(set(met)) == 1
        assert broker.count(MetadataRequest) == 1
        await asyncio.to_thread(close_clients)
        await asyncio.to_thread(with_client, options_of(broker), meet)
        assert len(set(met)) == 2
        await asyncio.to_thread(close_clients)


def test_unreachable_broker_is_an_error_and_retried_by_the_next_use() -> None:
    options = client_options({"bootstrap.servers": "localhost:1"})

    async def never(client: Client) -> None:
        raise AssertionError(client)

    for _ in range(2):
        with pytest.raises(BrokerConnectionError):
            with_client(options, never)


def interrupt_main_thread(has_started: threading.Event) -> None:
    """Sends SIGINT as soon as the task runs and the main thread waits for the task's result."""
    assert has_started.wait(60)
    main = threading.main_thread().ident or 0
    end = time.monotonic() + 60
    while time.monotonic() < end:
        calls = [
            each.name
            for each in traceback.StackSummary.extract(
                traceback.walk_stack(sys._current_frames()[main]), limit=3, lookup_lines=False
            )
        ]
        if calls == ["wait", "wait", "result"]:
            os.kill(os.getpid(), signal.SIGINT)
            return
        time.sleep(0.001)


@pytest.fixture
def as_python_begins() -> Iterator[None]:
    """Makes SIGINT raise KeyboardInterrupt, as Python does by default.

    Otherwise the test would fail in a process that a shell has started in the background: such a
    process ignores SIGINT.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("as_python_begins")
def test_interrupt_cancels_the_task_first() -> None:
    ended: list[str] = []
    has_started = threading.Event()

    async def long() -> None:
        try:
            has_started.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.append("yes")

    interrupting = threading.Thread(target=interrupt_main_thread, args=[has_started])

    def interrupted(work: LoopTask[None]) -> None:
        interrupting.start()
        work.result()

    work = start_on_loop(long())
    with pytest.raises(KeyboardInterrupt):
        interrupted(work)
    assert ended == ["yes"]
    interrupting.join()


def test_close_clients_cancels_running_tasks() -> None:
    work = start_on_loop(asyncio.sleep(60))
    close_clients()
    with pytest.raises(asyncio.CancelledError):
        work.result()
    work.cancel()


def test_error_of_a_coroutine_is_raised_in_the_caller() -> None:
    async def wrong() -> None:
        raise ValueError("as it was")

    with pytest.raises(ValueError, match="as it was"):
        run_on_loop(wrong())


def _in_child(answers: multiprocessing.Queue[int]) -> None:
    answers.put(run_on_loop(_number()))
    close_clients()


async def _number() -> int:
    await asyncio.sleep(0)
    return 7


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_process_has_a_loop_of_its_own() -> None:
    assert run_on_loop(_number()) == 7
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[int] = context.Queue()
    child = context.Process(target=_in_child, args=(answers,))
    child.start()
    assert answers.get(timeout=30) == 7
    child.join(30)
    assert child.exitcode == 0


async def test_concurrent_users_share_a_client_while_it_opens() -> None:
    async with ScriptedBroker({"t": 1}) as broker:
        options = options_of(broker)

        async def use() -> Client:
            async with shared_client(options, retry=True) as client:
                await asyncio.sleep(0.01)
                return client

        async def both() -> list[Client]:
            return list(await asyncio.gather(use(), use()))

        first, second = await asyncio.to_thread(run_on_loop, both())
        assert first is second
        await asyncio.to_thread(close_clients)
