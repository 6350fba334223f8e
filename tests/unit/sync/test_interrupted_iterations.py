"""Interrupts iterations at each point where CPython checks for signals: no record is lost."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kproto
import kproto.codecs
import kproto.sync
from kproto.codecs import FunctionCodec
from kproto.sync.calls import PlainCall
from kproto.sync.loop_thread import LoopThread
from tests.support.embedded import ThreadedBroker
from tests.unit.sync.share_group_clients import client_of_share_group, start_at_earliest

RECORDS = 6
LISTS = 2

CODEC = FunctionCodec(lambda value: b"%d" % value, lambda data: int(data))

#: The functions that may be interrupted, besides `take`.
PLACES = (
    *(str(Path(str(each.__file__)).parent) for each in (kproto.sync, kproto.codecs)),
    __file__,
)


@pytest.fixture
def client(broker: ThreadedBroker) -> Iterator[kproto.sync.Client]:
    size = RECORDS // LISTS
    with client_of_share_group(
        broker, *(range(first, first + size) for first in range(0, RECORDS, size))
    ) as opened:
        yield opened


class Interrupter:
    """Raises KeyboardInterrupt at the `at`-th point where CPython checks for signals.

    Counts the points in the main thread from the begin of `__next__` of an iteration to its return:
    the begin of each function, and the return of each function in C. A wait of a call is such a
    point, too, before it begins, when the event loop has ended the call.
    """

    def __init__(self, at: int) -> None:
        self._left = at
        self.has_interrupted = False

    def on_event(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(PLACES) or code.co_name == "take":
            return
        if event == "c_call" and code is PlainCall.wait.__code__:
            while frame.f_locals["self"]._done.locked():
                time.sleep(0)
        elif event not in ("call", "c_return"):
            return
        self._left -= 1
        if self._left == 0:
            self.has_interrupted = True
            raise KeyboardInterrupt

    def take(self, consumer: Iterable[Any], taken: list[Any], count: int) -> None:
        """Appends records of `consumer` to `taken` until it has `count` of them."""
        sys.setprofile(self.on_event)
        try:
            for record in consumer:
                taken.append(record)
                if len(taken) == count:
                    return
        finally:
            sys.setprofile(None)


def value_of(record: Any) -> int:
    return int(record.value)


@pytest.mark.slow
@pytest.mark.parametrize("codec", [None, pytest.param(CODEC, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("group", [None, pytest.param("g", marks=pytest.mark.exhaustive)])
def test_interrupted_iteration_returns_each_record_once(
    client: kproto.sync.Client, group: str | None, codec: Any
) -> None:
    at = 0
    interrupts = True
    while interrupts:
        at += 1
        interrupter = Interrupter(at)
        taken: list[Any] = []
        group_settings: Any = (
            {} if group is None else {"group": f"{group}{at}", "auto_commit": False}
        )
        topics: Any = "one" if group is None else [("one", 0)]
        with client.consumer(topics, value=codec, start="earliest", **group_settings) as consumer:
            while len(taken) < RECORDS:
                try:
                    interrupter.take(consumer, taken, RECORDS)
                except KeyboardInterrupt:
                    continue
        assert [*map(value_of, taken)] == [*range(RECORDS)], f"interrupted at {at}"
        interrupts = interrupter.has_interrupted
    assert at > 20


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("codec", [None, CODEC])
def test_interrupted_share_iteration_returns_each_record_once(
    client: kproto.sync.Client, codec: Any
) -> None:
    at = 0
    interrupts = True
    while interrupts:
        at += 1
        interrupter = Interrupter(at)
        taken: list[Any] = []
        group = f"g{at}"
        start_at_earliest(client, group)
        with client.share_consumer("one", group=group, value=codec, max_wait_ms=50) as sharing:
            while len(taken) < RECORDS:
                try:
                    interrupter.take(sharing, taken, RECORDS)
                except KeyboardInterrupt:
                    continue
        assert sorted(map(value_of, taken)) == [*range(RECORDS)], f"interrupted at {at}"
        interrupts = interrupter.has_interrupted
    assert at > 20


class BusyLoop:
    """Raises KeyboardInterrupt when the event loop has ended a poll, and then blocks that loop.

    The event loop continues when the calling thread passes its next call to it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._continues = threading.Event()
        submit = LoopThread._submit

        def submitted(thread: LoopThread, call: PlainCall) -> None:
            submit(thread, call)
            self._continues.set()

        monkeypatch.setattr(LoopThread, "_submit", submitted)

    def on_event(self, frame: FrameType, event: str, _: object) -> None:
        if event == "c_call" and frame.f_code is PlainCall.wait.__code__:
            call = frame.f_locals["self"]
            while call._done.locked():
                time.sleep(0)
            self._continues.clear()
            call.loop.call_soon_threadsafe(self._continues.wait)
            raise KeyboardInterrupt

    def interrupt(self, take: Callable[[], object]) -> None:
        """Calls `take`, which must make a poll."""
        sys.setprofile(self.on_event)
        try:
            with pytest.raises(KeyboardInterrupt):
                take()
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("codec", [None, CODEC])
@pytest.mark.parametrize("iterates_again", [False, True])
def test_record_of_an_interrupted_poll_is_kept_while_the_event_loop_is_busy(
    client: kproto.sync.Client,
    monkeypatch: pytest.MonkeyPatch,
    shares: bool,
    codec: Any,
    iterates_again: bool,
) -> None:
    consumer: Any
    if shares:
        consumer = client.share_consumer("one", group="g", value=codec, max_wait_ms=50)
    else:
        consumer = client.consumer("one", value=codec)
    with consumer:
        iteration = iter(consumer)
        busy = BusyLoop(monkeypatch)
        busy.interrupt(iteration.__next__)
        if iterates_again:
            iteration = iter(consumer)
        taken = [next(iteration) for _ in range(RECORDS)]
        assert sorted(map(value_of, taken)) == [*range(RECORDS)]
